"""Of which columns a reader of a table's log gets statistics.

It gets those of the first 32, unless the table names others. With many keys, aggregates or source columns, those by
which files are looked for come later: such a table names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deltalake import Schema

from windowlib.contract.tables import TABLES

PROPERTY = "delta.dataSkippingStatsColumns"
OF_ITSELF = 32  # columns, those inside structs counted

_KINDS = ("string", "long", "timestamp")


def looked_for(table: str, schema: Schema) -> list[str]:
    """The columns, of those that a table has, by which its files are looked for. Where all have the same columns in
    every pipeline, there is none that needs a name.

    >>> import pyarrow as pa
    >>> kinds = {"user": pa.string(), "window_start": pa.timestamp("us", "UTC"), "batch_id": pa.int64()}
    >>> looked_for("results", Schema.from_arrow(pa.schema(kinds))), looked_for("ledger", TABLES["ledger"].schema())
    (['window_start', 'batch_id'], [])
    """
    spec = TABLES.get(table)
    if spec is None or spec.columns is not None:
        return []
    bounded = (one["name"] for one in _fields(schema) if one["type"] in _KINDS)
    return [name for name in bounded if spec.has(name) and name not in spec.partition_by]


def properties(table: str, schema: Schema) -> Mapping[str, str]:
    """What a table says of its statistics: nothing where its first columns are all it has."""
    if _leaves(_fields(schema)) <= OF_ITSELF or not (names := looked_for(table, schema)):
        return {}
    return {PROPERTY: ",".join(names)}


def _fields(schema: Schema) -> list[dict[str, Any]]:
    return [*json.loads(schema.to_json())["fields"]]


def _leaves(fields: list[dict[str, Any]]) -> int:
    structs = [one["type"]["fields"] for one in fields if isinstance(one["type"], dict) and "fields" in one["type"]]
    return len(fields) - len(structs) + sum(map(_leaves, structs))
