"""The plan of the rerun that takes a removal (`windowlib.source.removals`): what it puts in the place of what.

Such a rerun covers all the events of the files that are gone and of those in their place. It names both in its plan and
moves the cursor past the removal, so after its commit what was read is what the table holds there.
"""

from __future__ import annotations

import json
from dataclasses import replace

from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant
from windowlib.model.rerun import TimeRange
from windowlib.source import listing as source
from windowlib.source.delta_source import CURSOR, Cursor
from windowlib.source.found import SourceError
from windowlib.source.removals import Removal, command, span_of, title, ways_on
from windowlib.tables.ledger_rows import Commit, Plan
from windowlib.tables.opened import Tables
from windowlib.tables.rerun import Rerun, RerunRefused, can_rerun
from windowlib.tables.set_aside import files_set_aside

ITSELF = "windowlib"  # who asks for a rerun that no operator has asked for


def due(definition: Definition, tables: Tables, commit: Commit, look: source.Look) -> Removal | None:
    """The removal that is next: every file before it is read."""
    cursor = source.cursor_of(definition, commit)
    if cursor is None:
        return None
    arrived = source.arrivals(definition, tables, commit, look(definition, cursor))
    unread = source.new_files(definition, tables, commit, arrived.files)
    return None if unread else arrived.removal


def by_itself(definition: Definition, tables: Tables, commit: Commit, plan: Plan, removal: Removal) -> Plan:
    """The plan of the rerun that a run does without being asked, from one without files.

    Raises `SourceError` where an operator must decide.
    """
    span = _span(definition, tables, commit, removal, plan.plan_time_ms)
    if _needs_operator(definition, removal, span) or span is None:
        raise SourceError(ways_on(definition, removal, span))
    asked = Rerun(span.from_ms, span.to_ms, f"{title(definition, removal)} removed rows", ITSELF)
    return taken(definition, tables, commit, replace(plan, rerun=asked), removal)


def next_removal(definition: Definition, commit: Commit | None, tables: Tables, now_ms: int) -> str | None:
    """What the next run meets in the source, and what becomes of it, in words; None without a removal that is next."""
    removal = due(definition, tables, commit, source.found_files) if commit else None
    if removal is None or commit is None:
        return None
    span = _span(definition, tables, commit, removal, now_ms)
    if _needs_operator(definition, removal, span):
        return ways_on(definition, removal, span)
    assert span is not None, "an operator decides where it is not known"
    times = f"{instant(span.from_ms)} to {instant(span.to_ms - 1)}"
    return f"{title(definition, removal)} removes rows: the next run recomputes the windows of their events, {times}"


def is_by_itself(plan: Plan) -> bool:
    """Whether a plan is one that a run has made without being asked for a rerun."""
    return plan.rerun is not None and plan.rerun.who == ITSELF and bool(plan.files or plan.replaces)


def taken(definition: Definition, tables: Tables, commit: Commit, plan: Plan, removal: Removal) -> Plan:
    """The plan of a rerun with a removal, or as it is where its range concerns none of the removal's events.

    Raises `RerunRefused` where it concerns some of them, and not all.
    """
    assert plan.rerun is not None, "it is a rerun"
    span, asked = _span(definition, tables, commit, removal, plan.plan_time_ms), plan.rerun.range
    if span is None or asked.to_ms <= span.from_ms or span.to_ms <= asked.from_ms:
        return plan
    if removal.has_vectors:
        raise RerunRefused(ways_on(definition, removal, span))
    if not asked.holds(span):
        raise RerunRefused(
            f"{title(definition, removal)} removes rows, and concerns events from {instant(span.from_ms)} to"
            f" {instant(span.to_ms - 1)}, outside of what this rerun recomputes. Rerun all of it:"
            f" {command(definition, span)}"
        )
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
    return span_of(definition, removal, source.spans_read(tables, commit), now_ms)


def _needs_operator(definition: Definition, removal: Removal, span: TimeRange | None) -> bool:
    asks = definition.source.removals != "rerun"
    return asks or removal.has_vectors or span is None or not can_rerun(definition)
