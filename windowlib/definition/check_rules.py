"""Rules of `[checks.columns]` that concern other keys: tested columns exist, and have a type that fits the test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from windowlib.definition.mistakes import Mistake, in_toml, nearest
from windowlib.definition.toml.column_tests import misfit, of_one_kind

TYPED_TESTS: Mapping[str, Callable[[Any], bool]] = {
    "min": lambda bound: True,
    "max": lambda bound: True,
    "unique": lambda bound: bound is True,
    "in": of_one_kind,
    "matches": lambda bound: True,
}
"""Tests that depend on the type of the column, each with the bounds that can be judged here."""


def tested_columns(
    tests: Mapping[str, Any], keys: Sequence[str], outputs: Collection[str], types: Mapping[str, str]
) -> Iterator[Mistake]:
    """Checks the columns that have tests.

    types: Spark's type of each result column whose type is certain, in lower case
    """
    columns = [*keys, *outputs]
    for column, bounds in tests.items():
        key = f"checks.columns.{column}"
        if column not in columns:
            listing = f"; columns: {', '.join(columns)}" if columns else ""
            yield Mistake(key, f"there is no result column {in_toml(column)}{nearest(column, columns)}{listing}")
            continue
        kind = types.get(column, "")
        for test, can_judge in TYPED_TESTS.items() if kind and isinstance(bounds, dict) else ():
            if test in bounds and can_judge(bounds[test]) and (need := misfit(test, bounds[test], kind)):
                yield Mistake(f"{key}.{test}", f"given {in_toml(bounds[test])}, but the column is {kind}; need {need}")
