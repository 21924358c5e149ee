"""Changes of each table, made from staged files: names, partitions, columns. No engine runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from windowlib.contract.tables import RUN_METRICS
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.table_change import logged
from windowlib.delta.tables import Tables
from windowlib.ledger.prepare import TableChange
from windowlib.model.errors import StateMismatch
from windowlib.publication import publish
from windowlib.publication.publish import StagedChanges
from windowlib.storage.disk import Disk

A, B, C = DataFile("a.parquet", 1, 10), DataFile("b.parquet", 2, 20), DataFile("c.parquet", 3, 30)


def schema(**columns: str) -> Schema:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def fields(of: Schema) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(of.to_json())["fields"]
    return found


# -- the changes of several steps ------------------------------------------------------------------------------------


def test_the_changes_of_steps_are_joined_table_by_table() -> None:
    first = {"results": StagedChanges([A], [B], schema=schema(n="long")), "watermarks": StagedChanges(rows=[{"n": 1}])}
    then = {"results": StagedChanges([C], rows=[{"n": 2}]), "watermarks": StagedChanges()}
    assert publish.joined([first, then]) == {
        "results": StagedChanges((A, C), (B,), [{"n": 2}], schema(n="long")),
        "watermarks": StagedChanges((), (), [{"n": 1}]),
    }


def test_rows_are_counted_by_files() -> None:
    changes = StagedChanges([A, C], [B])
    assert (changes.rows_added, changes.rows_removed) == (40, 20)


# -- files -----------------------------------------------------------------------------------------------------------


def test_staged_files_are_found_with_the_partitions_of_their_path(tmp_path: Path) -> None:
    store = Disk(tmp_path)
    for path in ("part=added/day=3/1.parquet", "2.parquet", "odd/part=a=b/3.parquet", "part=added/_SUCCESS"):
        store.put(f"s/{path}", b"")
    found = {file.path.rpartition("/")[2]: partition for file, partition in publish.staged(store, "s")}
    assert found == {"1.parquet": {"part": "added", "day": "3"}, "2.parquet": {}, "3.parquet": {"part": "a=b"}}


# -- columns ---------------------------------------------------------------------------------------------------------

SPARK = StructType(
    [
        StructField("key", StringType(), nullable=False),
        StructField("list", ArrayType(LongType(), containsNull=False), nullable=False),
        StructField("map", MapType(StringType(), StructType([StructField("x", LongType(), False)]), False)),
        StructField("left_out", LongType()),
    ]
)


def test_all_columns_may_be_null_whatever_the_engine_knows() -> None:
    made = publish.table_schema(SPARK, ["map", "key", "list"], {"day": "date"})
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]}
    kinds = {
        "map": {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True},
        "key": "string",
        "list": {"type": "array", "elementType": "long", "containsNull": True},
        "day": "date",
    }
    expected = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    assert fields(made) == expected


def test_the_feed_has_the_columns_of_results_and_what_changed() -> None:
    results = schema(n="long")
    assert publish.changes_schema(results) == schema(n="long", change="string", cause="string")
    changes = {
        "results": StagedChanges([A]),
        "result_changes": StagedChanges([B]),
        "late_events": StagedChanges([C], schema=schema(x="long")),
    }
    assert publish.with_schema(changes, results) == {
        "results": StagedChanges([A], schema=results),
        "result_changes": StagedChanges([B], schema=publish.changes_schema(results)),
        "late_events": StagedChanges([C], schema=schema(x="long")),
    }


def test_an_engine_reads_all_columns_but_those_of_partitions(tables: Tables) -> None:
    delta_commits.create(tables["results"], schema(n="long", day="date"), ["day"])
    assert publish.spark_schema(tables["results"].at(0).schema(), ["day"]) == StructType([StructField("n", LongType())])


# -- what is committed to one table ----------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(Disk(tmp_path))


def holding(tables: Tables, name: str, columns: Schema, rows: int = 2) -> list[DataFile]:
    """Files of a new table, with one row each."""
    table = tables[name]
    delta_commits.create(table, columns)
    arrow = pa.schema(columns.to_arrow())
    made = [data_files.write(table.store, pa.Table.from_pylist([{}], schema=arrow)) for _ in range(rows)]
    if made:
        delta_commits.commit(table, 0, add=made)
    return sorted(table.files(table.version()), key=lambda file: file.path)


def test_a_table_that_does_not_change_stays_where_it_is(tables: Tables) -> None:
    for start in (None, 4):
        assert publish.table_change(tables, "results", StagedChanges(), start) == (TableChange("results", start), {})


def test_a_new_table_is_created_with_the_columns_of_its_first_batch(tables: Tables) -> None:
    found, _ = publish.table_change(tables, "results", StagedChanges([A], schema=schema(n="long")), None)
    assert found == TableChange("results", None, schema(n="long").to_json(), ("window_day",), (logged(A),))


def test_a_new_table_of_rows_is_created_with_its_own_columns(tables: Tables) -> None:
    row = {"batch_id": 1, "plan_time": None, "figure": "rows_read", "value": 3}
    found, contents = publish.table_change(tables, RUN_METRICS.name, StagedChanges(rows=[row]), None)
    assert found.schema == RUN_METRICS.schema().to_json()
    [file] = found.add
    assert pq.read_table(pa.BufferReader(contents[file.path])).to_pylist() == [row]


def test_equal_columns_change_no_columns(tables: Tables) -> None:
    files = holding(tables, "results", schema(n="long"))
    found, _ = publish.table_change(tables, "results", StagedChanges([A], files[:1], schema=schema(n="long")), 1)
    assert (found.schema, found.columns) == (None, None)
    assert (found.add, found.remove) == ((logged(A),), (logged(files[0]),))


@pytest.mark.parametrize("rows", [0, 2])
def test_other_columns_are_accepted_if_no_row_stays(tables: Tables, rows: int) -> None:
    files, other = holding(tables, "open_windows", schema(n="long"), rows), schema(n="long", published="string")
    found, _ = publish.table_change(tables, "open_windows", StagedChanges([A], files, schema=other), 1 if rows else 0)
    assert (found.schema, found.columns) == (None, other.to_json())


@pytest.mark.parametrize("stays", [True, False])
def test_other_types_are_refused_where_a_row_is_replaced(tables: Tables, stays: bool) -> None:
    files = holding(tables, "open_windows", schema(n="long", gone="string", same="string"))
    changes = StagedChanges([A], files[1:] if stays else files, schema=schema(n="double", more="string", same="string"))
    with pytest.raises(StateMismatch) as said:
        publish.table_change(tables, "open_windows", changes, 1)
    assert str(said.value) == (
        "table open_windows has other columns than this batch: "
        'gone is "string", now absent; more is absent, now "string"; n is "long", now "double"'
    )


def test_another_type_is_refused_next_to_a_column_that_may_be_added(tables: Tables) -> None:
    files = holding(tables, "open_windows", schema(n="long", same="string"))
    changes = StagedChanges([A], files, schema=schema(n="double", same="string", published="string"))
    with pytest.raises(StateMismatch, match='n is "long", now "double"; published is absent, now "string"'):
        publish.table_change(tables, "open_windows", changes, 1)


def test_a_column_that_may_be_added_is_refused_where_rows_without_it_stay(tables: Tables) -> None:
    files = holding(tables, "open_windows", schema(n="long"))
    changes = StagedChanges([A], files[:1], schema=schema(n="long", published="string"))
    with pytest.raises(StateMismatch, match='published is absent, now "string"'):
        publish.table_change(tables, "open_windows", changes, 1)
    with pytest.raises(StateMismatch, match='published is absent, now "string"'):
        publish.table_change(tables, "open_windows", StagedChanges([A], schema=changes.schema), 1)


def test_the_feed_keeps_the_columns_of_earlier_definitions(tables: Tables) -> None:
    holding(tables, "result_changes", schema(n="long", earlier="string"))
    found, _ = publish.table_change(tables, "result_changes", StagedChanges([A], schema=schema(n="long")), 1)
    assert (found.columns, found.add) == (None, (logged(A),))
    with pytest.raises(StateMismatch, match=r'result_changes .*: n is "long", now "double"'):
        publish.table_change(tables, "result_changes", StagedChanges([A], schema=schema(n="double")), 1)


def test_results_keep_no_column_of_earlier_definitions(tables: Tables) -> None:
    holding(tables, "results", schema(n="long", earlier="string"))
    with pytest.raises(StateMismatch, match='earlier is "string", now absent'):
        publish.table_change(tables, "results", StagedChanges([A], schema=schema(n="long")), 1)
