"""Types of SQL expressions over columns of known types, for SQL with the same result on every engine.

Other expressions, and types that engines treat differently, raise `Unproved` with the reason. Types have Spark's names.
Results of aggregates have the types that Spark gives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from windowlib.plans.aggregates.calls import Call, call
from windowlib.plans.aggregates.functions import FUNCTIONS
from windowlib.plans.sql.kinds import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    NULL,
    SIMPLE,
    STRING,
    WHOLE,
    Unproved,
    decimal_of,
    is_nested,
    widest,
)

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul)
LEAST = ("2147483648", "9223372036854775808")  # digits of the least 32-bit and 64-bit integers
EXACT_IN_FLOAT = 1 << 24


def type_of(node: exp.Expr, columns: Mapping[str, str]) -> str:
    """Type of an expression. `columns` maps column names in lower case to types. Raises `Unproved`.

    >>> from windowlib.plans.sql.parser import parse_sql
    >>> type_of(parse_sql("sum(a) / count(*)"), {"a": "int"})
    'double'
    """
    if aggregate := call(node):
        return _aggregate(node, aggregate, columns)
    match node:
        case exp.Paren() | exp.IgnoreNulls():
            return type_of(node.this, columns)
        case exp.Column():
            return _column(node, columns)
        case exp.Literal():
            return STRING if node.is_string else _number(node.name)
        case exp.Boolean():
            return BOOLEAN
        case exp.Null():
            return NULL
        case exp.Neg():
            return _negated(node, columns)
        case exp.Div():
            return _quotient(node, columns)
        case exp.Round():
            return _rounded(node, columns)
        case exp.Filter():
            _condition(node.expression.this, columns)
            arguments = inner.arguments if (inner := call(node.this)) else ()
            values = (x for x in arguments if not isinstance(x, exp.Star))
            _refuse_behind_a_condition(x for x in values if type_of(x, columns) == BOOLEAN)
            return type_of(node.this, columns)
        case exp.Array():
            return f"array<{_one_type(node, node.expressions, columns)}>"
    if isinstance(node, ARITHMETIC):
        return _sum_or_product(node, columns)
    return _predicate_or_choice(node, columns)


def _predicate_or_choice(node: exp.Expr, columns: Mapping[str, str]) -> str:
    match node:
        case exp.And() | exp.Or() | exp.Not():
            return _all_boolean(node, columns)
        case exp.Is():
            type_of(node.this, columns)
            return BOOLEAN
        case exp.Like():
            return _like(node, columns)
        case exp.In() | exp.Between():
            return _compared(node, operands(node), columns)
        case exp.Case():
            return _case(node, columns)
        case exp.If():
            _condition(node.this, columns)
            return _one_type(node, [node.args["true"], node.args.get("false") or exp.Null()], columns)
        case exp.Coalesce():
            return _one_type(node, [node.this, *node.expressions], columns)
    if isinstance(node, COMPARISONS):
        return _compared(node, operands(node), columns)
    raise Unproved(f"uses {_sql(node)}")


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="spark")


def _column(node: exp.Column, columns: Mapping[str, str]) -> str:
    if len(node.parts) > 1:
        raise Unproved(f"reads {_sql(node)}, a field of a column")
    kind = columns.get(node.name.casefold())
    if kind is None:
        raise Unproved(f"reads {_sql(node)} (its type is not known)")
    if kind not in SIMPLE and not decimal_of(kind) and not is_nested(kind):
        raise Unproved(f"reads {_sql(node)} of type {kind}")
    return kind


def _number(text: str) -> str:
    if text.isdecimal():
        value = int(text)
        return "int" if value < 1 << 31 else "bigint" if value < 1 << 63 else f"decimal({len(text)},0)"
    if "e" in text.lower():
        return DOUBLE
    whole, _, digits = text.partition(".")
    return f"decimal({max(len(whole.lstrip('0')) + len(digits), 1)},{len(digits)})"


def _negated(node: exp.Neg, columns: Mapping[str, str]) -> str:
    kind = type_of(node.this, columns)
    if not isinstance(node.this, exp.Literal) and kind != DOUBLE:
        raise Unproved(f"uses {_sql(node)}")
    if node.this.name in LEAST:
        raise Unproved(f"uses {_sql(node)} (Spark gives it a narrower type)")
    return kind


def _condition(node: exp.Expr, columns: Mapping[str, str]) -> None:
    if (kind := type_of(node, columns)) not in (BOOLEAN, NULL):
        raise Unproved(f"uses {_sql(node)} of type {kind} as a condition")


def _all_boolean(node: exp.Expr, columns: Mapping[str, str]) -> str:
    for part in (node.this, node.args.get("expression")):
        if part is not None:
            _condition(part, columns)
    if isinstance(node, exp.And | exp.Or):
        _refuse_behind_a_condition([node.expression])
    return BOOLEAN


def _refuse_behind_a_condition(parts: Iterable[exp.Expr]) -> None:
    """Raises `Unproved` for a division behind a condition.

    Spark divides only in rows that meet the condition. Other engines may divide in all rows.
    """
    for part in parts:
        if division := part.find(exp.Div):
            instead = "case when w <> 0 then v / w end"
            raise Unproved(f"divides behind a condition ({_sql(division)}; only numbers may do so: {instead})")


def _like(node: exp.Like, columns: Mapping[str, str]) -> str:
    if type_of(node.this, columns) != STRING or not node.expression.is_string:
        raise Unproved(f"uses {_sql(node)}")
    return BOOLEAN


def operands(node: exp.Expr) -> list[exp.Expr]:
    """Operands of an operator, or of a `case` with a value."""
    if isinstance(node, exp.Case):
        return [node.this, *(branch.this for branch in node.args["ifs"])] if node.this else []
    return [node.this, *_among(node)] if isinstance(node, exp.In | exp.Between) else [node.this, node.expression]


def is_fraction(node: exp.Expr) -> bool:
    """Tests if a node is a numeric literal, but no integer. Next to doubles, Spark reads such literals as doubles."""
    return _is_literal(node) and any(
        not literal.name.isdecimal() and not literal.is_string for literal in node.find_all(exp.Literal)
    )


def _among(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Between):
        return [node.args["low"], node.args["high"]]
    if not node.expressions:
        raise Unproved(f"uses {_sql(node)}")
    return list(node.expressions)


def _compared(node: exp.Expr, parts: Sequence[exp.Expr], columns: Mapping[str, str]) -> str:
    """Returns boolean, the type of a comparison. Raises `Unproved` unless all engines compare in the same type.

    Engines compare in the same type for integers, for values of equal type, and for a number with a literal.
    """
    kinds = [type_of(part, columns) for part in parts]
    of_columns = {kind for part, kind in zip(parts, kinds, strict=True) if not _is_literal(part)}
    of_literals = {kind for part, kind in zip(parts, kinds, strict=True) if _is_literal(part)} - {NULL}
    whole = of_columns <= set(WHOLE)
    if (not whole and len(of_columns) != 1) or any(is_nested(kind) for kind in of_columns):
        raise Unproved(f"compares {' with '.join(sorted(of_columns))} in {_sql(node)}")
    kind = "int" if whole else next(iter(of_columns))
    for literal in of_literals:
        if not _fits(kind, literal) or (kind == FLOAT and any(_is_large(part) for part in parts)):
            raise Unproved(f"compares {kind} with a {literal} in {_sql(node)}")
    return BOOLEAN


def _is_literal(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean) or (
        isinstance(node, exp.Neg | exp.Paren) and _is_literal(node.this)
    )


def _is_large(node: exp.Expr) -> bool:
    return any(
        literal.name.isdecimal() and int(literal.name) > EXACT_IN_FLOAT for literal in node.find_all(exp.Literal)
    )


def _fits(kind: str, literal: str) -> bool:
    """Tests if a column of type `kind` can be compared with a literal of type `literal`."""
    if kind == literal:
        return True
    if kind == FLOAT:
        return literal in WHOLE
    is_number = kind == DOUBLE or kind in WHOLE or decimal_of(kind) is not None
    return is_number and (literal in WHOLE or decimal_of(literal) is not None)


def _case(node: exp.Case, columns: Mapping[str, str]) -> str:
    for branch in node.args["ifs"]:
        if node.this is not None:
            _compared(node, [node.this, branch.this], columns)
        else:
            _condition(branch.this, columns)
    values = [branch.args["true"] for branch in node.args["ifs"]]
    return _one_type(node, [*values, node.args.get("default") or exp.Null()], columns)


def _one_type(node: exp.Expr, parts: Sequence[exp.Expr], columns: Mapping[str, str]) -> str:
    kinds = {type_of(part, columns) for part in parts} - {NULL}
    if not kinds:
        return NULL
    if BOOLEAN in kinds:
        _refuse_behind_a_condition(parts)
    if kinds <= set(WHOLE):
        return widest(sorted(kinds))
    if len(kinds) > 1:
        raise Unproved(f"has {' and '.join(sorted(kinds))} in {_sql(node)}")
    return kinds.pop()


def _operands(node: exp.Expr, columns: Mapping[str, str]) -> list[str]:
    kinds = [type_of(part, columns) for part in operands(node)]
    if DOUBLE in kinds:
        kinds = [DOUBLE if is_fraction(part) else kind for part, kind in zip(operands(node), kinds, strict=True)]
    if others := [kind for kind in kinds if kind not in (*WHOLE, DOUBLE)]:
        raise Unproved(f"computes with {others[0]} in {_sql(node)}")
    return kinds


def _quotient(node: exp.Div, columns: Mapping[str, str]) -> str:
    _operands(node, columns)
    return DOUBLE


def _sum_or_product(node: exp.Expr, columns: Mapping[str, str]) -> str:
    kinds = _operands(node, columns)
    return DOUBLE if DOUBLE in kinds else widest(kinds)


def _rounded(node: exp.Round, columns: Mapping[str, str]) -> str:
    kind, digits = type_of(node.this, columns), node.args.get("decimals")
    if kind not in (DOUBLE, *WHOLE) or (digits is not None and not (digits.is_int and 0 <= int(digits.name) <= 15)):
        raise Unproved(f"rounds {kind} in {_sql(node)} (only integers and doubles, to 0 to 15 digits, are proved)")
    return kind


def _aggregate(node: exp.Expr, aggregate: Call, columns: Mapping[str, str]) -> str:
    proved = FUNCTIONS[aggregate.name].proved
    if proved is None:
        raise Unproved(f"uses {_sql(node)}")
    if aggregate.condition is not None:
        _condition(aggregate.condition, columns)
    try:
        return proved([NULL if isinstance(x, exp.Star) else type_of(x, columns) for x in aggregate.arguments])
    except Unproved as refused:
        raise Unproved(refused.why if _sql(node) in refused.why else f"{refused.why} in {_sql(node)}") from None
