"""Files written without an engine are small and hold the given values, for any column names."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from tests.support.every_type import every_type, shown
from windowlib.delta.data_files import bulk_write_options

NAMES = {"at": "a.b", "at_ms": "ends.list.element", "ends": "", "text": 'é `q"', "small": "at", "day": "\U0001f600"}


def test_a_large_file_is_compressed_without_loss(tmp_path: Path) -> None:
    given = every_type().rename_columns(NAMES)
    pq.write_table(given, tmp_path / "by_default.parquet")
    pq.write_table(given, tmp_path / "made.parquet", **bulk_write_options(given.schema))
    read = pq.ParquetFile(tmp_path / "made.parquet")
    assert read.schema_arrow.equals(given.schema)
    assert shown(read.read(), given.schema) == shown(given, given.schema)
    named = dict(zip(duckdb.read_parquet(str(tmp_path / "made.parquet")).columns, given.column_names, strict=True))
    by_duckdb = duckdb.read_parquet(str(tmp_path / "made.parquet")).to_arrow_table().rename_columns(named)
    assert shown(by_duckdb, given.schema) == shown(given, given.schema)
    assert (tmp_path / "made.parquet").stat().st_size < 0.8 * (tmp_path / "by_default.parquet").stat().st_size

    group = read.metadata.row_group(0)
    of = {group.column(number).path_in_schema: group.column(number).encodings for number in range(group.num_columns)}
    for name in ("id", "a.b", "ends.list.element", "", "at", "\U0001f600"):
        assert "DELTA_BINARY_PACKED" in of[name], name
    assert "RLE_DICTIONARY" in of['é `q"']
