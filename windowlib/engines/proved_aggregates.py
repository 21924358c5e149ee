"""Column types for which an engine other than Spark is proved to give Spark's results.

`windowlib.plans.sql.types` defines the supported part of SQL. `tests/support/matrix/columns.py` proves its results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate

from windowlib.plans.aggregates.calls import parsed
from windowlib.plans.sql.kinds import Unproved
from windowlib.plans.sql.types import type_of

KEYS = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")

UNREAD = ("uint", "halffloat")
"""Prefixes of Arrow types that PySpark has no names for. Only Spark reads columns of these types."""

MOST_LEVELS = 24
"""Maximum nesting of types. A message to Sail can have about thirty levels, and plans put columns into structs."""

_PLAIN = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
}


def refusal_by_type(keys: Sequence[str], expressions: Mapping[str, str], types: Mapping[str, str]) -> str | None:
    """Reason why aggregates are not proved for columns of these types (Arrow's names), or None."""
    columns = {name.casefold(): spark_type(kind) for name, kind in types.items()}
    for key in keys:
        if (kind := columns.get(key.casefold())) and kind not in KEYS and not kind.startswith("decimal"):
            return f"source.key = {key!r} is {kind}, and Sail groups or orders this type differently from Spark"
    for name, kind in types.items():
        if kind.startswith(UNREAD):
            return f"the column {name!r} is {kind}, and only Spark reads this type"
        if _levels(kind) > MOST_LEVELS:
            return f"the column {name!r} nests more than {MOST_LEVELS} types, and only Spark reads it"
    for name, sql in expressions.items():
        try:
            type_of(parsed(sql), columns)
        except Unproved as unproved:
            return f"aggregates.{name} {unproved.why}; this is not proved to give exactly Spark's results on Sail"
    return None


def _levels(arrow: str) -> int:
    """Depth of nested types.

    >>> _levels("struct<a: list<item: int32>, b: int8>")
    3
    """
    return 1 + max(accumulate(({"<": 1, ">": -1}.get(sign, 0) for sign in arrow), initial=0))


def spark_type(arrow: str) -> str:
    """Spark's name of an Arrow type; an unknown type keeps its Arrow name.

    >>> [spark_type(name) for name in ("int64", "decimal128(10, 2)", "timestamp[us, tz=UTC]", "list<item: int32>")]
    ['bigint', 'decimal(10,2)', 'timestamp', 'array<item: int32>']
    """
    if arrow in _PLAIN:
        return _PLAIN[arrow]
    if decimal := re.fullmatch(r"decimal128\((\d+), (\d+)\)", arrow):
        return f"decimal({decimal[1]},{decimal[2]})"
    if time := re.fullmatch(r"timestamp\[(?:s|ms|us|ns)(, tz=.*)?\]", arrow):
        return "timestamp" if time[1] else "timestamp_ntz"
    if text := re.match(r"dictionary<values=(large_string|string),", arrow):
        return _PLAIN[text[1]]
    return re.sub("^(?:large_)?list<", "array<", arrow)
