"""Errors for rows that cannot be read: they name the file, unless the storage is at fault."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.damage import damage_rows
from windowlib.engines.parquet_files import UnreadableRows, parquet_file, rows_read
from windowlib.storage.disk import Disk
from windowlib.storage.object_file import opened


class Failing(io.FileIO):
    """File on a storage that fails after the footer was read."""

    fails = False

    def read(self, size: int = -1) -> bytes:
        if self.fails:
            raise OSError(5, "Input/output error")
        return super().read(size)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"n": range(1000)}), tmp_path / "some.parquet")
    return tmp_path / "some.parquet"


def read(path: Path, **chosen: Any) -> Iterator[pa.RecordBatch]:
    file = opened(Disk(path.parent), path.name)
    return rows_read(file.address, parquet_file(file), **chosen)


def test_a_damaged_file_is_named(path: Path) -> None:
    assert sum(batch.num_rows for batch in read(path)) == 1000
    damage_rows(path)
    with pytest.raises(UnreadableRows, match=rf"^{path} cannot be read \(.*thrift.*\)$"):
        next(read(path))


def test_a_failure_of_the_storage_is_raised_unchanged(path: Path) -> None:
    failing = Failing(path)
    file = pq.ParquetFile(pa.PythonFile(failing, mode="r"))
    failing.fails = True
    with pytest.raises(OSError, match="Input/output error") as error:
        next(rows_read(str(path), file))
    assert error.value.errno == 5


LATIN = pa.array(["é".encode("latin-1"), b"e"])
TEXTS = pa.Array.from_buffers(pa.string(), 2, LATIN.buffers())


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        TEXTS.cast(pa.large_binary()).view(pa.large_string()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), TEXTS),
        pa.StructArray.from_arrays([TEXTS], ["of"]),
        pa.ListArray.from_arrays([0, 1, 2], TEXTS),
    ],
    ids=lambda texts: str(texts.type),
)
def test_texts_at_any_depth_must_be_utf8(tmp_path: Path, texts: pa.Array) -> None:
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table({"n": [1, 2], "texts": texts}), path)
    with pytest.raises(UnreadableRows, match=r"some.parquet cannot be read .*UTF-?8"):
        next(read(path))
    assert next(read(path, columns=["n"])).num_rows == 2
