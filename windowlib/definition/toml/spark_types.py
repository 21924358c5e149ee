"""Column types of Spark by name, as in `[source.schema]`, checked without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ALLOWED = (
    "string, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp, timestamp_ntz,"
    " binary, array<…>, map<…,…>, struct<name:…>"
)
WHOLE_NUMBERS = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
NUMBERS = (*WHOLE_NUMBERS, "float", "real", "double", "decimal", "dec", "numeric")
NUMBERS_IN_JSON = (*WHOLE_NUMBERS, "float", "real", "double")
UNSIGNED, SMALL_UNSIGNED = "uint", ("uint8", "uint16", "uint32")  # in files; Spark reads uint64 as decimals
# Each value of these types has exactly one string form.
AS_TEXT = (*WHOLE_NUMBERS, "decimal", "dec", "numeric", "string", "boolean", "date")
NEED_AS_TEXT = (
    "need a string, an integer, a decimal, a date or a boolean: only their values have exactly one string form"
)
WORDS = (*NUMBERS, "string", "boolean", "date", "timestamp", "timestamp_ntz", "timestamp_ltz", "binary")
# Names of other systems that do not resemble Spark's.
OTHER_NAMES = {"text": "string", "varchar": "string", "char": "string", "str": "string", "datetime": "timestamp"}

_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_NESTED = re.compile(r"(array|map|struct)\s*<(.*)>", re.DOTALL)
_NAMED_FIELD = re.compile(r"\s*(`[^`]+`|\w+)\s*(?:\s|:)\s*(.*)", re.DOTALL)
_FIELD = re.compile(r"\s*(?:`[^`]+`|\w+)\s*(?:\s|:)\s*(.*)", re.DOTALL)


def is_type(text: str) -> bool:
    """Tests if Spark has a type with this name.

    >>> is_type("decimal(10, 2)"), is_type("struct<a: int, b: array<string>>"), is_type("text"), is_type("decimal(39)")
    (True, True, False, False)
    """
    text = text.strip().casefold()
    if decimal := _DECIMAL.fullmatch(text):
        precision, scale = int(decimal[1]), int(decimal[2] or 0)
        return 1 <= precision <= 38 and scale <= precision
    if nested := _NESTED.fullmatch(text):
        return _are_types(nested[1], _split(nested[2]))
    return text in WORDS


def unlike_difference(kind: str, key: str) -> str:
    """Requirement on the type of a column whose values the trigger or evictor at `key` subtracts; empty if `kind` fits.

    >>> unlike_difference("decimal(9,2)", "window.evictor"), unlike_difference("date", "window.evictor")
    ('', 'need a number, such as bigint or double')
    >>> unlike_difference("decimal(9,2)", "window.trigger.of")
    'need a number, such as bigint or double, as the trigger remembers it in JSON'
    >>> unlike_difference("uint32", "window.trigger.of"), unlike_difference("uint64", "window.trigger.of")
    ('', 'need a number, such as bigint or double, as the trigger remembers it in JSON')
    """
    in_state = key.startswith("window.trigger")
    if kind.startswith(NUMBERS_IN_JSON if in_state else (*NUMBERS, UNSIGNED)) or kind in SMALL_UNSIGNED:
        return ""
    why = ", as the trigger remembers it in JSON" if kind.startswith((*NUMBERS, UNSIGNED)) else ""
    return f"need a number, such as bigint or double{why}"


def field_type(columns: Mapping[str, str], path: str) -> str | None:
    """Type at the end of a path from a column into its structs; None if the path does not exist.

    >>> field_type({"actor": "struct<id: bigint, at: struct<city string>>"}, "actor.at.city")
    'string'
    """
    first, *rest = path.split(".")
    kind = columns.get(first)
    if kind is None or not rest:
        return kind
    outer, parts = parts_of(kind)
    return field_type(dict(parts), ".".join(rest)) if outer == "struct" else None


def is_field(source: Mapping[str, Any], path: str) -> bool:
    """Tests if a path leads into a struct of the schema in `[source]`.

    >>> is_field({"schema": {"a": "struct<b: int>", "c": "int"}}, "a.b"), is_field({"schema": {"c": "int"}}, "c.d")
    (True, False)
    """
    schema, (first, *rest) = source.get("schema"), path.split(".")
    kind = schema.get(first) if isinstance(schema, dict) else None
    return bool(rest) and isinstance(kind, str) and parts_of(kind)[0] == "struct"


def parts_of(kind: str) -> tuple[str, list[tuple[str, str]]]:
    """Outer type of a nested type, and a pair (name, type) for each part; ("", []) for other types.

    Only parts of a struct have a name.

    >>> parts_of("struct<a: int, `b c`: array<int>>"), parts_of("map<string,int>"), parts_of("int")
    (('struct', [('a', 'int'), ('b c', 'array<int>')]), ('map', [('', 'string'), ('', 'int')]), ('', []))
    """
    nested = _NESTED.fullmatch(kind.strip())
    if not nested:
        return "", []
    outer, parts = nested[1].casefold(), _split(nested[2])
    if outer != "struct":
        return outer, [("", part.strip()) for part in parts]
    fields = (_NAMED_FIELD.fullmatch(part) for part in parts)
    return outer, [(field[1].strip("`"), field[2].strip()) for field in fields if field]


def _are_types(kind: str, parts: list[str]) -> bool:
    if kind == "struct":
        fields = [_FIELD.fullmatch(part) for part in parts]
        return all(field is not None and is_type(field[1]) for field in fields)
    return len(parts) == {"array": 1, "map": 2}[kind] and all(map(is_type, parts))


def _split(text: str) -> list[str]:
    """Splits a string at the commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
