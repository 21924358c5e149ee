"""Reads the SQL expressions of ``[aggregates]``: finds the aggregates in them and refuses what cannot be merged.

An expression may use the functions of `windowlib.plans.aggregate_functions`, each with ``filter (where …)``, and
anything that computes with them row by row: ``round(sum(value) / count(*), 2)``. Expressions mean what they
mean to Spark in ANSI mode (dividing by zero is an error: ``try_divide``). ``first`` and ``last`` go by event time, then
by arrival.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from windowlib.plans.aggregate_functions import FUNCTIONS
from windowlib.plans.aggregate_set import Aggregate, AggregateSet, OutputColumn

_ALLOWED = ", ".join(FUNCTIONS)
_SYNONYMS = {"mean": "avg", "first_value": "first", "last_value": "last", "any_value": "first", "count_if": "count"}
_VOLATILE = {
    "rand", "randn", "random", "uuid", "shuffle", "now", "current_date", "current_timestamp", "localtimestamp",
    "monotonically_increasing_id", "spark_partition_id", "input_file_name",
}  # fmt: skip
_MARK = "\x01"  # stands where an aggregate stood; no SQL text holds it


def read_aggregates(expressions: dict[str, str]) -> AggregateSet:
    """The aggregates and output columns of ``name = expression`` pairs; raises ValueError at the first bad one.

    >>> read_aggregates({"mean": "sum(v) / count(*)", "n": "count(*)"}).columns
    (OutputColumn(name='mean', sql='{0} / {1}'), OutputColumn(name='n', sql='{1}'))
    """
    found: list[Aggregate] = []
    columns = tuple(OutputColumn(name, _read(sql, found)) for name, sql in expressions.items())
    used = dict.fromkeys(name for sql in expressions.values() for name in columns_used(sql))
    return AggregateSet(tuple(found), columns, tuple(used))


def check_expression(sql: str) -> str:
    """The expression itself; raises ValueError, saying what is wrong with it, if it is not one we can merge."""
    _read(sql, [])
    return sql


def columns_used(sql: str) -> list[str]:
    """The source columns an expression reads, in order; of ``a.b`` the column is ``a``."""
    return list(dict.fromkeys(column.parts[0].name for column in _parse(sql).find_all(exp.Column, bfs=False)))


def _read(sql: str, found: list[Aggregate]) -> str:
    """The expression with ``{i}`` for the aggregate ``found[i]``; aggregates not yet in ``found`` are added."""
    root = exp.Paren(this=_parse(sql))
    _refuse_what_is_not_mergeable(root.this)
    for node in list(root.find_all(exp.AggFunc, bfs=False)):
        outer, aggregate = _aggregate(node)
        if aggregate not in found:
            found.append(aggregate)
        outer.replace(exp.Var(this=f"{_MARK}{found.index(aggregate)}{_MARK}"))
    _refuse_what_is_outside(root.this)
    text = _sql(root.this).replace("{", "{{").replace("}", "}}")
    for index in range(len(found)):
        text = text.replace(f"{_MARK}{index}{_MARK}", f"{{{index}}}")
    return text


def _parse(sql: str) -> exp.Expr:
    if _MARK in sql:
        raise ValueError("holds a control character")
    try:
        return sqlglot.parse_one(sql, dialect="spark", into=exp.Condition)
    except SqlglotError as error:
        first = (getattr(error, "errors", None) or [{}])[0]
        where = f" at character {first['col']}" if first.get("col") else ""
        raise ValueError(
            f"is not a SQL expression: {first.get('description') or error}{where}{_alias_hint(sql)}"
        ) from error
    except (IndexError, AttributeError, TypeError) as error:  # the parser's own slips on text such as "map (0"
        raise ValueError("is not a SQL expression") from error


def _alias_hint(sql: str) -> str:
    named = re.search(r"\bas\s+`?\w+`?\s*$", sql, re.IGNORECASE)
    return f"; leave out {named[0]!r}, the key on the left names the column" if named else ""


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="spark", identify=True)


def _refuse_what_is_not_mergeable(tree: exp.Expr) -> None:
    if tree.find(exp.Query, exp.Subquery, exp.Window, exp.Block):
        raise ValueError("holds a query or a window function (over …): only aggregates and arithmetic are possible")
    for function in tree.find_all(exp.Func):
        name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        if name.lower() in _VOLATILE:
            raise ValueError(f"uses {name.lower()}(), which gives another answer at each retry")


def _aggregate(node: exp.AggFunc) -> tuple[exp.Expr, Aggregate]:
    """An aggregate and the node to replace by it, which includes ``ignore nulls`` and ``filter (where …)``."""
    function = next((name for name in map(str.lower, node.sql_names()) if name in FUNCTIONS), None)
    if function is None:
        raise ValueError(f"uses {_named(_sql(node).partition('(')[0].lower())}")
    if around := node.find_ancestor(exp.AggFunc):
        raise ValueError(f"has an aggregate inside an aggregate: {_sql(around)}")
    argument = _argument(function, node)
    outer: exp.Expr = node
    conditions: list[exp.Expr] = []
    if isinstance(outer.parent, exp.IgnoreNulls):
        outer = outer.parent
        conditions.append(argument.copy().is_(exp.null()).not_())
    if isinstance(outer.parent, exp.Filter):
        outer = outer.parent
        conditions.append(outer.expression.this)
    where = _sql(exp.and_(*conditions)) if conditions else None
    return outer, Aggregate(function, None if isinstance(argument, exp.Star) else _sql(argument), where)


def _argument(function: str, node: exp.AggFunc) -> exp.Expr:
    argument: exp.Expr = node.this
    if isinstance(argument, exp.Distinct):
        values = ", ".join(map(_sql, argument.expressions))
        instead = f"approx_count_distinct({f'struct({values})' if len(argument.expressions) > 1 else values})"
        raise ValueError(f"uses {function}(distinct …), whose state grows without bound: use {instead}")
    if len(list(node.iter_expressions())) != 1:
        raise ValueError(f"gives {function} more or fewer arguments than one: {_sql(node)}")
    if argument.find(exp.Star) and not (function == "count" and isinstance(argument, exp.Star)):
        raise ValueError(f"uses * in {_sql(node)}: only count(*) has a meaning")
    return argument


def _refuse_what_is_outside(tree: exp.Expr) -> None:
    for function in tree.find_all(exp.Anonymous):
        if get_close_matches(function.name.lower(), [*FUNCTIONS, *_SYNONYMS], n=1, cutoff=0.75):
            raise ValueError(f"uses {_named(function.name.lower())}")
    if column := tree.find(exp.Column):
        raise ValueError(f"uses the column {column.sql(dialect='spark')} outside an aggregate ({_ALLOWED})")
    if _MARK not in _sql(tree):
        raise ValueError(f"uses no aggregate (allowed: {_ALLOWED})")


def _named(name: str) -> str:
    """An unknown aggregate function, what is allowed, and the nearest of those."""
    nearest = _SYNONYMS.get(name) or next(iter(get_close_matches(name, FUNCTIONS, n=1)), None)
    meant = f"; did you mean {nearest}?" if nearest else ""
    return f"{name}(), which is not one of {_ALLOWED}{meant}"
