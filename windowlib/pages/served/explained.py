"""Explained windows of a key as tables: each version of the result with its cause, and the events by file and row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant, utc
from windowlib.inspection.lineage.explain_window import Explained, ExplainedWindow, explain_window
from windowlib.inspection.lineage.key_events import WindowEvent
from windowlib.inspection.lineage.versions import ResultVersion
from windowlib.inspection.lineage.words import PLACES, bounds_words, in_flight_words
from windowlib.ledger.rerun_request import time_ms
from windowlib.ledger.rows import BY_ITSELF
from windowlib.pages.rows import KEY, TextRows, explain_command, text_rows
from windowlib.publication.key import CannotLook
from windowlib.reruns.preview_text import HIDDEN

EVENTS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """A window on the page. `versions` marks values that differ from the version before."""

    title: str
    place: str
    published: TextRows
    in_flight: str
    versions: TextRows
    events: TextRows
    event_count: int
    excluded: TextRows
    excluded_count: int
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class ExplainedResult:
    """Windows of a key around a time, as of the newest batch. `command` shows the same in a shell."""

    as_of: str
    windows: Sequence[WindowFacts]
    notes: Sequence[str]
    command: str


def explained_result(definition: Definition, fields: Mapping[str, str]) -> ExplainedResult:
    """Explains the windows around the time `at`, of the key in the other fields. Starts no engine.

    Raises `WindowError`, also if `[pages]` hides a key column.
    """
    keys = definition.source.key
    if hidden := [name for name in keys if name in definition.hidden]:
        raise CannotLook(f"[pages] hides the key {', '.join(hidden)}; windowlib explain shows windows by key")
    query = {name: fields.get(name, "") for name in [*(f"{KEY}{name}" for name in keys), "at"]}
    at_ms = time_ms("at", query["at"], definition.time_zone)
    report = explain_window(definition, [query[f"{KEY}{name}"] for name in keys], at_ms, with_engine=False)
    return ExplainedResult(
        as_of=f"after batch {report.as_of}, watermark {instant(report.watermark_ms)}",
        windows=[_window(definition, window) for window in _holding_first(report)],
        notes=report.notes,
        command=explain_command(definition, query),
    )


def _holding_first(report: Explained) -> list[ExplainedWindow]:
    """The windows that contain the time, then the nearest ones."""
    return sorted(report.windows, key=lambda window: window.place != "holds")


def _window(definition: Definition, window: ExplainedWindow) -> WindowFacts:
    outputs = [*definition.outputs]
    return WindowFacts(
        title=bounds_words(window.bounds_ms),
        place=PLACES[window.place],
        published=text_rows(
            definition,
            [{**row, **row["values"]} for row in window.published],
            [*outputs, "firing", "timing", "batch_id"],
        ),
        in_flight=in_flight_words(window),
        versions=_versions(definition, window.versions, outputs),
        events=_events(definition, window.events, []),
        event_count=len(window.events),
        excluded=_events(definition, window.excluded, ["why"]),
        excluded_count=len(window.excluded),
        notes=window.notes,
    )


def _versions(definition: Definition, versions: Sequence[ResultVersion], outputs: Sequence[str]) -> TextRows:
    """A row per version, oldest first. Removed rows keep their last values, so they mark nothing."""
    columns = ["batch_id", "planned at", "cause", *outputs, "decided by"]
    rows = [
        {
            **version.values,
            "batch_id": version.batch_id,
            "planned at": utc(version.plan_time_ms),
            "cause": _cause(definition, version),
            "decided by": _decided_by(definition, version),
        }
        for version in versions
    ]
    marked = [
        (place, columns.index(name))
        for place, (before, version) in enumerate(pairwise(versions), 1)
        for name in outputs
        if version.change == "changed" and version.values[name] != before.values[name]
    ]
    text = text_rows(definition, rows, columns)
    return TextRows(text.columns, text.cells, marked=marked)


def _cause(definition: Definition, version: ResultVersion) -> str:
    """Cause of a version, with the sessions that it replaces."""

    def value(name: str, of: Mapping[str, Any]) -> str:
        [[text]] = text_rows(definition, [of], [name]).cells
        return f"{name} {text}"

    replaced = [
        f"{bounds_words(old.bounds_ms)} ({', '.join(value(name, old.values) for name in old.values)})"
        for old in version.took_place_of
    ]
    return f"{version.why}; replaces {', '.join(replaced)}" if replaced else version.why


def _decided_by(definition: Definition, version: ResultVersion) -> str:
    if not version.who:
        return ""
    hides = definition.pages.hide and version.who == BY_ITSELF  # such a reason may list windows
    return f"{version.who}: {HIDDEN if hides else version.reason or 'no reason given'}"


def _events(definition: Definition, events: Sequence[WindowEvent], last: Sequence[str]) -> TextRows:
    again = ["readmitted by"] if any(event.readmitted_by is not None for event in events) else []
    values = [*events[0].values] if events else []
    rows = [
        {
            **event.values,
            "event_time": utc(event.time_ms),
            "source_file": event.file,
            "source_row": event.row,
            "batch_id": event.batch_id,
            "readmitted by": "" if event.readmitted_by is None else f"batch {event.readmitted_by}",
            "why": event.why,
        }
        for event in events[:EVENTS_SHOWN]
    ]
    return text_rows(definition, rows, ["event_time", *values, "source_file", "source_row", "batch_id", *again, *last])
