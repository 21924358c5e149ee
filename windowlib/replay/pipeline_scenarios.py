"""Scenarios of a pipeline for `windowlib test`: events step by step, and the expected results.

A scenario is a TOML file:

    name = "a late event joins two published sessions"

    [[step]]
    batch = [{ user = "ann", at = 2026-03-02T09:00:00Z, value = 3 }]
    in_flight = [{ user = "ann", window_start = 2026-03-02T09:00:00Z }]

    [[step]]
    batch = [{ user = "bob", at = 2026-03-02T11:00:00Z, value = 2 }]
    fires = [{ user = "ann", events = 1, total = 3 }]
    in_flight = [{ user = "bob" }]

Each step runs the pipeline over the events in its `batch`. An event names its columns as the files do, or as the
definition does (`source.rename`). If a step leaves out `fires`, `removes`, `late`, `quarantined` or `in_flight`, it
expects no such row. Columns that an expected row leaves out are not compared. `StepFile` describes all keys of a step.
"""

from __future__ import annotations

import math
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from windowlib.contract.result_tables import RESULT_CHANGES
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of, utc
from windowlib.definition.mistakes import Mistake, invalid, listed, mistakes_of, nearest
from windowlib.definition.toml.fields import Section
from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.replay.scenario_events import event_tables, event_time_ms, unknown_event_columns
from windowlib.replay.trial import Row, Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_FLIGHT_COLUMNS = ("window_start", "window_end", "events")


class StepFile(Section):
    """`[[step]]`: the events that arrive, the time of the run, and its expected results."""

    batch: list[dict[str, Any]] = Field(default=[], description="the events, each { column = value, … }")
    now: datetime | None = Field(
        default=None, description="when the run is; without it, at the newest event time that has come so far"
    )
    finish: bool = Field(default=False, description="the input is complete: every window fires")
    watermark: datetime | None = Field(default=None, description="the watermark after the run; without it, any")
    fires: list[dict[str, Any]] = Field(default=[], description="rows that the run must write to `results`")
    removes: list[dict[str, Any]] = Field(default=[], description="rows of `results` that it must take back")
    late: list[dict[str, Any]] = Field(default=[], description="events that must be late")
    quarantined: list[dict[str, Any]] = Field(default=[], description="rows that must reach no window")
    in_flight: list[dict[str, Any]] = Field(default=[], description="the windows that must be in flight afterwards")


class ScenarioFile(Section):
    """A scenario: its name, and its steps in order."""

    name: str = Field(min_length=1, description="what it shows, in a sentence")
    step: list[StepFile] = Field(min_length=1, description="[[step]], one for each run")


PARTS: Mapping[str, Callable[[Trial], list[Row]]] = {
    "fires": Trial.fired,
    "removes": Trial.removed,
    "late": Trial.late,
    "quarantined": Trial.quarantined,
    "in_flight": Trial.in_flight,
}
"""Keys of a step that have rows, with the method of `Trial` that returns the actual rows."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """Outcome of a step. A part is a key of the step that contains rows (`PARTS`).

    rows:       all actual rows, by part
    missing:    expected rows that are missing, by part
    unexpected: actual rows that are not expected, by part
    problems:   a sentence for each other difference
    """

    rows: Mapping[str, Sequence[Row]]
    missing: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    unexpected: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    problems: Sequence[str] = ()

    @property
    def is_right(self) -> bool:
        """Tests if the step gave the expected results."""
        return not (self.missing or self.unexpected or self.problems)


@dataclass(frozen=True, slots=True)
class ScenarioOutcome:
    """Outcome of a scenario: the outcomes of its steps, up to the first step that raised an error."""

    file: str
    name: str
    steps: Sequence[StepOutcome]

    @property
    def passed(self) -> bool:
        """Tests if every step gave the expected results."""
        return all(step.is_right for step in self.steps)

    def json_fields(self) -> dict[str, Any]:
        """Keys and values of the outcome's JSON."""
        steps = [
            {"came": step.rows, "missing": step.missing, "unexpected": step.unexpected, "said": step.problems}
            for step in self.steps
        ]
        return {"scenario": self.name, "file": self.file, "passed": self.passed, "steps": steps}


def load_scenario(file: Path, definition: Definition) -> ScenarioFile:
    """Loads the scenario in a file. Raises InvalidSpec with all of its mistakes."""
    try:
        scenario = ScenarioFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise InvalidSpec(f"{file}: no such file; give the path of a scenario in TOML") from error
    except (OSError, ValueError) as error:
        if isinstance(error, ValidationError):
            raise invalid(file, mistakes_of(error, ScenarioFile)) from error
        raise InvalidSpec(f"{file}: cannot be read as TOML: {error}") from error
    if mistakes := list(_unknown_columns(scenario, definition)):
        raise invalid(file, mistakes)
    return scenario


