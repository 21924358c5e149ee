"""Facts on the page of one pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import iso_instant
from windowlib.definition.toml.durations import UNITS
from windowlib.delta.statistics import overlapping
from windowlib.delta.tables import Tables
from windowlib.inspection.late.what_if import WhatIf, what_if
from windowlib.inspection.lineage.batch_runs import BatchRun
from windowlib.inspection.lineage.cuts import EVER, Cut
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.pages.balance import Account, accounts
from windowlib.pages.changes.since_moment import ChangesSince, Moment, known_changes
from windowlib.pages.changes.waiting import WaitingChanges, waiting_changes
from windowlib.pages.counts.column_profiles import ColumnProfile, column_profiles
from windowlib.pages.days import Days, days
from windowlib.pages.decided import request_title
from windowlib.pages.gaps import step_ms
from windowlib.pages.history import CheckHistory, CheckOutcome, anchor_of, histories, outcomes_of
from windowlib.pages.hours import Hour, hour_notes, hours, newest_event_ms
from windowlib.pages.last_verification import LastVerification, last_verification
from windowlib.pages.newest_rows import RUNS_SHOWN, RecentRun
from windowlib.pages.overview import CheckMark, Overview, mark, overview
from windowlib.pages.pipeline_state import ObservedPipeline
from windowlib.pages.rows import LateHour, RefusedRows, TextRows, in_flight, late_hours, refused, results
from windowlib.pages.trends import Trend, trends
from windowlib.pages.waiting_batch import rows_in_no_window
from windowlib.publication.key import CannotLook

LISTED = 20  # runs
LATE_READ = 50_000  # late events that the what-if reads
WHAT_IF_DAYS = (30, 7, 1)


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch that its checks refused. `approve` and `abandon` are commands to paste."""

    batch_id: int
    since_ms: int | None
    files: Sequence[str]
    failed: Sequence[CheckOutcome]
    changes: WaitingChanges | None
    accounts: Sequence[Account]
    in_no_window: Sequence[TextRows]
    approve: str
    abandon: str


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list: its accounts and checks, and a `title` if it did more than read new files."""

    run: RecentRun
    mark: CheckMark | None
    accounts: Sequence[Account]
    title: str | None

    @property
    def why(self) -> str | None:
        """Operator who requested or approved the run, with the reason."""
        request = self.run.rerun or self.run.decision
        if request:
            return f"{request.who}: {request.reason or 'no reason given'}"
        if self.run.approved_by:
            return f"approved by {self.run.approved_by}: {self.run.approved_because}"
        return None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Facts of the page. Times are in ms; `as_of_ms` is the time of observation."""

    as_of_ms: int
    overview: Overview
    definition: Definition
    newest_event_ms: int | None
    in_flight_count: int
    in_flight: TextRows
    waiting: WaitingBatch | None
    days: Days
    changes: Sequence[ChangesSince]
    hours: Sequence[Hour]
    hour_notes: Sequence[str]
    gap_step_ms: int | None
    trends: Sequence[Trend]
    runs: Sequence[ListedRun]
    checks: Sequence[CheckHistory]
    profiles: Sequence[ColumnProfile]
    refused: Sequence[RefusedRows]
    late: Sequence[LateHour]
    what_if: WhatIf | None
    results: TextRows
    verified: LastVerification | None
    runs_looked_at: int
    set_aside: Sequence[str]
    situations: Sequence[str]

    @property
    def rerun_command(self) -> str:
        """Command that previews a rerun of the newest day with results; empty if no rerun is possible."""
        day = next((day for day in self.days.days if day.results), None)
        if day is None or self.definition.never_rerun:
            return ""
        bounds = ("--from", str(iso_instant(day.start_ms)), "--to", str(iso_instant(day.end_ms)))
        return to_paste("rerun", self.definition.file, *bounds, *WHY, "--dry-run")


def pipeline(observed: ObservedPipeline, *, since: Moment | None = None, keep: bool = False) -> Pipeline:
    """Facts of an observed pipeline. The table of days has the changes since a moment, by default since a day ago.

    With `keep`, counts are stored for the next page (`count_cache`).
    """
    definition, tables, runs = observed.definition, observed.tables, observed.tail.runs
    shown, versions = observed.tail.in_force[:RUNS_SHOWN], runs[0].versions if runs else {}
    refused_rows, late = refused(definition, tables, shown) if runs else [], late_hours(definition, tables, versions)
    on_page = [*(anchor_of(rows.reason) for rows in refused_rows), *(["late"] if late else []), "results"]
    row, since_ms = overview(observed), since.since_ms if since else observed.now_ms - UNITS["d"]
    by_day = days(definition, tables, observed.tail, row.final_ms, since_ms, keep=keep)
    marks = {batch.batch_id: mark(batch) for batch in observed.checked}
    return Pipeline(
        as_of_ms=observed.now_ms,
        overview=row,
        definition=definition,
        newest_event_ms=newest_event_ms(shown),
        in_flight_count=observed.status.windows_in_flight,
        in_flight=in_flight(definition, tables, versions),
        waiting=_waiting(observed),
        days=by_day,
        changes=_changes(observed, by_day, since, keep=keep),
        hours=hours(definition, tables, shown, keep=keep),
        hour_notes=[*hour_notes(definition)],
        gap_step_ms=step_ms(definition.spec),
        trends=trends(shown, {batch.batch_id for batch in observed.checked if batch.failed}),
        runs=[_listed(definition, run, marks.get(run.batch_id)) for run in runs[:LISTED]],
        checks=histories(definition, observed.checked_in_force, on_page),
        profiles=_profiles(definition, tables, versions, by_day, shown),
        refused=refused_rows,
        late=late,
        what_if=_what_if(observed),
        results=_results(observed, versions),
        verified=last_verification(definition, observed.status.verified),
        runs_looked_at=len(shown),
        set_aside=[f"{file.path}: {file.reason} ({file.who})" for file in observed.status.set_aside],
        situations=[situation.line for situation in observed.status.situations],
    )


