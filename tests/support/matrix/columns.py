"""The matrix: every aggregate of every type over hostile values, through the whole pipeline.

A *case* is what one key of one column gets in three batches: the second carries state on and fires, the third is late
and updates. A *cell* is an aggregate of a column over a case. What is right: `tests.support.matrix.aggregates`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tests.support.matrix.aggregates import AGGREGATES
from tests.support.matrix.oracle import Aggregate
from tests.support.matrix.values import BASE, BATCHES, CASES, INT32, INT64, ROWS, TYPES, Case, Type, padded, times
from windowlib.definition.sql.expression_types import without_order
from windowlib.engines.proved_aggregates import spark_type
from windowlib.plans.aggregates.calls import parsed
from windowlib.plans.sql.kinds import Unproved
from windowlib.plans.sql.types import type_of


@dataclass(frozen=True, slots=True)
class Column:
    """An output column of the pipeline: an aggregate of a type."""

    aggregate: Aggregate
    type: Type

    @property
    def name(self) -> str:
        """Its name in the results."""
        words = "".join(c if c.isalnum() else "_" for c in self.aggregate.name)
        return f"{self.type.column}__{words}{AGGREGATES.index(self.aggregate)}"

    @property
    def sql(self) -> str:
        """Its expression."""
        return self.aggregate.sql.format(c=self.type.column)

    def expected(self, case: Case, batches: int) -> Any:
        """Expected value over the batches so far."""
        return self.aggregate.oracle(self.type, case.values(batches))


# At the ends of the type this is an error: a run of its own, in `TOO_LARGE`.
ENDS_FIT = {("avg", "decimal(38,2)")}


def columns() -> Iterator[Column]:
    """Every output column."""
    for one in TYPES:
        for aggregate in AGGREGATES:
            if aggregate.of(one) and (aggregate.name, one.shown) not in ENDS_FIT:
                yield Column(aggregate, one)


def key(number: int) -> str:
    """The key of the cases of that number."""
    return f"k{number:02}"


def rows(batch: int) -> list[dict[str, Any]]:
    """The rows of a file; the second batch has one event that lets the windows fire."""
    made = []
    for number in range(CASES):
        given = {
            one.column: padded(one.cases[number].batches[batch]) if number < len(one.cases) else padded(())
            for one in TYPES
        }
        for row in range(ROWS):
            values = {column: values[row] for column, values in given.items()}
            made.append(
                {"key": key(number), "at": times()[batch * ROWS + row], "nth": float(batch * ROWS + row), **values}
            )
    if batch == 1:
        made.append({"key": "clock", "at": BASE + timedelta(hours=3)})
    return made


SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("nth", pa.float64()),
        *((one.column, one.arrow) for one in TYPES),
    ]
)


def table(batch: int) -> pa.Table:
    """The same as a file has them."""
    of_file = rows(batch)
    made = {name: [row.get(name) for row in of_file] for name in SCHEMA.names}
    return pa.table({name: _array(values, SCHEMA.field(name).type) for name, values in made.items()}, schema=SCHEMA)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        values = [None if value is None else Decimal(value) for value in values]
    if pa.types.is_map(kind):
        values = [None if value is None else [*value.items()] for value in values]
    return pa.array(values, kind)


DENORMAL = 1e-9 * sys.float_info.min  # doubles smaller than the least normal one have few digits, or one


def same(found: Any, expected: Any, *, nearly: bool) -> bool:
    """Tests if a published value is right."""
    if found is None or expected is None:
        return found is None and expected is None
    if isinstance(expected, float) != isinstance(found, float):
        return False  # a sum of whole numbers is a whole number
    if isinstance(expected, float):
        if math.isnan(expected) or math.isinf(expected):
            return isinstance(found, float) and (found == expected or (math.isnan(found) and math.isnan(expected)))
        if nearly:
            return math.isclose(found, expected, rel_tol=1e-9, abs_tol=DENORMAL)
    if isinstance(expected, Fraction) and isinstance(found, Decimal):
        return Fraction(found) == expected
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(
            same(*pair, nearly=nearly) for pair in zip(found, expected, strict=True)
        )
    if isinstance(found, list) and isinstance(expected, Mapping):
        found = dict(found)  # a map
    if isinstance(found, Mapping) and isinstance(expected, Mapping):
        return found.keys() == expected.keys() and all(same(found[key], expected[key], nearly=nearly) for key in found)
    return bool(found == expected)


def by_key(found: pa.Table) -> dict[str, dict[str, Any]]:
    """The results by key."""
    return {row["key"]: row for row in found.to_pylist()}


KINDS = {name: spark_type(str(SCHEMA.field(name).type)) for name in SCHEMA.names}


def unproved(one: Column) -> str | None:
    """Reason why Sail refuses a column, or None."""
    try:
        type_of(parsed(one.sql), KINDS)
    except Unproved as refused:
        return refused.why
    return None


def is_ordered(one: Column, *, by_time: bool = False) -> bool:
    """Tests if a plan computes it. Native plans hold no maps, and the operator (`by_time`) sorts none; both say so."""
    return without_order(one.sql, KINDS, by_time=by_time) == []


def folds(one: Column) -> bool:
    """Tests if the operator computes it element by element; otherwise a definition is refused."""
    return not one.aggregate.sql.startswith(("approx_count_distinct", "hll_sketch"))


WINDOWS = {
    "tumbling": '[window]\ntype = "tumbling"\nsize = "1h"\nallowed_lateness = "1d"\n',
    "session": '[window]\ntype = "session"\ngap = "30m"\nallowed_lateness = "1d"\n',
    "count": f'[window]\ntype = "tumbling_count"\nsize = {2 * ROWS}\n',
    "evictor": '[window]\ntype = "tumbling"\nsize = "1h"\nallowed_lateness = "1d"\n'
    f'[window.evictor]\ntype = "count"\nn = {BATCHES * ROWS}\n',  # the operator itself, which evicts none
}

MOST = Decimal("9" * 36 + ".99")
# What does not fit: an expression, the column that it is of, and its values in each batch.
TOO_LARGE: dict[str, tuple[str, str, list[list[Any]]]] = {
    "a sum of whole numbers": ("sum(big)", "big", [[INT64, 1]]),
    "a sum of whole numbers, with that of a batch before": ("sum(big)", "big", [[INT64], [1]]),
    "a sum of whole numbers downwards": ("sum(big)", "big", [[-INT64, -2]]),
    "an average of whole numbers": ("avg(big)", "big", [[INT64, INT64]]),
    "a product in 32 bits": ("max(num * 2)", "num", [[INT32]]),
    "a difference in 64 bits": ("min(big - 2)", "big", [[-INT64]]),
    "a sum in 8 bits": ("max(tiny + tiny)", "tiny", [[100]]),
    "a product of aggregates": ("sum(big) * 2", "big", [[INT64 // 2 + 1]]),
    "a sum of decimals": ("sum(wide)", "wide", [[MOST, MOST]]),
    "a sum of decimals, with that of a batch before": ("sum(wide)", "wide", [[MOST], [MOST]]),
    "an average of decimals": ("avg(wide)", "wide", [[MOST]]),
    "no values to divide by": ("sum(num) / count(big)", "num", [[1]]),
}
