"""Runs of a pipeline in their own process, like scheduled runs: `windowlib run FILE --json`.

PySpark allows one kind of Spark session in a process, so two engines need two processes.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRESS_LINES = {"WINDOWLIB_PROGRESS": "0s"}  # no progress lines: the demo shows each batch itself


def batches(file: Path) -> Iterator[dict[str, Any]]:
    """Runs everything new. Yields each batch after its commit, as `windowlib run --json` prints it.

    A failed run has printed its error on stderr. This process then ends with the same exit code.
    """
    command = [sys.executable, "-P", "-m", "windowlib", "run", str(file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **PROGRESS_LINES}) as run:
        assert run.stdout, "a pipe"
        for line in run.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if run.returncode:
        raise SystemExit(run.returncode)
