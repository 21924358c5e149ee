"""`make demo-s3`: a server, the demo in it, and the end of the server."""

import re
import socket
import sys
from pathlib import Path

import pytest

from tests.support.object_servers.__main__ import main
from windowlib.cli.main import main as windowlib

MAKEFILE = Path(__file__).parents[2] / "Makefile"
LOOKS = """
from windowlib.storage.address import store_at
store = store_at("s3://windowlib/demo")
store.put("a", b"1")
print([found.path for found in store.list()])
raise SystemExit(3)
"""


@pytest.mark.slow
def test_a_command_reaches_an_empty_server_which_ends_with_it(
    s3_server: object, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main("s3", sys.executable, "-c", LOOKS) == 3
    printed = capfd.readouterr().out
    assert "['a']" in printed
    ended = re.search(r"The s3 server on port (\d+) has ended", printed)
    assert ended
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(ended[1])), timeout=5)


def test_make_runs_the_demo_in_the_bucket_of_that_server() -> None:
    rule = MAKEFILE.read_text(encoding="utf-8").partition("\ndemo-s3:")[2].partition("\n\n")[0]
    assert "tests.support.object_servers s3 $(BIN)/windowlib demo --engine sail --store s3://windowlib/demo" in rule


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--store", "/data"], "--store /data is no address of an object store: expected `s3://bucket/folder`"),
        (["logs", "--store", "s3://b"], "--store is for generated files"),
        (["--store", "ftp://b"], "ftp:// is no known kind of storage"),
    ],
)
def test_an_address_that_cannot_be_is_refused(
    arguments: list[str], sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        windowlib("demo", *arguments, "--folder", str(tmp_path / "demo"))
    assert ended.value.code == 2
    assert f"error: {sentence}" in capfd.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "demo").exists()
