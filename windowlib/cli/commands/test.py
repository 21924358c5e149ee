"""Command `windowlib test`, which runs the scenarios of a pipeline."""

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
from windowlib.storage.address import store_at

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.replay.pipeline_scenarios import ScenarioOutcome, StepOutcome


def test(
    pipeline: Pipeline,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SCENARIO.toml...]",
            help="The scenarios. Default: all scenarios in the folder PIPELINE.scenarios next to the definition.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the outcome of each step in the format of scenarios.")
    ] = False,
    engine: Annotated[
        EngineChoice | None,
        typer.Option(
            help="Engine of the scenarios. Default: [b]sail[/b] in this process if it can, otherwise [b]spark[/b].",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test the definition with scenarios: events step by step, and what must fire, be late and stay in flight.

    Each scenario runs the pipeline in a temporary folder. The pipeline's own tables and files stay as they are.

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
        raise WindowsDiffer(f"{wrong} of {counted(len(scenarios), 'scenario')} failed")


def _tried(definition: Definition, engine: EngineChoice | None) -> Definition:
    """Copy of the definition for scenarios: Parquet source, requested or quickest engine, Spark on this machine."""
    from windowlib.engines.choice import quickest_engine

    folder = Path()  # a scenario's own folder replaces it, and no object store is asked for credentials
    source = definition.source.model_copy(update={"format": "parquet", "path": str(folder)})
    chosen = engine.value if engine else quickest_engine(source, definition.uses)
    tried = definition.model_copy(update={"source": source, "store": store_at(folder), "engine": chosen})
    if tried.engine_place.is_here:
        return tried
    return tried.model_copy(update={"spark": definition.spark.model_copy(update={"master": "local[*]"})})


def _scenarios_of(pipeline: Path) -> list[Path]:
    folder = pipeline.with_suffix(".scenarios")
    if files := sorted(folder.glob("*.toml")):
        return files
    raise InvalidSpec(f"{folder} has no scenarios: write one (docs/guides/test.md says how), or name a file")


# -- on the screen -------------------------------------------------------------------------------------------------


def scenario_text(tested: ScenarioOutcome, show: bool) -> Iterator[str]:
    """Line about the scenario, then the differences of its steps. With `show` also the outcome of each step."""
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
    """Value in TOML, without the null values of a dictionary.

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
            cells = [f"{_key(name)} = {in_toml(cell)}" for name, cell in value.items() if cell is not None]
            return f"{{ {', '.join(cells)} }}"
    return json.dumps(str(value), ensure_ascii=False)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else json.dumps(name, ensure_ascii=False)
