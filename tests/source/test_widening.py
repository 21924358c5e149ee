"""Columns with different types in different files: accepted if nothing is lost, else refused at once."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.source.arriving import source_file
from tests.support.clicks import MINUTE_MS, START_MS, clock
from tests.support.disks import folder_of
from tests.support.strategies import ALL
from windowlib.batches.planning import plan
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import utc
from windowlib.engines.sail import is_sail
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source.columns.column_types import schema_of
from windowlib.source.listed import SourceError
from windowlib.storage.disk import Disk

PIPELINE = """
name = "sums"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at"
max_files_per_run = 1
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "10m"
[aggregates]
n = "count(*)"
"""
OUTPUTS = {
    "total": "sum(whole)",
    "most": "max(whole)",
    "least": "min(real)",
    "paid": "max(price)",
    "latest": "max(seen)",
    "word": "max(word)",
}
DAY = 86_400_000
FIRST = {
    "user": pa.int32(),
    "at": pa.timestamp("ms", "UTC"),
    "whole": pa.int32(),
    "real": pa.float32(),
    "price": pa.decimal128(6, 2),
    "seen": pa.timestamp("ms", "UTC"),
    "word": pa.string(),
}
WIDER = {
    "user": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "whole": pa.int64(),
    "real": pa.float64(),
    "price": pa.decimal128(12, 4),
    "seen": pa.timestamp("us", "UTC"),
    "word": pa.large_string(),
    "extra": pa.int32(),
}
NANOS = {**FIRST, "at": pa.timestamp("ns", "UTC"), "seen": pa.timestamp("ns", "UTC"), "extra": pa.string()}
EMPTY = {**FIRST, **dict.fromkeys(("whole", "real", "price", "seen", "word", "extra"), pa.null())}


def pipeline(folder: Path, outputs: dict[str, str] | None = None) -> Definition:
    (folder / "incoming").mkdir(parents=True, exist_ok=True)
    file = folder / "sums.toml"
    lines = (f'{name} = "{sql}"' for name, sql in (OUTPUTS if outputs is None else outputs).items())
    file.write_text(PIPELINE + "\n".join(lines))
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "sums")})


def arrive(
    folder: Path, number: int, types: dict[str, pa.DataType], rows: list[dict[str, Any]], **options: Any
) -> Path:
    path = folder / "incoming" / f"{number}.parquet"
    columns = {name: _array([row.get(name) for row in rows], kind) for name, kind in types.items()}
    pq.write_table(pa.table(columns), path, **options)
    return path


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(values)) if pa.types.is_null(kind) else pa.array(values, kind)


def row(minute: int, number: int, user: int | None = 1, **other: Any) -> dict[str, Any]:
    """An event whose values follow from its number."""
    values = {"whole": number, "real": number / 2, "price": Decimal(number) / 4, "word": f"w{number}"}
    return {"user": user, "at": utc(START_MS + minute * MINUTE_MS), **values, "seen": utc(number * DAY), **other}


def run(definition: Definition, spark: SparkSession, rerun: Rerun | None = None) -> None:
    advance(definition, lambda: spark, clock=clock, finish=rerun is None, rerun=rerun)


def found(definition: Definition) -> dict[tuple[int, int], tuple[Any, ...]]:
    rows = read_table(definition, "results").to_pylist()
    return {(one["user"], one["window_start"].minute): tuple(one[name] for name in ("n", *OUTPUTS)) for one in rows}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "files_per_run",
    [
        pytest.param(
            1,
            marks=[
                pytest.mark.embedded,
                pytest.mark.long("all at once, in make test, are of the types of the first, as later batches are"),
            ],
        ),
        pytest.param(0, marks=pytest.mark.both),
    ],
)
def test_files_of_every_type_that_widens(spark: SparkSession, tmp_path: Path, files_per_run: int) -> None:
    """Several batches, or one; refused rows, a rerun of all files, and verify, which reads them again."""
    definition = pipeline(tmp_path)
    source = definition.source.model_copy(update={"max_files_per_run": files_per_run})
    definition = definition.model_copy(update={"source": source})
    odd = datetime(2026, 3, 2, 0, 10, 59, 999_999, tzinfo=UTC)
    arrive(tmp_path, 1, FIRST, [row(0, 2), row(0, 3, user=2)])
    arrive(tmp_path, 2, WIDER, [row(1, 5, extra=7), row(2, 6, user=2), row(2, 9, user=None, extra=8)])
    arrive(tmp_path, 3, EMPTY, [row(3, 0), row(11, 0)])
    arrive(tmp_path, 4, NANOS, [row(12, 4, extra="x"), {**row(0, 7), "at": odd}, row(12, 1, user=None, extra="y")])
    arrive(tmp_path, 5, FIRST, [row(13, 3)], use_deprecated_int96_timestamps=True)
    for number in range(1, 6):
        os.utime(tmp_path / "incoming" / f"{number}.parquet", ns=(number, number))
    run(definition, spark)
    expected = {
        (1, 0): (3, 7, 5, 1.0, Decimal("1.25"), utc(5 * DAY), "w5"),
        (2, 0): (2, 9, 6, 1.5, Decimal("1.50"), utc(6 * DAY), "w6"),
        (1, 10): (4, 14, 7, 1.5, Decimal("1.75"), utc(7 * DAY), "w7"),
    }
    assert found(definition) == expected
    kinds = read_table(definition, "results").schema
    assert [str(kinds.field(name).type) for name in ("user", "most", "least", "paid", "latest")] == [
        "int32",
        "int32",
        "float",
        "decimal128(6, 2)",
        "timestamp[us, tz=UTC]",
    ]
    refused = [json.loads(one["raw"]) for one in read_table(definition, "quarantine").to_pylist()]
    assert sorted(str(one["extra"]) for one in refused) == ["8", "y"]
    if ALL or is_sail(spark):  # a rerun reads by the same reader; Spark's are in tests/reruns
        run(definition, spark, Rerun(START_MS - DAY, START_MS + DAY, "a test", "ann"))
        assert found(definition) == expected
    compared = verify(definition, VerifyRequest(), spark, clock)
    assert not [*compared.differences]
    assert compared.rows_read == 11


@pytest.mark.parametrize(
    ("first", "then", "says"),
    [
        (
            (pa.int32(), 1),
            (pa.int64(), 3_000_000_000),
            "int64, but was recorded as int32, which cannot hold 3000000000",
        ),
        ((pa.int8(), 1), (pa.int16(), -129), "int16, but was recorded as int8, which cannot hold -129"),
        ((pa.float32(), 1.5), (pa.float64(), 0.1), "double, but was recorded as float, which cannot hold 0.1"),
        ((pa.float32(), 1.5), (pa.float64(), 1e300), "double, but was recorded as float, which cannot hold 1e+300"),
        (
            (pa.decimal128(6, 2), Decimal("1.5")),
            (pa.decimal128(8, 4), Decimal("1.2345")),
            "decimal128(8, 4), but was recorded as decimal128(6, 2), which cannot hold 1.2345",
        ),
        (
            (pa.timestamp("us", "UTC"), utc(0)),
            (pa.timestamp("ns", "UTC"), 1_001),
            "timestamp[ns, tz=UTC] and has 1001 ns, but is read in microseconds",
        ),
        ((pa.int64(), 1), (pa.int32(), 1), "int32, but was recorded as int64: its writer may have cut off digits"),
        (
            (pa.float64(), 1.5),
            (pa.float32(), 1.5),
            "float, but was recorded as double: its writer may have cut off digits",
        ),
        ((pa.int64(), 1), (pa.string(), "1"), "string, but was recorded as int64: the types are incompatible"),
        ((pa.int64(), 1), (pa.float64(), 1.0), "double, but was recorded as int64: the types are incompatible"),
        (
            (pa.timestamp("us", "UTC"), utc(0)),
            (pa.timestamp("us"), datetime(2026, 1, 1)),
            "timestamp[us], but was recorded as timestamp[us, tz=UTC]: the types are incompatible",
        ),
    ],
)
@pytest.mark.fault("a column has another type in a later file", "the error names both types, unless all values fit")
def test_a_type_that_does_not_fit_is_refused(
    tmp_path: Path, first: tuple[pa.DataType, Any], then: tuple[pa.DataType, Any], says: str
) -> None:
    definition = pipeline(tmp_path, {"most": "max(whole)"})
    definition = definition.model_copy(update={"source": definition.source.model_copy(update={"max_files_per_run": 0})})
    arrive(tmp_path, 1, {**FIRST, "whole": first[0]}, [{**row(0, 1), "whole": first[1]}])
    assert plan(definition, clock)
    good = {**row(0, 1), "whole": None}
    path = arrive(tmp_path, 2, {**FIRST, "whole": then[0]}, [good, {**row(0, 1), "whole": then[1]}])
    definition = definition.model_copy(update={"store": Disk(tmp_path / "other")})
    with pytest.raises(StateMismatch) as refused:
        plan(definition, clock)
    message = str(refused.value)
    assert f"column 'whole' of {path} is {says}" in message
    assert "nothing of this batch has been committed" in message
    assert "windowlib set-aside" in message
    assert not folder_of(definition).exists()


def test_a_column_without_a_type_waits_for_one(tmp_path: Path) -> None:
    definition = pipeline(tmp_path)
    path = arrive(tmp_path, 1, EMPTY, [row(0, 1)])
    with pytest.raises(SourceError, match=f"column 'price' is all null and has no type in {path}") as refused:
        plan(definition, clock)
    assert "max_files_per_run" in str(refused.value)
    arrive(tmp_path, 2, FIRST, [row(0, 1)])
    source = definition.source.model_copy(update={"max_files_per_run": 0})
    planned = plan(definition.model_copy(update={"source": source}), clock)
    assert planned is not None
    assert planned.stored["source_types"]["whole"] == "int32"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("a folder's text that looks like a number, in make test, is a key that stays a text")
def test_folder_values_have_the_recorded_type(spark: SparkSession, tmp_path: Path) -> None:
    """`part=1` is a whole number without other values, and a text if texts were recorded."""
    definition = pipeline(tmp_path, {"most": "max(part)"})
    for number, folder in enumerate(("part=a", "part=1"), 1):
        (tmp_path / "incoming" / folder).mkdir(parents=True)
        arrive(tmp_path, number, FIRST, [row(number, 1)]).rename(tmp_path / "incoming" / folder / f"{number}.parquet")
        run(definition, spark)
    assert [one["most"] for one in read_table(definition, "results").to_pylist()] == ["a"]


@pytest.mark.parametrize(
    ("declared", "given", "lost"),
    [
        ("double", pa.array([1, 2, 3, 2**53 + 1]), str(2**53 + 1)),
        ("double", pa.array([5, None, 2**63 - 1]), str(2**63 - 1)),
        ("float", pa.array([float("nan"), 0.5, 0.1]), "0.1"),
        ("double", pa.array([float("nan"), 0.5, 2.0**60]), None),
        ("double", pa.array([None, 2**53, -(2**60)]), None),
    ],
)
def test_a_declared_type_too_small_for_a_value(
    tmp_path: Path, declared: str, given: pa.Array, lost: str | None
) -> None:
    definition = pipeline(tmp_path, {"most": "max(whole)"})
    source = definition.source.model_copy(update={"columns": {"whole": declared}})
    definition = definition.model_copy(update={"source": source})
    times = pa.array([START_MS] * len(given), pa.timestamp("ms", "UTC"))
    table = pa.table({"user": pa.array([1] * len(given), pa.int32()), "at": times, "whole": given})
    pq.write_table(table, tmp_path / "incoming" / "1.parquet")
    if lost is None:
        assert plan(definition, clock)
        return
    with pytest.raises(StateMismatch, match=f"column 'whole' of .*1.parquet is .*, which cannot hold {lost}"):
        plan(definition, clock)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.both
@pytest.mark.parametrize(
    "unit", [pytest.param("ms", marks=pytest.mark.long("microseconds, in make test, are durations too")), "us"]
)
def test_durations_and_int96_times_keep_their_values(unit: str, spark: SparkSession, tmp_path: Path) -> None:
    """Durations are whole numbers in aggregates, in stored rows, and inside columns. Times of 96 bits exceed the range
    of 64-bit nanoseconds, in which the year 1000 would become one of the 18th century.
    """
    definition = pipeline(tmp_path, {"longest": "max(lasted)"})
    kinds = {**FIRST, "lasted": pa.duration(unit), "laps": pa.list_(pa.duration(unit))}
    times = [datetime(year, 3, 2, 5, 10, 59, 123_456, tzinfo=UTC) for year in (1000, 1500, 2026)]
    rows = [{**row(0, 1, lasted=at.year, laps=[7]), "at": at} for at in times]
    rows.append(row(0, 2, user=None, lasted=2_000, laps=[8]))
    arrive(tmp_path, 1, kinds, rows, use_deprecated_int96_timestamps=True)
    run(definition, spark)
    results = sorted(read_table(definition, "results").to_pylist(), key=lambda one: one["last_event_time"])
    assert [one["longest"] for one in results] == [1000, 1500, 2026]
    assert [one["last_event_time"] for one in results] == [time.replace(microsecond=123_000) for time in times]
    assert all(one["window_start"] <= one["last_event_time"] < one["window_end"] for one in results)
    [refused] = read_table(definition, "quarantine").to_pylist()
    raw = json.loads(refused["raw"])
    assert (raw["lasted"], raw["laps"]) == (2_000, [8])


UNREAD = {
    "time": pa.array([time(1, 2), None], pa.time64("us")),
    "seconds": pa.array([time(1, 2), None], pa.time32("s")),
    "half": pa.array([1.5, 2.5]).cast(pa.float16()),
    "id": pa.array([b"0" * 16, b"1" * 16], pa.uuid()),
    "of": pa.array([{"at": time(1)}, None], pa.struct([("at", pa.time64("us"))])),
    "each": pa.array([[time(1)], []], pa.list_(pa.time64("us"))),
}


@pytest.mark.spark
@pytest.mark.both
def test_an_unreadable_column_may_exist(spark: SparkSession, tmp_path: Path) -> None:
    """On Spark next to numbers without a sign too, which Sail refuses."""
    signless = {} if is_sail(spark) else {"a": pa.uint8(), "b": pa.uint16(), "c": pa.uint32(), "d": pa.uint64()}
    definition = pipeline(tmp_path, {"total": "sum(whole)", **{f"most_{name}": f"max({name})" for name in signless}})
    most = {name: 2**kind.bit_width - 1 for name, kind in signless.items()}
    at = pa.array([START_MS, START_MS]).cast(pa.timestamp("ms", "UTC"))
    known = {"user": pa.array([1, None]), "at": at, "whole": pa.array([7, 8])}
    greatest = {name: pa.array([most[name], 0], kind) for name, kind in signless.items()}
    pq.write_table(pa.table({**known, **greatest, **UNREAD}), tmp_path / "incoming" / "1.parquet")
    advance(definition, lambda: spark, clock=clock, finish=True)
    [result] = read_table(definition, "results").to_pylist()
    assert result["total"] == 7
    assert {name: result[f"most_{name}"] for name in signless} == most
    [refused] = read_table(definition, "quarantine").to_pylist()
    assert json.loads(refused["raw"])["whole"] == 8


@pytest.mark.parametrize("column", UNREAD)
def test_an_unreadable_column_is_refused_in_use(tmp_path: Path, column: str) -> None:
    definition = pipeline(tmp_path, {"most": f"count({column})"})
    at = pa.array([START_MS, START_MS]).cast(pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"user": [1, 2], "at": at, **UNREAD}), tmp_path / "incoming" / "1.parquet")
    with pytest.raises(SourceError, match=rf"column '{column}' of .*1\.parquet is .*, which no engine reads"):
        plan(definition, clock)


def test_files_of_one_schema_share_it_in_memory(tmp_path: Path) -> None:
    """Together with the file's own metadata, which marks files written by Spark."""
    plain, by_spark = pa.schema([("a", pa.int64())]), pa.schema([("a", pa.int64())], {"org.apache.spark.version": "4"})
    for file, schema in {"1": plain, "2": by_spark, "3": plain, "4": plain.append(pa.field("b", pa.int8()))}.items():
        pq.write_table(schema.empty_table(), tmp_path / file)
    one, marked, same, wider = (schema_of(Disk(tmp_path), source_file(tmp_path, file)) for file in "1234")
    assert same is one
    assert b"org.apache.spark.version" in marked.metadata
    assert not one.metadata
    assert wider.names == ["a", "b"]
