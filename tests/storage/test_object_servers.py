"""The servers of object stores end with the tests that started them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.object_servers import Server

PROJECT = Path(__file__).parents[2]
ENDS_S = 60
STARTS = """
import sys, time
from pathlib import Path
from tests.support.object_servers import s3proxy
with s3proxy(Path(sys.argv[1])) as server:
    print(server.port, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux ends a process with its parent")
def test_a_server_ends_with_a_killed_test_run(s3_server: Server, tmp_path: Path) -> None:
    """`s3_server` skips the test on a machine without the server."""
    command = [sys.executable, "-c", STARTS, str(tmp_path)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        port = int(tests.stdout.readline())
        assert port != s3_server.port
        assert _listens(port)
        tests.kill()
    deadline = time.monotonic() + ENDS_S
    while _listens(port):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
