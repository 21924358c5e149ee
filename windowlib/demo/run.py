"""Implements `windowlib demo`: generates clicks and their truth, runs two pipelines file by file, and compares.

Everything lies in one folder: ``incoming/`` (arrival files), ``truth/`` (expected outcome), two definitions, and
``warehouse/`` (actual outcome). Arrival files and actual outcome may lie in an object store instead. The reader's own
data have no truth to compare with.

Each pipeline runs in its own process (``windowlib.demo.runs``), like a scheduled run.
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
from windowlib.demo.own_data import definition_text, inspect_files
from windowlib.demo.pipelines import write_definitions
from windowlib.demo.runs import batches
from windowlib.demo.truth import Truth, WindowTruth, make_demo_data
from windowlib.engines.choice import dialect_named
from windowlib.model.errors import InvalidSpec
from windowlib.publication.readers import read_table
from windowlib.storage.address import store_at
from windowlib.storage.store import Store

FULL_SIZE = ClickSettings()
ENGINES = ("spark", "sail")  # of sessions, of sliding windows
OWN_DATA_ENGINE = "spark"  # Spark parses every format
MARK = ".windowlib-demo"
KEYS, VALUES = ("user_id", "window_start", "window_end"), ("events", "total")
WIDTHS = {"batch": 5, "read": 11, "refused": 9, "late": 8, "fired": 9, "fired late": 12}
WIDTHS |= {"in flight": 11, "watermark": 29, "seconds": 9}


@dataclass(frozen=True, slots=True)
class Stage:
    """Folder and console of a demo. `engine` is the engine of both pipelines, or None for the engines of `ENGINES`.

    `address` is a place in an object store for the arrival files and the tables.
    """

    folder: Path
    console: Console
    engine: str | None = None
    address: str = ""

    def say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True, highlight=False)


def demo(stage: Stage, settings: ClickSettings = FULL_SIZE) -> bool:
    """Runs both pipelines over clicks with a known truth. Returns True if no row differs from the truth."""
    if stage.address:
        _fresh_store(store_at(stage.address))
    _fresh_folder(stage.folder)
    truth = make_demo_data(settings, stage.folder / "incoming")
    if stage.address:
        _upload(stage.folder / "incoming", store_at(stage.address).below("incoming"))
    _write_truth(truth, stage.folder / "truth")
    _show_truth(stage, truth, settings)
    comparisons = []
    sides = (("sessions", truth.sessions), ("sliding windows", truth.sliding))
    files = write_definitions(stage.folder, [stage.engine or engine for engine in ENGINES], stage.address)
    for file, (what, expected) in zip(files, sides, strict=True):
        definition = _own_definition(file)
        run_and_show(stage, definition, what)
        comparisons += compare_with_truth(definition, what, expected, truth.unusable)
    _show_comparisons(stage, comparisons)
    _show_next_commands(stage, stage.folder / "sessions.toml")
    return not any(comparison.differences for comparison in comparisons)


def demo_own_data(stage: Stage, data: Path, key: str | None = None, timestamp: str | None = None) -> None:
    """Runs sessions and hourly counts over a folder of the reader's files. Raises InvalidSpec for unsuitable files."""
    if data.absolute().is_relative_to(stage.folder.absolute()):
        raise InvalidSpec(
            f"{data} lies inside {stage.folder}, but the demo empties that folder; name another folder for the demo"
        )
    engine, own_data = stage.engine or OWN_DATA_ENGINE, inspect_files(data, key, timestamp)
    if own_data.format != "parquet" and not dialect_named(engine).reads_text:
        raise InvalidSpec(f"{data} has {own_data.format} files, but only Spark parses them: leave out --engine sail")
    _fresh_folder(stage.folder)
    unit = f" ({own_data.timestamp_unit} since 1970)" if own_data.timestamp_unit else ""
    stage.say(
        f"{own_data.files:,} {own_data.format} files in {escape(str(data))}: time is"
        f" [b]{escape(own_data.timestamp)}[/b]{unit}, key is [b]{escape(own_data.key)}[/b]"
        " (other columns: --timestamp, --key)"
    )
    windows = {
        "own_sessions": 'type = "session"\ngap = "30m"',
        "own_hours": 'type = "sliding"\nsize = "1h"\nslide = "10m"',
    }
    for name, window in windows.items():
        file = stage.folder / f"{name}.toml"
        file.write_text(definition_text(own_data, name, window, engine))
        run_and_show(stage, _own_definition(file), name)
    _show_next_commands(stage, stage.folder / "own_sessions.toml")


