"""Status of a pipeline: newest commits, cause of the watermark, windows in flight, pending work.

The status is read from the Delta tables by delta-rs and from the listing of the source, without Spark. The tables are
read at the versions of the newest commit row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windowlib.batches.finished import late_after_finish
from windowlib.batches.may_run import columns_to_add, way_on
from windowlib.batches.planning import ledger_of
from windowlib.batches.removed_files import Reader, next_removal
from windowlib.contract.state_tables import OPEN_WINDOWS
from windowlib.contract.table import TableSpec
from windowlib.contract.tables import DQ_RESULTS, WATERMARKS
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import continues
from windowlib.definition.instants import instant, time_of
from windowlib.definition.toml.durations import format_duration
from windowlib.definition.toml.file import WatermarkSection
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.inspection.commits import Committed, newest_commits
from windowlib.inspection.reported_situations import ReportedSituation, situations
from windowlib.inspection.unfinished import erasure_begun, migration_begun
from windowlib.ledger import last_error
from windowlib.ledger.last_error import LastError
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.ledger.verifications import Verification
from windowlib.ledger.verifications import last as last_verification
from windowlib.model.errors import WindowError
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.model.windows import MIN_TIME_MS
from windowlib.source.folder import left_out
from windowlib.source.listing import waiting_files
from windowlib.source.marker import marker_of, words
from windowlib.storage.store import Store


@dataclass(frozen=True, slots=True)
class WatermarkStatus:
    """The watermark and the event that set it.

    `explanation` has sentences on the origin of the watermark and its next advance.
    """

    watermark_ms: int
    state: str
    set_by_batch: int
    event_time_ms: int | None
    source_file: str | None
    source_row: int | None
    explanation: list[str]


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """Outcome of the checks of the newest batch."""

    batch_id: int
    passed: int
    failed: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A batch that is planned and not committed. `advice` is the next step for the operator."""

    batch_id: int
    planned_at_ms: int
    files: int
    running: str | None
    rejection: str | None
    approved_by: str | None
    advice: str


@dataclass(frozen=True, slots=True)
class SetAsideFile:
    """A file that no run reads; `path` is relative to the source folder."""

    path: str
    at_ms: int
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class Status:
    """Status of a pipeline. A field is None or empty if it does not apply yet.

    `left_out` lists the files excluded by patterns. `removal` describes rows that a Delta source no longer holds, and
    the effect on their windows.
    """

    pipeline: str
    folder: str
    same_definition: bool
    commits: list[Committed]
    time: WatermarkStatus | None
    windows_in_flight: int
    oldest_window_start_ms: int | None
    checks: CheckSummary | None
    unfinished: Unfinished | None
    files_waiting: int | None
    source_problem: str | None
    removal: str | None
    left_out: list[str]
    set_aside: list[SetAsideFile]
    verified: Verification | None
    situations: list[ReportedSituation]
    migration: str | None = None  # an unfinished migration and the next commands, in words
    listing: str | None = None  # start of the listing, and time of the next full listing, in words
    to_come: Sequence[str] = ()  # columns that no batch has filled yet, in words
    moved_to: str | None = None  # address to which the tables were moved, after which this place takes no batches
    erasure: str | None = None  # an unfinished erasure and the next command, in words
    error: LastError | None = None  # error of the last plan or run, if none has succeeded since

    @property
    def further_problem(self) -> str | None:
        """Reason why the source cannot be read; None if the last error already states this reason."""
        problem, error = self.source_problem, self.error
        return None if problem and error and problem.startswith(error.sentence) else problem


def status(definition: Definition, now_ms: int, ledger: Ledger | None = None, *, whole: bool = True) -> Status:
    """Collects the status. A run counts as working or dead by its lease at `now_ms`.

    Reuses `ledger`, if given. Without `whole`, the fields `commits`, `checks`, `left_out` and `erasure` stay empty.
    """
    ledger = ledger or ledger_of(definition, lambda: now_ms)
    state = ledger.state()
    commit = state.commit
    windows = ledger.tables[OPEN_WINDOWS.name].files(_version(commit, OPEN_WINDOWS.name))
    starts = [file.low.get("window_start_ms", file.low.get("state_window_start_ms")) for file in windows]
    files_waiting, source_problem = _waiting(definition.source, definition.uses, ledger.tables, commit)
    reader = Reader.of(definition, ledger.tables, commit) if commit and source_problem is None else None
    marker = marker_of(definition.source, definition.store, commit)
    not_read = left_out(definition.source, marker) if whole and source_problem is None else []
    return Status(
        pipeline=definition.name,
        folder=str(definition.store),
        same_definition=commit is None or continues(definition, commit.stored, commit.fingerprint),
        commits=newest_commits(ledger.tables, state) if whole else [],
        time=_time(definition.watermark, definition.file, ledger.tables, commit),
        windows_in_flight=sum(file.rows for file in windows),
        oldest_window_start_ms=min(
            (start for start in starts if start is not None and start > MIN_TIME_MS), default=None
        ),
        checks=_checks(ledger.tables, commit) if whole else None,
        unfinished=_unfinished(definition.file, ledger, state),
        files_waiting=files_waiting,
        source_problem=source_problem,
        removal=next_removal(reader, now_ms) if reader else None,
        left_out=not_read,
        set_aside=set_aside_files(definition.store),
        verified=last_verification(definition.store),
        situations=situations(definition.store, ledger.tables, now_ms),
        migration=migration_begun(definition.file, ledger),
        listing=words(definition.source, marker) if marker else None,
        moved_to=state.moved_to,
        to_come=columns_to_add(definition, commit),
        erasure=erasure_begun(definition, ledger) if whole else None,
        error=last_error.unresolved(definition.store, commit.at_ms if commit else None),
    )


