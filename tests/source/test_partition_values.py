"""Values in the names of folders, and in the log of a Delta table: texts, unless the definition gives them a type."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support.log_files import file_of
from windowlib.batches.planning import plan
from windowlib.definition.definition import Definition, load_definition
from windowlib.delta import log
from windowlib.engines.sail import is_sail
from windowlib.inspection.lineage.cuts import EVER, cut
from windowlib.inspection.lineage.source_events import read_events
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.errors import WindowError
from windowlib.publication.key import Key
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source.columns.partition_values import is_value
from windowlib.source.listed import SourceError
from windowlib.storage.disk import Disk

PIPELINE = """
name = "sums"
[source]
format = "{format}"
path = "incoming"
key = [{key}]
timestamp = "{timestamp}"
{more}
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1d"
{window}
[aggregates]
n = "count(*)"
{aggregates}
"""
AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
NOW_MS = int(datetime(2026, 4, 1, tzinfo=UTC).timestamp() * 1_000)
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("v", pa.int64())])


def clock() -> int:
    return NOW_MS


def pipeline(folder: Path, spark: SparkSession | None = None, **parts: str) -> Definition:
    parts = {"format": "parquet", "key": '"store"', "timestamp": "at", "more": "", "window": "", **parts}
    (folder / "sums.toml").write_text(PIPELINE.format(**{"aggregates": "", **parts}))
    found = load_definition(folder / "sums.toml")
    return found.model_copy(update={"engine": "sail" if spark is None or is_sail(spark) else "spark"})


def arrive(folder: Path, name: str, rows: int = 1, **columns: Any) -> None:
    path = folder / "incoming" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"at": [AT + timedelta(seconds=n) for n in range(rows)], "v": [1] * rows}, schema=SCHEMA)
    for column, value in columns.items():
        table = table.append_column(column, pa.array([value] * rows))
    pq.write_table(table, path)
    number = len([*(folder / "incoming").rglob("*.parquet")])
    os.utime(path, ns=(number * 1_000_000_000, number * 1_000_000_000))


def results(definition: Definition, *columns: str) -> list[tuple[Any, ...]]:
    rows = read_table(definition, "results").to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in rows)


def run(definition: Definition, spark: SparkSession) -> None:
    advance(definition, lambda: spark, clock=clock, finish=True)


def by_batches(at_most: int) -> str:
    return f"max_files_per_run = {at_most}"


@pytest.mark.parametrize(
    "at_most",
    [pytest.param(0, marks=pytest.mark.both), *(pytest.param(n, marks=pytest.mark.embedded) for n in (1, 2))],
)
def test_folder_values_are_texts_for_any_batch_size(spark: SparkSession, tmp_path: Path, at_most: int) -> None:
    for folder, rows in (("007", 2), ("7", 1), ("1.10", 1), ("1.1", 1), ("true", 1), ("2026-03-02", 1), ("a%20b", 1)):
        arrive(tmp_path, f"store={folder}/hour=09/1.parquet", rows)
    definition = pipeline(tmp_path, spark, more=by_batches(at_most))
    run(definition, spark)
    expected = {"007": 2, "7": 1, "1.10": 1, "1.1": 1, "true": 1, "2026-03-02": 1, "a b": 1}
    assert dict(results(definition, "store", "n")) == expected


@pytest.mark.embedded
def test_the_schema_may_declare_a_folder_value_as_text(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path, "store=7/1.parquet")
    definition = pipeline(tmp_path, spark, more='schema = { store = "string" }')
    run(definition, spark)
    assert results(definition, "store", "n") == [("7", 1)]


@pytest.mark.both
def test_a_folder_value_of_a_wrong_type_refuses_every_row(spark: SparkSession, tmp_path: Path) -> None:
    for store in ("007", "7", "1.5", "1099511627776", "__HIVE_DEFAULT_PARTITION__"):
        arrive(tmp_path, f"store={store}/day=2026-03-02/1.parquet", 2)
    arrive(tmp_path, "store=8/day=2026-02-30/1.parquet", 2)
    declared = 'schema = { store = "int", day = "date" }'
    definition = pipeline(tmp_path, spark, more=declared, aggregates='last_day = "max(day)"')
    run(definition, spark)
    assert results(definition, "store", "n", "last_day") == [(7, 4, date(2026, 3, 2))]
    refused = read_table(definition, "quarantine").to_pylist()
    assert sorted((row["reason"], row["source_file"].split("/")[0]) for row in refused) == sorted(
        [
            ("malformed: folder column 'store' has '1.5', which is no int", "store=1.5"),
            ("malformed: folder column 'store' has '1099511627776', which is no int", "store=1099511627776"),
            ("malformed: folder column 'day' has '2026-02-30', which is no date", "store=8"),
            ("null_key", "store=__HIVE_DEFAULT_PARTITION__"),
        ]
        * 2
    )
    found = verify(definition, VerifyRequest(), spark, clock)
    assert not found.differences


@pytest.mark.parametrize(
    ("text", "kind", "fits"),
    [
        ("-2147483648", "int", True),
        ("2147483648", "int", False),
        (" 7", "int", False),
        ("", "int", False),
        ("1.10", "decimal(3,1)", True),
        ("1.11", "decimal(3,1)", False),
        ("100", "decimal(3,1)", False),
        ("0.1", "double", True),
        ("1e400", "double", False),
        ("NaN", "double", False),
        ("TRUE", "boolean", True),
        ("1", "boolean", False),
        ("2026-3-2", "date", False),
        ("2026-03-02T09:00:00+01:00", "timestamp", True),
        ("2026-03-02 24:00:00", "timestamp", False),
        ("2026-03-02T09:00:00Z", "timestamp_ntz", False),
    ],
)
def test_a_text_is_cast_exactly(text: str, kind: str, fits: bool) -> None:
    assert is_value(text, kind) == fits


KINDS = {
    "byte": ("tinyint", "-7", -7),
    "whole": ("bigint", "0099999999999", 99999999999),
    "real": ("double", "-1.5e3", -1500.0),
    "price": ("decimal(6,2)", "1.5", Decimal("1.50")),
    "flag": ("boolean", "true", True),
    "day": ("date", "0001-01-01", date(1, 1, 1)),
    "seen": ("timestamp", "2026-03-02 09%3A00%3A00.5+01%3A00", datetime(2026, 3, 2, 8, 0, 0, 500_000, UTC)),
    "local": ("timestamp_ntz", "2026-03-02T09%3A00%3A00", datetime(2026, 3, 2, 9)),
}


@pytest.mark.both
def test_engines_cast_a_value_alike(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path, "/".join([*(f"{name}={text}" for name, (_, text, _) in KINDS.items()), "1.parquet"]), store="a")
    declared = ", ".join(f'{name} = "{kind}"' for name, (kind, _, _) in KINDS.items())
    aggregates = "\n".join(f'of_{name} = "max({name})"' for name in KINDS)
    definition = pipeline(tmp_path, spark, more=f"schema = {{ {declared} }}", aggregates=aggregates)
    run(definition, spark)
    assert results(definition, *(f"of_{name}" for name in KINDS)) == [tuple(value for _, _, value in KINDS.values())]


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"aggregates": 'hours = "max(hour)"'}, r"aggregates\.hours .* schema = \{ hour = \"string\" \}, or another"),
        (
            {"aggregates": 'm = "count(*) FILTER (WHERE hour > 8)"', "more": 'schema = { v = "double" }'},
            r"aggregates\.m .* schema = \{ v = \"double\", hour = \"string\" \}",
        ),
        ({"timestamp": "hour"}, r"source\.timestamp .* schema = \{ hour = \"date\" \}"),
        (
            {"timestamp": "hour", "more": 'timestamp_unit = "s"'},
            r"source\.timestamp .* schema = \{ hour = \"bigint\" \}",
        ),
        ({"key": '"hour"', "aggregates": 'm = "max(hour)"'}, r"aggregates\.m .* hour = \"string\""),
    ],
)
def test_a_column_in_arithmetic_must_be_declared(tmp_path: Path, parts: dict[str, str], line: str) -> None:
    arrive(tmp_path, "hour=09/1.parquet", store="a")
    definition = pipeline(tmp_path, **parts)
    with pytest.raises(SourceError, match=rf"the partition column 'hour' \(hour=09 in .*{line}"):
        plan(definition, clock)


@pytest.mark.parametrize("column", ["store", "Store"])
def test_a_column_in_a_file_and_in_its_folder_stops_the_run(tmp_path: Path, column: str) -> None:
    arrive(tmp_path, "store=7/1.parquet", **{column: "other"})
    with pytest.raises(
        SourceError, match=rf"the column '{column}' is both in .* and in the name of its folder 'store=7', and"
    ):
        plan(pipeline(tmp_path), clock)


@pytest.mark.both
def test_a_column_that_is_not_used_may_be_in_a_file_and_in_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path, "hour=09/1.parquet", store="a", hour=1)
    arrive(tmp_path, "hour=10/2.parquet", store=None, hour="x")
    definition = pipeline(tmp_path, spark)
    run(definition, spark)
    assert results(definition, "store", "n") == [("a", 1)]
    assert [json.loads(row["raw"])["hour"] for row in read_table(definition, "quarantine").to_pylist()] == ["10"]


DAY = {"timestamp": "day", "more": 'schema = { day = "date" }'}


@pytest.mark.both
@pytest.mark.parametrize(
    ("zone", "day", "first"),
    [
        (None, "2026-03-02", datetime(2026, 3, 2, tzinfo=UTC)),
        ("Europe/Berlin", "2025-07-01", datetime(2025, 6, 30, 22, tzinfo=UTC)),
        ("America/Sao_Paulo", "2018-11-04", datetime(2018, 11, 4, 3, tzinfo=UTC)),  # clocks skip its first hour
        ("America/Havana", "2020-11-01", datetime(2020, 11, 1, 4, tzinfo=UTC)),  # which has two midnights
    ],
)
def test_a_day_value_is_its_first_instant(
    spark: SparkSession, tmp_path: Path, zone: str | None, day: str, first: datetime
) -> None:
    arrive(tmp_path, f"day={day}/1.parquet", 2, store="a")
    arrive(tmp_path, "day=unknown/1.parquet", store="a")
    dialect = f'\ndialect = {{ time_zone = "{zone}" }}' if zone else ""
    definition = pipeline(tmp_path, spark, timestamp="day", more=DAY["more"] + dialect)
    run(definition, spark)
    assert results(definition, "last_event_time", "n") == [(first, 2)]
    assert [row["reason"] for row in read_table(definition, "quarantine").to_pylist()] == [
        "malformed: folder column 'day' has 'unknown', which is no date"
    ]
    events = read_events(cut(definition), Key(("store",), ("a",), (pa.string(),)), EVER).events
    assert [(event.file, event.row, event.time_ms) for event in events] == [
        (f"day={day}/1.parquet", row, int(first.timestamp() * 1_000)) for row in (0, 1)
    ]


@pytest.mark.embedded
def test_explain_shows_events_of_a_typed_key_in_the_folders_name(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path, "store=007/hour=09/1.parquet")
    arrive(tmp_path, "store=8/hour=10/1.parquet")
    arrive(tmp_path, "store=__HIVE_DEFAULT_PARTITION__/hour=10/1.parquet")
    declared = 'schema = { store = "int", hour = "int" }'
    definition = pipeline(tmp_path, spark, more=declared, aggregates='hours = "max(hour)"')
    run(definition, spark)
    events = read_events(cut(definition), Key(("store",), ("7",), (pa.int32(),)), EVER).events
    assert [(event.file, dict(event.values)) for event in events] == [("store=007/hour=09/1.parquet", {"hour": 9})]


@pytest.mark.embedded
def test_a_rerun_reads_the_gap_in_a_folder_name(spark: SparkSession, tmp_path: Path) -> None:
    arrive(tmp_path, "gap=3600000/1.parquet", store="a")
    arrive(tmp_path, "gap=long/1.parquet", store="a")
    definition = pipeline(tmp_path, spark, more='schema = { gap = "bigint" }')
    text = (
        (tmp_path / "sums.toml")
        .read_text()
        .replace('type = "tumbling"\nsize = "1d"', 'type = "session"\ngap_column = "gap"')
    )
    (tmp_path / "sums.toml").write_text(text)
    definition = load_definition(tmp_path / "sums.toml").model_copy(update={"engine": definition.engine})
    run(definition, spark)
    ends = results(definition, "window_end", "n")
    assert ends == [(AT + timedelta(hours=1), 1)]
    day_ms = int(AT.timestamp() * 1_000)
    advance(definition, lambda: spark, clock=clock, rerun=Rerun(day_ms, day_ms + 3_600_000, "again", "me"))
    assert results(definition, "window_end", "n") == ends


# -- Delta ------------------------------------------------------------------------------------------------------------


def delta(folder: Path, stores: list[str | None], **more: pa.Array) -> None:
    table = pa.table({"store": pa.array(stores, pa.string()), "at": [AT] * len(stores), "v": [1] * len(stores), **more})
    table = table.set_column(1, "at", table["at"].cast(pa.timestamp("us", "UTC")))
    write_deltalake(folder / "incoming", table, mode="append", partition_by=["store", *more])


def edited(folder: Path, version: int, change: Any) -> None:
    """Changes the path of every file that a version has added, and moves the files."""
    table = folder / "incoming"
    actions = log.actions(Disk(table), version)
    for number, add in enumerate(action["add"] for action in actions if "add" in action):
        before, add["path"] = add["path"], change(add, number)
        (table / add["path"]).parent.mkdir(parents=True, exist_ok=True)
        (table / unquote(before)).rename(table / add["path"])
    file_of(table, version).write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(
    "place", [lambda add, n: f"{n}x/p.parquet", lambda add, n: f"store=lie/{n}.parquet"], ids=["prefixes", "lies"]
)
@pytest.mark.both
def test_the_log_of_a_delta_table_has_its_values(spark: SparkSession, tmp_path: Path, place: Any) -> None:
    delta(tmp_path, ["a", "x/y", "%41", "", None])
    edited(tmp_path, 0, place)
    definition = pipeline(tmp_path, spark, format="delta", more='removals = "skip"')
    run(definition, spark)
    assert results(definition, "store", "n") == [("%41", 1), ("a", 1), ("x/y", 1)]
    assert [row["reason"] for row in read_table(definition, "quarantine").to_pylist()] == ["null_key"] * 2
    kept = {row["partition_values"] for row in read_table(definition, "source_files").to_pylist()}
    assert kept == {json.dumps({"store": store}) for store in ("a", "x/y", "%41", None)}


@pytest.mark.embedded
def test_reruns_explain_and_verify_need_no_log(spark: SparkSession, tmp_path: Path) -> None:
    delta(tmp_path, ["a", "b"])
    edited(tmp_path, 0, lambda add, n: f"{n}x/p.parquet")
    definition = pipeline(tmp_path, spark, format="delta", more='removals = "skip"')
    run(definition, spark)
    DeltaTable(tmp_path / "incoming").delete("store = 'a'")
    DeltaTable(tmp_path / "incoming").create_checkpoint()
    file_of(tmp_path / "incoming", 0).unlink()
    day_ms = int(AT.timestamp() * 1_000) // 86_400_000 * 86_400_000
    advance(definition, lambda: spark, clock=clock, rerun=Rerun(day_ms, day_ms + 86_400_000, "again", "me"))
    assert results(definition, "store", "n") == [("a", 1), ("b", 1)]
    assert not verify(definition, VerifyRequest(), spark, clock).differences
    events = read_events(cut(definition), Key(("store",), ("a",), (pa.string(),)), EVER).events
    assert [event.row for event in events] == [0]


@pytest.mark.both
def test_values_of_a_delta_table_are_of_the_type_of_its_schema(spark: SparkSession, tmp_path: Path) -> None:
    days = pa.array([date(2026, 3, 2), date(2026, 3, 3)], pa.date32())
    delta(tmp_path, ["007", "7"], day=days, number=pa.array([1, 10], pa.int16()))
    aggregates = 'most = "max(number)"'
    definition = pipeline(tmp_path, spark, format="delta", timestamp="day", aggregates=aggregates)
    run(definition, spark)
    expected = [
        ("007", 1, datetime(2026, 3, 2, tzinfo=UTC)),
        ("7", 10, datetime(2026, 3, 3, tzinfo=UTC)),
    ]
    assert results(definition, "store", "most", "last_event_time") == expected


@pytest.mark.embedded
def test_partition_values_survive_a_cut_log(spark: SparkSession, tmp_path: Path) -> None:
    delta(tmp_path, ["a", "x/y", None], number=pa.array([1, 2, 3], pa.int32()))
    edited(tmp_path, 0, lambda add, n: f"{n}x/p.parquet")
    delta(tmp_path, ["b"], number=pa.array([4], pa.int32()))
    DeltaTable(tmp_path / "incoming").create_checkpoint()
    file_of(tmp_path / "incoming", 0).unlink()
    definition = pipeline(tmp_path, spark, format="delta", aggregates='most = "max(number)"')
    run(definition, spark)
    assert results(definition, "store", "most") == [("a", 1), ("b", 4), ("x/y", 2)]


def test_a_folder_value_has_no_nested_type(tmp_path: Path) -> None:
    arrive(tmp_path, "store=7/1.parquet")
    with pytest.raises(WindowError, match=r"declares the partition column 'store' as array<int>; need"):
        plan(pipeline(tmp_path, more='schema = { store = "array<int>" }'), clock)
