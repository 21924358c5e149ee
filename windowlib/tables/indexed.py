"""Of which columns a reader of a table's log gets statistics.

It gets those of the first 32, unless the table names others. With many keys, aggregates or source columns, those by
which files are looked for come later: such a table names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from windowlib.tables.meaning import TABLES

PROPERTY = "delta.dataSkippingStatsColumns"
OF_ITSELF = 32  # columns, those inside structs counted

_KINDS = (pa.string(), pa.int64(), pa.timestamp("us", tz="UTC"))


def looked_for(table: str, columns: Sequence[str]) -> list[str]:
    """The columns, of those that a table has, by which its files are looked for. Where all have the same columns in
    every pipeline, there is none that needs a name.

    >>> looked_for("results", ["user", "window_start", "total", "batch_id"]), looked_for("ledger", ["sequence"])
    (['window_start', 'batch_id'], [])
    """
    spec = TABLES.get(table)
    if spec is None or spec.columns is not None:
        return []
    ours = {one.name for one in spec.described if one.type in _KINDS} - {*spec.partition_by}
    return [name for name in columns if name in ours]


def properties(table: str, schema: pa.Schema) -> Mapping[str, str]:
    """What a table says of its statistics: nothing where its first columns are all it has."""
    if sum(_leaves(field.type) for field in schema) <= OF_ITSELF or not (names := looked_for(table, schema.names)):
        return {}
    return {PROPERTY: ",".join(names)}


def _leaves(kind: Any) -> int:
    if pa.types.is_struct(kind):
        return sum(_leaves(kind.field(index).type) for index in range(kind.num_fields))
    return 1
