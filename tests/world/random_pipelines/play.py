"""Plays a case: after each batch, compares all tables with the truth."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.clicks import MINUTE_MS, SCHEMA_WITH_GAPS
from tests.support.comparison import same_values
from tests.world.random_pipelines.drawn import Case, Drawn, Happens
from tests.world.random_pipelines.truth import (
    AGGREGATES,
    BEGINNING,
    Bounds,
    Correction,
    Place,
    Row,
    Rules,
    Truth,
    Windows,
)
from windowlib.contract.result_tables import FILLED
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import time_of
from windowlib.ledger.rerun_request import Rerun, RerunRefused
from windowlib.publication.readers import UnknownTable, read_table
from windowlib.runs.advance import advance
from windowlib.runs.run import RunRequest
from windowlib.runs.together import advance_together
from windowlib.storage.disk import Disk


@dataclass(frozen=True, slots=True)
class Asked:
    """Request to an engine for the pipelines of a folder; returns the batches of each."""

    folder: Path
    names: tuple[str, ...]
    now_ms: int
    finish: bool = False
    rerun: Correction | None = None

    def done(self, session: Callable[[], Any]) -> list[int]:
        """Number of batches of each pipeline, or one of `REFUSED` for a refused rerun."""
        definitions = [definition(self.folder, name) for name in self.names]
        clock = lambda: self.now_ms  # noqa: E731
        if self.rerun:
            wanted = _rerun(self.rerun)
            made = []
            for one in definitions:
                try:
                    made.append(len(advance(one, session, clock=clock, rerun=wanted)))
                except RerunRefused as refused:
                    why = [number for number, text in REFUSED.items() if text in str(refused)]
                    if not why:
                        raise
                    made += why
            return made
        if len(definitions) == 1:
            return [len(advance(definitions[0], session, clock=clock, finish=self.finish))]
        ended = advance_together([RunRequest.of(one, clock, finish=self.finish) for one in definitions], session)
        for end in ended:
            if end.error:
                raise end.error
        return [len(end.reports) for end in ended]


NOTHING_LATE, OF_COUNTS = -1, -2
REFUSED = {NOTHING_LATE: "there is no such late event", OF_COUNTS: "cannot be rerun in part"}


def _rerun(asked: Correction) -> Rerun:
    key = None if asked.key is None else (asked.key,)
    bounds = asked.from_ms, asked.to_ms
    return Rerun(*bounds, "a range", "ann", late_only=asked.late_only, key=key, accept_gap=asked.gap)


Engine = Callable[[str, Asked], list[int]]  # by the name of the engine that the case drew


def definition(folder: Path, name: str) -> Definition:
    """A definition of the case, its tables next to it."""
    return load_definition(folder / f"{name}.toml").model_copy(update={"store": Disk(folder / "warehouse" / name)})


def differences(case: Case, folder: Path, engine: Engine) -> list[str]:
    """Plays a case in an empty folder; returns the first difference."""
    (folder / "incoming").mkdir(parents=True)
    for one in case.definitions:
        (folder / f"{one.name}.toml").write_text(one.text, encoding="utf-8")
    truths = {one.name: Truth(one.rules, columns=one.columns) for one in case.definitions}
    names, written = tuple(truths), dict[str, tuple[Row, ...]]()
    for number, happens in enumerate(case.runs, 1):
        if happens.lateness_min is not None:
            for one in case.definitions:
                truths[one.name].rules = allow(folder, one.name, truths[one.name].rules, happens.lateness_min)
        for one in case.definitions if happens.added else ():
            add(folder, one.name, happens.added)
            truths[one.name].wanted += happens.added
        for name in happens.renamed:
            rename(folder, name)
        for file in happens.files:
            write(folder, file)
            written[file[0].place[0]] = file
        made = engine(happens.engine, Asked(folder, names, happens.now_ms, happens.finish))
        found = list(_after_a_run(folder, happens, truths, made))
        if not found and happens.rerun and all(truth.batch for truth in truths.values()):
            rerun = happens.rerun
            if rerun.repaired:
                write(folder, rerun.repaired, after_ns=number)
                name = rerun.repaired[0].place[0]
                if written[name] == rerun.repaired:  # a file with the same rows is the one that was read
                    rerun = replace(rerun, repaired=())
                written[name] = happens.rerun.repaired
            if rerun.lost:
                (folder / "incoming" / rerun.lost).unlink()
            asked = Asked(folder, names, happens.now_ms, rerun=rerun)
            found = list(_after_a_rerun(folder, rerun, truths, engine(happens.engine, asked)))
        if found:
            return [f"run {number} on {happens.engine}: {text}" for text in found]
    return []


def allow(folder: Path, name: str, rules: Rules, lateness_min: int) -> Rules:
    """The author edits a definition: another allowed lateness."""
    path = folder / f"{name}.toml"
    path.write_text(re.sub(r'allowed_lateness = ".*"', f'allowed_lateness = "{lateness_min}m"', path.read_text()))
    return replace(rules, lateness_ms=lateness_min * MINUTE_MS)


def add(folder: Path, name: str, columns: tuple[str, ...]) -> None:
    """The author edits a definition: more columns."""
    with (folder / f"{name}.toml").open("a", encoding="utf-8") as file:
        file.writelines(f'{column} = "{AGGREGATES[column]}"\n' for column in columns)


def rename(folder: Path, name: str) -> None:
    """A file of the source that was read, in another folder."""
    (folder / "incoming" / "archive").mkdir(exist_ok=True)
    (folder / "incoming" / name).rename(folder / "incoming" / "archive" / name)


def write(folder: Path, rows: tuple[Row, ...], *, after_ns: int = 0) -> None:
    """A file of the source; rewritten, its time is another."""
    name, number = rows[0].place[0], rows[0].order[0]
    path = folder / "incoming" / name
    values = [{column: getattr(row, column) for column in SCHEMA_WITH_GAPS.names} for row in rows]
    pq.write_table(pa.Table.from_pylist(values, schema=SCHEMA_WITH_GAPS), path)
    os.utime(path, ns=(number + after_ns * 1000, number + after_ns * 1000))


def _after_a_run(folder: Path, happens: Happens, truths: dict[str, Truth], made: list[int]) -> Iterator[str]:
    rows = [row for file in happens.files for row in file]
    before = {name: truth.batch for name, truth in truths.items()}
    for (name, truth), batches in zip(truths.items(), made, strict=True):
        if rows:
            truth.read(rows, happens.now_ms)
        if truth.due(happens.now_ms) or (batches and not rows and not happens.finish):  # silence: no event was admitted
            truth.read((), happens.now_ms)
        if happens.finish:  # the end of the input is a batch of its own, after one of the silence until then
            truth.read((), happens.now_ms, finish=True)
        if batches != truth.batch - before[name]:
            yield f"{name}: {batches} batches, not {truth.batch - before[name]}"
        if batches:
            yield from (f"{name}: {text}" for text in compared(definition(folder, name), truth))


def _after_a_rerun(folder: Path, asked: Correction, truths: dict[str, Truth], made: list[int]) -> Iterator[str]:
    for (name, truth), batches in zip(truths.items(), made, strict=True):
        wanted = 1
        if truth.rules.windows.counts:
            wanted = OF_COUNTS
        elif asked.late_only and not truth.readmitted(asked):
            wanted = NOTHING_LATE
        if batches != wanted:
            yield f"{name}: the rerun of {asked} made {batches}, not {wanted}"
        if batches == NOTHING_LATE:
            truth.batch += 1  # the number is used up
        if batches > 0:
            truth.rerun(asked)
            yield from (f"{name}, rerun of {asked}: {text}" for text in compared(definition(folder, name), truth))


def compared(of: Definition, truth: Truth) -> Iterator[str]:
    """Differences of a pipeline, table by table."""
    windows = truth.rules.windows
    results = {
        _bounds(row, windows): (_values(row), row["firing"], row["timing"], row["batch_id"])
        for row in _rows(of, "results")
    }
    wanted = {bounds: (one.values, one.firing, one.timing, one.batch) for bounds, one in truth.results.items()}
    yield from _different("results", results, wanted)
    feed = {
        (row["batch_id"], row["change"], _bounds(row, windows)): (_values(row), row["cause"])
        for row in _rows(of, "result_changes")
    }
    expected = {(batch, change, one): (values, cause) for batch, change, cause, one, values in truth.feed}
    yield from _different("result_changes", feed, expected)
    in_flight = {
        _bounds_in_flight(row, windows): (row["elements"], row["last_event_ms"]) for row in _rows(of, "open_windows")
    }
    held = {one: (len(rows), max(row.at_ms or 0 for row in rows)) for one, rows in truth.in_flight.items()}
    yield from _different("open_windows", in_flight, held)
    late = {_place(row): row["readmitted_by"] for row in _rows(of, "late_events")}
    yield from _different("late_events", late, truth.late)
    yield from _different("quarantine", {_place(row): row["reason"] for row in _rows(of, "quarantine")}, truth.refused)
    newest = max(_rows(of, "watermarks"), key=lambda row: int(row["batch_id"]))["applied_ms"]
    if newest != truth.watermark_ms:
        yield f"watermarks: {newest}, not {truth.watermark_ms}"


def _different(table: str, found: dict[Any, Any], wanted: dict[Any, Any]) -> Iterator[str]:
    for one in sorted(found.keys() - wanted.keys(), key=str)[:3]:
        yield f"{table}: {one} is there: {found[one]}"
    for one in sorted(wanted.keys() - found.keys(), key=str)[:3]:
        yield f"{table}: {one} is not there: {wanted[one]}"
    other = [one for one in found.keys() & wanted.keys() if not _same(found[one], wanted[one])]
    for one in sorted(other, key=str)[:3]:
        yield f"{table}: {one} is {found[one]}, not {wanted[one]}"


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(found, tuple) and found and isinstance(found[0], tuple):
        return same_values(found[0], wanted[0]) and found[1:] == wanted[1:]
    return bool(found == wanted)


def _rows(of: Definition, name: str) -> list[dict[str, Any]]:
    try:
        return read_table(of, name).to_pylist()
    except UnknownTable:
        return []


def _bounds(row: dict[str, Any], windows: Windows) -> Bounds:
    if windows.counts:
        size, slide = windows.counts
        return row["user"], row["firing"] * slide - size, row["firing"] * slide
    return row["user"], time_of(row["window_start"]), time_of(row["window_end"])


def _bounds_in_flight(row: dict[str, Any], windows: Windows) -> Bounds:
    if windows.counts:
        width = gcd(*windows.counts)
        return row["user"], row["slice_index"] * width, (row["slice_index"] + 1) * width
    prefix = "window" if windows.merge else "state_window"
    return row["user"], row[f"{prefix}_start_ms"], row[f"{prefix}_end_ms"]


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return *(row.get(name) for name in AGGREGATES), time_of(row["last_event_time"]), row.get(FILLED)


def _place(row: dict[str, Any]) -> Place:
    return row["source_file"], row["source_row"]


__all__ = ["BEGINNING", "Asked", "Drawn", "Engine", "differences"]