def _version(commit: Commit | None, table: str) -> int | None:
    return commit.versions.get(table) if commit else None


def _rows(tables: Tables, table: TableSpec, commit: Commit | None, column: str, value: int) -> list[dict[str, Any]]:
    """Rows of a small table with this value in the column, as of a commit."""
    matches = []
    for file in tables[table.name].files(_version(commit, table.name)):
        if file.low.get(column, value) <= value <= file.high.get(column, value):
            rows = data_files.read_parquet(tables[table.name].store, file, table.columns)
            matches += data_files.rows_of(data_files.having(rows, column, lambda cell: cell == value))
    return matches


def _of_newest_batch(tables: Tables, table: TableSpec, commit: Commit | None) -> list[dict[str, Any]]:
    """Rows of the newest batch that wrote to this table."""
    newest = tables[table.name].newest_batch(_version(commit, table.name))
    return [] if newest is None else _rows(tables, table, commit, "batch_id", newest)


def _time(settings: WatermarkSection, file: Path, tables: Tables, commit: Commit | None) -> WatermarkStatus | None:
    if not (rows := _of_newest_batch(tables, WATERMARKS, commit)):
        return None
    [newest] = rows
    same = _rows(tables, WATERMARKS, commit, "applied_ms", newest["applied_ms"])
    setter = min(same, key=lambda row: row["batch_id"])
    return WatermarkStatus(
        watermark_ms=newest["applied_ms"],
        state=newest["state"],
        set_by_batch=setter["batch_id"],
        event_time_ms=setter["max_event_time_ms"],
        source_file=setter["source_file"],
        source_row=setter["source_row"],
        explanation=[
            _set_by(settings, setter),
            *_moved_by(settings.idle_timeout_ms, newest),
            *filter(None, [late_after_finish(file, tables, commit) if commit else None]),
        ],
    )


def _set_by(policy: WatermarkSection, setter: dict[str, Any]) -> str:
    behind = f"less out_of_orderness ({format_duration(policy.out_of_orderness_ms)}) and 1 ms"
    if setter["state"] == "finished":
        return f"the input is complete: batch {setter['batch_id']} was run with --finish"
    if setter["max_event_time_ms"] is None and setter["candidate_ms"] is not None:
        return f"an operator advanced it there: batch {setter['batch_id']}"
    if setter["state"] == "idle" and policy.idle_timeout_ms:
        idle = format_duration(policy.idle_timeout_ms)
        return f"batch {setter['batch_id']} found the source idle: its plan time less idle_timeout ({idle}), {behind}"
    if setter["max_event_time_ms"] is None:
        return f"batch {setter['batch_id']} admitted no event yet"
    event = f"the newest event, {instant(setter['max_event_time_ms'])}"
    return f"{event} (row {setter['source_row']} of {setter['source_file']}, batch {setter['batch_id']}), {behind}"


def _moved_by(idle_timeout_ms: int | None, newest: dict[str, Any]) -> list[str]:
    if newest["applied_ms"] == MAX_WATERMARK:
        return ["nothing advances it further"]
    if idle_timeout_ms is None:
        return ["only newer events advance it: the definition has no idle_timeout"]
    if newest["state"] == "active" and newest["active_at_ms"] is not None:
        return [
            f"newer events advance it, or without any, a run after {instant(newest['active_at_ms'] + idle_timeout_ms)}"
        ]
    return ["the source is idle: a run advances it according to its plan time, once that fires or retires a window"]


def _checks(tables: Tables, commit: Commit | None) -> CheckSummary | None:
    if not (rows := _of_newest_batch(tables, DQ_RESULTS, commit)):
        return None
    shown = ("suite", "severity", "sentence", "expected", "observed")
    failed = [{name: row[name] for name in shown} for row in rows if not row["success"]]
    return CheckSummary(rows[0]["batch_id"], len(rows) - len(failed), failed)


def _unfinished(file: Path, ledger: Ledger, state: LedgerState) -> Unfinished | None:
    plan = state.plan
    if plan is None:
        return None
    claimed = state.claim is not None and not state.claim.released
    running = ledger.holder(state.claim) if state.claim and claimed else None
    return Unfinished(
        batch_id=plan.batch_id,
        planned_at_ms=plan.plan_time_ms,
        files=len(plan.files),
        running=running,
        rejection=state.rejection,
        approved_by=state.approved_by,
        advice=f"{running} is working on it" if running else way_on(file, state),
    )


def _waiting(source: Source, uses: Uses, tables: Tables, commit: Commit | None) -> tuple[int | None, str | None]:
    """Number of files that no batch has read yet, or the reason why they cannot be counted."""
    try:
        return len(waiting_files(source, uses, tables, commit)), None
    except WindowError as error:
        return None, str(error)


def set_aside_files(store: Store) -> list[SetAsideFile]:
    """Files that operators have set aside, sorted by path."""
    files = sorted(files_set_aside(store).values(), key=lambda file: file.path)
    return [SetAsideFile(file.path, time_of(file.at), file.who, file.reason) for file in files]
