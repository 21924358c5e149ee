"""Short tests of result columns and of the number of results, as `[checks]` of a definition states them.

A test of a column counts the rows that fail it, among the rows of `results` that a batch adds or changes. The count is
a figure of the batch, named after the key of the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from windowlib.definition.toml.spark_types import NUMBERS

ROW_COUNT = "row_count"  # figure: rows of `results` that a batch adds or changes
DISTINCT = ".distinct"  # end of the figures of distinct values; no test has this name
MOST_VALUES = 12_000_000  # rows written times columns; above, distinct values are not counted
NESTED = ("array", "map", "struct")


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """Test of a result column: `min`, `max`, `not_null`, `unique`, `in` or `matches`, with its bound.

    Only `not_null` judges nulls; NaN is outside every range.
    """

    column: str
    test: str
    bound: Any
    severity: str

    @property
    def figure(self) -> str:
        """Figure that counts the rows that fail.

        >>> ColumnTest("revenue", "min", 0, "critical").figure
        'columns.revenue.min'
        """
        return f"columns.{self.column}.{self.test}"

    @property
    def rule(self) -> str:
        """Rule that each value must follow, as a predicate.

        >>> ColumnTest("country", "in", ["DE", "FR"], "critical").rule
        'one of "DE", "FR"'
        """
        match self.test:
            case "min":
                return f"at least {self.bound}"
            case "max":
                return f"at most {self.bound}"
            case "in":
                return f"one of {', '.join(json.dumps(value, ensure_ascii=False) for value in self.bound)}"
            case "matches":
                return f"a match of {json.dumps(self.bound, ensure_ascii=False)}"
        return {"not_null": "not null", "unique": "unique"}[self.test]

    @property
    def sentence(self) -> str:
        """Rule as a sentence.

        >>> ColumnTest("revenue", "min", 0, "critical").sentence
        '`revenue` is at least 0 in every row that the batch adds or changes.'
        """
        return f"`{self.column}` is {self.rule} in every row that the batch adds or changes."


@dataclass(frozen=True, slots=True)
class RowCountTest:
    """Bounds of the number of rows that a batch adds or changes, both inclusive; None for no bound."""

    low: int | None
    high: int | None
    severity: str


def distinct_figure(column: str) -> str:
    """Figure that counts the distinct values of a result column among the rows that a batch adds or changes.

    >>> distinct_figure("revenue")
    'columns.revenue.distinct'
    """
    return f"columns.{column}{DISTINCT}"


def of_one_kind(values: Any) -> bool:
    """Tests if `values` is a list of strings, of numbers, or of booleans, and not empty.

    >>> of_one_kind([1, 2.5]), of_one_kind(["a", 1]), of_one_kind([])
    (True, False, False)
    """
    kinds = {type(value) for value in values} if isinstance(values, list | tuple) else set()
    return bool(kinds) and (kinds <= {int, float} or kinds in ({str}, {bool}))


def misfit(test: str, bound: Any, kind: str) -> str | None:
    """Need of a test that a column of Spark's type `kind` does not meet; None if the column fits.

    >>> misfit("min", 0, "string"), misfit("min", 0, "decimal(18,2)"), misfit("in", ["a"], "bigint")
    ('a number', None, 'values of that type')
    """
    is_number, is_text = kind.startswith(NUMBERS), kind.startswith(("string", "varchar", "char"))
    if test in ("min", "max") and not is_number:
        return "a number"
    if test == "matches" and not is_text:
        return "a string"
    if test == "unique" and kind.startswith(NESTED):
        return "a column of single values"
    if test == "in" and not _all_fit(bound, is_number=is_number, is_text=is_text, is_flag=kind == "boolean"):
        return "values of that type"
    return None


def _all_fit(values: Iterable[Any], *, is_number: bool, is_text: bool, is_flag: bool) -> bool:
    fits: Mapping[type, bool] = {bool: is_flag, str: is_text, int: is_number, float: is_number}
    return all(fits[type(value)] for value in values)
