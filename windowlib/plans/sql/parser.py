"""Parser of Spark SQL expressions that reads them as Spark 4.2 does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

NUMBERS = ("none", "one", "two")
# Digits of the least value of each integer type that a literal's suffix may name.
LEAST_OF = {"TINYINT": "128", "SMALLINT": "32768", "BIGINT": "9223372036854775808"}
# Values that sqlglot omits when it writes a function, because they are defaults of the function.
DEFAULTS = {"1": "regexp_extract", "yyyy-mm-dd hh:mm:ss": "unix", "both": "trim"}
OPERATORS = (exp.RegexpLike, exp.Mod)  # sqlglot writes them as operators, even if read as functions
VALUES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING)


Build: TypeAlias = Callable[[Sequence[exp.Expr]], exp.Expr]


def _as_written(name: str, least: int, most: int) -> Build:
    """Returns a builder of calls with `least` to `most` arguments. sqlglot writes such calls as it read them."""

    def build(arguments: Sequence[exp.Expr]) -> exp.Expr:
        if not least <= len(arguments) <= most:
            takes = NUMBERS[least] if least == most else f"{NUMBERS[least]} or {NUMBERS[most]}"
            raise ValueError(f"gives {name.lower()} more or fewer arguments than {takes}")
        return exp.Anonymous(this=name, expressions=[*arguments])

    return build


def _with_unit(name: str, place: int) -> Build:
    """Returns a builder of calls whose argument at index `place` is a unit of time.

    If the unit is not a literal, the call is kept as written: sqlglot would read a column's name as the unit.
    """

    def build(arguments: Sequence[exp.Expr]) -> exp.Expr:
        is_literal = len(arguments) == 2 and isinstance(arguments[place], exp.Literal)
        build_call: Build = Spark.Parser.FUNCTIONS[name] if is_literal else _as_written(name, 2, 2)
        return build_call(arguments)

    return build


# Functions kept as written, because sqlglot's rewrite may change the meaning: it drops or translates formats, turns
# the logarithm to base 10 into a quotient of two logarithms, and completes JSON paths.
AS_WRITTEN = {
    name: _as_written(name, least, most)
    for name, least, most in (
        *(("LOG10", 1, 1), ("LOG2", 1, 1), ("TO_CHAR", 2, 2), ("TO_VARCHAR", 2, 2), ("DATE_FORMAT", 2, 2)),
        *(("TO_DATE", 1, 2), ("GET_JSON_OBJECT", 2, 2)),
    )
}


class SparkTexts(Spark):
    """sqlglot's Spark dialect, corrected: a doubled quote inside a string is a quote, not the start of a new string."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012  as sqlglot declares it

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]  # an attribute to mypy
        FUNCTIONS = {  # noqa: RUF012  as sqlglot declares it
            **Spark.Parser.FUNCTIONS,
            **AS_WRITTEN,
            "TRUNC": _with_unit("TRUNC", 1),
            "DATE_TRUNC": _with_unit("DATE_TRUNC", 0),
        }


def parse_sql(sql: str, into: Any = None) -> exp.Expr:
    r"""Parses an SQL expression into a syntax tree.

    Raises `sqlglot.errors.SqlglotError` or ValueError. For some malformed SQL, raises other errors of sqlglot's parser.

    >>> parse_sql("'it''s'").sql(dialect="spark"), parse_sql("'it' 's'").sql(dialect="spark")
    ("'it\\'s'", "CONCAT('it', 's')")
    """
    tree: exp.Expr = sqlglot.parse_one(sql, dialect=SparkTexts, into=into)
    for node in [*tree.find_all(*OPERATORS)]:
        if isinstance(node.parent, exp.Binary | exp.BitwiseNot) and not isinstance(node.parent, exp.Connector):
            node.replace(exp.paren(node.copy()))
    for name in (name for node in tree.find_all(exp.Lambda) for name in node.find_all(exp.Identifier)):
        name.set("quoted", True)  # columns are quoted, so lambda variables must be, too
    for minus in [*tree.find_all(exp.Neg)]:
        if isinstance(cast := minus.this, exp.Cast) and cast.this.name == LEAST_OF.get(cast.to.sql()):
            minus.replace(exp.cast(exp.Neg(this=cast.this.copy()), cast.to))  # the literal is the least of its type
    return tree


def levels(tree: exp.Expr, *kinds: type[exp.Expr]) -> int:
    """Greatest nesting depth of expressions. With `kinds`, only expressions of these classes count.

    >>> levels(parse_sql("a + b * c"), exp.Binary), levels(parse_sql("a + b + c + d"), exp.Binary)
    (2, 3)
    """
    most, left = 0, [(tree, 0)]
    while left:  # not recursive, because Python limits recursion to a thousand levels
        node, above = left.pop()
        here = above + isinstance(node, kinds or exp.Expr)
        most = max(most, here)
        left += [(below, here) for below in node.iter_expressions()]
    return most


def missing_value(sql: str, written: str) -> str | None:
    """First column, number or string of `sql` that is missing in `written`, as sqlglot rewrote it; None if none is.

    Values can be missing because sqlglot drops surplus arguments of functions.

    >>> missing_value("first(x, y)", "FIRST(`x`)"), missing_value("first(x, y)", "FIRST(`x`, `y`)")
    ('y', None)
    """
    left = Counter(_plain(token) for token in sqlglot.tokenize(written, read=SparkTexts))
    for value in _values(sql):
        if left[value]:
            left[value] -= 1
        elif value not in DEFAULTS or DEFAULTS[value] not in sql.casefold():
            return value
    return None


def _values(sql: str) -> Iterator[str]:
    """Yields columns, numbers and strings of an expression. Omits intervals and names of functions and types."""
    tokens = sqlglot.tokenize(sql, read=SparkTexts)
    for number, token in enumerate(tokens):
        before = {nearby.token_type for nearby in tokens[max(number - 2, 0) : number]}
        last = tokens[number - 1].token_type if number else None
        is_called = [after.token_type for after in tokens[number + 1 : number + 2]] == [TokenType.L_PAREN]
        is_type = last in (TokenType.ALIAS, TokenType.DCOLON) or before & {TokenType.VARCHAR, TokenType.CHAR}
        is_half = last == TokenType.DOT and token.token_type is TokenType.NUMBER  # .5 is written as 0.5
        if token.token_type in VALUES and not (is_called or is_type or is_half or TokenType.INTERVAL in before):
            yield _plain(token)


def _plain(token: Token) -> str:
    """Text of a token in lower case; numbers without leading zeros."""
    text = token.text.casefold()
    return text.lstrip("0") if token.token_type is TokenType.NUMBER else text
