"""Tables for readers: each at the version that the newest commit row names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

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
    """The requested table does not exist, or no run has committed yet."""


def read_table(definition: Definition, table: str) -> pa.Table:
    """Rows of a table as of the newest commit. Tables of `OUTSIDE` are read at their newest version.

    Raises `UnknownTable` if there is no such table, or if no run has committed yet. If no batch has written the table,
    returns no rows, with columns only if they are the same for every pipeline.
    """
    if table not in TABLES:
        raise UnknownTable(f"no table {table!r}; the tables are {', '.join(TABLES)}")
    ledger = Ledger(definition.store, wall_clock_ms)
    state = ledger.state()
    opened = ledger.tables[table]
    if table == "ledger" and state.version is not None:
        return snapshot(opened, state.version)
    if table in OUTSIDE and table != "ledger":
        newest = opened.version()
        return TABLES[table].empty() if newest is None else snapshot(opened, newest)
    if state.commit is None:
        raise UnknownTable(
            f"no batch is committed in {definition.store} yet; run `{to_paste('run', definition.file)}` first"
        )
    version = state.commit.versions.get(table)
    if version is None:
        return TABLES[table].empty()
    return snapshot(opened, version)


def table_versions(definition: Definition) -> dict[str, int]:
    """Version of each table as of the newest commit."""
    commit = Ledger(definition.store, wall_clock_ms).state().commit
    return dict(commit.versions) if commit else {}


def duckdb_views(connection: DuckDBPyConnection, definition: Definition) -> list[str]:
    """Registers the published tables, all as of the newest commit, as DuckDB views. Returns the names of the views.

    DuckDB reads files when a query needs them. To see later commits, call the function again.
    """
    from windowlib.delta.datasets import dataset  # imports pandas

    versions = table_versions(definition)
    for name, version in versions.items():
        table = Table(definition.store.below(name))
        files = table.files(version)
        connection.register(name, dataset(table.at(version), files, table.store))
    return list(versions)


def spark_views(spark: SparkSession, definition: Definition) -> list[str]:
    """Registers the published tables as temporary views of a Spark session that reads Delta tables
    (`spark_session(with_delta=True)`). Returns the names.
    """
    versions = table_versions(definition)
    for name, version in versions.items():
        reader = spark.read.format("delta").option("versionAsOf", version)
        reader.load(f"{definition.store.url}/{name}").createOrReplaceTempView(name)
    return list(versions)


def snapshot(table: Table, version: int) -> pa.Table:
    """Rows of a table at a version."""
    return table.at(version).to_pyarrow_table(filesystem=table.store.filesystem())
