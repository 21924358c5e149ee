"""Batches of a grown pipeline in processes of their own, as cron or Airflow starts them.

`python -m tests.world.growth.processes FOLDER NOW_MS` is one of them: a run at that time, on what has arrived.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

from tests.world.growth.growth import Growth
from windowlib.definition.definition import load_definition
from windowlib.runs.run import RunRequest
from windowlib.runs.start import run
from windowlib.storage.disk import Disk


def measured(growth: Growth, count: int) -> str:
    """Runs the next `count` batches, and as many empty runs, each in its own process; returns their costs."""
    first = growth.batches() + 1
    costs_ms: dict[str, list[float]] = {"batch": [], "empty run": []}
    for number in range(first, first + count):
        growth.arrive(number)
        for of in costs_ms.values():
            of.append(_process_ms(growth))
        assert growth.batches() == number
    batch_ms, empty_ms = (statistics.median(of) for of in costs_ms.values())
    return f"{count} processes from batch {first} on: CPU ms: batch {batch_ms:.0f}, empty run {empty_ms:.0f}"


def _process_ms(growth: Growth) -> float:
    def so_far_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = so_far_s()
    subprocess.run([sys.executable, "-m", __name__, str(growth.folder), str(growth.now_ms)], check=True)
    return (so_far_s() - before) * 1000


if __name__ == "__main__":
    folder, now_ms = Path(sys.argv[1]), int(sys.argv[2])
    definition = load_definition(folder / "grown.toml").model_copy(update={"store": Disk(folder / "warehouse")})
    run(RunRequest.of(definition, lambda: now_ms))