def run_and_show(stage: Stage, definition: Definition, what: str) -> None:
    """Runs everything new. Shows the engine and a line for each batch."""
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
    """Compares results, late events and quarantine of one pipeline with the truth."""
    late = pa.table({"event_id": truth.late})
    reasons = _rows(definition, "quarantine", "reason")["reason"].value_counts().to_pylist()
    refused = compare_counts(unusable, {count["values"]: count["counts"] for count in reasons})
    return [
        compare_tables(what, truth.results, _rows(definition, "results", *KEYS, *VALUES), KEYS, VALUES),
        compare_tables("  late events", late, _rows(definition, "late_events", "event_id"), ["event_id"]),
        *(replace(comparison, what=f"  {comparison.what}") for comparison in refused),
    ]


def _rows(definition: Definition, name: str, *columns: str) -> pa.Table:
    """Columns of a table. The columns are empty if the table never had a row."""
    table = read_table(definition, name)
    return table.select(columns) if table.num_columns else pa.table({column: [] for column in columns})


def _fresh_folder(folder: Path) -> None:
    """Creates an empty folder, or empties the folder of an earlier demo. Refuses any other folder with files."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise InvalidSpec(f"{folder} is not empty and was not created by the demo; name another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("Created by `windowlib demo`, which empties this folder when it runs again.\n")


def _fresh_store(store: Store) -> None:
    """Empties the storage of an earlier demo. Refuses any other storage with objects."""
    if next(store.list(), None):
        if store.get(MARK) is None:
            raise InvalidSpec(f"{store} is not empty and was not created by the demo; name another folder")
        store.clear()
    store.put(MARK, b"Created by `windowlib demo`, which empties this folder when it runs again.\n")


def _upload(folder: Path, store: Store) -> None:
    """Moves files to a storage, in the order of their arrival."""
    for file in sorted(folder.iterdir()):
        store.put(file.name, file.read_bytes())
    shutil.rmtree(folder)


def _own_definition(file: Path) -> Definition:
    definition = load_definition(file)
    if any(True for _ in definition.store.list()):
        raise InvalidSpec(f"{definition.store} exists already; remove it, or unset WINDOWLIB_WAREHOUSE for the demo")
    return definition


def _write_truth(truth: Truth, folder: Path) -> None:
    folder.mkdir()
    for name, side in (("sessions", truth.sessions), ("sliding", truth.sliding)):
        pq.write_table(side.results, folder / f"{name}.parquet")
        pq.write_table(pa.table({"event_id": side.late}), folder / f"{name}_late.parquet")


def _show_truth(stage: Stage, truth: Truth, settings: ClickSettings) -> None:
    refused = ", ".join(f"{number:,} {reason}" for reason, number in truth.unusable.items())
    place = escape(stage.address or str(stage.folder))
    stage.say(
        f"{truth.rows:,} rows in {settings.files} files in {place}/incoming: {settings.users:,}"
        f" users, {instant(BASE_MS)} to {instant(BASE_MS + settings.files * HOUR_MS)}, clicks out of order.\n"
        f"Rows that must be refused: {refused}.\n"
        f"Expected results: {len(truth.sessions.results):,} sessions ({len(truth.sessions.late):,} events too late for"
        f" their sessions), {len(truth.sliding.results):,} sliding windows ({len(truth.sliding.late):,} events too"
        " late)."
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
        title="\nComparison with the truth", title_justify="left", box=None, header_style="bold", pad_edge=False
    )
    table.add_column("")
    for name in ("expected", "actual", "missing", "extra", "different values"):
        table.add_column(name, justify="right")
    for comparison in comparisons:
        what, *numbers = astuple(comparison)
        style = "red" if comparison.differences else ""
        table.add_row(what, *(f"{number:,}" for number in numbers), style=style)
    stage.console.print(table)
    stage.say(f"[b]{sum(comparison.differences for comparison in comparisons):,} differences[/b]")


def _show_next_commands(stage: Stage, file: Path) -> None:
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
    stage.say("\n".join(["", "Next steps:", *lines]))
