"""The command `windowlib test`: the scenarios of a pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import EngineChoice, Json, Pipeline
from windowlib.cli.outcomes import print_report
from windowlib.definition.plurals import counted
from windowlib.model.errors import InvalidSpec, WindowsDiffer

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.replay.pipeline_scenarios import ScenarioOutcome, StepOutcome


def test(
    pipeline: Pipeline,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SCENARIO.toml...]",
            help="The scenarios. Default: the folder PIPELINE.scenarios next to the definition.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the outcome of each step in the format of a scenario.")
    ] = False,
    engine: Annotated[
        EngineChoice | None,
        typer.Option(
            help="The engine. Default: [b]sail[/b] in this process if possible, else [b]spark[/b].",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test the definition on scenarios: steps of events, with the windows that must fire, be late, or stay in flight.

    Each scenario runs the unchanged pipeline in a temporary folder. Its own tables and files stay as they are.

    [dim]windowlib test clicks.toml[/dim]   or   [dim]windowlib test clicks.toml --show one.toml[/dim]
    """
    from windowlib.replay.pipeline_scenarios import load_scenario, run_scenario
    from windowlib.runs.spark_sessions import spark_sessions

    definition = _tried(load_pipeline(pipeline), engine)
    scenarios = [(file, load_scenario(file, definition)) for file in files or _scenarios_of(pipeline)]
    sessions, wrong = spark_sessions(definition), 0
    for file, scenario in scenarios:
        tested = run_scenario(file, scenario, definition, sessions)
        wrong += not tested.passed
        print_report(tested, lambda outcome: scenario_text(outcome, show), as_json)
    if wrong:
        raise WindowsDiffer(f"{wrong} of {counted(len(scenarios), 'scenario')} gave something else")


def _tried(definition: Definition, engine: EngineChoice | None) -> Definition:
    """The definition on the engine of its scenarios, and on this machine."""
    from windowlib.engines.choice import quickest_engine

    source = definition.source.model_copy(update={"format": "parquet"})
    chosen = engine.value if engine else quickest_engine(source, definition.uses)
    tried = definition.model_copy(update={"source": source, "engine": chosen})
    if tried.engine_place.is_here:
        return tried
    return tried.model_copy(update={"spark": definition.spark.model_copy(update={"master": "local[*]"})})


def _scenarios_of(pipeline: Path) -> list[Path]:
    folder = pipeline.with_suffix(".scenarios")
    if found := sorted(folder.glob("*.toml")):
        return found
    raise InvalidSpec(f"{folder}: no scenarios there; write one (docs/guides/test.md says how), or give a file")


# -- on the screen -------------------------------------------------------------------------------------------------


def scenario_text(tested: ScenarioOutcome, show: bool) -> Iterator[str]:
    """A line for the scenario, and what its steps gave where that is wrong, or where that is asked for."""
    outcome = "[green]passed[/green]" if tested.passed else "[bold red]failed[/bold red]"
    yield f"{outcome}  {escape(tested.name)}  ({escape(tested.file)}, {counted(len(tested.steps), 'step')})"
    for number, step in enumerate(tested.steps, start=1):
        for line in _lines(step):
            yield f"  step {number}  {escape(line)}"
        if show:
            yield escape("\n".join(["  [[step]]", *_as_written(step)]))


def _lines(step: StepOutcome) -> Iterator[str]:
    yield from step.problems
    for part in step.rows:
        for row in step.missing.get(part, ()):
            yield f"{part}: not there: {in_toml(row)}"
        for row in step.unexpected.get(part, ()):
            yield f"{part}: not expected: {in_toml(row)}"


def _as_written(step: StepOutcome) -> Iterator[str]:
    for part, rows in step.rows.items():
        if rows:
            yield f"  {part} = ["
            yield from (f"    {in_toml(row)}," for row in rows)
            yield "  ]"


def in_toml(value: Any) -> str:
    """A value as it may stand in TOML; what is null is left out.

    >>> in_toml({"user": "ann", "at": datetime(2026, 3, 2, 9), "gone": None, "n": [1, True]})
    '{ user = "ann", at = 2026-03-02T09:00:00, n = [1, true] }'
    """
    match value:
        case bool():
            return "true" if value else "false"
        case datetime() | date():
            return value.isoformat().replace("+00:00", "Z")
        case int() | float():
            return str(value)
        case list():
            return f"[{', '.join(map(in_toml, value))}]"
        case dict():
            cells = [f"{_key(name)} = {in_toml(of)}" for name, of in value.items() if of is not None]
            return f"{{ {', '.join(cells)} }}"
    return json.dumps(str(value), ensure_ascii=False)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else json.dumps(name, ensure_ascii=False)
