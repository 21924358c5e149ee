"""Calls of aggregate functions in parsed SQL: the function and its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from sqlglot import exp

from windowlib.plans.aggregates.functions import ALIASES, CALLABLE, SQLGLOT_NAMES
from windowlib.plans.sql.parser import parse_sql

BOUNDS = 100  # greatest number of bounds of a histogram


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of `CALLABLE`. `condition` restricts the events that the call counts."""

    name: str
    arguments: Sequence[exp.Expr]
    condition: exp.Expr | None = None


def call(node: exp.Expr) -> Call | None:
    """Reads a node as a call of an aggregate function; None for any other node.

    >>> from windowlib.plans.sql.parser import parse_sql
    >>> call(parse_sql("MAX_BY(x, y)")).name, call(parse_sql("abs(x)"))
    ('max_by', None)
    """
    name = next((name for name in _names(node) if name in CALLABLE), None)
    if name is None:
        return None
    arguments = list(_arguments(node))
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
        return _distinct(node.this.expressions)
    if isinstance(node, exp.CountIf) and not isinstance(arguments[0], exp.Distinct):
        return Call(name, [exp.Star(), *arguments[1:]], arguments[0])
    return Call(name, arguments)


def calls(tree: exp.Expr) -> list[exp.Expr]:
    """Nodes of a tree that call aggregate functions, including functions that windowlib does not support."""
    return [node for node in tree.walk(bfs=False) if isinstance(node, exp.AggFunc) or call(node)]


def parsed(sql: str) -> exp.Expr:
    """Parses an SQL expression and expands `histogram` to other aggregates. Raises ValueError, SqlglotError.

    >>> parsed("histogram(x, array(0, 10)) filter (where y)").sql(dialect="spark")[:46]
    'ARRAY(COUNT_IF(x < 0) FILTER(WHERE y), COUNT_I'
    """
    tree = parse_sql(sql, into=exp.Condition)
    root = exp.Paren(this=tree)
    for node in [node for node in root.find_all(exp.Anonymous) if node.name.lower() == "histogram"]:
        around = node.parent if isinstance(node.parent, exp.Filter) else None
        (around or node).replace(_histogram(node, around.expression if around else None))
    expanded: exp.Expr = root.this
    return expanded


def _histogram(node: exp.Anonymous, where: exp.Expr | None) -> exp.Expr:
    """Array of a histogram's counts: below the first bound, between neighbouring bounds, from the last bound on."""
    bounds = node.expressions[1].expressions if _has_bounds(node) else []
    numbers = [number for bound in bounds if (number := _number(bound)) is not None]
    if not 0 < len(numbers) == len(bounds) <= BOUNDS or any(low >= high for low, high in pairwise(numbers)):
        raise ValueError(
            f"has {node.sql(dialect='spark')}; need histogram(x, array(…)) with 1 to {BOUNDS} numbers that ascend, such"
            " as histogram(x, array(0, 10, 100))"
        )
    x = node.expressions[0]
    between = [exp.and_(x.copy() >= low.copy(), x.copy() < high.copy()) for low, high in pairwise(bounds)]
    tests = [x.copy() < bounds[0].copy(), *between, x.copy() >= bounds[-1].copy()]
    counts: list[exp.Expr] = [exp.CountIf(this=test) for test in tests]
    if where is not None:
        counts = [exp.Filter(this=count, expression=where.copy()) for count in counts]
    return exp.Array(expressions=counts)


def _has_bounds(node: exp.Anonymous) -> bool:
    return len(node.expressions) == 2 and isinstance(node.expressions[1], exp.Array)


def _number(node: exp.Expr) -> float | None:
    if isinstance(node, exp.Neg):
        positive = _number(node.this)
        return None if positive is None else -positive
    return float(node.name) if isinstance(node, exp.Literal) and not node.is_string else None


def is_not_null(value: exp.Expr) -> exp.Expr:
    """Condition that an expression is not null."""
    apart = isinstance(value, exp.Not | exp.In | exp.Between | exp.Is | exp.Connector)
    return (exp.paren(value.copy()) if apart else value.copy()).is_(exp.null()).not_()


def _distinct(values: Sequence[exp.Expr]) -> Call:
    """Call of a distinct count. Combinations of several values count only if none of the values is null."""
    if len(values) == 1:
        return Call("count_distinct", values)
    texts = [value.sql(dialect="spark") for value in values]
    # Field names depend on the expressions: Sail names an aggregate by its fields and refuses two with the same name.
    fields = (f"{sql} as f{number}_{crc32(sql.encode()):08x}" for number, sql in enumerate(texts))
    together = parse_sql(f"struct({', '.join(fields)})")
    return Call("count_distinct", [together], exp.and_(*map(is_not_null, values)))


def _names(node: exp.Expr) -> Iterator[str]:
    if isinstance(node, exp.Anonymous):
        names = [node.name]
    else:
        names = node.sql_names() if isinstance(node, exp.AggFunc) else []
    for name in map(str.lower, names):
        yield ALIASES.get(name, SQLGLOT_NAMES.get(name, name))


def _arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    return iter(node.expressions) if isinstance(node, exp.Anonymous) else node.iter_expressions()
