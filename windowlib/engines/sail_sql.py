"""Translation of SQL expressions to the trees of Sail's own parser, for `windowlib.engines.sail_requests`.

The translation follows `from_ast_expression` of sail-sql-analyzer exactly, including the types of casts. An expression
with an unknown part stays an SQL string.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import pyspark.sql.connect.proto as proto
from google.protobuf.message import DecodeError

TREES = 4096  # number of cached trees; the plans of one pipeline repeat about 100 expressions
TOKEN = re.compile(
    r"""\s*(?: (?P<number>[0-9]+(?:\.[0-9]+)?[LD]?)(?![\w.]) | '(?P<text>(?:[^'\\]|'')*)' | `(?P<quoted>(?:[^`]|``)+)`
    | (?P<word>[A-Za-z_]\w*) | (?P<sign><=>|<=|>=|<>|!=|==|-(?!-)|/(?!\*)|[+*%<>=(),.:]) )""",
    re.VERBOSE,
)
BINARY = {
    **{"or": (1, "or"), "and": (2, "and"), "+": (6, "+"), "-": (6, "-")},
    **{sign: (5, name) for sign, name in {"=": "==", "<>": "!="}.items()},
    **{sign: (5, sign) for sign in ("==", "!=", "<", "<=", ">", ">=", "<=>")},
    **{sign: (7, sign) for sign in ("*", "/", "%", "div")},
}
NOT, PREDICATE, UNARY = 3, 4, 8  # binding strengths of these operators, on the scale of `BINARY`
_T = proto.DataType
KINDS = {
    **dict.fromkeys(("bigint", "long"), _T(long=_T.Long())),
    **dict.fromkeys(("int", "integer"), _T(integer=_T.Integer())),
    **{"double": _T(double=_T.Double()), "boolean": _T(boolean=_T.Boolean()), "date": _T(date=_T.Date())},
    **{"string": _T(string=_T.String()), "binary": _T(binary=_T.Binary())},
}
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
CONSTANTS = {"null", "true", "false"}
ALL = ([("sign", "*")], [("sign", "("), ("sign", "*"), ("sign", ")")])  # a star alone, or as in count(*)
# `WORDS` begin, join or end a construct. Sail has a special syntax for the words in `OWN_GRAMMAR`, mostly without
# parentheses.
WORDS = frozenset(
    re.findall(
        r"\w+",
        """and or not is in between like rlike ilike div case when then else end as from for over filter within ignore
        respect distinct all any some escape""",
    )
)
OWN_GRAMMAR = frozenset(
    re.findall(
        r"\w+",
        """exists extract identifier interval overlay position struct substring substr table trim cast try_cast user
        session_user default""",
    )
)


class Unknown(Exception):
    """An expression has a part that this module cannot translate."""


def type_of(text: str) -> proto.DataType | None:
    """Parses a type from SQL. Returns None if Sail must parse the type.

    >>> type_of("array<decimal(38, 0)>").array.element_type.decimal.precision, type_of("struct<a:int>")
    (38, None)
    """
    text = text.strip().casefold()
    if text in KINDS:
        return KINDS[text]
    if decimal := DECIMAL.fullmatch(text):
        return _T(decimal=_T.Decimal(precision=int(decimal[1]), scale=int(decimal[2])))
    element = type_of(text[6:-1]) if text.startswith("array<") and text.endswith(">") else None
    return element and _T(array=_T.Array(element_type=element, contains_null=True))


@lru_cache(TREES)
def tree_of(sql: str) -> bytes | None:
    """Serialized tree of an expression, with or without ``AS name``; None if a part of the expression is unknown.

    >>> tree = proto.Expression.FromString(tree_of("a + 1 AS `b c`"))
    >>> tree.alias.name[0], tree.alias.expr.unresolved_function.function_name
    ('b c', '+')
    >>> tree_of("count(a) FILTER (WHERE b)") is None
    True
    """
    try:
        tree: bytes = _Parser(sql).parse().SerializeToString()
        proto.Expression.FromString(tree)
    except (Unknown, DecodeError, RecursionError):  # the last two errors: a tree may be at most some 40 operators deep
        return None
    return tree


def _call(name: str, *arguments: proto.Expression, distinct: bool = False) -> proto.Expression:
    function = proto.Expression.UnresolvedFunction(function_name=name, arguments=arguments, is_distinct=distinct)
    return proto.Expression(unresolved_function=function)


def _column(name: str) -> proto.Expression:
    return proto.Expression(unresolved_attribute=proto.Expression.UnresolvedAttribute(unparsed_identifier=name))


def _literal(**value: Any) -> proto.Expression:
    return proto.Expression(literal=proto.Expression.Literal(**value))


def _number(text: str) -> proto.Expression:
    if text.endswith("D"):
        return _literal(double=float(text[:-1]))
    if "." in text or int(text.rstrip("L")) >= 1 << 63:
        raise Unknown(text)  # a decimal: its type depends on the number of digits written
    value = int(text.rstrip("L"))
    return _literal(long=value) if text.endswith("L") or value >= 1 << 31 else _literal(integer=value)


class _Parser:
    """Parser of an expression, from left to right by operator precedence. Raises Unknown for an unknown part."""

    def __init__(self, sql: str) -> None:
        self.sql, self.position, self.ends = sql, 0, [0]
        self.tokens: list[tuple[str, str]] = []  # group name in `TOKEN`, and text
        while sql[self.ends[-1] :].strip():
            token = TOKEN.match(sql, self.ends[-1])
            if token is None or token.lastgroup is None:
                raise Unknown(sql)
            text = token[token.lastgroup]
            self.tokens.append((token.lastgroup, text))
            self.ends.append(token.end())

    def parse(self) -> proto.Expression:
        tree = self.expression(0)
        if self.accept("as"):
            tree = proto.Expression(alias=proto.Expression.Alias(expr=tree, name=[self.name()]))
        if self.position != len(self.tokens):
            raise Unknown(self.sql)
        return tree

    def ahead(self) -> tuple[str, str]:
        """Group name and string of the next token. Both are empty at the end."""
        return self.tokens[self.position] if self.position < len(self.tokens) else ("", "")

    def keyword(self) -> str:
        """Next word (in lower case) or sign; empty for any other token."""
        kind, text = self.ahead()
        return text.casefold() if kind in ("word", "sign") else ""

    def accept(self, wanted: str) -> bool:
        """Consumes the next token if it is `wanted`. Returns true if the token was consumed."""
        matches = self.keyword() == wanted
        self.position += matches
        return matches

    def expect(self, wanted: str) -> None:
        """Consumes the next token. Raises Unknown if the token is not `wanted`."""
        if not self.accept(wanted):
            raise Unknown(self.sql)

    def name(self) -> str:
        kind, text = self.ahead()
        if kind not in ("word", "quoted") or (kind == "word" and text.casefold() in WORDS | CONSTANTS):
            raise Unknown(self.sql)
        self.position += 1
        return text.replace("``", "`") if kind == "quoted" else text

    def expression(self, weakest: int) -> proto.Expression:
        if self.accept("not"):
            if weakest > NOT:
                raise Unknown(self.sql)
            tree = _call("not", self.expression(NOT))
        elif self.accept("-"):
            tree = _call("-", self.expression(UNARY))
        else:
            tree = self.atom()
        while True:
            binds, name = BINARY.get(self.keyword(), (-1, ""))
            if binds > weakest:
                self.position += 1
                tree = _call(name, tree, self.expression(binds))
            elif self.keyword() in ("is", "in", "not", "between") and weakest < PREDICATE:
                tree = self.predicate(tree)
            else:
                return tree

    def predicate(self, operand: proto.Expression) -> proto.Expression:
        if self.accept("is"):
            name = "isnotnull" if self.accept("not") else "isnull"
            self.expect("null")
            return _call(name, operand)
        negated = self.accept("not")
        self.expect("in")
        self.expect("(")
        tree = _call("in", operand, *self.arguments())
        return _call("not", tree) if negated else tree

    def arguments(self) -> list[proto.Expression]:
        """Parses expressions up to the next closing parenthesis, and consumes the parenthesis."""
        if self.accept(")"):
            return []
        arguments = [self.expression(0)]
        while self.accept(","):
            arguments.append(self.expression(0))
        self.expect(")")
        return arguments

    def atom(self) -> proto.Expression:
        kind, text = self.ahead()
        if kind in ("number", "text"):
            self.position += 1
            return _number(text) if kind == "number" else _literal(string=text.replace("''", "'"))
        if self.accept("("):
            tree = self.expression(0)
            self.expect(")")
            return tree
        if self.keyword() == "*" and self.tokens[max(self.position - 1, 0) : self.position + 2] in ALL:
            self.position += 1
            return proto.Expression(unresolved_star=proto.Expression.UnresolvedStar())
        if kind == "word" and (word := text.casefold()) in CONSTANTS:
            self.position += 1
            null_type = proto.DataType(null=proto.DataType.NULL())
            return _literal(null=null_type) if word == "null" else _literal(boolean=word == "true")
        if self.accept("case"):
            return self.case()
        if self.keyword() in ("cast", "try_cast"):
            return self.cast()
        return self.named()

    def case(self) -> proto.Expression:
        operand = None if self.keyword() == "when" else self.expression(0)
        parts = []
        while self.accept("when"):
            test = self.expression(0)
            self.expect("then")
            parts += [test if operand is None else _call("==", operand, test), self.expression(0)]
        if self.accept("else"):
            parts.append(self.expression(0))
        self.expect("end")
        if not parts:
            raise Unknown(self.sql)
        return _call("when", *parts)

    def cast(self) -> proto.Expression:
        tries = self.keyword() == "try_cast"
        self.position += 1
        self.expect("(")
        operand = self.expression(0)
        self.expect("as")
        first, depth = self.position, 0
        while depth or self.keyword() != ")":
            depth += {"(": 1, ")": -1}.get(self.keyword(), 0)
            self.position += 1
            if self.position >= len(self.tokens):
                raise Unknown(self.sql)
        kind = self.sql[self.ends[first] : self.ends[self.position]].strip()
        self.expect(")")
        mode = proto.Expression.Cast.EVAL_MODE_TRY if tries else proto.Expression.Cast.EVAL_MODE_UNSPECIFIED
        cast = proto.Expression.Cast(expr=operand, type_str=kind, eval_mode=mode)
        if (type_tree := type_of(kind)) is not None:
            cast.type.CopyFrom(type_tree)
        return proto.Expression(cast=cast)

    def named(self) -> proto.Expression:
        """Parses a function call, or a column, possibly a field of a struct."""
        is_word, name = bool(self.keyword()), self.name()
        if is_word and (name.casefold() in OWN_GRAMMAR or name.casefold().startswith("current_")):
            raise Unknown(self.sql)
        if is_word and self.accept("("):
            distinct = self.accept("distinct")
            call = _call(name.casefold(), *self.arguments(), distinct=distinct)
            if self.keyword() in (".", "over", "filter", "within", "ignore", "respect"):
                raise Unknown(self.sql)
            return call
        names = [name]
        while self.accept("."):
            names.append(self.name())
        return _column(".".join("`" + part.replace("`", "``") + "`" for part in names))
