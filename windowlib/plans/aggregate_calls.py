"""Calls of aggregate functions in parsed SQL: which function, of what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from windowlib.plans.aggregate_functions import ALIASES, FUNCTIONS, SQLGLOTS


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `FUNCTIONS`, its arguments, and the condition that the call itself puts on events."""

    name: str
    arguments: Sequence[exp.Expr]
    condition: exp.Expr | None = None


def call(node: exp.Expr) -> Call | None:
    """The call of an aggregate function that a node is, or None.

    >>> from sqlglot import parse_one
    >>> call(parse_one("MAX_BY(x, y)", dialect="spark")).name, call(parse_one("abs(x)", dialect="spark"))
    ('max_by', None)
    """
    name = next((name for name in _names(node) if name in FUNCTIONS), None)
    if name is None:
        return None
    arguments = list(_arguments(node))
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
        return _distinct(node.this.expressions)
    if isinstance(node, exp.CountIf):
        return Call(name, [exp.Star(), *arguments[1:]], arguments[0])
    return Call(name, arguments)


def calls(tree: exp.Expr) -> list[exp.Expr]:
    """The nodes of a tree that are calls of aggregate functions, or of such functions as are not known here."""
    return [node for node in tree.walk(bfs=False) if isinstance(node, exp.AggFunc) or call(node)]


def _distinct(values: Sequence[exp.Expr]) -> Call:
    """Of several values together those count in which none is null."""
    if len(values) == 1:
        return Call("count_distinct", values)
    together = exp.Anonymous(this="struct", expressions=[value.copy() for value in values])
    return Call("count_distinct", [together], exp.and_(*(value.copy().is_(exp.null()).not_() for value in values)))


def _names(node: exp.Expr) -> Iterator[str]:
    if isinstance(node, exp.Anonymous):
        names = [node.name]
    else:
        names = node.sql_names() if isinstance(node, exp.AggFunc) else []
    for name in map(str.lower, names):
        yield ALIASES.get(name, SQLGLOTS.get(name, name))


def _arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    return iter(node.expressions) if isinstance(node, exp.Anonymous) else node.iter_expressions()
