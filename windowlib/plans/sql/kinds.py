"""The types of SQL by Spark's names, and what is said of an expression that is not proved over them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

WHOLE = ("tinyint", "smallint", "int", "bigint")  # each wider than the one before
BOOLEAN, DOUBLE, FLOAT, STRING, NULL = "boolean", "double", "float", "string", "null"
SIMPLE = (*WHOLE, BOOLEAN, DOUBLE, FLOAT, STRING, "binary", "date", "timestamp", "timestamp_ntz")
WIDEST = 38  # digits of a decimal
WIDEST_SUM, WIDEST_AVERAGE = 28, 24  # digits of decimals, up to which their sums and averages fit

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass
class Unproved(Exception):
    """What is not proved to be the same on every engine."""

    why: str


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type.

    >>> decimal_of("decimal(10,2)"), decimal_of("double")
    ((10, 2), None)
    """
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None


def fields_of(kind: str) -> dict[str, str]:
    """The fields of a struct whose names are plain words; nothing of another type.

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
    found = [re.fullmatch(r"(\w+):(.+)", part) for part in parts]
    return {one[1]: one[2] for one in found if one} if all(found) else {}


def widest(kinds: Sequence[str]) -> str:
    """The widest of whole types."""
    return max(kinds, key=WHOLE.index)


def is_nested(kind: str) -> bool:
    """Whether it is a struct or an array."""
    return kind.startswith(("struct", "array"))


def is_number(kind: str) -> bool:
    """Whether it can be added."""
    return kind in (*WHOLE, FLOAT, DOUBLE) or decimal_of(kind) is not None
