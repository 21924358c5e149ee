"""The page of faults: what goes wrong, what then happens, and the test that makes it go wrong.

A row for each test marked `fault(what goes wrong, what happens)`; a test that is gone takes its row with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.reference.markdown import table

TESTS = Path(__file__).parents[2] / "tests"
HEAD = (Path(__file__).parent / "faults-head.txt").read_text(encoding="utf-8")
PARTS = {
    "runs": "Runs that die, sleep or meet one another",
    "schedules": "Runs, reruns, operators and other programs in any order of their steps",
    "soak": "Everything at once",
    "tables": "Tables, logs and other programs",
    "golden": "Earlier releases",
    "source": "Input",
    "reruns": "Reruns",
    "engines": "Engines",
    "quality": "Checks",
    "inspection": "Results that are wrong",
    "erasure": "A key that is erased",
    "migrations": "A definition that is changed",
    "airflow": "Airflow",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault that a test causes: what goes wrong, and what is promised then."""

    part: str
    what: str
    promise: str
    test: str
    tried: str  # the command that causes it


def faults() -> Iterator[Fault]:
    """Every fault that a test causes, in the order of files and tests."""
    for part in PARTS:
        for file in sorted((TESTS / part).glob("test_*.py")):
            body = ast.parse(file.read_text(encoding="utf-8")).body
            every = any(map(_sets_long, body))
            for node in body:
                if isinstance(node, ast.FunctionDef):
                    tried = "make test-all" if every or any(map(_is_long, node.decorator_list)) else "make test"
                    yield from (
                        Fault(part, what, promise, f"{part}/{file.stem}::{node.name}", tried)
                        for what, promise in _marks(node)
                    )


def _is_long(mark: ast.expr) -> bool:
    return isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.long"


def _sets_long(node: ast.stmt) -> bool:
    """Whether a statement marks every test of its file as long."""
    return (
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        and any(_is_long(one) for one in ast.walk(node.value) if isinstance(one, ast.Call))
    )


def _marks(node: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
            what, promise = map(ast.literal_eval, mark.args)
            yield what, promise


def page() -> str:
    """The page, in Markdown."""
    found = list(faults())
    parts = [HEAD.rstrip()]
    for part, title in PARTS.items():
        rows = [(one.what, one.promise, f"`{one.test}`", f"`{one.tried}`") for one in found if one.part == part]
        parts.append(f"## {title}\n\n{table(('Fault', 'What happens', 'Test', 'Tried in'), rows)}")
    return "\n\n".join(parts).rstrip() + "\n"
