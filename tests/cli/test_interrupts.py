"""Ctrl-C while Python imports the package, and while an engine computes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.clicks import START_MS
from tests.support.installed import SESSIONS
from tests.support.private_apis import holds
from windowlib.cli.interrupts import GRACE_S, INTERRUPTED
from windowlib.definition.definition import load_definition
from windowlib.publication.readers import read_table


def started(command: list[str], folder: Path | None = None) -> subprocess.Popen[str]:
    """Process that a terminal can interrupt, even if the tests were started in the background."""
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@holds("cli/interrupts.py", "os._exit")
@pytest.mark.parametrize("imported", ["windowlib.cli.interrupts", "windowlib.model.windows", "typer", "windowlib"])
def test_an_interruption_while_python_imports_is_silent(imported: str) -> None:
    command = [sys.executable, "-X", "importtime", "-P", "-m", "windowlib", "--help"]
    with started(command) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert any(line.rpartition("|")[2].strip() == imported for line in process.stderr)
        process.send_signal(signal.SIGINT)
        said = [line for line in process.stderr if not line.startswith("import time:")]
        shown = process.stdout.read()
    assert (process.returncode, said, shown) == (INTERRUPTED, [], "")


ROWS = 600_000


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.fault(
    "Ctrl-C in a terminal whose run was started to ignore it, as by nohup", "the run goes on, and so does its engine"
)
def test_a_run_that_ignores_interruptions_goes_on(tmp_path: Path) -> None:
    """Sail installs its own handler of the signal, which would end its server."""
    code = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from windowlib.engines.sail import session
spark = session()
os.kill(os.getpid(), signal.SIGINT)
print(spark.range(3).count(), spark.range(4).count())
"""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ended.stdout == "3 4\n", ended.stderr


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.fault(
    "Ctrl-C while the engine keeps the process busy",
    "the run ends within seconds and names its unfinished batch; the next run finishes it at once",
)
def test_an_interrupted_run_ends_while_the_engine_computes(tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    (tmp_path / "small.toml").write_text(f'engine = "sail"\n{SESSIONS}')
    rows = {"user": [f"u{n % 100_000}" for n in range(ROWS)], "ts": [START_MS + 7 * n for n in range(ROWS)]}
    pq.write_table(pa.table(rows), tmp_path / "incoming" / "1.parquet")
    run = [sys.executable, "-P", "-m", "windowlib", "run", "small.toml"]
    with started(run, tmp_path) as process:
        assert process.stderr is not None
        while not any((tmp_path / "warehouse").glob("small/_staging/*")) and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        try:
            shown, complained = process.communicate(timeout=60)
        finally:
            process.kill()
    assert time.monotonic() - began < 3 * GRACE_S
    assert (process.returncode, shown) == (INTERRUPTED, "")
    assert complained.splitlines()[-1].startswith("interrupted: readers see the tables as the newest batch left them")
    again = subprocess.run([*run, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [json.loads(line)["batch_id"] for line in again.stdout.splitlines() if line.startswith("{")] == [1]
    assert read_table(load_definition(tmp_path / "small.toml"), "source_files").num_rows == 1
