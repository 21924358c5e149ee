"""Operation `advance-watermark`, for a source that stays silent for good and has no idle timeout.

The operation plans a batch. The next run computes and checks that batch like any other, and fires its windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from windowlib.batches.may_run import check_fingerprint
from windowlib.batches.planning import decided_plan, ledger_of
from windowlib.contract.state_tables import OPEN_WINDOWS
from windowlib.decisions.forecast import DecisionForecast, NothingToDo
from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant
from windowlib.definition.plurals import counted
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.rows import LedgerState, Plan
from windowlib.model.errors import InvalidSpec
from windowlib.publication.readers import snapshot


def forecast_advance(definition: Definition, to_ms: int, clock: Clock = wall_clock_ms) -> DecisionForecast:
    """Effect of a watermark at `to_ms`. Raises the errors of `advance_watermark`."""
    ledger = ledger_of(definition, clock)
    state = ledger.state()
    _check(definition.file, state, to_ms, clock)
    check_fingerprint(definition, state.commit)
    return DecisionForecast(
        Decision("advance_watermark", "", "", to_ms=to_ms).title, None, tuple(_notes(ledger, state, to_ms))
    )


def advance_watermark(definition: Definition, to_ms: int, who: str, reason: str, clock: Clock = wall_clock_ms) -> int:
    """Plans a batch that moves the watermark to `to_ms` and reads no file. Returns its id.

    After that batch, no event at or below `to_ms` is expected. Raises `InvalidSpec` for a time in the future. Raises
    `NothingToDo` if the watermark is already at or after `to_ms`, nothing was run yet, or a batch is not finished.
    """
    ledger, decision = ledger_of(definition, clock), Decision("advance_watermark", who, reason, to_ms=to_ms)

    def plan_advance(state: LedgerState) -> Plan:
        _check(definition.file, state, to_ms, clock)
        return decided_plan(definition, state, decision, clock)

    _check(definition.file, ledger.state(), to_ms, clock)
    _, plan = ledger.freeze(plan_advance)
    if plan is None or plan.decision != decision:
        status = to_paste("status", definition.file)
        raise NothingToDo(f"another command has just planned a batch. Check the state of the pipeline: `{status}`")
    return plan.batch_id


def _check(file: Path, state: LedgerState, to_ms: int, clock: Clock) -> None:
    if to_ms > (now_ms := clock()):
        raise InvalidSpec(
            f"--to {instant(to_ms)} is in the future, so every event would be late. It is {instant(now_ms)} now: give"
            " an earlier time"
        )
    if state.commit is None or state.commit.watermark_out_ms is None:
        first = to_paste("run", file)
        raise NothingToDo(f"this pipeline has no watermark, because it has not run yet. First run: `{first}`")
    if state.plan is not None:
        raise NothingToDo(
            f"batch {state.plan.batch_id} is planned, but not finished. First run it: `{to_paste('run', file)}`"
        )
    if to_ms <= state.commit.watermark_out_ms:
        raise NothingToDo(
            f"the watermark is already at {instant(state.commit.watermark_out_ms)}, and it never falls."
            " Give a later time"
        )


def _notes(ledger: Ledger, state: LedgerState, to_ms: int) -> Iterator[str]:
    assert state.commit is not None, "there is a watermark"
    assert state.commit.watermark_out_ms is not None, "there is a watermark"
    now_ms, version = state.commit.watermark_out_ms, state.pinned(OPEN_WINDOWS.name)
    yield f"the watermark is {instant(now_ms)} now"
    if version is not None:
        rows = snapshot(ledger.tables[OPEN_WINDOWS.name], version)
        if "window_end_ms" in rows.column_names:
            ends = (end for end in rows["window_end_ms"].to_pylist() if end is not None)
            due = sum(now_ms < end - 1 <= to_ms for end in ends)
            windows, end = counted(rows.num_rows, "window in flight"), "ends" if due == 1 else "end"
            yield f"{due:,} of {windows} {end} between the two"
    yield "the next run fires the windows that end by then; an event that comes later than they allow is late"
