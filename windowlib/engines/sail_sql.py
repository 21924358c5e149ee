"""Expressions in SQL as the trees that Sail's own parser makes of them.

Word by word as `from_ast_expression` of its sail-sql-analyzer does; types of casts, too. What is not known here stays
the text that it was. What for: `windowlib.engines.sail_requests`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import pyspark.sql.connect.proto as proto
from google.protobuf.message import DecodeError

TREES = 4096  # texts whose trees are remembered: plans of one pipeline use some 100 again and again
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
NOT, PREDICATE, UNARY = 3, 4, 8  # and how strongly these bind
_T = proto.DataType
KINDS = {
    **dict.fromkeys(("bigint", "long"), _T(long=_T.Long())),
    **dict.fromkeys(("int", "integer"), _T(integer=_T.Integer())),
    **{"double": _T(double=_T.Double()), "boolean": _T(boolean=_T.Boolean()), "date": _T(date=_T.Date())},
    **{"string": _T(string=_T.String()), "binary": _T(binary=_T.Binary())},
}
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
CONSTANTS = {"null", "true", "false"}
ALL = ([("sign", "*")], [("sign", "("), ("sign", "*"), ("sign", ")")])  # all columns, or any row as in count(*)
# Words that begin, join or end something; and those that Sail reads in ways of their own, most without parentheses.
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
    """An expression has something that is not translated."""


def type_of(text: str) -> proto.DataType | None:
    """A type that is said in SQL; None where Sail reads it.

    >>> type_of("array<decimal(38, 0)>").array.element_type.decimal.precision, type_of("struct<a:int>")
    (38, None)
    """
    text = text.strip().casefold()
    if text in KINDS:
        return KINDS[text]
    if found := DECIMAL.fullmatch(text):
        return _T(decimal=_T.Decimal(precision=int(found[1]), scale=int(found[2])))
    of = type_of(text[6:-1]) if text.startswith("array<") and text.endswith(">") else None
    return of and _T(array=_T.Array(element_type=of, contains_null=True))


@lru_cache(TREES)
def tree_of(sql: str) -> bytes | None:
    """The tree of an expression, with or without ``AS name``; None where it has something that is not known here.

    >>> made = proto.Expression.FromString(tree_of("a + 1 AS `b c`"))
    >>> made.alias.name[0], made.alias.expr.unresolved_function.function_name
    ('b c', '+')
    >>> tree_of("count(a) FILTER (WHERE b)") is None
    True
    """
    try:
        made: bytes = _Reader(sql).whole().SerializeToString()
        proto.Expression.FromString(made)
    except (Unknown, DecodeError, RecursionError):  # the last two: a tree may be some 40 operators deep
        return None
    return made


def _call(name: str, *arguments: proto.Expression, distinct: bool = False) -> proto.Expression:
    made = proto.Expression.UnresolvedFunction(function_name=name, arguments=arguments, is_distinct=distinct)
    return proto.Expression(unresolved_function=made)


def _column(name: str) -> proto.Expression:
    return proto.Expression(unresolved_attribute=proto.Expression.UnresolvedAttribute(unparsed_identifier=name))


def _literal(**value: Any) -> proto.Expression:
    return proto.Expression(literal=proto.Expression.Literal(**value))


def _number(text: str) -> proto.Expression:
    if text.endswith("D"):
        return _literal(double=float(text[:-1]))
    if "." in text or int(text.rstrip("L")) >= 1 << 63:
        raise Unknown(text)  # a decimal, of as many digits as are written
    value = int(text.rstrip("L"))
    return _literal(long=value) if text.endswith("L") or value >= 1 << 31 else _literal(integer=value)


class _Reader:
    """Reads an expression from left to right, by how strongly operators bind; raises Unknown."""

    def __init__(self, sql: str) -> None:
        self.sql, self.place, self.ends = sql, 0, [0]
        self.tokens: list[tuple[str, str]] = []  # kind and text
        while sql[self.ends[-1] :].strip():
            found = TOKEN.match(sql, self.ends[-1])
            if found is None or found.lastgroup is None:
                raise Unknown(sql)
            text = found[found.lastgroup]
            self.tokens.append((found.lastgroup, text))
            self.ends.append(found.end())

    def whole(self) -> proto.Expression:
        made = self.expression(0)
        if self.took("as"):
            made = proto.Expression(alias=proto.Expression.Alias(expr=made, name=[self.name()]))
        if self.place != len(self.tokens):
            raise Unknown(self.sql)
        return made

    def ahead(self) -> tuple[str, str]:
        """Kind and text of the next token; of none at the end."""
        return self.tokens[self.place] if self.place < len(self.tokens) else ("", "")

    def next(self) -> str:
        """The next word or sign, words in lower case; nothing for all else."""
        kind, text = self.ahead()
        return text.casefold() if kind in ("word", "sign") else ""

    def took(self, wanted: str) -> bool:
        found = self.next() == wanted
        self.place += found
        return found

    def need(self, wanted: str) -> None:
        if not self.took(wanted):
            raise Unknown(self.sql)

    def name(self) -> str:
        kind, text = self.ahead()
        if kind not in ("word", "quoted") or (kind == "word" and text.casefold() in WORDS | CONSTANTS):
            raise Unknown(self.sql)
        self.place += 1
        return text.replace("``", "`") if kind == "quoted" else text

    def expression(self, weakest: int) -> proto.Expression:
        if self.took("not"):
            if weakest > NOT:
                raise Unknown(self.sql)
            made = _call("not", self.expression(NOT))
        elif self.took("-"):
            made = _call("-", self.expression(UNARY))
        else:
            made = self.atom()
        while True:
            binds, name = BINARY.get(self.next(), (-1, ""))
            if binds > weakest:
                self.place += 1
                made = _call(name, made, self.expression(binds))
            elif self.next() in ("is", "in", "not", "between") and weakest < PREDICATE:
                made = self.predicate(made)
            else:
                return made

    def predicate(self, of: proto.Expression) -> proto.Expression:
        if self.took("is"):
            name = "isnotnull" if self.took("not") else "isnull"
            self.need("null")
            return _call(name, of)
        negated = self.took("not")
        self.need("in")
        self.need("(")
        made = _call("in", of, *self.listed())
        return _call("not", made) if negated else made

    def listed(self) -> list[proto.Expression]:
        """What stands before the next closing parenthesis, which is taken, too."""
        if self.took(")"):
            return []
        found = [self.expression(0)]
        while self.took(","):
            found.append(self.expression(0))
        self.need(")")
        return found

    def atom(self) -> proto.Expression:
        kind, text = self.ahead()
        if kind in ("number", "text"):
            self.place += 1
            return _number(text) if kind == "number" else _literal(string=text.replace("''", "'"))
        if self.took("("):
            made = self.expression(0)
            self.need(")")
            return made
        if self.next() == "*" and self.tokens[max(self.place - 1, 0) : self.place + 2] in ALL:
            self.place += 1
            return proto.Expression(unresolved_star=proto.Expression.UnresolvedStar())
        if kind == "word" and (word := text.casefold()) in CONSTANTS:
            self.place += 1
            nothing = proto.DataType(null=proto.DataType.NULL())
            return _literal(null=nothing) if word == "null" else _literal(boolean=word == "true")
        if self.took("case"):
            return self.case()
        if self.next() in ("cast", "try_cast"):
            return self.cast()
        return self.named()

    def case(self) -> proto.Expression:
        of = None if self.next() == "when" else self.expression(0)
        parts = []
        while self.took("when"):
            test = self.expression(0)
            self.need("then")
            parts += [test if of is None else _call("==", of, test), self.expression(0)]
        if self.took("else"):
            parts.append(self.expression(0))
        self.need("end")
        if not parts:
            raise Unknown(self.sql)
        return _call("when", *parts)

    def cast(self) -> proto.Expression:
        tries = self.next() == "try_cast"
        self.place += 1
        self.need("(")
        made = self.expression(0)
        self.need("as")
        first, depth = self.place, 0
        while depth or self.next() != ")":
            depth += {"(": 1, ")": -1}.get(self.next(), 0)
            self.place += 1
            if self.place >= len(self.tokens):
                raise Unknown(self.sql)
        kind = self.sql[self.ends[first] : self.ends[self.place]].strip()
        self.need(")")
        mode = proto.Expression.Cast.EVAL_MODE_TRY if tries else proto.Expression.Cast.EVAL_MODE_UNSPECIFIED
        found = proto.Expression.Cast(expr=made, type_str=kind, eval_mode=mode)
        if (known := type_of(kind)) is not None:
            found.type.CopyFrom(known)
        return proto.Expression(cast=found)

    def named(self) -> proto.Expression:
        """A call, or a column, maybe of a struct."""
        is_word, name = bool(self.next()), self.name()
        if is_word and (name.casefold() in OWN_GRAMMAR or name.casefold().startswith("current_")):
            raise Unknown(self.sql)
        if is_word and self.took("("):
            distinct = self.took("distinct")
            made = _call(name.casefold(), *self.listed(), distinct=distinct)
            if self.next() in (".", "over", "filter", "within", "ignore", "respect"):
                raise Unknown(self.sql)
            return made
        names = [name]
        while self.took("."):
            names.append(self.name())
        return _column(".".join("`" + one.replace("`", "``") + "`" for one in names))
