"""Reading of a Parquet file by row groups: the newest groups first, or only groups that may hold the wanted rows.

A compacted file holds a long history, but a run needs only its end. The statistics of the row groups show which groups
to read. A group without statistics may hold any row, so it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.delta.data_files import columns_of, shaped


def newest_first(file: pq.ParquetFile, by: str, schema: pa.Schema) -> Iterator[tuple[pa.Table, int | None]]:
    """The row groups of a file, in descending order of their greatest value of the integer column `by`.

    Yields each with the greatest value of the remaining groups, or None after the last group.
    """
    highs = {group: high for group, (_, high) in enumerate(_bounds(file, by))}
    order = sorted(highs, key=lambda group: (highs[group] is None, highs[group] or 0, group), reverse=True)
    if not order or any(high is None for high in highs.values()):
        yield _read(file, order, schema), None
        return
    for place, group in enumerate(order):
        left = order[place + 1 :]
        yield _read(file, [group], schema), highs[left[0]] if left else None


def holding(file: pq.ParquetFile, may_hold: Mapping[str, Callable[[Any, Any], bool]], schema: pa.Schema) -> pa.Table:
    """The rows of the row groups that may hold the wanted rows.

    may_hold: by column, a test of the least and greatest value of a group
    """
    groups: Sequence[int] = range(file.num_row_groups)
    for column, may in may_hold.items():
        bounds = _bounds(file, column)
        groups = [group for group in groups if bounds[group][0] is None or may(*bounds[group])]
    return _read(file, groups, schema)


def _bounds(file: pq.ParquetFile, column: str) -> list[tuple[Any, Any]]:
    """The least and greatest value of a column in each group, or (None, None) if unknown."""
    footer, names = file.metadata, file.schema
    number = next((number for number in range(footer.num_columns) if names.column(number).path == column), None)
    if number is None:
        return [(None, None)] * file.num_row_groups
    groups = (footer.row_group(group).column(number).statistics for group in range(file.num_row_groups))
    return [(group.min, group.max) if group is not None and group.has_min_max else (None, None) for group in groups]


def _read(file: pq.ParquetFile, groups: Sequence[int], schema: pa.Schema) -> pa.Table:
    return shaped(file.read_row_groups(groups, columns=columns_of(file, schema)), schema)
