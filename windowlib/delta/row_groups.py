"""The rows of one Parquet file by its row groups: the newest first, or those alone that may hold what is asked for.

A file into which small ones were put together holds a long history, of which a run needs the end. Its row groups have
statistics, so the others are not read. A group without them may hold anything, and is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.delta.data_files import columns_of, shaped


def newest_first(path: Path, by: str, schema: pa.Schema) -> Iterator[tuple[pa.Table, int | None]]:
    """The row groups of a file, those with the greatest values of the integer column `by` first.

    With each comes the greatest value in those that are left: None where none is.
    """
    file = pq.ParquetFile(path)
    highs = {group: high for group, (_, high) in enumerate(_bounds(file, by))}
    order = sorted(highs, key=lambda group: (highs[group] is None, highs[group] or 0, group), reverse=True)
    if not order or any(high is None for high in highs.values()):
        yield _read(file, order, schema), None
        return
    for place, group in enumerate(order):
        left = order[place + 1 :]
        yield _read(file, [group], schema), highs[left[0]] if left else None


def holding(path: Path, may_hold: Mapping[str, Callable[[Any, Any], bool]], schema: pa.Schema) -> pa.Table:
    """The row groups of a file that `may_hold` is true of: of the least and greatest value of each of its columns."""
    file = pq.ParquetFile(path)
    groups: Sequence[int] = range(file.num_row_groups)
    for column, may in may_hold.items():
        bounds = _bounds(file, column)
        groups = [group for group in groups if bounds[group][0] is None or may(*bounds[group])]
    return _read(file, groups, schema)


def _bounds(file: pq.ParquetFile, column: str) -> list[tuple[Any, Any]]:
    """The least and greatest value of a column in each group; two None where they are not known."""
    about, names = file.metadata, file.schema
    number = next((number for number in range(about.num_columns) if names.column(number).path == column), None)
    if number is None:
        return [(None, None)] * file.num_row_groups
    found = (about.row_group(group).column(number).statistics for group in range(file.num_row_groups))
    return [(one.min, one.max) if one is not None and one.has_min_max else (None, None) for one in found]


def _read(file: pq.ParquetFile, groups: Sequence[int], schema: pa.Schema) -> pa.Table:
    return shaped(file.read_row_groups(groups, columns=columns_of(file, schema)), schema)
