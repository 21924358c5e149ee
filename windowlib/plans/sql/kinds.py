"""SQL types under Spark's names, and the exception for SQL that is not proved."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

WHOLE = ("tinyint", "smallint", "int", "bigint")  # in ascending width
BOOLEAN, DOUBLE, FLOAT, STRING, NULL = "boolean", "double", "float", "string", "null"
SIMPLE = (*WHOLE, BOOLEAN, DOUBLE, FLOAT, STRING, "binary", "date", "timestamp", "timestamp_ntz")
WIDEST = 38  # greatest precision of a decimal
WIDEST_SUM, WIDEST_AVERAGE = 28, 24  # greatest precision whose sums and averages fit a decimal

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass
class Unproved(Exception):
    """Raised for SQL that is not proved to give the same result on every engine.

    why: the predicate of a sentence about the expression, such as "divides …"
    """

    why: str


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type.

    >>> decimal_of("decimal(10,2)"), decimal_of("double")
    ((10, 2), None)
    """
    match = _DECIMAL.fullmatch(kind)
    return (int(match[1]), int(match[2])) if match else None


def fields_of(kind: str) -> dict[str, str]:
    """Types of a struct's fields by name; empty for other types, and if a field name is not a plain word.

    >>> fields_of("struct<a:struct<b:int,c:string>,d:decimal(4,2),e:array<double>>")
    {'a': 'struct<b:int,c:string>', 'd': 'decimal(4,2)', 'e': 'array<double>'}
    """
    if not kind.startswith("struct<"):
        return {}
    parts, depth = [""], 0
    for character in kind[len("struct<") : -1]:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    fields = [re.fullmatch(r"(\w+):(.+)", part) for part in parts]
    return {field[1]: field[2] for field in fields if field} if all(fields) else {}


def widest(kinds: Sequence[str]) -> str:
    """Widest of several integer types."""
    return max(kinds, key=WHOLE.index)


def is_nested(kind: str) -> bool:
    """Tests if a type is a struct or an array."""
    return kind.startswith(("struct", "array"))


def is_number(kind: str) -> bool:
    """Tests if a type is numeric."""
    return kind in (*WHOLE, FLOAT, DOUBLE) or decimal_of(kind) is not None
