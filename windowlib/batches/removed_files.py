"""The plan of the rerun that takes a removal (`windowlib.source.delta.removals`): what it puts in the place of what.

Such a rerun covers all the events of the files that are gone and of those in their place. It names both in its plan and
moves the cursor past the removal, so after its commit what was read is what the table holds there.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.delta.tables import Tables
from windowlib.ledger.rerun_request import LONGEST_DAYS, Rerun, RerunRefused, is_too_long
from windowlib.ledger.rows import Commit, Plan
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.model.rerun import TimeRange
from windowlib.plans.partitions import DAY_MS
from windowlib.source import listing
from windowlib.source.delta.removal_messages import command, happened, title, ways_on
from windowlib.source.delta.removal_times import span_of
from windowlib.source.delta.removals import Removal, Spans, compacted
from windowlib.source.delta.source import CURSOR, Cursor, table_id
from windowlib.source.listed import SourceError

ITSELF = "windowlib"  # who asks for a rerun that no operator has asked for
SLACK_MS = DAY_MS  # sessions reach so far beyond a range, as a rule; where one reaches further, it is refused


@dataclass(frozen=True, slots=True)
class Reader:
    """A pipeline as the reader of its source: what it has read up to a commit, and what it can do about a removal.

    `never` says why none of its windows can be rerun.
    """

    source: Source
    uses: Uses
    max_future_skew_ms: int
    never: str | None
    tables: Tables
    commit: Commit

    @classmethod
    def of(cls, definition: Definition, tables: Tables, commit: Commit) -> Reader:
        """That of a definition."""
        skew_ms, never = definition.watermark.max_future_skew_ms, definition.never_rerun
        return cls(definition.source, definition.uses, skew_ms, never, tables, commit)

    def spans(self) -> Spans:
        """The times of the events of each file that was read."""
        return listing.spans_read(self.tables, self.commit)

    def span_of(self, removal: Removal, spans: Spans, now_ms: int) -> TimeRange | None:
        """The times of the events that a removal concerns, as far as they would be admitted."""
        return span_of(self.source, removal, spans, now_ms + self.max_future_skew_ms)

    def needs_operator(self, removal: Removal, span: TimeRange | None) -> bool:
        """Whether a run must not take a removal by itself."""
        asks = removal.has_vectors or bool(removal.aside) or self.never is not None
        return asks or span is None or self.source.removals != "rerun"

    def ways_on(self, removal: Removal, span: TimeRange | None) -> str:
        """Why a run stops at a removal, and how to go on, in words."""
        return ways_on(self.source, removal, span, self.never)


def due(reader: Reader, look: listing.Look) -> Removal | None:
    """The removal that is next: every file before it is read."""
    of, tables, commit = reader.source, reader.tables, reader.commit
    cursor = listing.cursor_of(of, commit)
    if cursor is None:
        return None
    arrived = listing.arrivals(of, tables, commit, look(of, cursor))
    if arrived.removal is None or listing.new_files(of, reader.uses, tables, commit, arrived):
        return None
    return with_compacted(reader, arrived.removal)


def with_compacted(reader: Reader, removal: Removal) -> Removal:
    """The same with the files near it that were compacted and deleted since they were read: it takes those up, too."""
    spans = reader.spans()
    while (span := reader.span_of(removal, spans, reader.commit.at_ms)) and (
        more := _compacted(reader.source, spans, removal.last, span, removal.gone)
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


def by_itself(reader: Reader, plan: Plan, removal: Removal) -> Plan:
    """The plan of the rerun that a run does without being asked, from one without files.

    Raises `SourceError` where an operator must decide.
    """
    span = reader.span_of(removal, reader.spans(), plan.plan_time_ms)
    if reader.needs_operator(removal, span) or span is None:
        raise SourceError(reader.ways_on(removal, span))
    did = "removed rows" if removal.removes_rows else "moved rows that were read into other files, with new ones"
    asked = Rerun(span.from_ms, span.to_ms, f"{title(reader.source, removal)} {did}", ITSELF)
    return taken(reader, replace(plan, rerun=asked), removal)


def next_removal(reader: Reader, now_ms: int) -> str | None:
    """What the next run meets in the source, and what becomes of it, in words; None without a removal that is next."""
    removal = due(reader, listing.found_files)
    if removal is None:
        return None
    span = reader.span_of(removal, reader.spans(), now_ms)
    if reader.needs_operator(removal, span):
        return reader.ways_on(removal, span)
    assert span is not None, "an operator decides where it is not known"
    times = f"{instant(span.from_ms)} to {instant(span.to_ms - 1)}"
    return f"{happened(reader.source, removal)}: the next run recomputes the windows of their events, {times}"


def is_by_itself(plan: Plan) -> bool:
    """Whether a plan is one that a run has made without being asked for a rerun."""
    return plan.rerun is not None and plan.rerun.who == ITSELF and bool(plan.files or plan.replaces)


def read_again(reader: Reader, plan: Plan) -> Plan:
    """The plan of a rerun with what is in the place of files that were compacted and deleted; as it is without any.

    Raises `RerunRefused` where its range does not cover all of their events.
    """
    cursor = listing.cursor_of(reader.source, reader.commit)
    assert plan.rerun is not None, "it is a rerun"
    if cursor is None or cursor.version < 0 or plan.rerun.late_only:
        return plan
    spans, (quiet, newest) = reader.spans(), _quiet(reader, cursor)
    found = _compacted(reader.source, spans, quiet, plan.rerun.range, ())
    if found is None:
        if newest > quiet and (later := _compacted(reader.source, spans, newest, plan.rerun.range, ())):
            first = to_paste("run", reader.source.file)
            raise RerunRefused(
                f"{happened(reader.source, replace(later, removes_rows=False))}, which this rerun needs, and before it"
                f" or in it came rows that no run has read yet; read those first: {first}"
            )
        return plan
    whole = with_compacted(reader, found)
    span = reader.span_of(whole, spans, plan.plan_time_ms)
    if span is None or not plan.rerun.range.holds(span):
        copied = "recompute everything: run a copy of the definition under another name over the same source"
        return _refuse_part(reader.source, whole, span, "has moved rows that were read into other files", copied)
    return _with(reader, plan, whole)


def taken(reader: Reader, plan: Plan, removal: Removal) -> Plan:
    """The plan of a rerun with a removal, or as it is where its range concerns none of the removal's events.

    Raises `RerunRefused` where it concerns some of them, and not all.
    """
    assert plan.rerun is not None, "it is a rerun"
    span, asked = reader.span_of(removal, reader.spans(), plan.plan_time_ms), plan.rerun.range
    if span is None or asked.to_ms <= span.from_ms or span.to_ms <= asked.from_ms:
        return plan
    if removal.has_vectors or removal.aside:
        raise RerunRefused(reader.ways_on(removal, span))
    if not asked.holds(span):
        by_itself = f'set source.removals = "rerun" in {reader.source.file}, and a run recomputes all of it'
        return _refuse_part(reader.source, removal, span, "removes rows", by_itself)
    return _with(reader, plan, removal)


def _quiet(reader: Reader, cursor: Cursor) -> tuple[int, int]:
    """The last version up to which no row is left to be read since a cursor, and the newest."""
    of, last = reader.source, cursor.version
    listed = listing.found_files(of, cursor)
    newest = listed.versions[-1].number if listed.versions else last
    arrived = listing.arrivals(of, reader.tables, reader.commit, listed)
    if arrived.removal is None and not listing.new_files(of, reader.uses, reader.tables, reader.commit, arrived):
        return newest, newest
    for version in listed.versions:
        is_passed_over = of.removals == "skip" and version.removed
        if version.changes_rows and version.touched and not is_passed_over:
            break
        last = version.number
    return last, newest


def _refuse_part(of: Source, removal: Removal, span: TimeRange | None, what: str, otherwise: str) -> Plan:
    """Raises `RerunRefused`; `otherwise` says how to continue where all of it is longer than a rerun can be."""
    times = f", and concerns events from {instant(span.from_ms)} to {instant(span.to_ms - 1)}" if span else ""
    enough = f" Rerun all of it: {command(of, span)}" if span else ""
    if span and is_too_long(span):
        enough = f" That is more than the {LONGEST_DAYS} days of one rerun: {otherwise}"
    raise RerunRefused(f"{title(of, removal)} {what}{times}, outside of what this rerun recomputes.{enough}")


def _with(reader: Reader, plan: Plan, removal: Removal) -> Plan:
    aside = files_set_aside(reader.tables.root)
    fresh = [file for file in removal.fresh if file.path not in aside]
    kept = {**plan.stored, CURSOR: Cursor(removal.last, table=table_id(reader.source)).to_json()}
    return replace(
        plan,
        files=tuple(listing.numbered(fresh, plan.from_sequence)),
        replaces=tuple(sorted(removal.gone)),
        definition=json.dumps(kept, sort_keys=True),
    )
