"""Small changes to a module, each of which some test should notice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "+",
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "least": "greatest", "greatest": "least"}
NO_CODE = (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert, ast.Pass, ast.JoinedStr)  # a sentence is not a rule
# What rules are made of in the SQL that plans write. Types (``array<…>``) and lambdas (``->``) have no blanks around.
SQL = re.compile(
    r"(?<=\s)(?:<=|>=|<>|<|>|=|\+|-)(?=\s)|(?<!PRECEDING )\b(?:AND|OR)\b|\bNOT (?=\(|_)"
    r"|\b(?:min|max|least|greatest)(?=\()|(?<=[+-] )\d+(?=L?\b)"
)
SQL_SWAPS = {
    **{"<=": "<", "<": "<=", ">=": ">", ">": ">=", "=": "<>", "<>": "=", "+": "-", "-": "+"},
    **{"AND": "OR", "OR": "AND", "NOT ": "", "min": "max", "max": "min", "least": "greatest", "greatest": "least"},
}
PUT_IN = re.compile(r"\{\{|\}\}|\{[^{}]*\}")  # into an f-string: no SQL


@dataclass(frozen=True, order=True)
class Mutant:
    """In the module, the text of `line` from `start` to `end` (offsets into the whole text) becomes `new`."""

    line: int
    start: int
    end: int
    old: str
    new: str

    def planted(self, text: str) -> str:
        """The module's text with the change.

        >>> text = "if a < b: print(1)"
        >>> [mutant.planted(text) for mutant in mutants(text)][:2]
        ['if not (a < b): print(1)', 'if a <= b: print(1)']
        """
        return text[: self.start] + self.new + text[self.end :]


def mutants(text: str, *, with_sql: bool = False) -> list[Mutant]:
    """All mutants of a module, in the order of its text. Annotations, imports, errors and texts stay.

    `with_sql`: its texts are SQL, as far as they look like it, whose rules change, too.

    >>> text = 'late = f"{end} - 1 <= {late} AND kept"'
    >>> [mutant.planted(text)[9:-1] for mutant in mutants(text, with_sql=True)]
    ['{end} + 1 <= {late} AND kept', '{end} - 2 <= {late} AND kept', '{end} - 1 < {late} AND kept', \
'{end} - 1 <= {late} OR kept']
    """
    return sorted(set(_Walk(text, with_sql).found(ast.parse(text))))


@cache
def mutants_of(file: Path) -> tuple[Mutant, ...]:
    """Those of a file: the rules of plans are SQL for the most part."""
    return tuple(mutants(file.read_text(), with_sql="plans" in file.parts))


class _Walk:
    def __init__(self, text: str, with_sql: bool) -> None:
        self.text, self.with_sql = text, with_sql
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = text.splitlines()

    def at(self, line: int, byte: int) -> int:
        """The offset of a place as `ast` gives it, whose columns count bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:byte].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def mutant(self, node: ast.expr | ast.stmt, start: int, end: int, new: str) -> Mutant:
        return Mutant(node.lineno, start, end, self.text[start:end], new)

    def whole(self, node: ast.expr | ast.stmt, new: str) -> Mutant:
        return self.mutant(node, *self.span(node), new)

    def found(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Expr(value=ast.Constant()):  # a docstring
                return
            case ast.JoinedStr() | ast.Constant(value=str()) if self.with_sql:
                yield from self.in_sql(node)
        if isinstance(node, NO_CODE):
            return
        yield from self.here(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.found(child)

    def here(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare():
                left = node.left
                for op, right in zip(node.ops, node.comparators, strict=True):
                    yield from self.operator(node, left, right, op)
                    left = right
            case ast.BinOp():
                yield from self.operator(node, node.left, node.right, node.op)
            case ast.BoolOp():
                word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self.between(node, left, right, word, other)
            case ast.UnaryOp(op=ast.Not()):
                yield self.whole(node, f"bool({ast.get_source_segment(self.text, node.operand)})")
            case ast.If() | ast.IfExp() | ast.While() if not self.is_typing(node.test):
                yield self.whole(node.test, f"not ({ast.get_source_segment(self.text, node.test)})")
            case ast.comprehension():
                yield from (self.whole(test, "True") for test in node.ifs)
            case ast.Constant(value=bool()):
                yield self.whole(node, str(not node.value))
            case ast.Constant(value=int()):
                yield self.whole(node, f"({node.value} + 1)")
            case ast.Call(func=ast.Name(id=name)) if name in NAMES:
                yield self.whole(node.func, NAMES[name])
            case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
                end = self.span(node.func)[1]
                yield self.mutant(node, end - len(name), end, NAMES[name])
            case ast.Expr(value=ast.Call()) | ast.AugAssign():
                yield self.whole(node, "pass")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self.whole(value, "None")

    def in_sql(self, node: ast.expr) -> Iterator[Mutant]:
        first, end = self.span(node)
        plain = PUT_IN.sub(lambda found: "x" * len(found[0]), self.text[first:end])
        for found in SQL.finditer(plain):
            new = f"{int(found[0]) + 1}" if found[0].isdecimal() else SQL_SWAPS[found[0]]
            yield self.mutant(node, first + found.start(), first + found.end(), new)

    def operator(self, node: ast.expr, left: ast.expr, right: ast.expr, op: ast.AST) -> Iterator[Mutant]:
        if type(op) in SWAPS:
            signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
            word = signs.get(type(op)) or ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")]))[2:-2]  # type: ignore[list-item]
            yield from self.between(node, left, right, word, SWAPS[type(op)])

    def between(self, node: ast.expr, left: ast.expr, right: ast.expr, word: str, new: str) -> Iterator[Mutant]:
        start, end = self.span(left)[1], self.span(right)[0]
        at = self.text.find(word, start, end)
        if at >= 0 and "#" not in self.text[start:at]:
            yield self.mutant(node, at, at + len(word), new)

    @staticmethod
    def is_typing(test: ast.expr) -> bool:
        return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
