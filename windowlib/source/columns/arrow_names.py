"""Arrow types parsed from the names that the ledger keeps, such as `list<item: struct<a: int32>>`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from windowlib.plans.sql.kinds import STRING
from windowlib.source.columns.column_types import arrow_type, kind_of

_NESTED = re.compile(r"(list|large_list|struct|map)<(.*)>")
_NOT_NULL = " not null"
_MAP_FIELDS = re.compile(r" \('[^']*'(?:, '[^']*')*\)$")  # names of a map's inner fields, which do not affect its type


def named_type(name: str) -> pa.DataType | None:
    """Parses an Arrow type from its name. Returns None if the name is not supported.

    >>> named_type("list<item: struct<a: int32 not null, b: map<string, double>>>")
    ListType(list<item: struct<a: int32, b: map<string, double>>>)
    >>> named_type("timestamp[us, tz=UTC]"), named_type("interval")
    (TimestampType(timestamp[us, tz=UTC]), None)
    """
    name = name.removesuffix(_NOT_NULL)
    nested = _NESTED.fullmatch(name)
    if not nested:
        if name.startswith("uint"):
            return pa.type_for_alias(name)
        kind = arrow_type(kind_of(name))
        return None if kind == pa.string() and kind_of(name) != STRING else kind
    parts = [_MAP_FIELDS.sub("", part) for part in _parts(nested[2])]
    if nested[1] == "map":
        types = [named_type(part) for part in parts]
        return pa.map_(*types) if len(types) == 2 and all(types) else None
    fields = [part.partition(": ") for part in parts]
    types = [named_type(kind) for _, _, kind in fields]
    if not all(types):
        return None
    if nested[1] != "struct":
        return pa.list_(types[0])
    return pa.struct([(field, kind) for (field, _, _), kind in zip(fields, types, strict=True)])


def _parts(inner: str) -> Iterator[str]:
    """Splits a string at the commas outside of brackets."""
    start = depth = 0
    for place, character in enumerate(inner):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and not depth:
            yield inner[start:place].strip()
            start = place + 1
    yield inner[start:].strip()
