"""A column that the definition does not name has any type in any file; a refused row shows it as its file has it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.source.arriving import source_file
from tests.support.clicks import MINUTE_MS, START_MS, clicks, clock
from tests.support.strategies import ALL
from windowlib.definition.definition import Definition
from windowlib.engines.sail import is_sail
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.plans import erased, names
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source.columns.layout import MOST_TYPES, Layout

PLAIN = """
name = "clicks"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "10m"
[aggregates]
n = "count(*)"
"""
FAR = pa.array([[2**62]], pa.list_(pa.int64()))  # microseconds, of the year 148108
GIVEN = {
    "bigint": (pa.array([1]), 1),
    "int": (pa.array([2], pa.int32()), 2),
    "nulls": (pa.nulls(1), None),
    "unsigned": (pa.array([2**64 - 1], pa.uint64()), 2**64 - 1),
    "text": (pa.array(["x"]), "x"),
    "binary": (pa.array([b"\xff"]), "/w=="),
    "time": (pa.array([1], pa.time64("us")), None),
    "half": (pa.array([1.5], pa.float16()), None),
    "uuid": (pa.array([b"0" * 16], pa.uuid()), None),
    "far": (FAR.cast(pa.list_(pa.timestamp("us", "UTC"))), ["148108-07-06T14:00:27.387904Z"]),
    "nanos": (pa.array([[1]], pa.list_(pa.timestamp("ns"))), None),
    "long": (pa.array(["1"]).cast(pa.decimal256(60, 0)), None),
    "nanos_of_day": (pa.array([1], pa.time64("ns")), None),
    "map_of_nanos": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.timestamp("ns"))), None),
    "long_each": (pa.array([[None]], pa.list_(pa.decimal256(50, 2))), None),
    "alike": (pa.array([{"a": 1, "A": 2}]), None),
    "fixed": (pa.array([b"abcd"], pa.binary(4)), "YWJjZA=="),
    "struct": (pa.array([{"a": 1}], pa.struct([("a", pa.uint8())])), {"a": 1}),
    "date": (pa.array([0], pa.date32()), "1970-01-01"),
}


def arrive(folder: Path, name: str, extra: pa.Array) -> None:
    """A file with an event, and a row without its key, which is refused."""
    both = pa.concat_arrays([extra, extra])
    at_ms = pa.array([START_MS, START_MS + MINUTE_MS])
    pq.write_table(pa.table({"user": ["ann", None], "at_ms": at_ms, "extra": both}), folder / f"{name}.parquet")


def shown(definition: Definition) -> dict[str, object]:
    rows = read_table(definition, "quarantine").to_pylist()
    raw = {row["source_file"].removesuffix(".parquet"): row["raw"].replace('"+', '"') for row in rows}
    return {name: json.loads(text).get("extra") for name, text in raw.items()}


@pytest.mark.spark
@pytest.mark.both
def test_files_of_every_type_in_one_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A run, a rerun of all files, and verify, which reads them again."""
    definition = clicks(tmp_path, 0, PLAIN)
    for name, (extra, _) in GIVEN.items():
        arrive(tmp_path / "incoming", name, extra)
    batch, *_ = advance(definition, lambda: spark, clock=clock, finish=True)
    assert batch.figures["rows_admitted"] == len(GIVEN)
    assert shown(definition) == {name: value for name, (_, value) in GIVEN.items()}
    if ALL or is_sail(spark):  # which reads by the same reader
        rerun = Rerun(START_MS - MINUTE_MS, START_MS + 10 * MINUTE_MS, "a test", "ann")
        advance(definition, lambda: spark, clock=clock, rerun=rerun)
    compared = verify(definition, VerifyRequest(), spark, clock)
    assert not [*compared.differences]
    assert compared.rows_read == 2 * len(GIVEN)


