"""The plan of the rerun that takes a removal (`windowlib.source.removals`): what it puts in the place of what.

Such a rerun covers all the events of the files that are gone and of those in their place. It names both in its plan and
moves the cursor past the removal, so after its commit what was read is what the table holds there.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant
from windowlib.definition.source import Source
from windowlib.model.rerun import TimeRange
from windowlib.plans.partitions import DAY_MS
from windowlib.source import listing as source
from windowlib.source.delta_source import CURSOR, Cursor
from windowlib.source.found import SourceError
from windowlib.source.removals import Removal, Spans, command, compacted, is_too_long, span_of, title, ways_on
from windowlib.tables.ledger_rows import Commit, Plan
from windowlib.tables.opened import Tables
from windowlib.tables.rerun import LONGEST_DAYS, Rerun, RerunRefused
from windowlib.tables.set_aside import files_set_aside

ITSELF = "windowlib"  # who asks for a rerun that no operator has asked for
SLACK_MS = DAY_MS  # sessions reach so far beyond a range, as a rule; where one reaches further, it is refused


def due(definition: Definition, tables: Tables, commit: Commit, look: source.Look) -> Removal | None:
    """The removal that is next: every file before it is read."""
    cursor = source.cursor_of(definition.source, commit)
    if cursor is None:
        return None
    arrived = source.arrivals(definition.source, tables, commit, look(definition.source, cursor))
    if arrived.removal is None or source.new_files(definition.source, tables, commit, arrived):
        return None
    return with_compacted(definition, tables, commit, arrived.removal)


def with_compacted(definition: Definition, tables: Tables, commit: Commit, removal: Removal) -> Removal:
    """The same with the files near it that were compacted and deleted since they were read: it takes those up, too."""
    spans = source.spans_read(tables, commit)
    latest_ms = commit.at_ms + definition.watermark.max_future_skew_ms
    while (span := span_of(definition.source, removal, spans, latest_ms)) and (
        more := _compacted(definition.source, spans, removal.last, span, removal.gone)
    ):
        removal = replace(removal, gone=removal.gone | more.gone, fresh=(*removal.fresh, *more.fresh))
    return removal


def _compacted(of: Source, spans: Spans, version: int, near: TimeRange, gone: Collection[str]) -> Removal | None:
    """What is in the place of files with events near a range that were read, then compacted and deleted."""
    around = TimeRange(near.from_ms - SLACK_MS, near.to_ms + SLACK_MS)
    missing = {
        path
        for path, span in spans.items()
        if span and path not in gone and span.from_ms < around.to_ms and around.from_ms < span.to_ms
        if not (of.path / path).is_file()
    }
    read = {path: span for path, span in spans.items() if path not in gone}
    return compacted(of, version, read, missing) if missing else None


def by_itself(definition: Definition, tables: Tables, commit: Commit, plan: Plan, removal: Removal) -> Plan:
    """The plan of the rerun that a run does without being asked, from one without files.

    Raises `SourceError` where an operator must decide.
    """
    span = _span(definition, tables, commit, removal, plan.plan_time_ms)
    if _needs_operator(definition, removal, span) or span is None:
        raise SourceError(_ways_on(definition, removal, span))
    asked = Rerun(span.from_ms, span.to_ms, f"{title(definition.source, removal)} removed rows", ITSELF)
    return taken(definition, tables, commit, replace(plan, rerun=asked), removal)


def next_removal(definition: Definition, commit: Commit | None, tables: Tables, now_ms: int) -> str | None:
    """What the next run meets in the source, and what becomes of it, in words; None without a removal that is next."""
    removal = due(definition, tables, commit, source.found_files) if commit else None
    if removal is None or commit is None:
        return None
    span = _span(definition, tables, commit, removal, now_ms)
    if _needs_operator(definition, removal, span):
        return _ways_on(definition, removal, span)
    assert span is not None, "an operator decides where it is not known"
    times = f"{instant(span.from_ms)} to {instant(span.to_ms - 1)}"
    what = f"{title(definition.source, removal)} removes rows"
    return f"{what}: the next run recomputes the windows of their events, {times}"


def is_by_itself(plan: Plan) -> bool:
    """Whether a plan is one that a run has made without being asked for a rerun."""
    return plan.rerun is not None and plan.rerun.who == ITSELF and bool(plan.files or plan.replaces)


def read_again(definition: Definition, tables: Tables, commit: Commit, plan: Plan) -> Plan:
    """The plan of a rerun with what is in the place of files that were compacted and deleted; as it is without any.

    Raises `RerunRefused` where its range does not cover all of their events.
    """
    cursor = source.cursor_of(definition.source, commit)
    assert plan.rerun is not None, "it is a rerun"
    if cursor is None or cursor.version < 0 or plan.rerun.late_only:
        return plan
    spans, quiet = source.spans_read(tables, commit), _quiet(definition.source, cursor)
    found = _compacted(definition.source, spans, quiet, plan.rerun.range, ())
    if found is None:
        return plan
    whole = with_compacted(definition, tables, commit, found)
    span = _span(definition, tables, commit, whole, plan.plan_time_ms)
    if span is None or not plan.rerun.range.holds(span):
        copied = "recompute everything: run a copy of the definition under another name over the same source"
        return _refuse_part(definition.source, whole, span, "has put rows that were read into other files", copied)
    return _with(tables, plan, whole)


def taken(definition: Definition, tables: Tables, commit: Commit, plan: Plan, removal: Removal) -> Plan:
    """The plan of a rerun with a removal, or as it is where its range concerns none of the removal's events.

    Raises `RerunRefused` where it concerns some of them, and not all.
    """
    assert plan.rerun is not None, "it is a rerun"
    span, asked = _span(definition, tables, commit, removal, plan.plan_time_ms), plan.rerun.range
    if span is None or asked.to_ms <= span.from_ms or span.to_ms <= asked.from_ms:
        return plan
    if removal.has_vectors:
        raise RerunRefused(_ways_on(definition, removal, span))
    if not asked.holds(span):
        by_itself = f'set source.removals = "rerun" in {definition.file}, and a run recomputes all of it'
        return _refuse_part(definition.source, removal, span, "removes rows", by_itself)
    return _with(tables, plan, removal)


def _quiet(of: Source, cursor: Cursor) -> int:
    """The last version up to which no row has come or gone since a cursor."""
    last = cursor.version
    for version in source.found_files(of, cursor).versions:
        if version.changes_rows and version.touched:
            break
        last = version.number
    return last


def _refuse_part(of: Source, removal: Removal, span: TimeRange | None, what: str, otherwise: str) -> Plan:
    """Raises `RerunRefused`; `otherwise` says how to continue where all of it is longer than a rerun can be."""
    times = f", and concerns events from {instant(span.from_ms)} to {instant(span.to_ms - 1)}" if span else ""
    enough = f" Rerun all of it: {command(of, span)}" if span else ""
    if span and is_too_long(span):
        enough = f" That is more than the {LONGEST_DAYS} days of one rerun: {otherwise}"
    raise RerunRefused(f"{title(of, removal)} {what}{times}, outside of what this rerun recomputes.{enough}")


def _with(tables: Tables, plan: Plan, removal: Removal) -> Plan:
    aside = files_set_aside(tables.root)
    fresh = [file for file in removal.fresh if file.path not in aside]
    kept = {**json.loads(plan.definition), CURSOR: Cursor(removal.last).to_json()}
    return replace(
        plan,
        files=tuple(source.numbered(fresh, plan.from_sequence)),
        replaces=tuple(sorted(removal.gone)),
        definition=json.dumps(kept, sort_keys=True),
    )


def _span(definition: Definition, tables: Tables, commit: Commit, removal: Removal, now_ms: int) -> TimeRange | None:
    latest_ms = now_ms + definition.watermark.max_future_skew_ms
    return span_of(definition.source, removal, source.spans_read(tables, commit), latest_ms)


def _ways_on(definition: Definition, removal: Removal, span: TimeRange | None) -> str:
    return ways_on(definition.source, removal, span, definition.never_rerun)


def _needs_operator(definition: Definition, removal: Removal, span: TimeRange | None) -> bool:
    asks = definition.source.removals != "rerun"
    return asks or removal.has_vectors or span is None or definition.never_rerun is not None
