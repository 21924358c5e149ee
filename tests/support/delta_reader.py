"""Reads the tables of the pipeline of `tests.support.clicks` with Spark's own Delta reader, in a JVM of its own.

`python -m tests.support.delta_reader FOLDER` leaves what Spark saw in FOLDER/seen: every table, `results` at each
version and what filters on `results` find, as Parquet; and every table of a copy in FOLDER/maintained, once that was
maintained.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tests.support.clicks import clicks
from tests.support.disks import folder_of
from tests.support.quick import QUICK
from tests.support.strategies import ALL
from windowlib.definition.definition import Definition
from windowlib.delta import checkpoints
from windowlib.delta.tables import Table
from windowlib.engines.spark import session
from windowlib.maintenance.maintain import maintain
from windowlib.publication.readers import spark_views
from windowlib.storage.disk import Disk

FILTERS = (
    "user = 'u3'",
    "user > 'u6'",
    "window_start >= timestamp'2026-03-02T06:00:00Z' and window_start < timestamp'2026-03-02T07:00:00Z'",
    "window_end <= timestamp'2026-03-02T01:00:00Z'",
    "total >= 400",
    "window_day = date'2026-03-01'",
)
FEW_TASKS = {"spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "1"}  # of small tables
MAINTAINED = "maintained"
READ_MAINTAINED = ("results", "open_windows", "source_files", "ledger")  # in `make test`
OLD = 4  # the batch whose rows are read while the files of older ones are away


def see(folder: Path) -> None:
    """Writes the rows that Spark reads."""
    spark = session("local[2]", {**FEW_TASKS, **QUICK}, with_delta=True)
    definition = clicks(folder, files=0)
    seen = folder / "seen"
    seen.mkdir()

    def table(name: str, **options: Any) -> DataFrame:
        return spark.read.options(**options).format("delta").load(str(folder_of(definition) / name))

    def keep(name: str, rows: DataFrame) -> None:
        pq.write_table(rows.toArrow(), seen / f"{name}.parquet")

    for log in folder_of(definition).glob("*/_delta_log"):
        keep(log.parent.name, table(log.parent.name))
    for version in range((Table(definition.store.below("results")).version() or 0) + 1):
        keep(f"version {version}", table("results", versionAsOf=version))
    for number, sql in enumerate(FILTERS):
        keep(f"filter {number}", table("results").where(sql))
    spark_views(spark, definition)
    keep("view of results", spark.sql("select * from results"))
    with older_files_away(definition):
        keep("newest batch", table("results").where(f"batch_id = {OLD}"))
    maintained = definition.model_copy(update={"store": Disk(folder / MAINTAINED)})
    shutil.copytree(folder_of(definition), folder_of(maintained))
    checkpoints.ENTRIES = 1
    maintain(maintained, "ann", only_newest=True)
    for log in folder_of(maintained).glob("*/_delta_log"):
        if ALL or log.parent.name in READ_MAINTAINED:
            keep(f"{MAINTAINED} {log.parent.name}", spark.read.format("delta").load(str(log.parent)))


@contextmanager
def older_files_away(definition: Definition) -> Iterator[None]:
    """Hides the files of `results` that hold no row of batch `OLD`, by their statistics."""
    results = Table(definition.store.below("results"))
    older = [folder_of(results) / f.path for f in results.files(results.version()) if f.high["batch_id"] < OLD]
    assert older, "need a file that a reader can skip"
    for path in older:
        path.rename(path.with_suffix(".away"))
    yield
    for path in older:
        path.with_suffix(".away").rename(path)


if __name__ == "__main__":
    see(Path(sys.argv[1]))
