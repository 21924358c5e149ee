"""Tables as of one run: every table at the version that the newest commit row names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from windowlib.contract.tables import OUTSIDE, TABLES
from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Table
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.model.errors import WindowError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession


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
    found = ledger.tables[table]
    if table == "ledger" and state.version is not None:
        return snapshot(found, state.version)
    if table in OUTSIDE and table != "ledger":
        newest = found.version()
        return TABLES[table].empty() if newest is None else snapshot(found, newest)
    if state.commit is None:
        raise UnknownTable(
            f"nothing is committed in {definition.root} yet; run `{to_paste('run', definition.file)}` first"
        )
    version = state.commit.versions.get(table)
    if version is None:
        return TABLES[table].empty()
    return snapshot(found, version)


def table_versions(definition: Definition) -> dict[str, int]:
    """The version of each table as of the newest commit."""
    commit = Ledger(definition.root, wall_clock_ms).state().commit
    return dict(commit.versions) if commit else {}


def duckdb_views(connection: DuckDBPyConnection, definition: Definition) -> list[str]:
    """Registers the published tables, all as of the newest commit, under their names; gives the names.

    DuckDB reads files when it is asked, and only those that a query needs. Later commits are seen after another call.
    """
    from windowlib.delta.datasets import dataset  # imports pandas

    versions = table_versions(definition)
    for name, version in versions.items():
        table = Table(definition.root / name)
        files = table.files(version)
        connection.register(name, dataset(table.at(version), files, _files_of(table)))
    return list(versions)


def spark_views(spark: SparkSession, definition: Definition) -> list[str]:
    """The same as temporary views of a Spark session that reads Delta tables (`spark_session(with_delta=True)`)."""
    versions = table_versions(definition)
    for name, version in versions.items():
        reader = spark.read.format("delta").option("versionAsOf", version)
        reader.load(str(definition.root / name)).createOrReplaceTempView(name)
    return list(versions)


def snapshot(table: Table, version: int) -> pa.Table:
    """The rows of a table at a version."""
    return table.at(version).to_pyarrow_table(filesystem=_files_of(table))


def _files_of(table: Table) -> fs.FileSystem:
    """What Arrow reads a table's files with.

    deltalake's own file system is called from Arrow's threads, which now and then abort the process when it ends.
    """
    return fs.SubTreeFileSystem(str(table.folder.absolute()), fs.LocalFileSystem())
