"""What `windowlib demo` does: make clicks and their truth, run two pipelines file by file, compare, say what is next.

Everything lies in one folder: ``incoming/`` (the arrival files), ``truth/`` (what must come out), two definitions, and
``warehouse/`` (what came out). With other data there is no truth to compare with.

Each pipeline runs in a process of its own (``windowlib.demo.runs``), as a schedule runs it.
"""

import shutil
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import instant
from windowlib.demo.clicks import BASE_MS, HOUR_MS, ClickSettings
from windowlib.demo.compare import Comparison, compare_counts, compare_tables
from windowlib.demo.own_data import definition_text, look_at
from windowlib.demo.pipelines import write_definitions
from windowlib.demo.runs import batches
from windowlib.demo.truth import Truth, WindowTruth, make_demo_data
from windowlib.model.errors import InvalidSpec
from windowlib.publication.readers import read_table

FULL_SIZE = ClickSettings()
ENGINES = ("spark", "sail")  # of sessions, of sliding windows
OWN_DATA_ENGINE = "spark"  # it parses every format
MARK = ".windowlib-demo"
KEYS, VALUES = ("user_id", "window_start", "window_end"), ("events", "total")
WIDTHS = {"batch": 5, "read": 11, "refused": 9, "late": 8, "fired": 9, "fired late": 12}
WIDTHS |= {"in flight": 11, "watermark": 29, "seconds": 9}


@dataclass(frozen=True, slots=True)
class Stage:
    """Folder and screen of a demo, and the engine of both pipelines; None for an engine of each (`ENGINES`)."""

    folder: Path
    console: Console
    engine: str | None = None

    def say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True, highlight=False)


def demo(stage: Stage, settings: ClickSettings = FULL_SIZE) -> bool:
    """Run both pipelines over clicks with a known truth; True when not one row differs from it."""
    _fresh_folder(stage.folder)
    truth = make_demo_data(settings, stage.folder / "incoming")
    _write_truth(truth, stage.folder / "truth")
    _say_what_was_made(stage, truth, settings)
    comparisons = []
    sides = (("sessions", truth.sessions), ("sliding windows", truth.sliding))
    files = write_definitions(stage.folder, [stage.engine or engine for engine in ENGINES])
    for file, (what, expected) in zip(files, sides, strict=True):
        definition = _own_definition(file)
        run_and_show(stage, definition, what)
        comparisons += compare_with_truth(definition, what, expected, truth.unusable)
    _show_comparisons(stage, comparisons)
    _say_what_next(stage, stage.folder / "sessions.toml")
    return not any(comparison.differences for comparison in comparisons)


def demo_own_data(stage: Stage, data: Path, key: str | None = None, timestamp: str | None = None) -> None:
    """Run sessions and hourly counts over a folder of own files; raises InvalidSpec where it must guess."""
    if data.absolute().is_relative_to(stage.folder.absolute()):
        raise InvalidSpec(f"{data} lies inside {stage.folder}, which the demo empties; name another folder for it")
    engine, found = stage.engine or OWN_DATA_ENGINE, look_at(data, key, timestamp)
    if engine == "sail" and found.format != "parquet":
        raise InvalidSpec(f"{data} has {found.format} files, which Spark alone parses: leave out --engine sail")
    _fresh_folder(stage.folder)
    unit = f" ({found.timestamp_unit} since 1970)" if found.timestamp_unit else ""
    stage.say(
        f"{found.files:,} {found.format} files in {escape(str(data))}: time is [b]{escape(found.timestamp)}[/b]{unit},"
        f" key is [b]{escape(found.key)}[/b] (other columns: --timestamp, --key)"
    )
    windows = {
        "own_sessions": 'type = "session"\ngap = "30m"',
        "own_hours": 'type = "sliding"\nsize = "1h"\nslide = "10m"',
    }
    for name, window in windows.items():
        file = stage.folder / f"{name}.toml"
        file.write_text(definition_text(found, name, window, engine))
        run_and_show(stage, _own_definition(file), name)
    _say_what_next(stage, stage.folder / "own_sessions.toml")


def run_and_show(stage: Stage, definition: Definition, what: str) -> None:
    """Run everything new, and show its engine and a line for each batch."""
    stage.say(f"\n[b]{what}[/b] on [b]{definition.engine.capitalize()}[/b]  ({escape(str(definition.file))})")
    stage.say(_line(dict(zip(WIDTHS, WIDTHS, strict=True))))
    records = []
    for record in batches(definition.file):
        stage.say(_line(_cells(record)))
        records.append(record)
    names = ("rows_read", "rows_quarantined", "rows_late", "windows_fired_on_time", "windows_fired_late")
    totals = [f"{sum(record[name] or 0 for record in records):,}" for name in names]
    seconds = f"{sum(record['seconds'] for record in records):.1f}"
    stage.say(_line(dict(zip(WIDTHS, ["all", *totals, "", "", seconds], strict=True))))


