"""A pipeline with a text definition over files that tests write, move and read in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from windowlib.definition.definition import Definition, load_definition
from windowlib.inspection.verify.report import VerifyReport
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import SourceFile
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.runs.attempt import BatchReport
from windowlib.storage.disk import Disk

NOW_MS = int(datetime(2026, 4, 1, tzinfo=UTC).timestamp() * 1000)
DAY = datetime(2026, 3, 2, tzinfo=UTC)
ALWAYS = Rerun(0, NOW_MS, "a test", "ann")
DEFINITION = """
name = "p"
[source]
format = "{format}"
path = "incoming"
min_file_age = "0s"
{source}
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1d"
allowed_lateness = "30d"
[aggregates]
n = "count(*)"
{aggregates}
"""


def seconds(*offsets: int) -> pa.Array:
    """Times of the morning of 2026-03-02, so many seconds after nine."""
    values = [DAY.replace(hour=9, second=offset) for offset in offsets]
    return pa.array(values, pa.timestamp("us", "UTC"))


def source_file(folder: Path, name: str) -> SourceFile:
    """A file of a source, as a plan names it."""
    about = (folder / name).stat()
    return SourceFile(name, about.st_size, about.st_mtime_ns, 1)


class Arriving:
    """A pipeline and its source; `source` has the lines of `[source]` besides format and path."""

    def __init__(self, folder: Path, source: str, file_format: str = "parquet", aggregates: str = "") -> None:
        self.folder, self.incoming, self.times = folder, folder / "incoming", 0
        self.incoming.mkdir(parents=True)
        self.format, self.aggregates = file_format, aggregates
        self.define(source)

    def define(self, source: str) -> None:
        text = DEFINITION.format(format=self.format, source=source, aggregates=self.aggregates)
        (self.folder / "p.toml").write_text(text, encoding="utf-8")

    @property
    def definition(self) -> Definition:
        return load_definition(self.folder / "p.toml").model_copy(
            update={"store": Disk(self.folder / "warehouse" / "p")}
        )

    def put(self, name: str, content: str | Mapping[str, Any]) -> Path:
        """Writes a file, as text or as the columns of a Parquet file; each is newer than those before."""
        path = self.incoming / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            pq.write_table(pa.table(dict(content)), path)
        self.times += 1
        os.utime(path, (self.times, self.times))
        return path

    def move(self, name: str, to: str) -> None:
        (self.incoming / to).parent.mkdir(parents=True, exist_ok=True)
        (self.incoming / name).rename(self.incoming / to)

    def run(self, spark: SparkSession, rerun: Rerun | None = None, *, finish: bool = False) -> list[BatchReport]:
        return advance(self.definition, lambda: spark, clock=lambda: NOW_MS, rerun=rerun, finish=finish)

    def read(self) -> list[str]:
        """The files that were read, by name."""
        return sorted(row["path"] for row in read_table(self.definition, "source_files").to_pylist())

    def results(self, spark: SparkSession, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The results at the end of the source, by these columns."""
        self.run(spark, finish=True)
        return sorted(
            tuple(row[name] for name in columns) for row in read_table(self.definition, "results").to_pylist()
        )

    def verified(self, spark: SparkSession) -> VerifyReport:
        return verify(self.definition, VerifyRequest(), spark, lambda: NOW_MS)
