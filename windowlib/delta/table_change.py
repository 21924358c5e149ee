"""Changes of a commit to a table's files, in the form of the table's log."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from deltalake import Schema

from windowlib.delta.data_files import DataFile
from windowlib.delta.footers import log_statistics


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A Parquet file in the form of a table's log: partition values and statistics (JSON) as strings."""

    path: str
    size_bytes: int
    partition: Mapping[str, str | None]
    statistics: str


def logged(file: DataFile) -> LoggedFile:
    """A file in the form of the log."""
    values = {name: _text(value) for name, value in file.partition.items()}
    return LoggedFile(file.path, file.size_bytes, values, log_statistics(file.rows, file.low, file.high, file.nulls))


def _text(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, date) else None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class FileChange:
    """Changes of a commit to a table's files. `of_rows` is false if it only moves the same rows to other files.

    Readers of changes skip the files with paths in `quiet`, as if their rows were not new. `columns` are the new
    columns of the table, if they change.
    """

    add: Sequence[LoggedFile] = ()
    remove: Sequence[LoggedFile] = ()
    of_rows: bool = True
    columns: Schema | None = None
    quiet: Collection[str] = ()

    def is_data_change(self, file: LoggedFile) -> bool:
        """Tests if readers of changes get the rows of a file."""
        return self.of_rows and file.path not in self.quiet
