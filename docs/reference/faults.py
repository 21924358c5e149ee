"""The page of faults: what goes wrong, what then happens, the test that makes it go wrong, and what came of that.

A row for each test marked `fault(what goes wrong, what happens)`; a test that is gone takes its row with it. Outcomes
are those that `pytest --record-faults` has kept (`OUTCOMES`).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from docs.reference.markdown import table

TESTS = Path(__file__).parents[2] / "tests"
OUTCOMES = TESTS / "support" / "fault_outcomes.json"
ONLY_LONG, SOME_LONG, ALWAYS = "`make test-all`", "`make test`, more in `make test-all`", "`make test`"
HEAD = (Path(__file__).parent / "faults-head.txt").read_text(encoding="utf-8")
PARTS = {
    "runs": "Runs that die, sleep or meet one another",
    "decisions": "Decisions of an operator",
    "maintenance": "Maintenance",
    "world/schedules": "Runs, reruns, operators and other programs in any order of their steps",
    "world/soak": "Everything at once",
    "world/stopped": "Pipelines stopped at a step",
    "publication": "Publication, and other programs",
    "delta": "Tables and their logs",
    "ledger": "The ledger",
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
    outcome: str  # of the last time that it was recorded


def faults() -> Iterator[Fault]:
    """Every fault that a test causes, in the order of files and tests."""
    outcomes = recorded()
    for part in PARTS:
        for file in sorted((TESTS / part).glob("test_*.py")):
            body = ast.parse(file.read_text(encoding="utf-8")).body
            values = {
                ast.unparse(one.targets[0]): one.value for one in body if isinstance(one, ast.Assign) and one.targets
            }
            for node in body:
                if isinstance(node, ast.FunctionDef):
                    test = f"{part}/{file.stem}::{node.name}"
                    tried = _tried(node, values)
                    yield from (Fault(part, *said, test, tried, outcomes.get(test, "–")) for said in _marks(node))


def recorded() -> dict[str, str]:
    """What came of each test when it was last recorded, with the number of its variants and the day."""
    kept: Mapping[str, Mapping[str, str | int]] = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    return {test: f"{one['outcome']} ({one['variants']}), {one['day']}" for test, one in kept.items()}


Values = Mapping[str, ast.expr]  # of the names that a module sets


def _tried(node: ast.FunctionDef, values: Values) -> str:
    """The command that runs a test, by its marks, those of its module and those of its parameters."""
    if _is_long(values.get("pytestmark"), values) or any(_is_long(mark, values) for mark in _own(node)):
        return ONLY_LONG
    lengths = [
        _lengths(mark.args[1], values)
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.parametrize"
    ]
    if {True} in lengths:
        return ONLY_LONG
    return SOME_LONG if any(True in one for one in lengths) else ALWAYS


def _own(node: ast.FunctionDef) -> Iterator[ast.expr]:
    """The marks of a test itself, without those of its parameters."""
    return (one for one in node.decorator_list if "parametrize" not in ast.unparse(one))


def _is_long(marks: ast.expr | None, values: Values) -> bool:
    """Whether `long` is among some marks, or the names that stand for them."""
    if marks is None:
        return False
    inner = list(ast.walk(marks))
    if any(isinstance(one, ast.Attribute) and ast.unparse(one) == "pytest.mark.long" for one in inner):
        return True
    return any(_is_long(values.get(one.id), {}) for one in inner if isinstance(one, ast.Name))


def _lengths(params: ast.expr, values: Values) -> set[bool]:
    """Which there are among some parameters: long ones (True), others."""
    match params:
        case ast.List() | ast.Tuple():
            return set[bool]().union(*(_lengths(one, values) for one in params.elts))
        case ast.Starred():
            return _lengths(params.value, values)
        case ast.ListComp() | ast.GeneratorExp():
            return _lengths(params.elt, values)
        case ast.BinOp():
            return _lengths(params.left, values) | _lengths(params.right, values)
        case ast.IfExp():
            return _lengths(params.body, values) | _lengths(params.orelse, values)
        case ast.Name() if params.id in values:
            return _lengths(values[params.id], values)
        case ast.Call() if ast.unparse(params.func) == "pytest.param":
            marks = next((one.value for one in params.keywords if one.arg == "marks"), None)
            if isinstance(marks, ast.IfExp):
                return {_is_long(marks.body, values), _is_long(marks.orelse, values)}
            by_case = isinstance(marks, ast.Call) and _is_long(marks, values) and "pytest" not in ast.unparse(marks)
            return {True, False} if by_case else {_is_long(marks, values)}
    return {False}


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
        rows = [(one.what, one.promise, f"`{one.test}`", one.outcome, one.tried) for one in found if one.part == part]
        parts.append(f"## {title}\n\n{table(('Fault', 'What happens', 'Test', 'Outcome', 'Tried in'), rows)}")
    return "\n\n".join(parts).rstrip() + "\n"