def run_scenario(
    file: Path, scenario: ScenarioFile, definition: Definition, spark: Callable[[], SparkSession]
) -> ScenarioOutcome:
    """Runs a scenario through the pipeline of a definition, in a temporary folder."""
    events = event_tables(file, [step.batch for step in scenario.step], definition)
    steps: list[StepOutcome] = []
    with tempfile.TemporaryDirectory(prefix="windowlib-test-") as folder:
        trial, now_ms = Trial(definition, Path(folder), spark), 0
        for step, table in zip(scenario.step, events, strict=True):
            times = [time_ms for row in step.batch if (time_ms := event_time_ms(row, definition.source)) is not None]
            now_ms = max([now_ms, *times]) if step.now is None else time_of(step.now)
            try:
                trial.feed(table, now_ms, finish=step.finish)
            except WindowError as error:
                steps.append(StepOutcome({}, problems=[trial.step_message(str(error))]))
                break
            steps.append(_compared(step, trial))
    return ScenarioOutcome(str(file), scenario.name, steps)


def _compared(step: StepFile, trial: Trial) -> StepOutcome:
    rows_by_part = {part: rows_of(trial) for part, rows_of in PARTS.items()}
    missing: dict[str, Sequence[Row]] = {}
    unexpected: dict[str, Sequence[Row]] = {}
    for part, rows in rows_by_part.items():
        lacking, left = matched(getattr(step, part), rows)
        missing |= {part: lacking} if lacking else {}
        unexpected |= {part: left} if left else {}
    problems = []
    if step.watermark is not None and trial.watermark_ms != time_of(step.watermark):
        is_now = utc(trial.watermark_ms).isoformat() if trial.batch_ids else "unchanged"
        problems.append(f"the watermark is {is_now}, not {step.watermark.isoformat()}")
    return StepOutcome(rows_by_part, missing, unexpected, problems)


def matched(expected: Iterable[Row], rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Matches expected with actual rows, one to one. Returns the unmatched expected rows and the unmatched actual rows.

    >>> matched([{"user": "ann"}, {"user": "bob"}], [{"user": "ann", "events": 1}, {"user": "ann", "events": 2}])
    ([{'user': 'bob'}], [{'user': 'ann', 'events': 2}])
    """
    left, missing = list(rows), list[Row]()
    for row in sorted(expected, key=len, reverse=True):  # the most specific row chooses first
        like = next((other for other in left if all(is_same(row[name], other.get(name)) for name in row)), None)
        if like is None:
            missing.append(row)
        else:
            left.remove(like)
    return missing, left


def is_same(expected: Any, actual: Any) -> bool:
    """Tests if a TOML value equals a value of a table. Times without a zone are in UTC. TOML decimals may be strings.

    >>> is_same(datetime(2026, 3, 2, 9), "2026-03-02T09:00:00.000Z"), is_same("1.50", Decimal("1.5")), is_same(3, 4)
    (True, True, False)
    """
    match expected, actual:
        case datetime(), str():
            with suppress(ValueError):
                return time_of(expected) == time_of(datetime.fromisoformat(actual))
            return False
        case datetime(), datetime():
            return time_of(expected) == time_of(actual)
        case ((str() | int() | float()), Decimal()):
            with suppress(InvalidOperation):
                return Decimal(str(expected)) == actual
            return False
        case ((int() | float()), float()):
            return math.isclose(expected, actual, rel_tol=1e-9) or (math.isnan(expected) and math.isnan(actual))
        case list(), list():
            return len(expected) == len(actual) and all(map(is_same, expected, actual))
        case dict(), dict():
            return all(is_same(value, actual.get(name)) for name, value in expected.items())
    return type(expected) is type(actual) and bool(expected == actual)


def _unknown_columns(scenario: ScenarioFile, definition: Definition) -> Iterator[Mistake]:
    """Yields a mistake for each unknown column in `batch`, `fires`, `removes` and `in_flight` of a step."""
    named = {*definition.source.key, *definition.outputs}
    results = {*named, *RESULT_CHANGES.names}
    allowed = {"fires": results, "removes": results, "in_flight": {*definition.source.key, *IN_FLIGHT_COLUMNS}}
    yield from unknown_event_columns([step.batch for step in scenario.step], definition)
    for number, step in enumerate(scenario.step, start=1):
        for part, columns in allowed.items():
            for name in dict.fromkeys(name for row in getattr(step, part) for name in row):
                if name not in columns:
                    own = named if part != "in_flight" else columns
                    yield Mistake(
                        f"step {number}.{part}",
                        f"there is no column {name!r}{nearest(name, columns)}; columns: {listed(sorted(own))}",
                    )
