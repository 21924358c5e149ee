"""Type errors in an aggregate's expression, found from the types of columns before an engine runs.

A sum of strings is refused at once, not by an engine an hour later. sqlglot knows the types of most functions. An
expression of unknown type passes; the engine checks it.
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
# sqlglot gives these expressions the type of their operands. The type is right only if all operands are of this family.
_OF_TEXTS = (exp.Substring, exp.Left, exp.Right, exp.Reverse, exp.Overlay)
_OF_NUMBERS = (
    *(exp.Abs, exp.Neg, exp.Negative, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
)
_OF_ONE_FAMILY = (exp.Coalesce, exp.Nullif, exp.If, exp.Case, exp.Greatest, exp.Least, exp.Array)
_UNSURE = (exp.DateTrunc, exp.TimestampTrunc, exp.Trunc, exp.ArrayPosition, exp.Anonymous)
_CAST = {NUMBER: "decimal(18,2)", CONDITION: "boolean", BITS: "bigint"}
_COLUMN = "column"  # marks a node that replaces a column


def misfits(sql: str, types: Mapping[str, str], *, declared: bool = False) -> list[str]:
    """Messages about type errors in an expression; none for an expression that cannot be parsed.

    types:    Spark's types of columns by name in lower case
    declared: true if the author declares all types, so that values of another type are malformed

    >>> misfits("sum(size) / count(*) filter (where page)", {"size": "int", "page": "string"})
    ["uses page of type string as a condition; need a boolean, such as page = 'a'"]
    >>> misfits("sum(a)", {"a": "string"})
    ['uses a of type string in SUM(a); need a number, such as try_cast(a as decimal(18,2)) with engine = "spark"']
    """
    return [*_misfits(sql, tuple(types.items()), declared)]


def without_order(sql: str, types: Mapping[str, str], *, by_time: bool = False) -> list[str]:
    """Messages about aggregates that keep maps. Maps have no order, and Spark's functions order values to choose one.

    types:   as in `misfits`
    by_time: true if the operator in Python computes the aggregates; it orders only by time, so only aggregates whose
             values Spark sorts at the end are reported

    Counts keep no value.

    >>> without_order("first(tags) ignore nulls", {"tags": "map<string, int64>"})
    ['orders tags of type map<string, int64> in FIRST(tags); maps have no order, use map_entries(tags)']
    >>> without_order("count(tags)", {"tags": "map<string, int64>"})
    []
    >>> without_order("first(tags)", {"tags": "map<string, int64>"}, by_time=True)
    []
    """
    function_calls = ((node, aggregate) for node in calls(parsed(sql)) if (aggregate := call(node)))
    ordered = [(node, aggregate) for node, aggregate in function_calls if _orders(aggregate.name, by_time)]
    return [
        f"orders {argument.name} of type {kind} in {node.sql(dialect='spark')}; maps have no order, use"
        f" map_entries({argument.name})"
        for node, aggregate in ordered
        for argument in aggregate.arguments
        if isinstance(argument, exp.Column) and "map<" in (kind := types.get(argument.name.casefold(), ""))
    ]


def _orders(function: str, by_time: bool) -> bool:
    return FUNCTIONS[function].sorts if by_time else function != "count"


def type_of(sql: str, types: Mapping[str, str]) -> str | None:
    """Spark's type of an expression; None if it is not certain.

    >>> type_of("length(page)", {"page": "string"}), type_of("greatest(page, 1)", {"page": "string"})
    ('int', None)
    """
    tree = _typed(sql, types)
    return _certain_type(tree) if tree else None


@lru_cache(maxsize=256)  # needed in each run
def _misfits(sql: str, types: tuple[tuple[str, str], ...], declared: bool) -> tuple[str, ...]:
    tree = _typed(sql, dict(types))
    return tuple(dict.fromkeys((*_arguments(tree, declared), *_conditions(tree)))) if tree else ()


def _typed(sql: str, types: Mapping[str, str]) -> exp.Expr | None:
    """Parses an expression and adds the type of each node; None if it cannot be parsed, which is reported elsewhere."""
    try:
        return annotate_types(_with_types(parsed(sql), types), dialect="spark")
    except (ValueError, SqlglotError, IndexError, AttributeError, TypeError):  # including faults of the parser
        return None


def _with_types(tree: exp.Expr, types: Mapping[str, str]) -> exp.Expr:
    """Casts each column of an expression to the column's own type, which changes no value."""

    def typed(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or len(node.parts) > 1 or node.name.casefold() not in types:
            return node
        try:
            kind = _OF.build(types[node.name.casefold()], dialect="spark")
        except SqlglotError:  # a type that only files have
            return node
        cast = exp.Cast(this=node.copy(), to=kind)
        cast.meta[_COLUMN] = True
        return cast

    return tree.transform(typed)


def _arguments(tree: exp.Expr, declared: bool) -> Iterator[str]:
    for node in calls(tree):
        aggregate = call(node)
        takes = FUNCTIONS[aggregate.name].takes if aggregate else ""
        for argument in aggregate.arguments if aggregate and takes else ():
            if kind := _misfit(argument, takes):
                how = _as_needed(argument, _CAST[takes], declared) if kind == "string" else ""
                yield f"uses {_sql(argument)} of type {kind} in {_sql(node)}; need {takes}{how}"


def _as_needed(text: exp.Expr, kind: str, declared: bool) -> str:
    """Advice to convert a string to the needed type. Invalid strings become malformed rows or nulls.

    Casts are proved only on Spark. The advice names the engine, unless all types are declared (JSON and CSV files).
    """
    cast = f"try_cast({_sql(text)} as {kind})"
    if not declared:
        return f', such as {cast} with engine = "spark"'
    by_schema = f'the type "{kind}" in source.schema, or ' if text.meta.get(_COLUMN) else ""
    return f", such as {by_schema}{cast}"


def _conditions(tree: exp.Expr) -> Iterator[str]:
    conditions = [node.expression.this for node in tree.find_all(exp.Filter)]
    conditions += [node.this for node in tree.find_all(exp.If, exp.CountIf) if not _is_compared(node)]
    for condition in conditions:
        if kind := _misfit(condition, CONDITION):
            text, value = _sql(condition), "'a'" if kind == "string" else "0"
            yield f"uses {text} of type {kind} as a condition; need a boolean, such as {text} = {value}"


def _is_compared(node: exp.Expr) -> bool:
    """Tests if a branch of CASE is chosen by comparison with a value: CASE x WHEN 1 THEN …"""
    return isinstance(node.parent, exp.Case) and node.parent.this is not None


def _misfit(node: exp.Expr, takes: str) -> str | None:
    """Spark's type of a value if it does not fit `takes`; None if it fits or is not certain."""
    return None if _kind(node) in _FITS[takes] else _certain_type(node)


def _certain_type(node: exp.Expr) -> str | None:
    """Spark's type of a value; None if it is not certain."""
    is_certain = _kind(node) in _KNOWN and all(map(_is_certain, node.walk()))
    return node.type.sql(dialect="spark").casefold() if is_certain and node.type else None


def _is_certain(node: exp.Expr) -> bool:
    """Tests if Spark and sqlglot give a node the same type, provided that they agree on the types of its operands."""
    if isinstance(node, _UNSURE):
        return False
    if isinstance(node, _OF_TEXTS):
        return _kind(node.this) in _OF.TEXT_TYPES
    if isinstance(node, _OF_NUMBERS):
        return all(_kind(value) in _OF.NUMERIC_TYPES for value in _values(node))
    if isinstance(node, _OF_ONE_FAMILY):
        return len({_family(value) for value in _values(node)} - {exp.DType.NULL}) <= 1
    return True


def _values(node: exp.Expr) -> list[exp.Expr]:
    """Operands of a node: the values that it returns or computes with."""
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
    elif isinstance(node, exp.If):
        values = [node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Array):
        values = node.expressions
    else:
        values = [node.this, node.args.get("expression"), *node.expressions]
    return [value for value in values if value is not None]


def _kind(node: exp.Expr) -> exp.DType | None:
    kind = node.type
    return kind.this if isinstance(kind, _OF) and isinstance(kind.this, exp.DType) else None


def _family(node: exp.Expr) -> object:
    """Family of a type. All numbers are in the same family."""
    kind = _kind(node)
    return NUMBER if kind in _OF.NUMERIC_TYPES else kind


def _sql(node: exp.Expr) -> str:
    def untyped(part: exp.Expr) -> exp.Expr:
        return part.this if part.meta.get(_COLUMN) else part

    return node.transform(untyped).sql(dialect="spark")
