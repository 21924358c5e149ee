"""What an aggregate function is: small partial results that can be merged in any grouping and any order.

Spark computes a *part* with SQL over the events of a slice; the plan that runs the operator folds the same part one
value at a time. Both store it in the same column, so either continues what the other has stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowlib.plans import names

TIMESTAMP, ARRIVAL = names.TIMESTAMP_MS, names.ARRIVAL  # of an element, next to its columns in its value

NUMBER, CONDITION, BITS = "a number", "a condition", "a whole number"

Value = Mapping[str, Any]
Add = Callable[[Any, Any, Value], Any]
Proved = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Fold:
    """A part in Python: what it is of no values, with one value ``x`` of an element more, and of two parts together."""

    initial: Any
    add: Add
    merge: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class PartialColumn:
    """One partial column: `partial` is SQL of the arguments, `merge` is SQL of the partial column `{p}`.

    `bounded`: it is an array of values, of which there may be too many.

    `partial` has `{x}`, `{y}` for the arguments, and `{filter}`, or `{and_where}` after a condition of its own, where
    the condition of ``filter (where …)`` goes.
    """

    name: str
    partial: str
    merge: str
    fold: Fold | None = None
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its parts, and their result, as SQL over the merged parts and as Python.

    says:       what it gives, for the page of a definition's keys; `{name}` is its name
    proved:     the type of its result on arguments of these types, or `Unproved`; None: only Spark computes it
    arguments:  how many it takes
    takes:      what its arguments must be, `NUMBER`, `CONDITION` or `BITS`; empty: anything
    by_arrival: it chooses by (timestamp_ms, arrival)
    orders_by:  it orders by its second argument, inside of a struct
    rounds:     it computes with doubles, so that it may depend a little on the order in which they come, and the engine
    normal:     it compares values, so that zeros are one whatever their sign, and NaN is one
    share:      its second argument is a literal, 0 to 1
    typed_by:   SQL over events, of the type that decides how it is computed, or what it gives
    stored:     a pattern: that type in the type of the first part, as group 1
    result:     the type of its result; of what `typed_by` says, if this is empty
    element:    SQL of what a fold is given of an element; it is not given null
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
        """Whether it can be computed one value at a time, without Spark."""
        return all(part.fold for part in self.parts)

    @property
    def sorts(self) -> bool:
        """Whether Spark puts its values in order at the end, however its parts were computed."""
        return "array_sort(" in self.finish

    def type_in(self, stored: str) -> str | None:
        """The type that decides, from that of the stored first part."""
        found = re.fullmatch(self.stored, stored)
        return found[1] if found else None
