"""Tests that `make test` leaves to `make test-all` say why; files that it starts first are there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.order import LONGEST

HERE = Path(__file__).parent


def marks(name: str) -> Iterator[tuple[str, ast.expr]]:
    """(file and line, decorator or value) of every use of a mark."""
    asked = f"pytest.mark.{name}"
    for file in sorted(HERE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if name in text else ():
            marked = node.func if isinstance(node, ast.Call) else node
            if isinstance(marked, ast.Attribute) and marked.attr == name and ast.unparse(marked) == asked:
                yield f"{file.relative_to(HERE)}:{node.lineno}", node


def test_a_long_test_says_why() -> None:
    found = dict[str, bool]()
    for place, node in marks("long"):
        match node:
            case ast.Call(args=[ast.Constant(value=str(reason))]):
                found[place] = len(reason.split()) >= 4
            case _:
                found.setdefault(place, False)
    assert found
    assert [place for place, says_why in found.items() if not says_why] == []


def test_the_files_that_are_started_first_are_there() -> None:
    assert [file for file in LONGEST if not (HERE / file).is_file()] == []
