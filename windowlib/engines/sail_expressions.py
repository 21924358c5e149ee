"""SQL that gives Spark's results on Sail at the limits of numbers.

Sail differs from Spark in five ways:

- Integers wrap around on overflow.
- Averages of decimals are cut off instead of rounded.
- Doubles are rounded by their binary digits.
- `min` and `max` ignore NaN.
- `min` starts at the greatest finite double, so it never returns infinity.

Integer arithmetic is computed in decimals. The result is cast back to its integer type. This cast fails on overflow, as
in Spark. Operands always fit into the decimal, so TRY_CAST is used for them. With CAST, Sail's time to plan a sum
triples with each term.

A double is rounded as the decimal number that it is written as. It is rounded up if it is at least the double nearest
to the middle of its two rounded neighbours. A decimal literal in an operation with doubles is cast to double.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from windowlib.plans.sql.kinds import DOUBLE, Unproved
from windowlib.plans.sql.parser import parse_sql
from windowlib.plans.sql.types import ARITHMETIC, COMPARISONS, is_fraction, operands, type_of

CHANGED = (*ARITHMETIC, *COMPARISONS, exp.Div, exp.In, exp.Between, exp.Case, exp.Round)
OF_64_BITS = "decimal(19, 0)"
WHOLE_DOUBLES = 1 << 52  # doubles from this value on have no fraction


def rewritten(sql: str, types: Mapping[str, str]) -> str:
    """Rewrites a definition's expression for Sail; `types` has the types of columns, by name in lower case.

    >>> rewritten("a * 2", {"a": "int"})
    'CAST(TRY_CAST(a AS DECIMAL(19, 0)) * TRY_CAST(2 AS DECIMAL(19, 0)) AS INT)'
    >>> rewritten("a > 0.5", {"a": "double"}), rewritten("a > 2", {"a": "int"})
    ('a > CAST(0.5 AS DOUBLE)', 'a > 2')
    >>> rewritten("case a when 0.5 then 1 end", {"a": "double"})
    'CASE a WHEN CAST(0.5 AS DOUBLE) THEN 1 END'
    """
    tree = parse_sql(sql)
    return _rewritten(tree, types).sql(dialect="spark") if tree.find(*CHANGED) else sql


def _rewritten(node: exp.Expr, types: Mapping[str, str]) -> exp.Expr:
    copy = node.copy()
    for name, part in node.args.items():
        if isinstance(part, exp.Expr):
            copy.set(name, _rewritten(part, types))
        elif isinstance(part, list):
            copy.set(name, [_rewritten(item, types) if isinstance(item, exp.Expr) else item for item in part])
    if not isinstance(node, CHANGED) or _kind(node, types) is None:
        return copy
    if isinstance(node, exp.Round):
        return _rounded(copy) if _kind(node, types) == DOUBLE else copy.this
    if DOUBLE in [_kind(part, types) for part in operands(node)]:
        for part in filter(is_fraction, operands(copy)):
            part.replace(exp.cast(part.copy(), "double", dialect="spark"))
    elif isinstance(node, ARITHMETIC):
        for part in operands(copy):
            wide = exp.DataType.build(OF_64_BITS, dialect="spark")
            part.replace(exp.TryCast(this=part.copy(), to=wide, safe=True))  # safe: sqlglot writes TRY_CAST unchanged
        return exp.cast(copy, _kind(node, types) or "", dialect="spark")
    return copy


def _kind(node: exp.Expr, types: Mapping[str, str]) -> str | None:
    try:
        return type_of(node, types)
    except Unproved:
        return None  # a run refuses it before this; outside of runs, Sail evaluates it by its own rules


def _rounded(node: exp.Expr) -> exp.Expr:
    digits = int(node.args["decimals"].name) if node.args.get("decimals") else 0
    x, power = f"({node.this.sql(dialect='spark')})", f"{10**digits}.0D"
    below = f"floor(abs{x} * {power})"
    up = f"if(abs{x} >= (cast({below} as double) + 0.5D) / {power}, 1.0D, 0.0D)"
    near = f"sign{x} * (cast({below} as double) + {up}) / {power}"
    return parse_sql(f"case when isnan{x} or abs{x} * {power} >= {WHOLE_DOUBLES}.0D then {x} else {near} end")


def extreme(function: str, argument: str, floats: str) -> str:
    """SQL of the aggregate ``min`` or ``max`` of floats or doubles. It is null without values.

    >>> extreme("min", "x", "double").count("x < double('Infinity')")
    1
    """
    nan, most, least = (f"{floats}('{value}')" for value in ("NaN", "Infinity", "-Infinity"))
    any_nan, any_most, any_least = (f"bool_or({test})" for test in (f"isnan({argument})", *_is(argument, most, least)))
    if function == "max":
        finite = f"max(case when {argument} > {least} then {argument} end)"
        cases = f"when {any_nan} then {nan} when {any_most} then {most}"
        value = f"coalesce({finite}, case when {any_least} then {least} end)"
    else:
        finite = f"min(case when {argument} < {most} then {argument} end)"
        cases = f"when {any_least} then {least}"
        value = f"coalesce({finite}, case when {any_most} then {most} when {any_nan} then {nan} end)"
    return f"cast(case {cases} else {value} end as {floats})"


def _is(argument: str, *values: str) -> tuple[str, ...]:
    return tuple(f"{argument} = {value}" for value in values)
