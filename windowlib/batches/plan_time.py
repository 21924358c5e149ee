"""Plan time of a batch: the only clock time that its run uses. It is never before the plan time of the previous batch.

A machine's clock may be wrong, and time decides which events are admitted (`watermark.max_future_skew`). With an idle
timeout, or in processing time, it also decides which windows fire. So a run plans nothing in two cases:

* The clock is more than `FAR_MS` ahead of both the newest batch and the newest file that the run would read.
* The clock is more than `FAR_MS` behind the newest batch.

`windowlib accept-clock` confirms that such a clock is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.instants import instant
from windowlib.definition.toml.durations import format_duration
from windowlib.ledger.retained_batches import FAR_MS
from windowlib.ledger.rows import LedgerState, SourceFile
from windowlib.model.errors import WindowError
from windowlib.plans.partitions import DAY_MS

PLAN = "Nothing was planned, because a wrong clock would admit wrong events and fire windows too early, for good"


class ClockRefused(WindowError):
    """The clock of this machine is far from the newest batch and the newest file."""


def plan_time_ms(now_ms: int, state: LedgerState) -> int:
    """Time of a plan made at `now_ms`: that time, or the plan time of the newest batch if it is later."""
    return now_ms if state.time_ms is None else max(now_ms, state.time_ms)


def rerun_time_ms(now_ms: int, state: LedgerState) -> int:
    """Time of a rerun planned at `now_ms`: at most `FAR_MS` after the newest batch. A rerun does not advance time."""
    limit_ms = now_ms if state.time_ms is None else state.time_ms + FAR_MS
    return min(plan_time_ms(now_ms, state), limit_ms)


def check_clock(
    file: Path, now_ms: int, state: LedgerState, files: Sequence[SourceFile] = (), refused: str = PLAN
) -> None:
    """Raises `ClockRefused` if the clock is more than `FAR_MS` away from the newest batch and the newest of `files`.

    file:    definition of the pipeline
    refused: sentence for the message: the action that was not done, and the reason
    """
    if state.time_ms is None:
        return
    newest_ms = max([state.time_ms, *(source_file.modified_ns // 1_000_000 for source_file in files)])
    if now_ms - newest_ms > FAR_MS:
        difference_ms, relation = now_ms - newest_ms, "ahead of the newest batch and the newest file"
    elif state.time_ms - now_ms > FAR_MS:
        difference_ms, newest_ms, relation = state.time_ms - now_ms, state.time_ms, "behind the newest batch"
    else:
        return
    raise ClockRefused(
        f"this machine's clock says {instant(now_ms)}, {format_duration(difference_ms // DAY_MS * DAY_MS)} {relation}"
        f" ({instant(newest_ms)}). {refused}. Correct the clock or, if it is right,"
        f" accept it: `{to_paste('accept-clock', file, *WHY)}`"
    )
