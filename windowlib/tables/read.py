"""Tables as of one run: every table at the version that the newest commit row names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import fs

from windowlib.definition.definition import Definition
from windowlib.model.errors import WindowError
from windowlib.tables import delta
from windowlib.tables.ledger import Ledger, wall_clock_ms
from windowlib.tables.meaning import OUTSIDE, TABLES


class UnknownTable(WindowError, LookupError):
    """No table of that name, or nothing committed to it yet."""


def read_table(definition: Definition, table: str) -> pa.Table:
    """The rows of a table as of the newest commit; those of `OUTSIDE` as they are now.

    Raises `UnknownTable` when there is no such table, or no run has committed yet. A table that no batch has had rows
    for gives no rows and no columns unless its columns are the same for every pipeline.
    """
    if table not in TABLES:
        raise UnknownTable(f"no table {table!r}; the tables are {', '.join(TABLES)}")
    ledger = Ledger(definition.root, wall_clock_ms)
    state = ledger.state()
    folder = definition.root / table
    if table == "ledger" and state.version is not None:
        return snapshot(folder, state.version)
    if table in OUTSIDE and table != "ledger":
        newest = delta.version(ledger.tables[table])
        return TABLES[table].empty() if newest is None else snapshot(folder, newest)
    if state.commit is None:
        raise UnknownTable(
            f"nothing is committed in {definition.root} yet; run `windowlib run {definition.file}` first"
        )
    version = state.commit.versions.get(table)
    if version is None:
        return TABLES[table].empty()
    return snapshot(folder, version)


def table_versions(definition: Definition) -> dict[str, int]:
    """The version of each table as of the newest commit."""
    commit = Ledger(definition.root, wall_clock_ms).state().commit
    return dict(commit.versions) if commit else {}


def snapshot(folder: Path, version: int) -> pa.Table:
    """The rows of the table in `folder` at `version`.

    Arrow reads the files itself: deltalake's own file system is called from Arrow's threads, which now and then abort
    the process when it ends.
    """
    files = fs.SubTreeFileSystem(str(folder.absolute()), fs.LocalFileSystem())
    table = DeltaTable(str(folder), version=version)
    return table.to_pyarrow_table(filesystem=files)
