"""A pipeline run as a schedule runs it: `windowlib run FILE --json`, in a process of its own.

PySpark allows one kind of session in a process, so two engines need two processes anyway.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRESS_LINES = {"WINDOWLIB_PROGRESS": "0s"}  # none: the demo shows each batch


def batches(file: Path) -> Iterator[dict[str, Any]]:
    """The batches of everything new, each once it is committed, as `windowlib run --json` prints it.

    A run that fails has said why on stderr; its exit code then ends this process, too.
    """
    command = [sys.executable, "-P", "-m", "windowlib", "run", str(file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **PROGRESS_LINES}) as run:
        assert run.stdout, "a pipe"
        for line in run.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if run.returncode:
        raise SystemExit(run.returncode)
