"""All that the page of one pipeline says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from windowlib.definition.definition import Definition
from windowlib.definition.toml.durations import UNITS
from windowlib.delta.statistics import overlapping
from windowlib.inspection.late.what_if import WhatIf, what_if
from windowlib.inspection.lineage.batch_runs import BatchRun
from windowlib.inspection.lineage.cuts import EVER, Cut
from windowlib.ledger.rows import BY_ITSELF
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.pages.balance import Account, accounts
from windowlib.pages.changes import RecentChanges, changes
from windowlib.pages.gaps import step_ms
from windowlib.pages.history import CheckHistory, CheckOutcome, anchor_of, histories, outcomes_of
from windowlib.pages.hours import Hour, hour_notes, hours, newest_event_ms
from windowlib.pages.last_verification import LastVerification, verified
from windowlib.pages.newest_rows import RUNS_SHOWN, RecentRun
from windowlib.pages.overview import CheckMark, Overview, mark, overview
from windowlib.pages.pipeline_state import ObservedPipeline
from windowlib.pages.rows import LateHour, RefusedRows, TextRows, in_flight, late_hours, refused, results
from windowlib.pages.trends import Trend, trends
from windowlib.pages.waiting_batch import put_away
from windowlib.publication.key import CannotLook
from windowlib.reruns.preview_text import HIDDEN, title

LISTED = 20  # runs, each with its accounts
LATE_READ = 50_000  # late events that the what-if looks at
WHAT_IF_DAYS = (30, 7, 1)


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch that its checks refused. `approve` and `abandon` are commands to be pasted."""

    batch_id: int
    since_ms: int | None
    files: Sequence[str]
    failed: Sequence[CheckOutcome]
    accounts: Sequence[Account]
    put_away: Sequence[TextRows]
    approve: str
    abandon: str


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list: its accounts, its checks, and what it was (`title`) where it did not just read what is new."""

    run: RecentRun
    mark: CheckMark | None
    accounts: Sequence[Account]
    title: str | None

    @property
    def why(self) -> str | None:
        """Who asked for it, or let it through, and why."""
        asked = self.run.rerun or self.run.decision
        if asked:
            return f"{asked.who}: {asked.reason or 'no reason given'}"
        if self.run.approved_by:
            return f"approved by {self.run.approved_by}: {self.run.approved_because}"
        return None


@dataclass(frozen=True, slots=True)
class OperatorDecision:
    """Something an operator asked for or decided."""

    at_ms: int
    what: str
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The facts of the page; times are ms, `as_of_ms` when it was looked at."""

    as_of_ms: int
    overview: Overview
    definition: Definition
    newest_event_ms: int | None
    in_flight_count: int
    in_flight: TextRows
    waiting: WaitingBatch | None
    changes: RecentChanges | None
    hours: Sequence[Hour]
    hour_notes: Sequence[str]
    gap_step_ms: int | None
    trends: Sequence[Trend]
    runs: Sequence[ListedRun]
    checks: Sequence[CheckHistory]
    refused: Sequence[RefusedRows]
    late: Sequence[LateHour]
    what_if: WhatIf | None
    decided: Sequence[OperatorDecision]
    results: TextRows
    verified: LastVerification | None
    runs_looked_at: int
    set_aside: Sequence[str]
    situations: Sequence[str]


def pipeline(found: ObservedPipeline, *, keep: bool = False) -> Pipeline:
    """All about a pipeline that was looked at; with `keep` the next look finds what was counted (`hour_counts`)."""
    definition, tables, runs = found.definition, found.tables, found.tail.runs
    shown, versions = found.tail.in_force[:RUNS_SHOWN], runs[0].versions if runs else {}
    refused_rows, late = refused(definition, tables, shown) if runs else [], late_hours(definition, tables, versions)
    on_page = [*(anchor_of(one.reason) for one in refused_rows), *(["late"] if late else []), "results"]
    marks = {one.batch_id: mark(one) for one in found.checked}
    return Pipeline(
        as_of_ms=found.now_ms,
        overview=overview(found),
        definition=definition,
        newest_event_ms=newest_event_ms(shown),
        in_flight_count=found.status.windows_in_flight,
        in_flight=in_flight(definition, tables, versions),
        waiting=_waiting(found),
        changes=changes(tables, runs, found.now_ms, is_whole=found.tail.is_whole),
        hours=hours(definition, tables, shown, keep=keep),
        hour_notes=[*hour_notes(definition)],
        gap_step_ms=step_ms(definition.spec),
        trends=trends(shown, {one.batch_id for one in found.checked if one.failed}),
        runs=[_listed(definition, run, marks.get(run.batch_id)) for run in runs[:LISTED]],
        checks=histories(definition, found.checked_in_force, on_page),
        refused=refused_rows,
        late=late,
        what_if=_what_if(found),
        decided=_decided(found),
        results=_results(found, versions),
        verified=verified(definition, found.status.verified),
        runs_looked_at=len(shown),
        set_aside=[f"{one.path}: {one.reason} ({one.who})" for one in found.status.set_aside],
        situations=[one.line for one in found.status.situations],
    )