def compare_with_truth(
    definition: Definition, what: str, truth: WindowTruth, unusable: dict[str, int]
) -> list[Comparison]:
    """Results, late events and quarantine of one pipeline next to what they must be."""
    late = pa.table({"event_id": truth.late})
    reasons = _rows(definition, "quarantine", "reason")["reason"].value_counts().to_pylist()
    refused = compare_counts(unusable, {count["values"]: count["counts"] for count in reasons})
    return [
        compare_tables(what, truth.results, _rows(definition, "results", *KEYS, *VALUES), KEYS, VALUES),
        compare_tables("  late events", late, _rows(definition, "late_events", "event_id"), ["event_id"]),
        *(replace(comparison, what=f"  {comparison.what}") for comparison in refused),
    ]


def _rows(definition: Definition, name: str, *columns: str) -> pa.Table:
    """Columns of a table; of one that never had a row, without rows."""
    table = read_table(definition, name)
    return table.select(columns) if table.num_columns else pa.table({column: [] for column in columns})


def _fresh_folder(folder: Path) -> None:
    """An empty folder; one that an earlier demo made is emptied, anything else is left alone."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise InvalidSpec(f"{folder} is not empty and no earlier demo made it; name another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("Made by `windowlib demo`, which empties this folder when it runs again.\n")


def _own_definition(file: Path) -> Definition:
    definition = load_definition(file)
    if definition.root.exists():
        raise InvalidSpec(f"{definition.root} exists already; remove it, or unset WINDOWLIB_WAREHOUSE for the demo")
    return definition


def _write_truth(truth: Truth, folder: Path) -> None:
    folder.mkdir()
    for name, side in (("sessions", truth.sessions), ("sliding", truth.sliding)):
        pq.write_table(side.results, folder / f"{name}.parquet")
        pq.write_table(pa.table({"event_id": side.late}), folder / f"{name}_late.parquet")


def _say_what_was_made(stage: Stage, truth: Truth, settings: ClickSettings) -> None:
    refused = ", ".join(f"{number:,} {reason}" for reason, number in truth.unusable.items())
    stage.say(
        f"{truth.rows:,} rows in {settings.files} files in {escape(str(stage.folder / 'incoming'))}: {settings.users:,}"
        f" users, {instant(BASE_MS)} to {instant(BASE_MS + settings.files * HOUR_MS)}, clicks out of order.\n"
        f"Made to be refused: {refused}.\n"
        f"Made to be found: {len(truth.sessions.results):,} sessions ({len(truth.sessions.late):,} events too late for"
        f" theirs), {len(truth.sliding.results):,} sliding windows ({len(truth.sliding.late):,} events too late)."
    )


def _cells(batch: Mapping[str, Any]) -> dict[str, str]:
    return {
        "batch": str(batch["batch_id"]),
        "read": f"{batch['rows_read']:,}",
        "refused": f"{batch['rows_quarantined']:,}",
        "late": f"{batch['rows_late']:,}",
        "fired": f"{batch['windows_fired_on_time']:,}",
        "fired late": f"{batch['windows_fired_late']:,}",
        "in flight": f"{batch['windows_open']:,}",
        "watermark": instant(batch["watermark_out_ms"]),
        "seconds": f"{batch['seconds']:.1f}",
    }


def _line(cells: dict[str, str]) -> str:
    return "".join(f"{cells[name]:>{width}}" for name, width in WIDTHS.items())


def _show_comparisons(stage: Stage, comparisons: list[Comparison]) -> None:
    table = Table(
        title="\nFound, next to the truth", title_justify="left", box=None, header_style="bold", pad_edge=False
    )
    table.add_column("")
    for name in ("expected", "found", "missing", "extra", "different values"):
        table.add_column(name, justify="right")
    for comparison in comparisons:
        what, *numbers = astuple(comparison)
        style = "red" if comparison.differences else ""
        table.add_row(what, *(f"{number:,}" for number in numbers), style=style)
    stage.console.print(table)
    stage.say(f"[b]{sum(comparison.differences for comparison in comparisons):,} differences[/b]")


def _say_what_next(stage: Stage, file: Path) -> None:
    shown = {
        to_paste("status", file): "the watermark, and what holds it back",
        to_paste("read", file, "results", "--out", "results.csv"): "",
        to_paste("read", file, "late_events"): "what came too late, and by how much",
        to_paste("read", file, "result_changes"): "row by row, what was added, changed or removed",
        to_paste("report", file): "its page: checks, trends, results",
        to_paste("run", file): "once another file is in its source folder",
    }
    width = max(len(command) for command, what in shown.items() if what)
    lines = (f"  {command.ljust(width)}  {f'# {what}' if what else ''}".rstrip() for command, what in shown.items())
    stage.say("\n".join(["", "What to look at next:", *lines]))
