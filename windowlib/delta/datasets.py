"""A table at a version as an Arrow dataset, which opens only the files that may hold rows of a filter.

Files are skipped by their partition and by the bounds in their statistics. The log has no bounds for fractions,
booleans and bytes. For such a column deltalake's own dataset compares with null. Arrow reads null as false, and skips
files that hold rows.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from windowlib.delta.data_files import DataFile
from windowlib.storage.store import Store


def dataset(table: DeltaTable, files: list[DataFile], store: Store) -> ds.Dataset:
    """The rows of a table in `store` that consists of `files`."""
    filesystem = store.filesystem()
    whole = table.to_pyarrow_dataset(filesystem=filesystem)
    schema, parquet = whole.schema, ds.ParquetFileFormat()
    if not files:
        return whole
    fragments = [
        parquet.make_fragment(file.path, filesystem, partition_expression=reduce(operator.and_, _facts(file, schema)))
        for file in files
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, filesystem)


def _facts(file: DataFile, schema: pa.Schema) -> Iterator[pc.Expression]:
    """Conditions that every row of a file satisfies."""
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
    """Tests if the bounds of every writer are exact. Bounds of fractions may be rounded or ignore NaN."""
    exact_kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
    return any(is_kind(kind) for is_kind in exact_kinds)
