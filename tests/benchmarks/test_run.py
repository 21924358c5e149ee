"""The benchmark, for real and tiny: every workload, all sides that are installed publish the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from benchmarks.clickstream import Clicks
from benchmarks.nexmark import Bids
from benchmarks.plans import operators, windows_plan
from benchmarks.run import Choice, bench
from benchmarks.sides.registry import SIDES
from benchmarks.turns import measure
from benchmarks.worker import in_this_process
from benchmarks.workload import Size
from benchmarks.workloads import Stream, workloads
from windowlib.engines.spark import ROWS_PER_TASK
from windowlib.model.errors import WindowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Users so few that sessions meet late events, and the hot one fills count windows.
FEW = workloads(Stream(Clicks(users=60, hot_users=1)), Bids(events_per_second=20))
TINY = Size(files=2, events=1200)
TWO_ROW_GROUPS = ROWS_PER_TASK + 10_000  # two tasks read such a file
WITH_FLINK = ("sessions", "sliding", "unkeyed", "count", "late")  # a JVM for each case: not all of them


QUICK = ("sessions",)
AS_OTHERS = pytest.mark.long("a workload more; what sides publish is compared for some in make test")


def installed(*names: str) -> list[str]:
    found = []
    for name in names:
        try:
            SIDES[name].need()
        except WindowError:
            continue
        found.append(name)
    return found


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=AS_OTHERS) for name in FEW])
def test_all_sides_publish_the_same(spark: SparkSession, name: str, tmp_path: Path) -> None:
    """In this process and its session: the seconds are not looked at."""
    sides = ["ours", "floor", *installed("duckdb", "polars", *(["flink"] if name in WITH_FLINK else []))]
    for number, case in enumerate(FEW[name].cases(TINY)):
        folder = tmp_path / str(number)
        folder.mkdir()
        measured = measure(FEW[name], case, sides, folder, lambda text: None, in_this_process)
        assert all(times for by_side in measured.seconds.values() for times in by_side.values())
        assert {one.side for one in measured.agreements} == {*sides} - {"ours", "floor"} - measured.left_out.keys()
        assert all(agreement.rows for agreement in measured.agreements)
        assert not case.memory or measured.memory_mib["ours"] > 20


@pytest.mark.long("three processes, two of them Structured Streaming's; what sides publish is compared in make test")
def test_processes_and_streaming() -> None:
    """As the command does it: a process for each side, and one for each file of a side that starts cold."""
    sides = ["ours", "streaming-long", "ours-sail-cold"]
    said: list[str] = []
    [measured] = bench(Choice(["sessions"], sides, TINY), FEW, said.append)
    assert [(one.side, one.other) for one in measured.agreements] == [(side, "ours") for side in sides[1:]]
    assert all(agreement.rows for agreement in measured.agreements)
    assert len(said) == 2 * len(sides)


@pytest.fixture
def divided(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small files are read as large ones are: in row groups, by as many tasks as there are cores."""
    monkeypatch.setattr(pq, "write_table", partial(pq.write_table, row_group_size=ROWS_PER_TASK // 2))
    cost = "spark.sql.files.openCostInBytes"
    before = spark.conf.get(cost)
    spark.conf.set(cost, "1")
    yield
    spark.conf.set(cost, before)


@pytest.mark.parametrize(
    ("name", "sorts", "shuffles"),
    [
        ("sessions", 1, ["user_id", "user_id, _groupingexpression"]),
        pytest.param(
            "tumbling", 0, ["user_id, _groupingexpression", "user_id, state_window_start_ms"], marks=AS_OTHERS
        ),
        pytest.param("sliding", 0, ["user_id", "user_id, _groupingexpression", "user_id"], marks=AS_OTHERS),
    ],
)
def test_events_are_not_sorted_and_meet_no_python(
    spark: SparkSession, name: str, sorts: int, shuffles: list[str], divided: None, tmp_path: Path
) -> None:
    """As docs/benchmark.md says: what is sorted, if anything, are slices that have been shuffled."""
    steps = [line.strip() for line in operators(windows_plan(spark, name, TWO_ROW_GROUPS, tmp_path))]
    assert not [step for step in steps if "Python" in step or "Arrow" in step]
    assert [step for step in steps if "Exchange" in step] == [f"Exchange hashpartitioning({by})" for by in shuffles]
    assert steps.count("Sort") == sorts
    assert "Sort" not in steps[steps.index("Scan parquet") :]
    above_slices = steps[: steps.index("Scan parquet")]
    assert "HashAggregate" in above_slices[max(i for i, step in enumerate(above_slices) if step in ("Sort", "Union")) :]
