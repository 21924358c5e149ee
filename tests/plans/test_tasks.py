"""Number of tasks after a shuffle in a batch, and permission for Spark to coalesce them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks, clock, tables
from windowlib.delta.tables import Table
from windowlib.engines.spark import ADAPTIVE, ADAPTIVE_FROM_TASKS, MOST_TASKS, ROWS_PER_TASK, size_tasks
from windowlib.runs.advance import advance

pytestmark = pytest.mark.spark

SLIDING = CLICKS.replace('type = "session"\ngap = "10m"', 'type = "sliding"\nsize = "1h"\nslide = "20m"')
PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture
def many_tasks(spark: SparkSession) -> Iterator[SparkSession]:
    """A Spark session whose batches may have as many tasks as on a cluster."""
    before = {name: spark.conf.get(name) for name in (MOST_TASKS, PARTITIONS, ADAPTIVE)}
    spark.conf.set(MOST_TASKS, "200")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.mark.parametrize(
    ("rows", "tasks"), [(0, 1), (ROWS_PER_TASK * 7 - 1, 7), (ROWS_PER_TASK * 7, 8), (ROWS_PER_TASK * 1000, 200)]
)
def test_tasks_follow_rows_and_many_tasks_may_be_coalesced(many_tasks: SparkSession, rows: int, tasks: int) -> None:
    size_tasks(many_tasks, rows, {})
    assert many_tasks.conf.get(PARTITIONS) == str(tasks)
    assert many_tasks.conf.get(ADAPTIVE) == str(tasks >= ADAPTIVE_FROM_TASKS).lower()


def test_a_definition_s_own_number_of_tasks_stays(many_tasks: SparkSession) -> None:
    many_tasks.conf.set(ADAPTIVE, "false")
    size_tasks(many_tasks, ROWS_PER_TASK * 1000, {ADAPTIVE: "false"})
    assert many_tasks.conf.get(ADAPTIVE) == "false"


@pytest.mark.long("from how many on they may be joined is in make test; joining them is Spark's own work")
@pytest.mark.parametrize(
    "text",
    [pytest.param(CLICKS, id="sessions"), pytest.param(SLIDING, id="sliding")],
)
def test_coalesced_tasks_give_the_same_tables_and_few_files(
    tmp_path: Path, many_tasks: SparkSession, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The batch continues the state of a batch with few tasks."""
    few = clicks(tmp_path / "few", files=2, definition=text)
    assert len(advance(few, lambda: many_tasks, clock=clock, max_batches=1)) == 1
    shutil.copytree(tmp_path / "few", tmp_path / "many")
    many = clicks(tmp_path / "many", files=0, definition=text)
    assert len(advance(few, lambda: many_tasks, clock=clock)) == 1
    monkeypatch.setattr("windowlib.engines.spark.ROWS_PER_TASK", 6)
    assert len(advance(many, lambda: many_tasks, clock=clock)) == 1
    assert int(str(many_tasks.conf.get(PARTITIONS))) > ADAPTIVE_FROM_TASKS
    assert tables(many) == tables(few)
    for table in ("results", "open_windows"):
        opened = [Table(of.store.below(table)) for of in (few, many)]
        in_few, in_many = (len(one.files(one.version())) for one in opened)
        assert in_many <= in_few
