"""Page of faults: each fault, its effect, the test that causes it, and the last outcome of this test.

Each test marked `fault(fault, effect)` gives a row. `pytest --record-faults` records the outcomes in `OUTCOMES`.
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
ONLY_LONG, SOME_LONG, ALWAYS = "only", "more", ""
HEAD = (Path(__file__).parent / "faults-head.txt").read_text(encoding="utf-8")
PARTS = {
    "runs": "Runs that die, sleep or meet",
    "batches": "Batches",
    "cli": "Interrupts",
    "decisions": "Decisions of operators",
    "maintenance": "Maintenance",
    "storage": "Object stores",
    "world/schedules": "Runs, reruns, operators and other programs in any order of steps",
    "world/soak": "Everything at once",
    "world/stopped": "Pipelines stopped at a step",
    "publication": "Publication and other programs",
    "delta": "Tables and logs",
    "ledger": "The ledger",
    "source": "Input",
    "reruns": "Reruns",
    "engines": "Engines",
    "quality": "Checks",
    "notices": "Notices",
    "inspection": "Wrong results",
    "erasure": "Erased keys",
    "migrations": "Changed definitions",
    "moves": "Moves to another storage",
    "airflow": "Airflow",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that a test causes, and its promised effect."""

    part: str
    what: str
    promise: str
    test: str
    long: str  # the part that only `make test-all` runs
    outcome: str  # the last recorded one


def faults() -> Iterator[Fault]:
    """Faults that tests cause, in the order of files and tests."""
    outcomes = recorded()
    for part in PARTS:
        for file in sorted((TESTS / part).glob("test_*.py")):
            body = ast.parse(file.read_text(encoding="utf-8")).body
            assignments = (node for node in body if isinstance(node, ast.Assign) and node.targets)
            values = {ast.unparse(node.targets[0]): node.value for node in assignments}
            for node in body:
                if isinstance(node, ast.FunctionDef):
                    test = f"{part}/{file.stem}::{node.name}"
                    long, outcome = _long_part(node, values), outcomes.get(test, "–")
                    yield from (Fault(part, *texts, test, long, outcome) for texts in _marks(node))


def recorded() -> dict[str, str]:
    """Last recorded day of each test, with "failed" and the number of its variants where they say something."""
    outcomes: Mapping[str, Mapping[str, str | int]] = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    return {test: _outcome(outcome) for test, outcome in outcomes.items()}


def _outcome(recorded: Mapping[str, str | int]) -> str:
    """Outcome of a test in the page.

    >>> _outcome({"outcome": "passed", "variants": 1, "day": "2026-11-26"})
    '2026-11-26'
    >>> _outcome({"outcome": "failed", "variants": 3, "day": "2026-11-26"})
    'failed 2026-11-26 (3)'
    """
    failed = "" if recorded["outcome"] == "passed" else f"{recorded['outcome']} "
    variants = "" if recorded["variants"] == 1 else f" ({recorded['variants']})"
    return f"{failed}{recorded['day']}{variants}"


Values = Mapping[str, ast.expr]  # of the names that a module sets


def _long_part(node: ast.FunctionDef, values: Values) -> str:
    """Part of a test that only `make test-all` runs, by the marks of the test, its module and its parameters."""
    if _is_long(values.get("pytestmark"), values) or any(_is_long(mark, values) for mark in _own(node)):
        return ONLY_LONG
    lengths = [
        _lengths(mark.args[1], values)
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.parametrize"
    ]
    if {True} in lengths:
        return ONLY_LONG
    return SOME_LONG if any(True in kinds for kinds in lengths) else ALWAYS


def _own(node: ast.FunctionDef) -> Iterator[ast.expr]:
    """Marks of a test itself, without those of its parameters."""
    return (mark for mark in node.decorator_list if "parametrize" not in ast.unparse(mark))


def _is_long(marks: ast.expr | None, values: Values) -> bool:
    """Tests if `long` is among the marks, or among the names that stand for marks."""
    if marks is None:
        return False
    inner = list(ast.walk(marks))
    if any(isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.long" for node in inner):
        return True
    return any(_is_long(values.get(node.id), {}) for node in inner if isinstance(node, ast.Name))


def _lengths(params: ast.expr, values: Values) -> set[bool]:
    """Kinds of parameters: True for long ones, False for others."""
    match params:
        case ast.List() | ast.Tuple():
            return set[bool]().union(*(_lengths(param, values) for param in params.elts))
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
            marks = next((keyword.value for keyword in params.keywords if keyword.arg == "marks"), None)
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
    """Page in Markdown."""
    rows = list(faults())
    parts = [HEAD.rstrip()]
    for part, title in PARTS.items():
        cells = [(row.what, row.promise, f"`{row.test}`", row.outcome, row.long) for row in rows if row.part == part]
        parts.append(f"## {title}\n\n{table(('Fault', 'Effect', 'Test', 'Last run', 'Long'), cells)}")
    return "\n\n".join(parts).rstrip() + "\n"
