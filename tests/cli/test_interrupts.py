"""Ctrl-C at the moments when no command has begun yet: while Python imports the package and the command line."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.private_apis.page import holds
from windowlib.runs.interrupts import INTERRUPTED


@holds("runs/interrupts.py", "os._exit")
@pytest.mark.parametrize("imported", ["windowlib.runs.interrupts", "windowlib.model.windows", "typer", "windowlib"])
def test_an_interruption_while_python_imports_is_silent(imported: str) -> None:
    command = [sys.executable, "-X", "importtime", "-P", "-m", "windowlib", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert any(line.rpartition("|")[2].strip() == imported for line in process.stderr)
        process.send_signal(signal.SIGINT)
        said = [line for line in process.stderr if not line.startswith("import time:")]
        shown = process.stdout.read()
    assert (process.returncode, said, shown) == (INTERRUPTED, [], "")
