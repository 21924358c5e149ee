"""What an aggregate's expression does with values of the wrong type, judged by the types of columns: a sum of texts is
refused at once, and not by an engine an hour later.

sqlglot knows what most functions give. Where it does not know, nothing is said here: the engine will.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from windowlib.plans.aggregates.calls import call, calls, parsed
from windowlib.plans.aggregates.functions import FUNCTIONS
from windowlib.plans.aggregates.mergeable.function import BITS, CONDITION, NUMBER

_OF = exp.DataType
_KNOWN = {
    exp.DType.BOOLEAN,
    *_OF.NUMERIC_TYPES,
    *_OF.TEXT_TYPES,
    *_OF.BINARY_TYPES,
    *_OF.TEMPORAL_TYPES,
    *_OF.NESTED_TYPES,
}
_FITS: Mapping[str, set[exp.DType]] = {
    NUMBER: {*_OF.NUMERIC_TYPES},
    CONDITION: {exp.DType.BOOLEAN},
    BITS: {*_OF.SIGNED_INTEGER_TYPES},
}
# What sqlglot gives the type of its values: right where they are of one family, and of this one.
_OF_TEXTS = (exp.Substring, exp.Left, exp.Right, exp.Reverse, exp.Overlay)
_OF_NUMBERS = (
    *(exp.Abs, exp.Neg, exp.Negative, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
)
_OF_ONE_FAMILY = (exp.Coalesce, exp.Nullif, exp.If, exp.Case, exp.Greatest, exp.Least, exp.Array)
_UNSURE = (exp.DateTrunc, exp.TimestampTrunc, exp.Trunc, exp.ArrayPosition, exp.Anonymous)
_CAST = {NUMBER: "decimal(18,2)", CONDITION: "boolean", BITS: "bigint"}
_COLUMN = "column"  # marks what stands for a column


def misfits(sql: str, types: Mapping[str, str], *, declared: bool = False) -> list[str]:
    """What is wrong with the types in an expression, in words; nothing for one that cannot be read.

    `types` gives the types of columns by name in lower case, as Spark calls them. `declared`: the author says them all,
    and what is written otherwise is malformed.

    >>> misfits("sum(size) / count(*) filter (where page)", {"size": "int", "page": "string"})
    ["takes page, which is string, for a condition; need one such as page = 'a'"]
    >>> misfits("sum(a)", {"a": "string"})
    ['takes a, which is string, in SUM(a); need a number, such as try_cast(a as decimal(18,2)) with engine = "spark"']
    """
    return [*_misfits(sql, tuple(types.items()), declared)]


def without_order(sql: str, types: Mapping[str, str], *, by_time: bool = False) -> list[str]:
    """Which aggregates hold values that have no order, in words: a plan of Spark's functions keeps one by its order.

    `types` are as in `misfits`. Counts hold no value. `by_time`: the operator in Python computes them, which orders by
    time alone; then only those count whose values Spark sorts at the end.

    >>> without_order("first(tags) ignore nulls", {"tags": "map<string, int64>"})
    ['takes tags, which is map<string, int64>, in FIRST(tags); maps have no order, take map_entries(tags)']
    >>> without_order("count(tags)", {"tags": "map<string, int64>"})
    []
    >>> without_order("first(tags)", {"tags": "map<string, int64>"}, by_time=True)
    []
    """
    found_calls = ((node, found) for node in calls(parsed(sql)) if (found := call(node)))
    held = [(node, found) for node, found in found_calls if _orders(found.name, by_time)]
    return [
        f"takes {given.name}, which is {kind}, in {node.sql(dialect='spark')}; maps have no order, take"
        f" map_entries({given.name})"
        for node, found in held
        for given in found.arguments
        if isinstance(given, exp.Column) and "map<" in (kind := types.get(given.name.casefold(), ""))
    ]


def _orders(function: str, by_time: bool) -> bool:
    return FUNCTIONS[function].sorts if by_time else function != "count"


def type_of(sql: str, types: Mapping[str, str]) -> str | None:
    """The type of an expression as Spark calls it, where it is known.

    >>> type_of("length(page)", {"page": "string"}), type_of("greatest(page, 1)", {"page": "string"})
    ('int', None)
    """
    tree = _typed(sql, types)
    return _certain_type(tree) if tree else None


@lru_cache(maxsize=256)  # asked for in each run
def _misfits(sql: str, types: tuple[tuple[str, str], ...], declared: bool) -> tuple[str, ...]:
    tree = _typed(sql, dict(types))
    return tuple(dict.fromkeys((*_arguments(tree, declared), *_conditions(tree)))) if tree else ()


def _typed(sql: str, types: Mapping[str, str]) -> exp.Expr | None:
    """The expression, each node with its type; None for one that cannot be read, which is said elsewhere."""
    try:
        return annotate_types(_with_types(parsed(sql), types), dialect="spark")
    except (ValueError, SqlglotError, IndexError, AttributeError, TypeError):  # the parser's own slips, too
        return None


def _with_types(tree: exp.Expr, types: Mapping[str, str]) -> exp.Expr:
    """The expression with a cast to its type for each column, which changes nothing."""

    def typed(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or len(node.parts) > 1 or node.name.casefold() not in types:
            return node
        try:
            kind = _OF.build(types[node.name.casefold()], dialect="spark")
        except SqlglotError:  # a type that only files have
            return node
        made = exp.Cast(this=node.copy(), to=kind)
        made.meta[_COLUMN] = True
        return made

    return tree.transform(typed)


def _arguments(tree: exp.Expr, declared: bool) -> Iterator[str]:
    for node in calls(tree):
        found = call(node)
        takes = FUNCTIONS[found.name].takes if found else ""
        for given in found.arguments if found and takes else ():
            if kind := _misfit(given, takes):
                how = _as_needed(given, _CAST[takes], declared) if kind == "string" else ""
                yield f"takes {_sql(given)}, which is {kind}, in {_sql(node)}; need {takes}{how}"


def _as_needed(text: exp.Expr, kind: str, declared: bool) -> str:
    """How a text becomes what is needed: a row whose text is none is malformed, or has a null.

    What is declared is parsed by Spark, which alone is proved to cast.
    """
    cast = f"try_cast({_sql(text)} as {kind})"
    if not declared:
        return f', such as {cast} with engine = "spark"'
    by_schema = f'the type "{kind}" in source.schema, or ' if text.meta.get(_COLUMN) else ""
    return f", such as {by_schema}{cast}"


def _conditions(tree: exp.Expr) -> Iterator[str]:
    conditions = [one.expression.this for one in tree.find_all(exp.Filter)]
    conditions += [one.this for one in tree.find_all(exp.If, exp.CountIf) if not _is_compared(one)]
    for one in conditions:
        if kind := _misfit(one, CONDITION):
            example = "'a'" if kind == "string" else "0"
            yield f"takes {_sql(one)}, which is {kind}, for a condition; need one such as {_sql(one)} = {example}"


def _is_compared(node: exp.Expr) -> bool:
    """Whether a branch of CASE is chosen by a value: CASE x WHEN 1 THEN …"""
    return isinstance(node.parent, exp.Case) and node.parent.this is not None


def _misfit(node: exp.Expr, takes: str) -> str | None:
    """The type of a value that does not fit; None where it does, or is not known."""
    return None if _kind(node) in _FITS[takes] else _certain_type(node)


def _certain_type(node: exp.Expr) -> str | None:
    """The type of a value, where it is certain."""
    is_certain = _kind(node) in _KNOWN and all(map(_is_certain, node.walk()))
    return node.type.sql(dialect="spark").casefold() if is_certain and node.type else None


def _is_certain(node: exp.Expr) -> bool:
    """Whether Spark gives the type that sqlglot does, where its values have theirs."""
    if isinstance(node, _UNSURE):
        return False
    if isinstance(node, _OF_TEXTS):
        return _kind(node.this) in _OF.TEXT_TYPES
    if isinstance(node, _OF_NUMBERS):
        return all(_kind(one) in _OF.NUMERIC_TYPES for one in _values(node))
    if isinstance(node, _OF_ONE_FAMILY):
        return len({_family(one) for one in _values(node)} - {exp.DType.NULL}) <= 1
    return True


def _values(node: exp.Expr) -> list[exp.Expr]:
    """What a node gives, or computes with."""
    if isinstance(node, exp.Case):
        given = [one.args["true"] for one in node.args["ifs"]] + [node.args.get("default")]
    elif isinstance(node, exp.If):
        given = [node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Array):
        given = node.expressions
    else:
        given = [node.this, node.args.get("expression"), *node.expressions]
    return [one for one in given if one is not None]


def _kind(node: exp.Expr) -> exp.DType | None:
    kind = node.type
    return kind.this if isinstance(kind, _OF) and isinstance(kind.this, exp.DType) else None


def _family(node: exp.Expr) -> object:
    """What a type is of: all numbers are of one family."""
    kind = _kind(node)
    return NUMBER if kind in _OF.NUMERIC_TYPES else kind


def _sql(node: exp.Expr) -> str:
    def untyped(one: exp.Expr) -> exp.Expr:
        return one.this if one.meta.get(_COLUMN) else one

    return node.transform(untyped).sql(dialect="spark")
