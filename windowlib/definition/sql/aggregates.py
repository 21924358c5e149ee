"""Parser of the SQL expressions in ``[aggregates]``. Refuses expressions whose aggregates cannot be merged.

An expression may use the functions of `windowlib.plans.aggregates.functions`, each with ``filter (where …)``, and
the functions of `windowlib.definition.sql.functions`: ``round(sum(value) / count(*), 2)``. Expressions have the meaning
of Spark's ANSI mode, in which a division by zero is an error (use ``try_divide``). ``first`` and ``last`` order by
event time, then by arrival.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from windowlib.definition.sql.functions import refuse_unknown, refuse_words, unknown
from windowlib.definition.sql.times import refuse_times_of_the_run
from windowlib.plans.aggregates.added import mark, marked_by
from windowlib.plans.aggregates.aggregate_set import AggregateSet, OutputColumn, SqlAggregate
from windowlib.plans.aggregates.calls import Call, call, calls, is_not_null, parsed
from windowlib.plans.aggregates.functions import FUNCTIONS, NAMES
from windowlib.plans.sql.parser import NUMBERS, levels, missing_value

_ALLOWED = ", ".join(NAMES)
_MOST_LEVELS = 300  # nested operations: with twice as many, Spark's parser or its stack fails
_MARK = "\x01"  # replaces an aggregate in the text; no SQL text contains it


def read_aggregates(expressions: dict[str, str], first: Sequence[str] = ()) -> AggregateSet:
    """Aggregates and output columns of ``name = expression`` pairs. Raises ValueError at the first invalid expression.

    Aggregates are in the order of `first`, then of the expressions.

    >>> [column.sql for column in read_aggregates({"mean": "sum(v) / count(*)", "n": "count(*)"}).columns]
    ['{0} / {1}', '{1}']
    """
    return _read_all(tuple(expressions.items()), tuple(first))


@lru_cache(maxsize=256)  # a run often reads the same expressions, and parsing costs more than some queries
def _read_all(expressions: tuple[tuple[str, str], ...], first: tuple[str, ...]) -> AggregateSet:
    aggregates: list[SqlAggregate] = []
    for sql in first:
        if (batch_id := marked_by(sql)) is not None:
            aggregates.append(mark(batch_id))
        else:
            _read(sql, aggregates)
    columns = tuple(OutputColumn(name, _read(sql, aggregates)) for name, sql in expressions)
    used = dict.fromkeys(name for _, sql in expressions for name in columns_used(sql))
    return AggregateSet(tuple(aggregates), columns, tuple(used))


def check_expression(sql: str) -> str:
    """Returns the expression. Raises ValueError with the problem if it is invalid or cannot be merged."""
    _read(sql, [])
    return sql


@lru_cache(maxsize=1024)
def columns_used(sql: str) -> Sequence[str]:
    """Source columns that an expression reads, in order of appearance; ``a.b`` reads the column ``a``."""
    return tuple(dict.fromkeys(column.parts[0].name for column in _parse(sql).find_all(exp.Column, bfs=False)))


def _read(sql: str, aggregates: list[SqlAggregate]) -> str:
    """Replaces each aggregate of an expression by ``{i}``, its index in ``aggregates``. Appends new aggregates."""
    root = exp.Paren(this=_parse(sql))
    if root.this.find(exp.Query, exp.Subquery, exp.Window, exp.Block):
        raise ValueError("holds a query or a window function (over …): only aggregates and arithmetic are possible")
    refuse_unknown(sql)
    refuse_words(written := _written_again(root.this))
    refuse_times_of_the_run(root.this)
    for node in calls(root):
        outer, aggregate = _aggregate(node)
        if aggregate not in aggregates:
            aggregates.append(aggregate)
        outer.replace(exp.Var(this=f"{_MARK}{aggregates.index(aggregate)}{_MARK}"))
    if (value := missing_value(sql, written)) is not None:
        raise ValueError(f"has the surplus argument {value}, which would be ignored; remove it")
    _refuse_what_is_outside(root.this)
    text = _sql(root.this).replace("{", "{{").replace("}", "}}")
    for index in range(len(aggregates)):
        text = text.replace(f"{_MARK}{index}{_MARK}", f"{{{index}}}")
    return text


def _parse(sql: str) -> exp.Expr:
    if _MARK in sql:
        raise ValueError("holds a control character")
    try:
        tree = parsed(sql)
    except RecursionError as error:
        raise _too_deep() from error
    except SqlglotError as error:
        first = (getattr(error, "errors", None) or [{}])[0]
        where = f" at character {first['col']}" if first.get("col") else ""
        raise ValueError(
            f"is not a SQL expression: {first.get('description') or error}{where}{_alias_hint(sql)}"
        ) from error
    except (IndexError, AttributeError, TypeError) as error:  # faults of the parser on text such as "map (0"
        raise ValueError("is not a SQL expression") from error
    if levels(tree) > _MOST_LEVELS:
        raise _too_deep()
    return tree


def _too_deep() -> ValueError:
    return ValueError(
        f"nests too many operations (Spark allows about {_MOST_LEVELS}, for example terms of a sum): compute parts"
        " in columns of the source, or in separate aggregates"
    )


def _alias_hint(sql: str) -> str:
    named = re.search(r"\bas\s+`?\w+`?\s*$", sql, re.IGNORECASE)
    return f"; leave out {named[0]!r}, the key on the left names the column" if named else ""


def _written_again(tree: exp.Expr) -> str:
    try:
        return _sql(tree)
    except RecursionError as error:
        raise _too_deep() from error
    except (KeyError, IndexError, AttributeError, TypeError, SqlglotError) as error:  # faults of the generator
        raise ValueError("has a function with too few arguments") from error


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="spark", identify=True)


def _aggregate(node: exp.Expr) -> tuple[exp.Expr, SqlAggregate]:
    """Returns the node of an aggregate, with its ``ignore nulls`` and ``filter (where …)``, and the aggregate."""
    function_call = call(node)
    if function_call is None:
        raise ValueError(f"uses {unknown(_sql(node).partition('(')[0].lower())}")
    if around := next(filter(call, _ancestors(node)), None):
        raise ValueError(f"has an aggregate inside an aggregate: {_sql(around)}")
    argument, *more = _arguments(function_call, node)
    outer: exp.Expr = node
    conditions = [] if function_call.condition is None else [function_call.condition]
    if isinstance(argument, exp.IgnoreNulls | exp.RespectNulls):  # first(x ignore nulls)
        ignores, argument = isinstance(argument, exp.IgnoreNulls), argument.this
        conditions += [is_not_null(argument)] if ignores else []
    while isinstance(around := outer.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        outer = around
        if isinstance(around, exp.Filter):
            conditions.append(around.expression.this)
        elif isinstance(around, exp.IgnoreNulls):
            conditions.append(is_not_null(argument))
    where = _sql(exp.and_(*conditions)) if conditions else None
    first = None if isinstance(argument, exp.Star) else _sql(argument)
    return outer, SqlAggregate(function_call.name, first, where, more_sql=tuple(map(_sql, more)))


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent:
        node = node.parent
        yield node


def _arguments(function_call: Call, node: exp.Expr) -> Sequence[exp.Expr]:
    function, arguments = function_call.name, function_call.arguments
    if arguments and isinstance(argument := arguments[0], exp.Distinct):  # functions other than count
        raise ValueError(
            f"uses {function}({_sql(argument).lower()}); only count(distinct …) and collect_set work on distinct values"
        )
    if len(arguments) != (takes := FUNCTIONS[function].arguments):
        raise ValueError(f"gives {function} more or fewer arguments than {NUMBERS[takes]}: {_sql(node)}")
    if any(argument.find(exp.Star) for argument in arguments) and not (
        function == "count" and isinstance(arguments[0], exp.Star)
    ):
        raise ValueError(f"uses * in {_sql(node)}: only count(*) has a meaning")
    if FUNCTIONS[function].share and not _is_share(arguments[-1]):
        raise ValueError(f"has {_sql(arguments[-1])} in {_sql(node)}; need a number from 0 to 1, such as 0.95")
    return arguments


def _is_share(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and 0 <= float(node.name) <= 1


def _refuse_what_is_outside(tree: exp.Expr) -> None:
    if column := tree.find(exp.Column):
        raise ValueError(f"uses the column {column.sql(dialect='spark')} outside an aggregate ({_ALLOWED})")
    if _MARK not in _sql(tree):
        raise ValueError(f"uses no aggregate (allowed: {_ALLOWED})")
