"""Folder that one attempt writes in, and the moves from there into the folders of the tables.

File names are unique to the attempt. No reader sees a file before a commit names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.contract.change import REMOVED
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.delta.data_files import DataFile
from windowlib.publication import publish
from windowlib.publication.publish import StagedChanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Parquet's pages of version 2 store numbers and times as differences if there is no dictionary. That takes a quarter
# less disk and less than half of the time to read. For Spark, columns whose values hardly repeat get no dictionary.
# Sail has one setting for all columns: a small limit ends dictionaries early, which makes text columns larger.
SOLELY_DISTINCT = ("long", "timestamp", "double")
SPARK: Mapping[str, str | int] = {"parquet.writer.version": "v2"}
SAIL: Mapping[str, str | int] = {"writer_version": "2.0", "dictionary_page_size_limit": 128 * 1024}


@dataclass(frozen=True, slots=True)
class Staging:
    """Staging folder of an attempt. `attempt` is the prefix of its file names, `root` the folder of the tables."""

    folder: Path
    attempt: str
    root: Path
    spark: SparkSession

    def write(self, frame: DataFrame, name: str, *partition_by: str) -> None:
        """Runs one job that writes rows to the folder `name`, split by partition columns."""
        various = [f.name for f in frame.schema if f.dataType.typeName() in SOLELY_DISTINCT]
        distinct = {f"parquet.enable.dictionary#{name}": False for name in various if name not in partition_by}
        writer = frame.write.options(**SPARK, **distinct, **SAIL)
        writer.partitionBy(*partition_by).parquet(str(self.folder / name))

    def written(self, name: str) -> list[tuple[Path, dict[str, str]]]:
        """Files in the folder `name` that were not moved yet, with the partition values of their paths."""
        return list(publish.staged(self.folder / name))

    def write_and_read(self, frame: DataFrame, name: str) -> DataFrame:
        """Writes the rows of a frame to the folder `name` and reads them back, so that Spark computes them once."""
        self.write(frame, name)
        return self.spark.read.schema(frame.schema).parquet(str(self.folder / name))

    def unused(self, name: str) -> str:
        """Unused folder name that begins with `name`."""
        number = len(list(self.folder.glob(f"{name}-*"))) if self.folder.is_dir() else 0
        return f"{name}-{number}"

    def move(self, path: Path, table: str, partition: Mapping[str, Any]) -> DataFile:
        """Moves a written file into the folder of a table."""
        return publish.move(path, self.root / table, self._name(path), partition)

    def append(self, frame: DataFrame, table: str) -> list[DataFile]:
        """Writes rows and moves them into the folder of an unpartitioned table."""
        self.write(frame, table)
        moved = [self.move(path, table, {}) for path, _ in self.written(table)]
        return [file for file in moved if file.rows]

    def result(self, path: Path, window_day: date, change: str | None, cause: str | None) -> dict[str, StagedChanges]:
        """Moves a file into `results`, and links it into `result_changes` unless `change` is None."""
        file = self.move(path, "results", {"window_day": window_day})
        if change is None:
            return {"results": StagedChanges(add=(file,))}
        name, partition = Path(file.path).name, {"change": change, "cause": cause, "window_day": window_day}
        linked = publish.link(file, self.root / "results", self.root / "result_changes", name, partition)
        return {"results": StagedChanges(add=(file,)), "result_changes": StagedChanges(add=(linked,))}

    def removed(self, path: Path, window_day: date, cause: str) -> dict[str, StagedChanges]:
        """Moves a file of removed results into `result_changes`."""
        partition = {"change": REMOVED, "cause": cause, "window_day": window_day}
        return {"result_changes": StagedChanges(add=(self.move(path, "result_changes", partition),))}

    def discard(self) -> None:
        """Deletes the attempt's files from the folders of the tables, when no commit will name them."""
        for table in COMMIT_ORDER:
            for path in (self.root / table).rglob(f"{self.attempt}-*.parquet"):
                path.unlink()

    def _name(self, path: Path) -> str:
        below = "-".join(path.parent.relative_to(self.folder).parts)
        return f"{self.attempt}-{below}-{path.name}".replace("=", "-")