@pytest.mark.spark
@pytest.mark.both
def test_two_spellings_of_a_column_in_one_file_are_not_shown(spark: SparkSession, tmp_path: Path) -> None:
    """Next to a file that has one of them, which is shown."""
    definition = clicks(tmp_path, 0, PLAIN)
    keys = {"user": ["ann", None], "at_ms": [START_MS, START_MS]}
    pq.write_table(pa.table({**keys, "Extra": [1, 2], "extra": ["x", "y"]}), tmp_path / "incoming" / "two.parquet")
    pq.write_table(pa.table({**keys, "EXTRA": [3, 4]}), tmp_path / "incoming" / "one.parquet")
    advance(definition, lambda: spark, clock=clock, finish=True)
    [result] = read_table(definition, "results").to_pylist()
    assert result["n"] == 2
    raw = {row["source_file"]: json.loads(row["raw"]) for row in read_table(definition, "quarantine").to_pylist()}
    assert raw["one.parquet"] == {"at_ms": START_MS, "EXTRA": 4}
    assert raw["two.parquet"] == {"at_ms": START_MS}
    assert not [*verify(definition, VerifyRequest(), spark, clock).differences]


@pytest.mark.spark
@pytest.mark.both
def test_nested_int96_times_are_instants(spark: SparkSession, tmp_path: Path) -> None:
    """Also those that 64 bits of nanoseconds do not hold, shown or, on Spark, in an aggregate."""
    text = PLAIN if is_sail(spark) else PLAIN + 'first = "min(s.t)"\nlast = "max(element_at(each, 1))"\n'
    definition = clicks(tmp_path, 0, text)
    late, early = datetime(9999, 12, 31), datetime(1600, 1, 1)
    table = pa.table(
        {
            "user": ["ann", None],
            "at_ms": [START_MS, START_MS],
            "s": pa.array([{"n": 1, "t": early}, {"n": 2, "t": late}]),
            "each": pa.array([[late], [early]], pa.list_(pa.timestamp("us"))),
        }
    )
    pq.write_table(table, tmp_path / "incoming" / "1.parquet", use_deprecated_int96_timestamps=True)
    advance(definition, lambda: spark, clock=clock, finish=True)
    [refused] = read_table(definition, "quarantine").to_pylist()
    raw = json.loads(refused["raw"])
    assert raw["s"] == {"n": 2, "t": "9999-12-31T00:00:00.000000Z"}
    assert raw["each"] == ["1600-01-01T00:00:00.000000Z"]
    if not is_sail(spark):
        [result] = read_table(definition, "results").to_pylist()
        assert (result["first"], result["last"]) == (early.replace(tzinfo=UTC), late.replace(tzinfo=UTC))


def test_the_first_of_very_many_types_are_read(tmp_path: Path) -> None:
    definition, files = clicks(tmp_path, 0, PLAIN), []
    for number in range(2 * MOST_TYPES):
        arrive(tmp_path / "incoming", str(number), pa.array([{f"a{number}": 1}]))
        files.append(source_file(tmp_path / "incoming", f"{number}.parquet"))
    layout = Layout.of(definition.source, files, {"user": "string", "at_ms": "int64"})
    columns = ["extra", *(names.of_another_type("extra", number) for number in range(1, MOST_TYPES))]
    assert [*layout.kinds] == ["user", "at_ms", *columns]
    schemas = [pq.read_schema(tmp_path / "incoming" / file.path) for file in files]
    placed = [layout.placed(schema) for schema in schemas]
    assert placed == [{}, *({"extra": column} for column in columns[1:]), *[{"extra": None}] * MOST_TYPES]


@pytest.mark.spark
@pytest.mark.both
def test_an_erased_key_is_recognized_in_each_type(spark: SparkSession) -> None:
    """The column was a key before a migration, so the definition no longer names it."""
    secret, another = "00ff", names.of_another_type("user", 1)
    rows = spark.createDataFrame([(7, None), (None, "ann"), (None, None)], f"user int, {another} string")
    found = rows.select(erased.digest_of(rows, ["user"], secret)).collect()
    assert [digest for (digest,) in found] == [erased.digest(secret, [value]) for value in (7, "ann", None)]
