"""A filter in DuckDB finds all its rows, whatever bounds the log has for a column: both, one, or none."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import fs
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, SCHEMA, START_MS, arrive, clicks, clock
from tests.support.disks import folder_of
from tests.support.strategies import ALL
from windowlib.definition.definition import Definition
from windowlib.publication.readers import duckdb_views, read_table, table_versions
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
OUTPUTS = """
[aggregates]
events = "count(*)"
least = "min(id)"
middle = "avg(value)"
some = "max(value > 12)"
price = "max(cast(value as decimal(12, 2)))"
bytes = "max(encode(user, 'utf-8'))"
"""
LONG = "b" * 31 + "\U0010ffff\U0010ffff and more"  # cut after a character that has none above it
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Definition:
    """A pipeline whose tables have several files, with keys, averages and conditions that occur in one file only, and
    nulls.
    """
    folder = tmp_path_factory.mktemp("filters")
    definition = clicks(folder, 0, CLICKS.partition("[aggregates]")[0] + OUTPUTS)
    for number, users in enumerate(([str(UUID(int=7 << 100)), LONG], [str(UUID(int=9 << 100)), "é" * 40], ["c"]), 1):
        at_ms, value = START_MS + number * 24 * 60 * MINUTE_MS, None if number == 3 else 10 * number
        rows = [{"id": f"{number} {user}", "user": user, "at_ms": at_ms, "value": value} for user in users]
        arrive(folder, number, [*rows, {"id": f"{number}", "user": "c", "at_ms": at_ms, "value": value}], SCHEMA)
    advance(definition, lambda: spark, clock=clock, finish=True)
    return definition


def filters(rows: pa.Table) -> list[tuple[str, list[Any]]]:
    """Every comparison of each column with each of its values, and searches in lists and ranges."""
    found: list[tuple[str, list[Any]]] = []
    for name in rows.column_names:
        found += [(f'"{name}" is null', []), (f'"{name}" is not null', [])]
        for value in {value for value in rows[name].to_pylist() if value is not None}:
            found += [(f'"{name}" {operator} ?', [value]) for operator in OPERATORS]
            found += [(f'"{name}" in (?, ?)', [value, value]), (f'"{name}" between ? and ?', [value, value])]
    return found


ALIKE = pytest.mark.long("results, in make test, has columns of the same types, written by the same code")


@pytest.mark.parametrize("table", ["results", pytest.param("result_changes", marks=ALIKE), "seen_ids"])
def test_duckdb_filters_find_all_their_rows(pipeline: Definition, table: str) -> None:
    rows = read_table(pipeline, table)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        duckdb_views(connection, pipeline)
        connection.register("all_rows", rows)
        connection.execute("CREATE TABLE read_whole AS SELECT * FROM all_rows")

        def counted(sql: str, values: list[Any]) -> Any:
            [found] = connection.execute(f"SELECT count(*) FROM {table} WHERE {sql}", values).fetchall()
            return found[0]

        asked = filters(rows)[:: 1 if ALL else 3]  # a value is compared in eight ways: each is asked for some
        counts = ", ".join(f"count(*) FILTER (WHERE {sql})" for sql, _ in asked)  # all at once: no file is left out
        given = [value for _, values in asked for value in values]
        [expected] = connection.execute(f"SELECT {counts} FROM read_whole", given).fetchall()
        differing = [one for one, count in zip(asked, expected, strict=True) if counted(*one) != count]
    assert rows.num_rows
    assert not differing


def test_delta_rs_finds_long_keys(pipeline: Definition) -> None:
    rows, folder = read_table(pipeline, "results"), folder_of(pipeline) / "results"
    files = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    for user in {*rows["user"].to_pylist()}:
        table = DeltaTable(str(folder), version=table_versions(pipeline)["results"])
        found = table.to_pyarrow_table(filters=[("user", "=", user)], filesystem=files)
        assert found.num_rows == rows["user"].to_pylist().count(user), user
