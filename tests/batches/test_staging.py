"""The files that an engine writes hold what it was given, for every reader, and are small."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from windowlib.batches.staging import Staging

pytestmark = [pytest.mark.spark, pytest.mark.both]

ROWS = 120_000  # in each of a few files more times than a dictionary takes
TEXTS = ["", "ann", "ann\n", "é", "\U0001f600" * 30, "'; --", "x" * 3000, None]
DOUBLES = [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 5e-324, None]
WIDE = [Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99"), Decimal("0.01"), None]


def every_type() -> pa.Table:
    """Rows with values of each type that a table may have: few and many, ends, and none at all."""

    def of(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array((values * (ROWS // len(values) + 1))[:ROWS], kind)

    spread = [(number * 2_654_435_761) % (1 << 40) for number in range(ROWS)]
    days = [datetime.date(1960, 1, 1), datetime.date(2026, 3, 2), None]
    replaced = [[{"start": 1, "end": None}], [], None, [None, {"start": -(2**63), "end": 2**63 - 1}]]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "at": pa.array([value - (1 << 39) for value in spread], pa.timestamp("us", "UTC")),
            "at_ms": pa.array([value % (1 << 36) if value % 7 else None for value in spread], pa.int64()),
            "ends": of([2**63 - 1, -(2**63), 0, None], pa.int64()),
            "small": of([1, -1, 2**31 - 1, None], pa.int32()),
            "double": of(DOUBLES, pa.float64()),
            "many doubles": pa.array([value / 7 for value in spread], pa.float64()),
            "wide": of(WIDE, pa.decimal128(38, 2)),
            "many wide": pa.array([Decimal(value) / 100 for value in spread], pa.decimal128(38, 2)),
            "narrow": of([Decimal("12345.67"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
            "text": of(TEXTS, pa.string()),
            "many texts": pa.array([f"user-{value:x}@example.com" if value % 5 else None for value in spread]),
            "bytes": of([b"", b"\x00\xff", None], pa.binary()),
            "flag": of([True, False, None], pa.bool_()),
            "day": of(days, pa.date32()),
            "replaced": of(replaced, pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))),
            "nothing": pa.nulls(ROWS, pa.int64()),
        }
    )


def shown(table: pa.Table, like: pa.Schema) -> list[pa.Array]:
    """The values of each column in the order of `id`, doubles as their bits: a NaN is itself, and -0.0 is not 0.0."""
    columns = table.select(like.names).cast(like).sort_by("id").combine_chunks().columns
    arrays = (column.chunk(0) for column in columns)
    return [array.view(pa.int64()) if pa.types.is_floating(array.type) else array for array in arrays]


@pytest.fixture
def staged(spark: SparkSession, tmp_path: Path) -> tuple[pa.Table, DataFrame, list[Path]]:
    """Rows of every type, as the engine has read them, and the files that it wrote."""
    given = every_type()
    pq.write_table(given, tmp_path / "given.parquet")
    frame = spark.read.parquet(str(tmp_path / "given.parquet"))
    staging = Staging(tmp_path / "staged", "1-1", tmp_path, spark)
    staging.write(frame, "rows")
    return given, frame, [path for path, _ in staging.written("rows")]


def test_every_reader_finds_what_was_written(
    spark: SparkSession, staged: tuple[pa.Table, DataFrame, list[Path]]
) -> None:
    given, frame, files = staged
    wanted = shown(given, given.schema)
    assert shown(pa.concat_tables(pq.ParquetFile(file).read() for file in files), given.schema) == wanted
    names = list(map(str, files))
    assert shown(duckdb.read_parquet(names).to_arrow_table(), given.schema) == wanted
    assert shown(spark.read.schema(frame.schema).parquet(*names).toArrow(), given.schema) == wanted


def test_many_values_are_kept_as_differences_and_few_in_a_dictionary(
    staged: tuple[pa.Table, DataFrame, list[Path]],
) -> None:
    for file in staged[2]:
        group = pq.read_metadata(file).row_group(0)
        columns = map(group.column, range(group.num_columns))
        encodings = {column.path_in_schema: set(column.encodings) for column in columns}
        assert {"DELTA_BINARY_PACKED"} <= encodings["at"] & encodings["at_ms"]
        assert "RLE_DICTIONARY" in encodings["text"] & encodings["narrow"]
