"""Rows of the copied tables: counted in the footers of the copied files, and compared with the original logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.parquet as pq

from windowlib.contract.tables import LEDGER, OUTSIDE
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.ledger.rows import LedgerState
from windowlib.model.errors import WindowError
from windowlib.publication.damage import check_exist
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import opened
from windowlib.storage.store import Store


class RowsDiffer(WindowError):
    """A copied table has another number of rows than the log of its original."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """Files and rows of a copied table."""

    table: str
    files: int
    rows: int


def versions_of(tables: Tables, state: LedgerState) -> dict[str, int]:
    """Versions at which readers see the tables, except the ledger."""
    outside = {name: tables[name].version() for name in OUTSIDE if name != LEDGER.name}
    return {**state.versions, **{name: version for name, version in outside.items() if version is not None}}


def require_files(tables: Tables, versions: Mapping[str, int]) -> None:
    """Raises `LostFiles` if a table names a file that does not exist."""
    for name, version in versions.items():
        check_exist(tables, name, tables[name].files(version))


def counted_rows(tables: Tables, versions: Mapping[str, int], target: Store) -> tuple[TableRows, ...]:
    """Rows of the copied tables. Raises `RowsDiffer`."""
    return tuple(_counted(name, tables[name].files(version), target) for name, version in sorted(versions.items()))


def _counted(name: str, files: list[DataFile], target: Store) -> TableRows:
    copied = target.below(name)

    def rows(file: DataFile) -> int:
        count = pq.ParquetFile(opened(copied, file.path, file.size_bytes)).metadata.num_rows
        if count != file.rows:
            raise RowsDiffer(
                f"{copied.url}/{file.path} has {count:,} rows, but the log of table {name} says {file.rows:,}: the"
                " original was damaged before the move. Restore it from a backup, then start again"
            )
        return int(count)

    return TableRows(name, len(files), sum(at_once(rows, files)))