def _listed(definition: Definition, run: RecentRun, found: CheckMark | None) -> ListedRun:
    what = _title(definition, run) or ("the end of the input: every window fires" if run.finished else None)
    return ListedRun(run, found, accounts(run.figures), what)


def _title(definition: Definition, run: RecentRun) -> str | None:
    """What an operator asked for or decided, without what `[pages]` hides."""
    if run.rerun:
        return title(run.rerun, definition.source.key, definition.hidden)
    return run.decision.title if run.decision else None


def _results(found: ObservedPipeline, versions: Mapping[str, int]) -> TextRows:
    """The newest results; without commands where the definition was edited, which would be refused."""
    made = results(found.definition, found.tables, versions)
    return made if found.status.same_definition else replace(made, commands=())


def _waiting(found: ObservedPipeline) -> WaitingBatch | None:
    if (plan := found.waiting) is None:
        return None
    checked = next((one for one in found.checked if one.batch_id == plan.batch_id), None)
    outcomes = outcomes_of(found.definition, checked) if checked else []
    failed = [one for one in outcomes if not one.result.success]
    approve, abandon = found.commands(plan)
    return WaitingBatch(
        batch_id=plan.batch_id,
        since_ms=found.tail.refused_at_ms,
        files=[file.path for file in plan.files],
        failed=sorted(failed, key=lambda one: one.result.severity != "critical"),
        accounts=accounts(checked.figures)[:1] if checked else [],
        put_away=put_away(found.definition, found.tables, found.ledger),
        approve=approve,
        abandon=abandon,
    )


def _decided(found: ObservedPipeline) -> list[OperatorDecision]:
    """Reruns and decisions, newest first. Why a run gave up a rerun may list windows."""
    hides = bool(found.definition.pages.hide)
    said = [
        OperatorDecision(one.at_ms, one.title, one.who, HIDDEN if hides and one.who == BY_ITSELF else one.reason)
        for one in found.tail.said
    ]
    asked = [
        OperatorDecision(run.at_ms, what, asked.who, asked.reason)
        for run in found.tail.runs
        if (asked := run.rerun or run.decision) and (what := _title(found.definition, run))
    ]
    return sorted([*said, *asked], key=lambda one: -one.at_ms)[:LISTED]


def _what_if(found: ObservedPipeline) -> WhatIf | None:
    """The newest late events under other allowances; None where none is late, or no larger allowance is usual."""
    if not (runs := found.tail.runs):
        return None
    run = runs[0]
    out_ms = MIN_WATERMARK if run.watermark_out_ms is None else run.watermark_out_ms
    unknown = MIN_WATERMARK, MIN_WATERMARK  # what was late; nothing here asks
    newest = BatchRun(run.batch_id, run.plan_time_ms or 0, MIN_WATERMARK, out_ms, *unknown, run.at_ms, run.versions)
    cut = Cut(found.definition, newest, {newest.batch_id: newest})
    try:
        made = what_if(cut, [], _late_span(found, run), published_too=False)
    except CannotLook:
        return None
    return made if made.late else None


def _late_span(found: ObservedPipeline, run: RecentRun) -> TimeRange:
    """The event times whose late events are few enough to be looked at one by one."""
    files = found.tables["late_events"].files(run.versions.get("late_events"))
    newest_ms = newest_event_ms(found.tail.in_force[:RUNS_SHOWN])
    if sum(file.rows for file in files) <= LATE_READ or newest_ms is None:
        return EVER
    span = EVER
    for days in WHAT_IF_DAYS:
        span = TimeRange(newest_ms - days * UNITS["d"], newest_ms + 1)
        if sum(file.rows for file in overlapping(files, "event_time", "event_time", span)) <= LATE_READ:
            break
    return span
