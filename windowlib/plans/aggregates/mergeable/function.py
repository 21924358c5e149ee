"""Form of an aggregate function: small partial results that can be merged in any grouping and any order.

Spark computes a *part* with SQL over the events of a slice. The plan that runs the operator folds the same part one
value at a time. Spark and the operator store a part in the same column, so each can continue
the other's state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowlib.plans import names

TIMESTAMP, ARRIVAL = names.TIMESTAMP_MS, names.ARRIVAL  # keys of an element's value, next to its columns

NUMBER, CONDITION, BITS = "a number", "a condition", "a whole number"

Value = Mapping[str, Any]
Add = Callable[[Any, Any, Value], Any]
Proved = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Fold:
    """A part in Python: ``initial`` value, ``add`` to add a value ``x``, ``merge`` to merge two parts."""

    initial: Any
    add: Add
    merge: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class PartialColumn:
    """A partial column: `partial` is SQL over the arguments, `merge` is SQL over the partial column `{p}`.

    - `{x}` and `{y}` in `partial` stand for the arguments.
    - `{filter}` stands for ``filter (where …)``; `{and_where}` adds the same condition to an existing condition.
    - `bounded`: the column is an array of values whose number is limited.
    """

    name: str
    partial: str
    merge: str
    fold: Fold | None = None
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function: its parts, and its result as SQL over merged parts (`finish`) and in Python (`value`).

    says:       description of the result, for the reference of a definition's keys
    proved:     returns the result type for argument types, or raises `Unproved`; None if only Spark computes it
    arguments:  the number of arguments
    takes:      required type of arguments, `NUMBER`, `CONDITION` or `BITS`; empty for any type
    by_arrival: chooses or sorts values by (timestamp_ms, arrival)
    orders_by:  orders by the second argument, inside a struct
    rounds:     computes with doubles, so results may differ slightly by the order of values and by engine
    normal:     compares values, so both zeros count as equal, and so do all NaNs
    share:      the second argument is a literal from 0 to 1
    typed_by:   SQL over events whose type decides the computation or the result
    stored:     pattern that finds this type, as group 1, in the type of the first part
    result:     the type of the result; empty: the type of `typed_by`
    element:    SQL of the value `x` that a fold gets for an element; elements with null are skipped
    """

    parts: tuple[PartialColumn, ...]
    finish: str
    says: str
    proved: Proved | None = None
    value: Callable[..., Any] = lambda held: held
    arguments: int = 1
    takes: str = ""
    by_arrival: bool = False
    orders_by: bool = False
    rounds: bool = False
    normal: bool = False
    share: bool = False
    typed_by: str = ""
    stored: str = "(.*)"
    result: str = ""
    element: str = "{x}"

    @property
    def folds(self) -> bool:
        """Tests if the operator can compute the function one value at a time, without Spark."""
        return all(part.fold for part in self.parts)

    @property
    def sorts(self) -> bool:
        """Tests if Spark sorts the kept values to finish the result, even if Python computed the parts."""
        return "array_sort(" in self.finish

    def type_in(self, stored: str) -> str | None:
        """Type of the SQL `typed_by`, read from `stored`, the type of the first part; None if unknown."""
        match = re.fullmatch(self.stored, stored)
        return match[1] if match else None
