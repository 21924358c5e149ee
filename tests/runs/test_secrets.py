"""Credentials of object stores are in no output of a command: tables, logs, pages, errors, arguments of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.clicks import events
from tests.support.fault_proxy import Request, Rule, answered, fault_proxy
from tests.support.object_servers import ACCOUNT, KEY, Server
from tests.support.stored_pipelines import WRITES, StoredClicks, reach

pytestmark = [pytest.mark.spark, pytest.mark.embedded, pytest.mark.sail]

COMMANDS = (("run",), ("status",), ("report", "--out", "pages"))
SECRET, TOKEN = "SECRET-which-nobody-may-see", "TOKEN-which-nobody-may-see"


def planted(kind: str, server: Server) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Environment that holds or names secrets, and these secrets."""
    endpoint = {name: value for name, value in server.variables().items() if name.endswith(("_URL", "_ENDPOINT"))}
    if kind == "azure":
        return {**endpoint, "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}, (KEY,)
    return {
        **endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key-of-tests",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": TOKEN,
    }, (SECRET, TOKEN)


def is_of_engine(request: Request) -> bool:
    """Tests if a request is a write of Sail."""
    return request.method in WRITES and "_staging" in request.target


FAILURES = (
    (answered(403, "AccessDenied"), lambda _: True),
    (answered(400, "ExpiredToken"), lambda _: True),
    (answered(403, "AccessDenied"), is_of_engine),
)


@pytest.mark.promised(
    "no table, page, message, log file or argument of a process holds a secret", "s3", "azure", remote=True
)
@pytest.mark.parametrize("kind", ["s3", "azure"])
def test_no_output_of_a_command_holds_a_secret(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(f"{kind}_server")
    reach(server, monkeypatch)
    place = server.store()
    clicks = StoredClicks(tmp_path, str(place))
    clicks.arrive(1, events(1))
    file = clicks.definition().file
    with fault_proxy(server.port) as proxy:
        variables, secrets = planted(kind, server.behind(proxy.port))
        texts = [text for name, *more in COMMANDS for text in shown([name, str(file), *more], variables, tmp_path)]
        assert "  read 82  " in "".join(texts)
        clicks.arrive(2, events(2))
        for fault, chosen in FAILURES:
            proxy.rules[:] = [Rule(fault, times=None, chosen=chosen)]
            texts += shown(["run", str(file)], variables, tmp_path)
    stored = [place.get(found.path) or b"" for found in place.list()]
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    everything = b"".join([*stored, *written, *(text.encode() for text in texts)])
    assert [secret for secret in secrets if secret.encode() in everything] == []


def shown(command: list[str], variables: Mapping[str, str], folder: Path) -> list[str]:
    """Output of a command, and the arguments of its processes."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AZURE_"))}
    process = psutil.Popen(
        [sys.executable, "-P", "-m", "windowlib", *command],
        env={**known, **variables, "AWS_ALLOW_HTTP": "true", "AZURE_ALLOW_HTTP": "true", "TMPDIR": str(folder)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    arguments: set[str] = set()
    with process, ThreadPoolExecutor(1) as reader:
        output = reader.submit(process.communicate)
        while not output.done():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # it ends meanwhile
                for each in (process, *process.children(recursive=True)):
                    arguments |= {*each.cmdline()}
            time.sleep(0.05)
        return [output.result()[0], *arguments]
