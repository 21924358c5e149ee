"""Files that an engine writes hold the right values for every reader, and are small."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.every_type import every_type, shown
from windowlib.batches.staging import Staging
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.both]


@pytest.fixture
def staged(spark: SparkSession, tmp_path: Path) -> tuple[pa.Table, DataFrame, list[Path]]:
    """Rows of every type, as the engine has read them, and the files that it wrote."""
    given = every_type()
    pq.write_table(given, tmp_path / "given.parquet")
    frame = spark.read.parquet(str(tmp_path / "given.parquet"))
    staging = Staging(Disk(tmp_path), Disk(tmp_path / "tables"), "1-1", spark)
    staging.write(frame, "rows")
    return given, frame, [tmp_path / file.path for file, _ in staging.written("rows")]


def test_every_reader_finds_what_was_written(
    spark: SparkSession, staged: tuple[pa.Table, DataFrame, list[Path]]
) -> None:
    given, frame, files = staged
    wanted = shown(given, given.schema)
    assert shown(pa.concat_tables(pq.ParquetFile(file).read() for file in files), given.schema) == wanted
    names = list(map(str, files))
    assert shown(duckdb.read_parquet(names).to_arrow_table(), given.schema) == wanted
    assert shown(spark.read.schema(frame.schema).parquet(*names).toArrow(), given.schema) == wanted


def test_many_values_are_stored_as_differences_and_few_in_a_dictionary(
    staged: tuple[pa.Table, DataFrame, list[Path]],
) -> None:
    for file in staged[2]:
        group = pq.read_metadata(file).row_group(0)
        columns = map(group.column, range(group.num_columns))
        encodings = {column.path_in_schema: set(column.encodings) for column in columns}
        assert {"DELTA_BINARY_PACKED"} <= encodings["at"] & encodings["at_ms"]
        assert "RLE_DICTIONARY" in encodings["text"] & encodings["narrow"]
