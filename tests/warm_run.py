"""Runs the pipeline of `tests.clicks` on the warm engine: `python -m tests.warm_run FOLDER [BATCH:MOMENT …]`.

At each moment (see `tests.killed`) of its batch the engine's JVM is ended by SIGKILL. Prints, as JSON, which
batches were done, and which JVMs were children of this process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.clicks import CLICKS, clicks, clock
from tests.killed import FILES, at
from windowlib.engines.warm.state import folder, read
from windowlib.runs.run import Run
from windowlib.runs.start import run

WARM = CLICKS + '[spark]\nmaster = "warm"\n'


def kills(times: int) -> Callable[[], None]:
    """What ends the engine's JVM when it is called, the first so many times."""
    left = list(range(times))

    def kill() -> None:
        state = read(folder())
        assert state
        assert state.server
        if left:
            left.pop()
            os.kill(state.server.pid, signal.SIGKILL)

    return kill


def main(place: Path, moments: list[str]) -> None:
    """Runs the pipeline in `place`; a moment that is named twice kills twice."""
    patch = pytest.MonkeyPatch()
    for text, times in Counter(moments).items():
        batch, _, moment = text.partition(":")
        at(patch, moment, kills(times), int(batch))
    reports = run(Run.of(clicks(place, FILES, WARM), clock))
    outcome = {
        "batches": [report.batch_id for report in reports],
        "java": [child.pid for child in psutil.Process().children(recursive=True) if child.name() == "java"],
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
