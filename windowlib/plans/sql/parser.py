"""Expressions in Spark's SQL, read as Spark 4.2 reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

NUMBERS = ("none", "one", "two")
# The digits of the least number of each type that a suffix may say.
LEAST_OF = {"TINYINT": "128", "SMALLINT": "32768", "BIGINT": "9223372036854775808"}
# Values that sqlglot leaves out, as they are those that a function takes without them.
DEFAULTS = {"1": "regexp_extract", "yyyy-mm-dd hh:mm:ss": "unix", "both": "trim"}
OPERATORS = (exp.RegexpLike, exp.Mod)  # which may be written as functions, and are written again as operators
VALUES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING)


Build: TypeAlias = Callable[[Sequence[exp.Expr]], exp.Expr]


def _as_written(name: str, least: int, most: int) -> Build:
    """A call with so many arguments, which is written again as it was read."""

    def build(arguments: Sequence[exp.Expr]) -> exp.Expr:
        if not least <= len(arguments) <= most:
            takes = NUMBERS[least] if least == most else f"{NUMBERS[least]} or {NUMBERS[most]}"
            raise ValueError(f"gives {name.lower()} more or fewer arguments than {takes}")
        return exp.Anonymous(this=name, expressions=[*arguments])

    return build


def _of_a_unit(name: str, place: int) -> Build:
    """The same where the unit of time is a column: sqlglot takes the name of the column for the unit."""

    def build(arguments: Sequence[exp.Expr]) -> exp.Expr:
        is_known = len(arguments) == 2 and isinstance(arguments[place], exp.Literal)
        of: Build = Spark.Parser.FUNCTIONS[name] if is_known else _as_written(name, 2, 2)
        return of(arguments)

    return build


# What sqlglot writes in another way that does not always mean the same: formats are dropped or translated, the
# logarithm to 10 becomes a quotient of two others, a path of JSON gets what it lacks.
AS_WRITTEN = {
    name: _as_written(name, least, most)
    for name, least, most in (
        *(("LOG10", 1, 1), ("LOG2", 1, 1), ("TO_CHAR", 2, 2), ("TO_VARCHAR", 2, 2), ("DATE_FORMAT", 2, 2)),
        *(("TO_DATE", 1, 2), ("GET_JSON_OBJECT", 2, 2)),
    )
}


class SparkTexts(Spark):
    """sqlglot's Spark, where a quote that is written twice is a quote of the text: sqlglot takes it for two texts."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012  as sqlglot declares it

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]  # an attribute to mypy
        FUNCTIONS = {  # noqa: RUF012  as sqlglot declares it
            **Spark.Parser.FUNCTIONS,
            **AS_WRITTEN,
            "TRUNC": _of_a_unit("TRUNC", 1),
            "DATE_TRUNC": _of_a_unit("DATE_TRUNC", 0),
        }


def parse_sql(sql: str, into: Any = None) -> exp.Expr:
    r"""An expression as a tree.

    Raises `sqlglot.errors.SqlglotError`, what its parser makes of some broken texts, and ValueError.

    >>> parse_sql("'it''s'").sql(dialect="spark"), parse_sql("'it' 's'").sql(dialect="spark")
    ("'it\\'s'", "CONCAT('it', 's')")
    """
    tree: exp.Expr = sqlglot.parse_one(sql, dialect=SparkTexts, into=into)
    for node in [*tree.find_all(*OPERATORS)]:
        if isinstance(node.parent, exp.Binary | exp.BitwiseNot) and not isinstance(node.parent, exp.Connector):
            node.replace(exp.paren(node.copy()))
    for name in (name for one in tree.find_all(exp.Lambda) for name in one.find_all(exp.Identifier)):
        name.set("quoted", True)  # variables are names like those of columns, which are quoted
    for minus in [*tree.find_all(exp.Neg)]:
        if isinstance(cast := minus.this, exp.Cast) and cast.this.name == LEAST_OF.get(cast.to.sql()):
            minus.replace(exp.cast(exp.Neg(this=cast.this.copy()), cast.to))  # the least number of its type
    return tree


def levels(tree: exp.Expr, *kinds: type[exp.Expr]) -> int:
    """How many operations lie within one another at most, of some kinds or (without) of all.

    >>> levels(parse_sql("a + b * c"), exp.Binary), levels(parse_sql("a + b + c + d"), exp.Binary)
    (2, 3)
    """
    most, left = 0, [(tree, 0)]
    while left:  # without recursion, of which Python has a thousand levels
        node, above = left.pop()
        here = above + isinstance(node, kinds or exp.Expr)
        most = max(most, here)
        left += [(below, here) for below in node.iter_expressions()]
    return most


def lost(sql: str, written: str) -> str | None:
    """A name, number or text of an expression that is no longer in it as it is written again; None: all are.

    Functions that take fewer arguments than they were given leave the others out.

    >>> lost("first(x, y)", "FIRST(`x`)"), lost("first(x, y)", "FIRST(`x`, `y`)")
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
    """Its columns, numbers and texts; not the names of functions and of types, nor parts of intervals and types."""
    tokens = sqlglot.tokenize(sql, read=SparkTexts)
    for number, token in enumerate(tokens):
        before = {one.token_type for one in tokens[max(number - 2, 0) : number]}
        last = tokens[number - 1].token_type if number else None
        is_called = [one.token_type for one in tokens[number + 1 : number + 2]] == [TokenType.L_PAREN]
        is_type = last in (TokenType.ALIAS, TokenType.DCOLON) or before & {TokenType.VARCHAR, TokenType.CHAR}
        is_half = last == TokenType.DOT and token.token_type is TokenType.NUMBER  # .5 is written as 0.5
        if token.token_type in VALUES and not (is_called or is_type or is_half or TokenType.INTERVAL in before):
            yield _plain(token)


def _plain(token: Token) -> str:
    """Its text, whatever its case, of a number without zeros before it."""
    text = token.text.casefold()
    return text.lstrip("0") if token.token_type is TokenType.NUMBER else text
