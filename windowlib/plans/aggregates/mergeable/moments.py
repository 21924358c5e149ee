"""Variances, covariances, correlation: counts, means and sums of squared distances from them, in doubles.

Two groups merge by the distance of their means, as in Welford's and Chan's formulas, so nothing cancels out that is
large: ``m2 = a.m2 + b.m2 + (b.mean - a.mean)^2 * a.n * b.n / (a.n + b.n)``. A mean is held between the least and the
greatest value, so the variance of equal values is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any

from windowlib.plans.aggregates.mergeable.function import NUMBER, Fold, Function, PartialColumn
from windowlib.plans.sql.kinds import DOUBLE, Unproved, is_number

Moments = Mapping[str, float]


def _struct(fields: Mapping[str, str]) -> str:
    """A struct of doubles that may be null by their type, as they are once they were stored."""
    types = ", ".join(f"{name}: double" for name in fields)
    return f"cast(named_struct({', '.join(f'{name!r}, {sql}' for name, sql in fields.items())}) as struct<{types}>)"


def _held(mean: str, x: str) -> str:
    """An average between the least and the greatest of what it is of."""
    return f"coalesce(least(greatest({mean}, min({x})), max({x})), 0D)"


def _distances(product: str, *of: str) -> str:
    """The sum of products of distances: NaN of what is not finite, 0 of equal numbers, however great."""
    different = dict.fromkeys(of)
    infinite = " or ".join(f"bool_or(not abs({x}) < double('Infinity'))" for x in different)
    equal = " or ".join(f"min({x}) = max({x})" for x in different)
    cases = f"when {infinite} then double('NaN') when {equal} then 0D"
    return f"case {cases} else coalesce({product} * count({of[0]}), 0D) end"


def _merged(means: Sequence[str], products: Mapping[str, tuple[str, str]]) -> str:
    """SQL that merges structs of n, means, and sums of products of the distances from two means."""
    share = "(b.n / (a.n + b.n))"
    fields = {"n": "a.n + b.n"}
    fields |= {mean: f"a.{mean} + (b.{mean} - a.{mean}) * {share}" for mean in means}
    fields |= {
        name: f"a.{name} + b.{name} + (b.{one} - a.{one}) * (b.{other} - a.{other}) * a.n * {share}"
        for name, (one, other) in products.items()
    }
    nothing = _struct(dict.fromkeys(fields, "0D"))
    choice = f"case when a.n = 0D then b when b.n = 0D then a else {_struct(fields)} end"
    return f"aggregate(collect_list({{p}}), {nothing}, (a, b) -> {choice})"


def _fold(
    means: Sequence[str], products: Mapping[str, tuple[str, str]], of: Callable[[Any], Mapping[str, float]]
) -> Fold:
    nothing = dict.fromkeys(("n", *means, *products), 0.0)

    def merge(a: Moments, b: Moments) -> Moments:
        if not a["n"] or not b["n"]:
            return a if a["n"] else b
        share = b["n"] / (a["n"] + b["n"])
        merged = {"n": a["n"] + b["n"]}
        merged |= {mean: a[mean] + (b[mean] - a[mean]) * share for mean in means}
        merged |= {
            name: a[name] + b[name] + (b[one] - a[one]) * (b[other] - a[other]) * a["n"] * share
            for name, (one, other) in products.items()
        }
        return merged

    def add(held: Moments, x: Any, value: Any) -> Moments:
        means_of_one = of(x)
        # NaN of what is not finite; never -0.0, which Sail takes for another number than 0.
        distances = {
            name: 0.0 + 0.0 * means_of_one[one] + 0.0 * means_of_one[other] for name, (one, other) in products.items()
        }
        return merge(held, {"n": 1.0, **means_of_one, **distances})

    return Fold(nothing, add, merge)


_X = "cast(case when true{and_where} then {x} end as double)"
_OF_ONE = (("mean",), {"m2": ("mean", "mean")})
_ONE = PartialColumn(
    "moments",
    _struct(
        {"n": f"cast(count({_X}) as double)", "mean": _held(f"avg({_X})", _X), "m2": _distances(f"var_pop({_X})", _X)}
    ),
    _merged(*_OF_ONE),
    _fold(*_OF_ONE, lambda x: {"mean": x}),
)
_PAIR_X = "cast(case when true{and_where} and {y} is not null then {x} end as double)"
_PAIR_Y = "cast(case when true{and_where} and {x} is not null then {y} end as double)"
_OF_TWO = (("x", "y"), {"xx": ("x", "x"), "yy": ("y", "y"), "xy": ("x", "y")})
_TWO = PartialColumn(
    "moments",
    _struct(
        {
            "n": f"cast(count({_PAIR_X}) as double)",
            "x": _held(f"avg({_PAIR_X})", _PAIR_X),
            "y": _held(f"avg({_PAIR_Y})", _PAIR_Y),
            "xx": _distances(f"var_pop({_PAIR_X})", _PAIR_X),
            "yy": _distances(f"var_pop({_PAIR_Y})", _PAIR_Y),
            "xy": _distances(f"covar_pop({_PAIR_X}, {_PAIR_Y})", _PAIR_X, _PAIR_Y),
        }
    ),
    _merged(*_OF_TWO),
    _fold(*_OF_TWO, lambda pair: {"x": pair["x"], "y": pair["y"]}),
)
_POPULATION, _SAMPLE = "nullif({moments}.n, 0D)", "nullif(greatest({moments}.n - 1D, 0D), 0D)"


def _numbers(kinds: Sequence[str]) -> str:
    if others := [kind for kind in kinds if not is_number(kind)]:
        raise Unproved(f"computes with {others[0]}")
    return DOUBLE


def _part(held: Moments | None, name: str, less: int, root: Callable[[float], float] = lambda x: x) -> float | None:
    return root(held[name] / (held["n"] - less)) if held and held["n"] > less else None


def _of_one(less: int, *, root: bool, says: str) -> Function:
    quotient = f"{{moments}}.m2 / {_SAMPLE if less else _POPULATION}"
    return Function(
        (_ONE,),
        f"sqrt({quotient})" if root else f"({quotient})",
        says,
        _numbers,
        lambda held: _part(held, "m2", less, sqrt if root else float),
        takes=NUMBER,
        rounds=True,
        result=DOUBLE,
        element="cast({x} as double)",
    )


def _of_two(finish: str, says: str, value: Callable[[Any], Any]) -> Function:
    return Function(
        (_TWO,),
        finish,
        says,
        _numbers,
        value,
        arguments=2,
        takes=NUMBER,
        rounds=True,
        result=DOUBLE,
        element="case when {x} is not null and {y} is not null"
        " then named_struct('x', cast({x} as double), 'y', cast({y} as double)) end",
    )


def _correlation(held: Moments) -> float | None:
    spread = sqrt(held["xx"]) * sqrt(held["yy"])
    return held["xy"] / spread if spread else None


MOMENTS = {
    "var_pop": _of_one(0, root=False, says="population variance"),
    "var_samp": _of_one(1, root=False, says="sample variance (n − 1); null for one value"),
    "stddev_pop": _of_one(0, root=True, says="population standard deviation"),
    "stddev_samp": _of_one(1, root=True, says="sample standard deviation (n − 1); null for one value"),
    "covar_pop": _of_two(
        f"({{moments}}.xy / {_POPULATION})", "population covariance", lambda held: _part(held, "xy", 0)
    ),
    "covar_samp": _of_two(
        f"({{moments}}.xy / {_SAMPLE})",
        "sample covariance (n − 1); null for one pair",
        lambda held: _part(held, "xy", 1),
    ),
    "corr": _of_two(
        "({moments}.xy / nullif(sqrt({moments}.xx) * sqrt({moments}.yy), 0D))",
        "correlation; null if `x` or `y` is constant",
        _correlation,
    ),
}
