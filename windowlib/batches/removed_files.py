"""Plan of a rerun that processes a removal of a Delta source (`windowlib.source.delta.removals`).

Such a rerun covers all events of the removed files and of the files in their place. Its plan names the old and the
new files, and moves the cursor past the removal. After its commit, the pipeline has read the table's current files.
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

ITSELF = "windowlib"  # author of a rerun that no operator requested
SLACK_MS = DAY_MS  # sessions usually extend less beyond a range; a rerun is refused if a session extends further


@dataclass(frozen=True, slots=True)
class Reader:
    """Source of a pipeline, the files read from it up to a commit, and the settings that decide about a removal.

    never: reason why no window of the pipeline can be rerun, or None if windows can be rerun
    """

    source: Source
    uses: Uses
    max_future_skew_ms: int
    never: str | None
    tables: Tables
    commit: Commit

    @classmethod
    def of(cls, definition: Definition, tables: Tables, commit: Commit) -> Reader:
        """Reader of the source of a definition."""
        skew_ms, never = definition.watermark.max_future_skew_ms, definition.never_rerun
        return cls(definition.source, definition.uses, skew_ms, never, tables, commit)

    def spans(self) -> Spans:
        """Event times of each file that was read."""
        return listing.spans_read(self.tables, self.commit)

    def span_of(self, removal: Removal, spans: Spans, now_ms: int) -> TimeRange | None:
        """Range of the event times that a removal affects, without times too far in the future to be admitted."""
        return span_of(self.source, removal, spans, now_ms + self.max_future_skew_ms)

    def needs_operator(self, removal: Removal, span: TimeRange | None) -> bool:
        """Tests if only an operator may process a removal."""
        is_unclear = removal.has_vectors or bool(removal.aside) or self.never is not None
        return is_unclear or span is None or self.source.removals != "rerun"

    def ways_on(self, removal: Removal, span: TimeRange | None) -> str:
        """Message with the reason why a run stops at a removal, and the ways to continue."""
        return ways_on(self.source, removal, span, self.never)


def due_removal(reader: Reader, look: listing.Look) -> Removal | None:
    """Next removal to process, once every file before it is read; None if there is no such removal."""
    source, tables, commit = reader.source, reader.tables, reader.commit
    cursor = listing.cursor_of(source, commit)
    if cursor is None:
        return None
    _, arrived = listing.arrivals(source, tables, commit, cursor, look)
    if arrived.removal is None or listing.new_files(source, reader.uses, tables, commit, arrived):
        return None
    return with_compacted(reader, arrived.removal)


def with_compacted(reader: Reader, removal: Removal) -> Removal:
    """Extends a removal by files with events near its range that were read, and then compacted and deleted."""
    spans = reader.spans()
    while (span := reader.span_of(removal, spans, reader.commit.at_ms)) and (
        more := _compacted(reader.source, spans, removal.last, span, removal.gone)
    ):
        removal = replace(removal, gone=removal.gone | more.gone, fresh=(*removal.fresh, *more.fresh))
    return removal


def _compacted(source: Source, spans: Spans, version: int, near: TimeRange, gone: Collection[str]) -> Removal | None:
    """Removal of files that were read, then compacted and deleted, and that have events near a range.

    None without such files.
    """
    around = TimeRange(near.from_ms - SLACK_MS, near.to_ms + SLACK_MS)
    needed = [
        path
        for path, span in spans.items()
        if span and path not in gone and span.from_ms < around.to_ms and around.from_ms < span.to_ms
    ]
    missing = {path for path, size in zip(needed, source.store.sizes(needed), strict=True) if size is None}
    read = {path: span for path, span in spans.items() if path not in gone}
    return compacted(source, version, read, missing) if missing else None


def automatic_rerun(reader: Reader, plan: Plan, removal: Removal) -> Plan:
    """Plan of the rerun that a run starts without a request, from a plan without files.

    Raises `SourceError` if an operator must decide.
    """
    span = reader.span_of(removal, reader.spans(), plan.plan_time_ms)
    if reader.needs_operator(removal, span) or span is None:
        raise SourceError(reader.ways_on(removal, span))
    event = "removed rows" if removal.removes_rows else "moved already read rows into other files, with new rows"
    rerun = Rerun(span.from_ms, span.to_ms, f"{title(reader.source, removal)} {event}", ITSELF)
    return with_removal(reader, replace(plan, rerun=rerun), removal)


def next_removal(reader: Reader, now_ms: int) -> str | None:
    """Sentence about the removal that the next run finds in the source, and its consequence; None without a removal."""
    removal = due_removal(reader, listing.found_files)
    if removal is None:
        return None
    span = reader.span_of(removal, reader.spans(), now_ms)
    if reader.needs_operator(removal, span):
        return reader.ways_on(removal, span)
    assert span is not None, "an operator decides if it is unknown"
    times = f"{instant(span.from_ms)} to {instant(span.to_ms - 1)}"
    return f"{happened(reader.source, removal)}: the next run recomputes the windows of their events, {times}"


def is_automatic(plan: Plan) -> bool:
    """Tests if a run made the plan of a rerun without a request."""
    return plan.rerun is not None and plan.rerun.who == ITSELF and bool(plan.files or plan.replaces)


def with_moved_rows(reader: Reader, plan: Plan) -> Plan:
    """Adds the replacements of compacted and deleted files to the plan of a rerun. Without such files, returns the
    plan.

    Raises `RerunRefused` if the rerun does not cover all events of these files, or if rows before them are unread.
    """
    cursor = listing.cursor_of(reader.source, reader.commit)
    assert plan.rerun is not None, "it is a rerun"
    if cursor is None or cursor.version < 0 or plan.rerun.late_only:
        return plan
    spans, (quiet, newest) = reader.spans(), _quiet(reader, cursor)
    moved = _compacted(reader.source, spans, quiet, plan.rerun.range, ())
    if moved is None:
        if newest > quiet and (later := _compacted(reader.source, spans, newest, plan.rerun.range, ())):
            first = to_paste("run", reader.source.file)
            raise RerunRefused(
                f"this rerun needs {title(reader.source, later)}, which moved already read rows into other files."
                f" This version or an earlier one also adds rows that no run has read. Read them first: `{first}`"
            )
        return plan
    whole = with_compacted(reader, moved)
    span = reader.span_of(whole, spans, plan.plan_time_ms)
    if span is None or not plan.rerun.range.holds(span):
        copied = "recompute everything: run a copy of the definition under another name over the same source"
        return _refuse_part(reader.source, whole, span, "moved rows", copied)
    return _with(reader, plan, whole)


def with_removal(reader: Reader, plan: Plan, removal: Removal) -> Plan:
    """Adds a removal to the plan of a rerun. Returns the plan unchanged if the rerun covers no event of the removal.

    Raises `RerunRefused` if the rerun covers only some of these events, or if an operator must decide first.
    """
    assert plan.rerun is not None, "it is a rerun"
    span, wanted = reader.span_of(removal, reader.spans(), plan.plan_time_ms), plan.rerun.range
    if span is None or wanted.to_ms <= span.from_ms or span.to_ms <= wanted.from_ms:
        return plan
    if removal.has_vectors or removal.aside:
        raise RerunRefused(reader.ways_on(removal, span))
    if not wanted.holds(span):
        setting = f'set source.removals = "rerun" in {reader.source.file}, and a run recomputes all of it'
        return _refuse_part(reader.source, removal, span, "removes rows", setting)
    return _with(reader, plan, removal)


def _quiet(reader: Reader, cursor: Cursor) -> tuple[int, int]:
    """Last version from a cursor on up to which every row has been read, and the newest version."""
    source, last = reader.source, cursor.version
    listed, arrived = listing.arrivals(source, reader.tables, reader.commit, cursor)
    newest = listed.versions[-1].number if listed.versions else last
    if arrived.removal is None and not listing.new_files(source, reader.uses, reader.tables, reader.commit, arrived):
        return newest, newest
    for version in listed.versions:
        is_passed_over = source.removals == "skip" and version.removed
        if version.changes_rows and version.touched and not is_passed_over:
            break
        last = version.number
    return last, newest


def _refuse_part(source: Source, removal: Removal, span: TimeRange | None, what: str, otherwise: str) -> Plan:
    """Raises `RerunRefused` for a rerun that covers only a part of a removal's events.

    otherwise: advice if the range of all events exceeds the longest rerun
    """
    times = f" of events from {instant(span.from_ms)} to {instant(span.to_ms - 1)}" if span else ""
    enough = f" Rerun the whole range: `{command(source, span)}`" if span else ""
    if span and is_too_long(span):
        enough = f" The whole range exceeds the {LONGEST_DAYS} days of one rerun: {otherwise}"
    raise RerunRefused(f"{title(source, removal)} {what}{times}. This rerun does not recompute all of them.{enough}")


def _with(reader: Reader, plan: Plan, removal: Removal) -> Plan:
    aside = files_set_aside(reader.tables.store)
    fresh = [file for file in removal.fresh if file.path not in aside]
    kept = {**plan.stored, CURSOR: Cursor(removal.last, table=table_id(reader.source)).to_json()}
    return replace(
        plan,
        files=tuple(listing.numbered(fresh, plan.from_sequence)),
        replaces=tuple(sorted(removal.gone)),
        definition=json.dumps(kept, sort_keys=True),
    )
