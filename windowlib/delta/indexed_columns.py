"""Columns for which the log of a table keeps statistics.

By default these are the first 32 columns. With many keys, aggregates or source columns, the columns used to choose
files come later. Such a table names them in its settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deltalake import Schema

from windowlib.contract.tables import TABLES

PROPERTY = "delta.dataSkippingStatsColumns"
INDEXED_BY_DEFAULT = 32  # columns, including those inside structs

_KINDS = ("string", "long", "timestamp")


def looked_for(table: str, schema: Schema) -> list[str]:
    """The columns of a table that are used to choose files.

    Empty for a table whose columns are the same in every pipeline: it needs no setting.

    >>> import pyarrow as pa
    >>> kinds = {"user": pa.string(), "window_start": pa.timestamp("us", "UTC"), "batch_id": pa.int64()}
    >>> looked_for("results", Schema.from_arrow(pa.schema(kinds))), looked_for("ledger", TABLES["ledger"].schema())
    (['window_start', 'batch_id'], [])
    """
    spec = TABLES.get(table)
    if spec is None or spec.columns is not None:
        return []
    bounded = (column["name"] for column in _fields(schema) if column["type"] in _KINDS)
    return [name for name in bounded if spec.has(name) and name not in spec.partition_by]


def properties(table: str, schema: Schema) -> Mapping[str, str]:
    """The setting that names the indexed columns; empty if the default covers all columns."""
    if _leaves(_fields(schema)) <= INDEXED_BY_DEFAULT or not (names := looked_for(table, schema)):
        return {}
    return {PROPERTY: ",".join(names)}


def _fields(schema: Schema) -> list[dict[str, Any]]:
    return [*json.loads(schema.to_json())["fields"]]


def _leaves(fields: list[dict[str, Any]]) -> int:
    types = [column["type"] for column in fields]
    structs = [kind["fields"] for kind in types if isinstance(kind, dict) and "fields" in kind]
    return len(fields) - len(structs) + sum(map(_leaves, structs))
