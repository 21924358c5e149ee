"""Folder that one attempt writes in, and the copies from there to the tables.

File names are unique to the attempt. No reader sees a file before a commit names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from windowlib.contract.change import REMOVED
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.publication import publish
from windowlib.publication.publish import StagedChanges
from windowlib.storage.at_once import at_once, both
from windowlib.storage.store import ObjectInfo, Store

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
    """Staging folder of an attempt. `attempt` is the prefix of its file names in the tables.

    store:  storage of the folder; paths of written files are relative to it
    tables: storage of the tables; a copy to them on a disk is a second name of the file
    """

    store: Store
    tables: Store
    attempt: str
    spark: SparkSession

    def url(self, path: str) -> str:
        """Address of a file or folder for engines."""
        return f"{self.store.url}/{path}"

    def count(self, file: ObjectInfo) -> int:
        """Number of rows of a written file."""
        return data_files.data_file(self.store, file.path, file.size_bytes).rows

    def write(self, frame: DataFrame, name: str, *partition_by: str) -> None:
        """Runs one job that writes rows to the folder `name`, split by partition columns."""
        various = [f.name for f in frame.schema if f.dataType.typeName() in SOLELY_DISTINCT]
        distinct = {f"parquet.enable.dictionary#{name}": False for name in various if name not in partition_by}
        writer = frame.write.options(**SPARK, **distinct, **SAIL)
        writer.partitionBy(*partition_by).parquet(self.url(name))

    def written(self, name: str) -> list[tuple[ObjectInfo, dict[str, str]]]:
        """Files in the folder `name`, with the partition values of their paths."""
        return publish.staged(self.store, name)

    def write_and_read(self, frame: DataFrame, name: str) -> DataFrame:
        """Writes the rows of a frame to the folder `name` and reads them back, so that Spark computes them once."""
        self.write(frame, name)
        return self.spark.read.schema(frame.schema).parquet(self.url(name))

    def unused(self, name: str) -> str:
        """Unused folder name that begins with `name`."""
        used = {file.path.split("/")[0] for file in self.store.list(f"{name}-")}
        return f"{name}-{len(used)}"

    def copy(self, file: ObjectInfo, table: str, partition: Mapping[str, Any]) -> DataFile:
        """Copies a written file to a table, and describes it."""
        place, target = self._copy(file, table, partition)
        return data_files.data_file(place, target, file.size_bytes, partition)

    def _copy(self, file: ObjectInfo, table: str, partition: Mapping[str, Any]) -> tuple[Store, str]:
        place, target = self.tables.below(table), publish.target(self._name(file.path), partition)
        self.store.copy(file.path, place, target)
        return place, target

    def append(self, frame: DataFrame, table: str) -> list[DataFile]:
        """Writes rows and copies them to an unpartitioned table."""
        self.write(frame, table)
        return self.appended(table)

    def appended(self, table: str) -> list[DataFile]:
        """Copies the files in the folder `table` to this unpartitioned table. Omits files without rows."""
        copied = at_once(lambda file: self.copy(file, table, {}), [file for file, _ in self.written(table)])
        return [file for file in copied if file.rows]

    def result(
        self, written: ObjectInfo, window_day: date, change: str | None, cause: str | None
    ) -> dict[str, StagedChanges]:
        """Copies a file to `results`, and to `result_changes` unless `change` is None.

        Columns that only `result_changes` has are its partition columns. Its readers ignore the file's other columns.
        """
        day = {"window_day": window_day}
        if change is None:
            return {"results": StagedChanges(add=(self.copy(written, "results", day),))}
        partition = {"change": change, "cause": cause, **day}
        file, (_, target) = both(
            lambda: self.copy(written, "results", day), lambda: self._copy(written, "result_changes", partition)
        )
        changed = replace(file, path=target, partition=partition)
        return {"results": StagedChanges(add=(file,)), "result_changes": StagedChanges(add=(changed,))}

    def removed(self, file: ObjectInfo, window_day: date, cause: str) -> dict[str, StagedChanges]:
        """Copies a file of removed results to `result_changes`."""
        partition = {"change": REMOVED, "cause": cause, "window_day": window_day}
        return {"result_changes": StagedChanges(add=(self.copy(file, "result_changes", partition),))}

    def clear(self) -> None:
        """Deletes the staging folder."""
        self.store.clear()

    def discard(self) -> None:
        """Deletes the attempt's files from the tables, when no commit will name them, and the staging folder."""
        files = at_once(lambda table: [file.path for file in self.tables.list(f"{table}/")], COMMIT_ORDER)
        ours = (path for paths in files for path in paths if path.rpartition("/")[2].startswith(f"{self.attempt}-"))
        self.tables.delete(path for path in ours if path.endswith(".parquet"))
        self.clear()

    def _name(self, path: str) -> str:
        return f"{self.attempt}-{path.replace('/', '-')}".replace("=", "-")