def _changes(observed: ObservedPipeline, by_day: Days, since: Moment | None, *, keep: bool) -> list[ChangesSince]:
    """Changes since each moment that a reader can choose. The chosen moment comes first."""
    changes = known_changes(observed.definition, observed.tables, observed.tail, by_day, keep=keep)
    moments = [*([since] if since else []), *changes.moments(observed.now_ms)] if observed.tail.runs else []
    return [changes.since(moment) for moment in moments]


def _listed(definition: Definition, run: RecentRun, check_mark: CheckMark | None) -> ListedRun:
    what = request_title(definition, run) or ("the end of the input: every window fires" if run.finished else None)
    return ListedRun(run, check_mark, accounts(run.figures), what)


def _profiles(
    definition: Definition, tables: Tables, versions: Mapping[str, int], by_day: Days, shown: Sequence[RecentRun]
) -> list[ColumnProfile]:
    """Profiles of the result columns that the page may show; empty without results."""
    columns, files = [*definition.source.key, *definition.outputs], tables["results"].files(versions.get("results"))
    figures = (run.figures for run in shown if run.rerun is None)  # a rerun changes too few rows to compare
    return column_profiles(columns, definition.hidden, files, by_day.values, figures)


def _results(observed: ObservedPipeline, versions: Mapping[str, int]) -> TextRows:
    """Newest results. They have no commands if the definition was edited, because the commands would be refused."""
    rows = results(observed.definition, observed.tables, versions)
    return rows if observed.status.same_definition else replace(rows, commands=(), queries=())


def _waiting(observed: ObservedPipeline) -> WaitingBatch | None:
    if (plan := observed.waiting) is None:
        return None
    checked = next((batch for batch in observed.checked if batch.batch_id == plan.batch_id), None)
    outcomes = outcomes_of(observed.definition, checked) if checked else []
    failed = [outcome for outcome in outcomes if not outcome.result.success]
    approve, abandon = observed.commands(plan)
    return WaitingBatch(
        batch_id=plan.batch_id,
        since_ms=observed.tail.refused_at_ms,
        files=[file.path for file in plan.files],
        failed=sorted(failed, key=lambda outcome: outcome.result.severity != "critical"),
        changes=waiting_changes(observed.definition, observed.tables, observed.ledger),
        accounts=accounts(checked.figures)[:1] if checked else [],
        in_no_window=rows_in_no_window(observed.definition, observed.tables, observed.ledger),
        approve=approve,
        abandon=abandon,
    )


def _what_if(observed: ObservedPipeline) -> WhatIf | None:
    """Newest late events under other values of allowed lateness; None if no event is late, or it cannot be computed."""
    if not (runs := observed.tail.runs):
        return None
    run = runs[0]
    out_ms = MIN_WATERMARK if run.watermark_out_ms is None else run.watermark_out_ms
    unknown = MIN_WATERMARK, MIN_WATERMARK  # bounds of late events, which are not used here
    newest = BatchRun(run.batch_id, run.plan_time_ms or 0, MIN_WATERMARK, out_ms, *unknown, run.at_ms, run.versions)
    cut = Cut(observed.definition, newest, {newest.batch_id: newest})
    try:
        outcome = what_if(cut, [], _late_span(observed, run), published_too=False)
    except CannotLook:
        return None
    return outcome if outcome.late else None


def _late_span(observed: ObservedPipeline, run: RecentRun) -> TimeRange:
    """Range of event times with few enough late events to read them one by one."""
    files = observed.tables["late_events"].files(run.versions.get("late_events"))
    newest_ms = newest_event_ms(observed.tail.in_force[:RUNS_SHOWN])
    if sum(file.rows for file in files) <= LATE_READ or newest_ms is None:
        return EVER
    span = EVER
    for back in WHAT_IF_DAYS:
        span = TimeRange(newest_ms - back * UNITS["d"], newest_ms + 1)
        if sum(file.rows for file in overlapping(files, "event_time", "event_time", span)) <= LATE_READ:
            break
    return span
