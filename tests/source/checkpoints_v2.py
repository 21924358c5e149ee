"""A Delta table with V2 checkpoints and sidecars, which only Spark writes.

`python -m tests.source.checkpoints_v2` makes `checkpoints_v2.tar.xz` with Spark: the clicks of six files, in a version
each, the table's creation before them, and a checkpoint after every second.
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

import pyarrow as pa

from tests.support.clicks import SCHEMA, events
from tests.support.quick import QUICK

ARCHIVE = Path(__file__).with_suffix(".tar.xz")
FILES = 6


def unpack(folder: Path) -> None:
    """Puts the table into a folder that is not there yet."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")


def make() -> None:
    from windowlib.engines.spark import session

    spark = session("local[1]", {"spark.sql.shuffle.partitions": "1", **QUICK}, with_delta=True)
    with tempfile.TemporaryDirectory() as name:
        table = f"{name}/table"
        spark.sql(
            f"CREATE TABLE delta.`{table}` (id string, user string, at_ms bigint, value bigint) USING delta"
            " TBLPROPERTIES ('delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='2')"
        )
        for number in range(1, 1 + FILES):
            rows = spark.createDataFrame(pa.Table.from_pylist(events(number), schema=SCHEMA))
            rows.coalesce(1).write.format("delta").mode("append").save(table)
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            archive.add(table, ".")


if __name__ == "__main__":
    make()
