"""Explanation of the windows of a key around a time, with their events and all versions of their results.

The explanation reads the tables as of one batch, and the source files. It does not recompute decisions of runs:
firings, merges and removals come from `result_changes`, watermarks and plan times from the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.batches.may_run import check_fingerprint
from windowlib.batches.planning import ledger_of
from windowlib.contract.result_tables import COMPUTED
from windowlib.definition.definition import Definition
from windowlib.definition.instants import in_words, instant, nearest_utc, time_of
from windowlib.definition.plurals import counted
from windowlib.delta.statistics import overlapping
from windowlib.inspection.late.events import late_rows
from windowlib.inspection.lineage.batch_runs import BatchRun
from windowlib.inspection.lineage.cuts import EVER, Cut, cut
from windowlib.inspection.lineage.key_events import WindowEvent, WindowEvents, events_of, is_raw_of
from windowlib.inspection.lineage.key_windows import UNBOUNDED, KeyWindows, span_of
from windowlib.inspection.lineage.missing_columns import not_filled
from windowlib.inspection.lineage.versions import ResultVersion, values_of, version_of
from windowlib.ledger.rows import Commit
from windowlib.model.lateness import cleanup_time_ms
from windowlib.model.rerun import TimeRange
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import TimeWindow
from windowlib.plans.kinds.kind import Bounds, InFlight, PlanKind
from windowlib.publication.key import CannotLook, Key, check_key, key_of

NOT_BY_ORDER = "the events of these results depend on the order of arrival, not on event times"
BY_ELEMENT = (
    "a trigger, an evictor or your own code may leave out some of these events; no table records that for each event"
)
NEEDS_ENGINE = "its events are in JSON or CSV files, which need an engine: `windowlib explain` lists them"


@dataclass(frozen=True, slots=True)
class ExplainedWindow:
    """A window with its results, events and versions. For `place`, see `KeyWindows.around`.

    `published` holds the rows of the window in `results`. Several rows are possible only if each firing is a result.
    `cleanup_time_ms` is None if the window has no cleanup time, or if the allowed lateness has changed since its
    cleanup.
    """

    bounds_ms: Bounds
    place: str
    published: list[Mapping[str, Any]]
    in_flight: InFlight | None
    cleanup_time_ms: int | None
    cleaned_up_by: int | None
    versions: list[ResultVersion]
    events: list[WindowEvent]
    excluded: list[WindowEvent]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Explained:
    """The windows of a key around a time, as of a batch."""

    pipeline: str
    key: Mapping[str, str]
    at_ms: int
    as_of: int
    watermark_ms: int
    windows: list[ExplainedWindow]
    notes: list[str]


def explain_window(
    definition: Definition, key_texts: Sequence[str], at_ms: int, as_of: int | None = None, *, with_engine: bool = True
) -> Explained:
    """Explains a key's windows around a time, as of batch `as_of`, or as of the newest batch.

    Without `with_engine`, events in JSON and CSV files are left out.

    Raises `CannotLook` if there is no such batch, or if the key does not have one value per column. Raises
    `StateMismatch` if the tables have another definition.
    """
    newest = ledger_of(definition).state().commit
    check_fingerprint(definition, newest)
    check_key(definition.source.key, key_texts)
    if not EVER.from_ms <= at_ms < EVER.to_ms:
        raise CannotLook(f"no window can hold {instant(at_ms)}")
    tables = cut(definition, as_of)
    named = dict(zip(definition.source.key, key_texts, strict=True))
    watermark_ms = tables.batch.watermark_out_ms
    explained: list[ExplainedWindow] = []
    notes: list[str] = []
    schema = tables.keyed_schema()
    if schema is None:
        notes.append(f"there is no window up to batch {tables.batch.batch_id}")
    else:
        key = key_of(definition.source.key, key_texts, schema)
        windows = KeyWindows(tables, key)
        around = windows.around(at_ms)
        reads = with_engine or not definition.source.is_text
        explained = [
            _explained(windows, bounds, place, at_ms, newest, reads) for bounds, place in sorted(around.items())
        ]
        notes += [] if explained else _elsewhere(tables, key)
        if explained and "holds" not in around.values():
            notes.append(f"no window of this key holds {instant(at_ms)}; the nearest windows are shown")
            notes += _missed(tables, key, at_ms)
    return Explained(definition.name, named, at_ms, tables.batch.batch_id, watermark_ms, explained, notes)


def _elsewhere(tables: Cut, key: Key) -> Iterator[str]:
    """Yields a sentence about the occurrences of a key that has no window."""
    batch = f"up to batch {tables.batch.batch_id}"
    late = len(late_rows(tables, readmitted=True, key=key))
    refused = sum(is_raw_of(key, row["raw"]) for row in tables.rows("quarantine"))
    occurs = f"{counted(late, 'late event')} and {counted(refused, 'quarantined row')}"
    has = f"has no window {batch}; it occurs in {occurs}" if late or refused else f"never occurs {batch}"
    yield f"key {key} {has}"


def _missed(tables: Cut, key: Key, at_ms: int) -> Iterator[str]:
    """Yields a sentence for each late event of the key whose window contains `at_ms`. Omits readmitted events."""
    files = overlapping(tables.files("late_events"), "window_start", "window_end", TimeRange(at_ms, at_ms + 1))
    moment = pa.scalar(nearest_utc(at_ms))
    holds = (pc.field("window_start") <= moment) & (pc.field("window_end") > moment)
    for row in tables.rows("late_events", files, key=key, where=holds):
        if row["readmitted_by"] is None:
            window = in_words((time_of(row["window_start"]), time_of(row["window_end"])))
            place = f"{row['source_file']}, batch {row['batch_id']}"
            yield f"an event of {instant(time_of(row['event_time']))} ({place}) was too late for the window {window}"


def _explained(
    windows: KeyWindows, bounds: Bounds, place: str, at_ms: int, newest: Commit | None, reads: bool
) -> ExplainedWindow:
    tables = windows.cut
    definition, span = tables.definition, span_of(bounds)
    published = [row for row in windows.published(span) if row["bounds"] == bounds]
    flying = windows.in_flight(span)
    in_flight = next((window for window in flying if window.bounds_ms == bounds), None)
    changes = windows.changes(span)
    if bounds == UNBOUNDED:
        published, changes = _around(published, at_ms), _around(changes, at_ms)
    notes = list(_notes(definition.plan, definition.spec, bounds, flying))
    replaced_by = next(
        (window.bounds_ms for window in flying if bounds in window.replaces_ms and window.bounds_ms != bounds), None
    )
    until_batch = None
    if replaced_by is not None:
        until_batch = max((row["batch_id"] for row in published), default=None)
        notes.append(f"it will be replaced by the window in flight {in_words(replaced_by)} when that fires")
    notes += not_filled(definition, newest, published)
    events = WindowEvents()
    if bounds != UNBOUNDED and (published or in_flight):
        events = events_of(windows, bounds, until_batch=until_batch) if reads else WindowEvents(problems=[NEEDS_ENGINE])
    cleanup_ms = _cleanup_ms(definition.spec, bounds)
    gone = None if in_flight or cleanup_ms is None else _cleaned_up_by(tables, bounds)
    if gone is not None and not _reached(tables.batches[gone], cleanup_ms):
        cleanup_ms = None
    return ExplainedWindow(
        bounds_ms=bounds,
        place=place,
        published=[_result(definition.outputs, row) for row in published],
        in_flight=in_flight,
        cleanup_time_ms=cleanup_ms,
        cleaned_up_by=gone,
        versions=[version_of(tables, row, changes) for row in changes if row["bounds"] == bounds],
        events=events.inside,
        excluded=events.excluded,
        notes=[*notes, *events.problems],
    )


def _around(rows: Sequence[dict[str, Any]], at_ms: int) -> list[dict[str, Any]]:
    """Results without bounds next to a time: the last before it and the first at or after it, by last event time."""
    ordered = sorted(rows, key=lambda row: (row["last_event_time"], row["batch_id"], row["firing"]))
    earlier = [row for row in ordered if time_of(row["last_event_time"]) < at_ms]
    return [*earlier[-1:], *ordered[len(earlier) : len(earlier) + 1]]


def _notes(plan: PlanKind, spec: WindowSpec, bounds: Bounds, flying: Sequence[InFlight]) -> Iterator[str]:
    if bounds == UNBOUNDED:
        yield f"{NOT_BY_ORDER}; the results before and after the time are shown, by their last event"
    elif plan.runs_operator:
        yield BY_ELEMENT
    if spec.time != "event":
        yield "windows of processing time: the time of an event is the plan time of the batch that read it"
    for window in flying:
        if window.bounds_ms == bounds and window.state_window_ms and window.state_window_ms != bounds:
            state_window = in_words(window.state_window_ms)
            yield f"its contents are stored under the state window {state_window}, from which it grew"


def _cleanup_ms(spec: WindowSpec, bounds: Bounds) -> int | None:
    if bounds == UNBOUNDED or spec.time != "event":
        return None
    return cleanup_time_ms(TimeWindow(*bounds), spec.allowed_lateness_ms)


def _cleaned_up_by(tables: Cut, bounds: Bounds) -> int | None:
    """The first batch whose lateness bound reached the window's last ms: it cleaned up the window. None if none did."""
    last_ms = TimeWindow(*bounds).max_timestamp_ms
    return min((n for n, run in tables.batches.items() if run.late_out_ms >= last_ms), default=None)


def _reached(run: BatchRun, cleanup_ms: int | None) -> bool:
    """Tests if the batch moved the watermark to or past the cleanup time."""
    return cleanup_ms is not None and run.watermark_in_ms < cleanup_ms <= run.watermark_out_ms


def _result(outputs: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `results` without key and bounds."""
    names = ("batch_id", "firing", "result_number", "timing", *COMPUTED)
    return {**{name: row[name] for name in names if name in row}, "values": values_of(outputs, row)}
