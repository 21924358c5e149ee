"""Scenarios: golden examples as TOML files, which every engine replays.

Each step says what fires, what is late *and what is in flight*, so that a leak is a failure. What a step does not say
is nothing; a key that is not known is an error.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.reference_engines import Engine
from windowlib.model import assigners, calendar
from windowlib.model.aggregates import Count
from windowlib.model.elements import Element, Firing, Late
from windowlib.model.spec import WindowSpec

SCENARIO_KEYS = {"name", "origin", "spec", "allowed_lateness_ms", "step"}
STEP_KEYS = {"batch", "watermark_ms", "fires", "late", "in_flight"}


@dataclass(frozen=True)
class Scenario:
    """A specification, and the expected outcome of each batch."""

    name: str
    spec: WindowSpec
    steps: tuple[dict[str, Any], ...]


def load(file: Path) -> Scenario:
    """Reads the scenario in a file; raises ValueError for unknown or missing keys."""
    given = tomllib.loads(file.read_text())
    _only(file, given, SCENARIO_KEYS, required={"name", "origin", "spec", "step"})
    for step in given["step"]:
        _only(file, step, STEP_KEYS, required={"watermark_ms"})
    spec = WindowSpec(_assigner(given["spec"]), Count(), allowed_lateness_ms=given.get("allowed_lateness_ms", 0))
    return Scenario(given["name"], spec, tuple(given["step"]))


def check(scenario: Scenario, engine: Engine) -> None:
    """Replays the scenario; raises AssertionError at the first step with another outcome."""
    arrival = 0
    for step in scenario.steps:
        batch = []
        for key, timestamp_ms, *value in step.get("batch", []):
            batch.append(Element(key, timestamp_ms, value[0] if value else None, arrival))
            arrival += 1
        outputs = engine.advance(batch, step["watermark_ms"])
        fired = [[o.key, o.window.start_ms, o.window.end_ms, o.result] for o in outputs if isinstance(o, Firing)]
        late = [[o.element.key, o.element.timestamp_ms] for o in outputs if isinstance(o, Late)]
        in_flight = [[key, window.start_ms, window.end_ms] for key, window in engine.in_flight()]
        got = {"fires": sorted(fired), "late": sorted(late), "in_flight": in_flight}
        want = {part: sorted(step.get(part, [])) for part in got}
        assert got == want, f"{scenario.name}: at watermark {step['watermark_ms']}"


def _only(file: Path, given: dict[str, Any], known: set[str], required: set[str]) -> None:
    if given.keys() - known or required - given.keys():
        raise ValueError(f"{file.name}: need {sorted(required)} and at most {sorted(known)}, got {sorted(given)}")


def _assigner(text: str) -> Any:
    """``Session(gap_ms=3)`` and the like: calls of names of the assigners with literal arguments, nothing more."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call):
        raise ValueError(f"need an assigner such as Session(gap_ms=3), got {text!r}")
    return _called(call)


def _called(value: ast.expr) -> Any:
    if not isinstance(value, ast.Call):
        return ast.literal_eval(value)
    if not isinstance(value.func, ast.Name):
        raise ValueError(f"need an assigner such as Session(gap_ms=3), got {ast.unparse(value)!r}")
    arguments = {keyword.arg or "": _called(keyword.value) for keyword in value.keywords}
    source = calendar if hasattr(calendar, value.func.id) else assigners
    return getattr(source, value.func.id)(*map(_called, value.args), **arguments)
