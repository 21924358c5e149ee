"""All readers of Delta tables read the same rows: delta-rs, Spark with its own Delta reader, DuckDB."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from pyarrow import fs

from tests.support.clicks import FILES, clicks
from tests.support.delta_reader import FILTERS, MAINTAINED, OLD, READ_MAINTAINED
from tests.support.disks import folder_of
from tests.support.follower import apply_changes
from tests.support.strategies import ALL
from windowlib.contract.tables import TABLES
from windowlib.definition.definition import Definition
from windowlib.delta import commits as delta_commits
from windowlib.delta import small_tables as small
from windowlib.delta.tables import Table
from windowlib.publication.readers import duckdb_views, read_table, snapshot
from windowlib.storage.disk import Disk

Row = dict[str, Any]
# No window of the clicks keeps elements, no run is a dry run, no file is set aside, no notice sent, nothing maintained.
NOT_WRITTEN = ("state_windows", "previews", "set_aside", "verifications", "notices", "maintenance", "erasures")
WRITTEN = [name for name in TABLES if name not in NOT_WRITTEN]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Definition:
    """The clicks pipeline after all its files, with the rows that Spark read from each table."""
    folder = tmp_path_factory.mktemp("readers")
    clicks(folder)
    plain = {name: value for name, value in os.environ.items() if name != "SPARK_CONNECT_MODE_ENABLED"}  # as Sail sets
    for command in (["tests.support.on_sail", str(FILES), str(folder)], ["tests.support.delta_reader", str(folder)]):
        ended = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=plain, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
    return clicks(folder, files=0)


def in_order(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(str(dict(sorted(row.items()))) for row in rows)


def seen_by_spark(pipeline: Definition, name: str) -> list[Row]:
    rows: list[Row] = pq.read_table(pipeline.file.parent / "seen" / f"{name}.parquet").to_pylist()
    return rows


def removed(folder: Path) -> set[str]:
    """Files that the newest checkpoint of a table names as removed."""
    newest = max((folder / "_delta_log").glob("*.checkpoint.parquet"))
    return {one["path"] for one in pq.read_table(newest)["remove"].to_pylist() if one}


def results(pipeline: Definition) -> list[Row]:
    rows: list[Row] = read_table(pipeline, "results").to_pylist()
    return rows


@pytest.mark.spark
@pytest.mark.slow
class TestReaders:
    @pytest.mark.parametrize("table", WRITTEN)
    def test_spark_reads_what_delta_rs_reads(self, pipeline: Definition, table: str) -> None:
        rows = seen_by_spark(pipeline, table)
        assert rows
        assert in_order(rows) == in_order(read_table(pipeline, table).to_pylist())

    @pytest.mark.parametrize("table", WRITTEN if ALL else READ_MAINTAINED)
    def test_spark_reads_maintained_tables(self, pipeline: Definition, table: str) -> None:
        folder = pipeline.file.parent / MAINTAINED / table
        rows = seen_by_spark(pipeline, f"{MAINTAINED} {table}")
        assert rows
        assert in_order(rows) == in_order(snapshot(Table(Disk(folder)), DeltaTable(folder).version()).to_pylist())
        assert all((folder / path).exists() for path in removed(folder))  # the files that VACUUM would look for

    @pytest.mark.parametrize("table", ["results", "open_windows", "result_changes", "late_events"])
    def test_duckdb_reads_what_delta_rs_reads(self, pipeline: Definition, table: str) -> None:
        folder = folder_of(pipeline) / table
        files = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
        dataset = DeltaTable(str(folder)).to_pyarrow_dataset(filesystem=files)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            read = connection.register("dataset", dataset).sql("SELECT * FROM dataset").to_arrow_table()
        names = read_table(pipeline, table).schema.names
        assert in_order(read.select(names).to_pylist()) == in_order(read_table(pipeline, table).to_pylist())

    def test_views_are_of_the_newest_commit(self, pipeline: Definition) -> None:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            names = duckdb_views(connection, pipeline)
            assert {"results", "open_windows", "late_events"} <= set(names)
            for name in names:
                rows = connection.table(name).to_arrow_table()
                expected = read_table(pipeline, name)
                assert in_order(rows.select(expected.schema.names).to_pylist()) == in_order(expected.to_pylist())
        assert in_order(seen_by_spark(pipeline, "view of results")) == in_order(results(pipeline))

    def test_versions_are_read_as_they_were(self, pipeline: Definition) -> None:
        folder = folder_of(pipeline) / "results"
        newest = Table(Disk(folder)).version()
        assert newest == 4  # created, then one commit a batch
        sizes = []
        for version in range(newest + 1):
            then = seen_by_spark(pipeline, f"version {version}")
            assert in_order(then) == in_order(snapshot(Table(Disk(folder)), version).to_pylist())
            sizes.append(len(then))
        assert sizes == sorted(set(sizes))

    @pytest.mark.parametrize("number", range(len(FILTERS)), ids=FILTERS)
    def test_spark_filters_find_all_their_rows(self, pipeline: Definition, number: int) -> None:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("results", read_table(pipeline, "results"))
            expected = connection.sql(f"SELECT * FROM results WHERE {FILTERS[number]}").to_arrow_table().to_pylist()
        assert 0 < len(expected) < len(results(pipeline))
        assert in_order(seen_by_spark(pipeline, f"filter {number}")) == in_order(expected)

    def test_spark_leaves_files_unopened_that_cannot_match(self, pipeline: Definition) -> None:
        newest = [row for row in results(pipeline) if row["batch_id"] == OLD]
        assert newest
        assert in_order(seen_by_spark(pipeline, "newest batch")) == in_order(newest)

    @pytest.mark.parametrize("table", [name for name in WRITTEN if name != "ledger"])
    def test_statistics_bracket_the_values_of_their_file(self, pipeline: Definition, table: str) -> None:
        folder = folder_of(pipeline) / table
        bracketed = 0
        for file in Table(Disk(folder)).files(Table(Disk(folder)).version()):
            rows = pq.ParquetFile(folder / file.path).read()
            assert rows.num_rows == file.rows
            for column in file.low.keys() & file.high.keys():
                values = [value for value in rows[column].to_pylist() if value is not None]
                assert file.low[column] <= min(values)
                assert max(values) <= file.high[column]
                bracketed += 1
        assert bracketed

    def test_readers_ignore_columns_that_the_table_lacks(self, pipeline: Definition) -> None:
        folder = folder_of(pipeline) / "results"
        columns = {field.name for field in DeltaTable(str(folder)).schema().fields}
        in_files = {
            name
            for file in Table(Disk(folder)).files(Table(Disk(folder)).version())
            for name in pq.read_schema(folder / file.path).names
        }
        assert {"window_start_ms", "state_window_start_ms", "p0_count"} <= in_files - columns
        assert set(seen_by_spark(pipeline, "results")[0]) == columns
        assert set(results(pipeline)[0]) == columns

    def test_the_changes_in_order_of_batches_give_the_results(self, pipeline: Definition) -> None:
        rows = read_table(pipeline, "result_changes").to_pylist()
        assert {row["change"] for row in rows} == {"added", "removed"} | {"changed"} & {row["change"] for row in rows}
        held: dict[tuple[Any, ...], Row] = {}
        apply_changes(held, rows, identity)
        added = ("change", "cause")
        table = [{name: value for name, value in row.items() if name not in added} for row in held.values()]
        assert in_order(table) == in_order(results(pipeline))


def identity(row: Row) -> tuple[Any, ...]:
    return row["user"], row["window_start"], row["window_end"]


def test_statistics_keep_to_what_readers_understand(tmp_path: Path) -> None:
    """Years of one digit, microseconds, long texts, infinities: each bound is right or left out."""
    first, last = datetime(1, 1, 1, 0, 0, 0, 1, UTC), datetime(9998, 12, 31, 23, 59, 59, 999_999, UTC)
    columns = {
        "at": pa.array([first, last], pa.timestamp("us", "UTC")),
        "day": pa.array([date(33, 4, 3), date(9998, 1, 1)]),
        "text": pa.array(["a" * 40, "z" * 40]),
        "short": pa.array(["Ä", "日"]),
        "number": pa.array([float("-inf"), float("inf")]),
        "flag": pa.array([False, True]),
    }
    table = pa.table(columns)
    version = delta_commits.create(Table(Disk(tmp_path)), Schema.from_arrow(table.schema))
    version = small.append_rows(Table(Disk(tmp_path)), version, table.to_pylist())
    [file] = Table(Disk(tmp_path)).files(version)
    assert file.low["at"] <= first
    assert file.high["at"] >= last
    assert last - timedelta(milliseconds=-1) >= file.high["at"]
    assert (file.low["day"], file.high["day"]) == (date(33, 4, 3), date(9998, 1, 1))
    assert file.low["text"] <= "a" * 40
    assert file.high["text"] == "z" * 31 + "{"
    assert (file.low["short"], file.high["short"]) == ("Ä", "日")
    assert not {"number", "flag"} & (file.low.keys() | file.high.keys())
