"""A table at a version as a dataset of Arrow, which opens only the files that a filter may find rows in.

A file is left out by its partition and by the bounds that its statistics have. deltalake's own dataset compares with
null where a column has no bound, as the log keeps none of fractions, conditions and bytes; Arrow takes that for false,
and leaves files out that hold rows.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow import fs

from windowlib.delta.data_files import DataFile


def dataset(table: DeltaTable, found: list[DataFile], files: fs.FileSystem) -> ds.Dataset:
    """The rows of a table that consists of the files `found`, which `files` reads."""
    whole = table.to_pyarrow_dataset(filesystem=files)
    schema, parquet = whole.schema, ds.ParquetFileFormat()
    if not found:
        return whole
    fragments = [
        parquet.make_fragment(file.path, files, partition_expression=reduce(operator.and_, _known(file, schema)))
        for file in found
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, files)


def _known(file: DataFile, schema: pa.Schema) -> Iterator[pc.Expression]:
    """What is true of each row of a file."""
    yield pc.scalar(True)
    for name, value in file.partition.items():
        column = pc.field(name)
        yield column.is_null() if value is None else column == pa.scalar(value).cast(schema.field(name).type)
    for name in schema.names:
        kind = schema.field(name).type
        if name in file.low and name in file.high and name not in file.partition and _is_exact(kind):
            low, high = (pa.scalar(value).cast(kind) for value in (file.low[name], file.high[name]))
            yield ((low <= pc.field(name)) & (pc.field(name) <= high)) | pc.field(name).is_null()


def _is_exact(kind: pa.DataType) -> bool:
    """Whether bounds hold for all values, of other writers too: those of fractions may be rounded, or without NaN."""
    is_one = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
    return any(test(kind) for test in is_one)
