"""The benchmark, for real and tiny: every workload, all sides that are installed publish the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.bench.clickstream import Clicks
from jobs.bench.nexmark import Bids
from jobs.bench.sides.registry import SIDES
from jobs.bench.turns import measure
from jobs.bench.worker import in_this_process
from jobs.bench.workload import Size
from jobs.bench.workloads import Stream, workloads
from windowlib.errors import WindowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Users so few that sessions meet late events, and hot ones fill count windows.
FEW = workloads(Stream(Clicks(users=60, hot_users=1)), Bids(events_per_second=20))
TINY = Size(files=2, events=1200)


def installed(*names: str) -> list[str]:
    found = []
    for name in names:
        try:
            SIDES[name].need()
        except WindowError:
            continue
        found.append(name)
    return found


@pytest.mark.parametrize("name", FEW)
def test_a_workload(spark: SparkSession, name: str, tmp_path: Path) -> None:
    sides = installed("ours", "floor", "duckdb", "polars", "flink")
    said: list[str] = []
    for number, case in enumerate(FEW[name].cases(TINY)):
        folder = tmp_path / str(number)
        folder.mkdir()
        measured = measure(FEW[name], case, sides, folder, "spark", said.append, in_this_process)
        assert all(len(times) >= 1 for by_side in measured.seconds.values() for times in by_side.values())
        compared = {agreement.side for agreement in measured.agreements}
        assert compared == {*sides} - {"ours", "floor"} - measured.left_out.keys()
        assert all(agreement.rows for agreement in measured.agreements)
    assert said
