"""More aggregates of the matrix: conditions, bits, values next to an extreme, variances and covariances.

Variances are those of the values as doubles, by fractions; of what is not finite they are NaN.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from tests.support.matrix.oracle import Aggregate, Oracle, added, in_time, known, rank
from tests.support.matrix.values import NESTED, WHOLE, Type, has_order, is_number, times


def _whole(one: Type) -> bool:
    return one.shown in WHOLE


def _boolean(one: Type) -> bool:
    return one.shown == "boolean"


def _any(one: Type) -> bool:
    return True


def _some_numbers(one: Type) -> bool:
    """Tests if a type is in the sample for aggregates that differ from another in their last step only."""
    return one.shown in ("bigint", "double", "decimal(38,2)")


def _pairs(one: Type) -> bool:
    """Tests if doubles of a type differ most; others convert to doubles as for a variance."""
    return one.shown in ("bigint", "float", "double", "decimal(10,2)", "decimal(38,2)")


def _some(one: Type) -> bool:
    """Tests if a type is in the sample for other names of aggregates of all types."""
    return one.shown in ("string", "double", "decimal(38,2)", "struct", "array")


def _plain(one: Type) -> bool:
    return one.shown not in NESTED


def _all_of(test: Callable[[Sequence[Any]], Any]) -> Oracle:
    """Null of no values."""
    return lambda of, values: test(present) if (present := known(values)) else None


def _order(values: Sequence[Any]) -> list[tuple[Any, Any, int]]:
    return [(rank(value), times()[row], row) for row, value in enumerate(values) if value is not None]


def _time_at(extreme: Callable[..., Any]) -> Oracle:
    """The time of the row with the extreme."""
    return lambda of, values: times()[extreme(order)[2]] if (order := _order(values)) else None


def _product(values: Sequence[float], others: Sequence[float]) -> Fraction:
    """The sum of the products of the distances from the means."""
    xs, ys = (list(map(Fraction, numbers)) for numbers in (values, others))
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum(((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)), Fraction(0))


def _spread(less: int, *, root: bool = False, pairs: bool = False) -> Oracle:
    def oracle(of: Type, values: Sequence[Any]) -> float | None:
        xs = [float(value) for value in known(values)]
        ys = [float(row) for row, value in enumerate(values) if value is not None] if pairs else xs
        if len(xs) <= less:
            return None
        if not all(map(math.isfinite, xs)):
            return math.nan
        exact = float(_product(xs, ys) / (len(xs) - less))
        return math.sqrt(exact) if root else exact

    return oracle


def _correlation(of: Type, values: Sequence[Any]) -> float | None:
    xs = [float(value) for value in known(values)]
    ys = [float(row) for row, value in enumerate(values) if value is not None]
    if not all(map(math.isfinite, xs)):
        return math.nan
    spread_x, spread_y = (float(_product(of, of)) if of else 0.0 for of in (xs, ys))
    if not spread_x or not spread_y:
        return None
    return float(_product(xs, ys)) / (math.sqrt(spread_x) * math.sqrt(spread_y))


def _normal(value: Any) -> Any:
    """A value as others are compared with it; of structs and arrays a text."""
    return repr(value) if isinstance(value, dict | list) else rank(value)


def _different(values: Sequence[Any]) -> list[Any]:
    return list({_normal(value): value for value in known(values)}.values())


def _set(of: Type, values: Sequence[Any]) -> list[Any]:
    return sorted((one + 0.0 if isinstance(one, float) else one for one in _different(values)), key=rank)


def _percentile(at: float) -> Oracle:
    def oracle(of: Type, values: Sequence[Any]) -> float | None:
        in_order = sorted((float(value) for value in known(values)), key=rank)
        if not in_order:
            return None
        position = Fraction(at) * (len(in_order) - 1)
        low, high = in_order[math.floor(position)], in_order[math.ceil(position)]
        if position == int(position):
            return low
        if not (math.isfinite(low) and math.isfinite(high)):
            share = float(position - int(position))
            return (1 - share) * low + share * high
        return float(Fraction(low) + (Fraction(high) - Fraction(low)) * (position - int(position)))

    return oracle


def _try_sum(of: Type, values: Sequence[Any]) -> Any:
    total = added(of, values)
    return None if of.shown in WHOLE and total is not None and not -(2**63) <= total < 2**63 else total


def _multiplied(of: Type, values: Sequence[Any]) -> float | None:
    present = [float(value) for value in known(values)]
    if not present:
        return None
    if not all(map(math.isfinite, present)):
        return math.prod(math.copysign(1.0, value) if value and math.isfinite(value) else value for value in present)
    exact = math.prod(map(Fraction, present))
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _counted(*bounds: int) -> Oracle:
    def oracle(of: Type, values: Sequence[Any]) -> list[int]:
        places = [bisect_right([rank(bound) for bound in bounds], rank(value)) for value in known(values)]
        return [places.count(place) for place in range(len(bounds) + 1)]

    return oracle


def _most_frequent(of: Type, values: Sequence[Any]) -> Any:
    times_of = Counter(map(_normal, known(values)))
    most = max(times_of.values(), default=0)
    often = [value for value in known(values) if times_of[_normal(value)] == most]
    return min(often, key=rank, default=None)


MORE = (
    Aggregate("try_sum", "try_sum({c})", is_number, _try_sum, nearly=True),
    Aggregate("try_sum filter", "try_sum({c}) filter (where {c} > 1)", _some_numbers,
              lambda of, values: _try_sum(of, [v for v in known(values) if rank(v) > rank(1)]), nearly=True),
    Aggregate("product", "product({c})", is_number, _multiplied, nearly=True),
    Aggregate("histogram", "histogram({c}, array(-8, 0, 3))", is_number, _counted(-8, 0, 3)),
    Aggregate("histogram filter", "histogram({c}, array(0)) filter (where {c} <> 1)", _some_numbers,
              lambda of, values: _counted(0)(of, [value for value in known(values) if value != 1])),
    Aggregate("mode", "mode({c})", _plain, _most_frequent),
    Aggregate("hll_sketch_agg", "hll_sketch_estimate(hll_sketch_agg({c}))",
              lambda one: one.shown in ("string", "boolean", "date", *WHOLE),
              lambda of, values: len(set(known(values)))),
    Aggregate("count_if", "count_if({c})", _boolean, lambda of, values: sum(known(values))),
    Aggregate("count_if: > 1", "count_if({c} > 1) filter (where {c} < 5)", _some_numbers,
              lambda of, values: sum(rank(1) < rank(value) < rank(5) for value in known(values))),
    Aggregate("any_value", "any_value({c})", _some, lambda of, values: in_time(values)[0]),
    Aggregate("bool_and", "bool_and({c})", _boolean, _all_of(all)),
    Aggregate("some", "some({c})", _boolean, _all_of(any)),
    Aggregate("every filter", "every({c} is null) filter (where {c} or {c} is null)", _boolean,
              lambda of, values: None if not (chosen := [v for v in values if v is not False])
              else all(v is None for v in chosen)),
    Aggregate("bit_and", "bit_and({c})", _whole, _all_of(lambda present: reduce(and_, present))),
    Aggregate("bit_or", "bit_or({c})", _whole, _all_of(lambda present: reduce(or_, present))),
    Aggregate("bit_xor", "bit_xor({c})", _whole, _all_of(lambda present: reduce(xor, present))),
    Aggregate("min_by", "min_by(at, {c})", has_order, _time_at(min)),
    Aggregate("max_by", "max_by(at, {c})", has_order, _time_at(max)),
    Aggregate("max_by filter", "max_by(at, {c}) filter (where {c} = {c})", _some_numbers,
              _time_at(max)),
    Aggregate("max_by time", "max_by({c}, at)", _some, lambda of, values: in_time(values)[-1]),
    Aggregate("var_pop", "var_pop({c})", is_number, _spread(0), nearly=True),
    Aggregate("variance", "variance({c})", _some_numbers, _spread(1), nearly=True),
    Aggregate("stddev_pop", "stddev_pop({c})", _some_numbers, _spread(0, root=True), nearly=True),
    Aggregate("stddev", "stddev({c})", _some_numbers, _spread(1, root=True), nearly=True),
    Aggregate("covar_pop", "covar_pop({c}, nth)", _pairs, _spread(0, pairs=True), nearly=True),
    Aggregate("covar_samp", "covar_samp({c}, nth)", _some_numbers, _spread(1, pairs=True), nearly=True),
    Aggregate("corr", "corr({c}, nth)", _pairs, _correlation, nearly=True),
    Aggregate("count distinct", "count(distinct {c})", has_order, lambda of, values: len(_different(values))),
    Aggregate("collect_set", "collect_set({c})", _plain, _set),
    Aggregate("collect_list", "collect_list({c})", _any, lambda of, values: known(in_time(values))),
    Aggregate("median", "median({c})", is_number, _percentile(0.5), nearly=True),
    Aggregate("percentile", "percentile({c}, 0.75)", _some_numbers, _percentile(0.75), nearly=True),
)  # fmt: skip
