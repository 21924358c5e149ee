"""Runs the pipeline of `tests.clicks` on the warm engine: `python -m tests.warm_run FOLDER [BATCH:MOMENT …]`.

At each moment (see `tests.killed`) of its batch the engine's JVM is ended by SIGKILL. Without any, the events are read
once more, as JSON. Prints, as JSON, which batches were done, and which JVMs were children of this process.
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

from tests.clicks import CLICKS, clicks, clock, events
from tests.killed import FILES, at
from windowlib.definition.definition import Definition
from windowlib.engines.warm.state import folder, read
from windowlib.runs.run import Run
from windowlib.runs.start import run

WARM = CLICKS + '[spark]\nmaster = "warm"\n'
JSON = WARM.replace('format = "parquet"', 'format = "json"').replace(
    "[watermark]",
    '[source.schema]\nid = "string"\nuser = "string"\nat_ms = "bigint"\nvalue = "bigint"\n[watermark]',
)


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


def in_json(place: Path) -> Definition:
    """The pipeline with the same events in files of JSON."""
    definition = clicks(place, 0, JSON)
    for number in range(1, FILES + 1):
        path = place / "incoming" / f"{number}.json"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in events(number)))
        os.utime(path, ns=(number, number))
    return definition


def main(place: Path, moments: list[str]) -> None:
    """Runs the pipeline in `place`; a moment that is named twice kills twice."""
    patch = pytest.MonkeyPatch()
    for text, times in Counter(moments).items():
        batch, _, moment = text.partition(":")
        at(patch, moment, kills(times), int(batch))
    reports = run(Run.of(clicks(place, FILES, WARM), clock))
    of_json = [] if moments else run(Run.of(in_json(place / "text"), clock))
    outcome = {
        "batches": [report.batch_id for report in reports],
        "batches_of_json": [report.batch_id for report in of_json],
        "java": [child.pid for child in psutil.Process().children(recursive=True) if child.name() == "java"],
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
