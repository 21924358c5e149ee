"""When a batch is planned: the only clock that its run knows. It never falls behind that of the batch before.

A machine's clock may be wrong, and time decides what is admitted (`watermark.max_future_skew`), with an idle timeout or
in processing time also what fires. So nothing is planned by a clock that is more than `FAR_MS` ahead of the newest
batch and of the newest file that it would read, or as far behind the newest batch: one run by a clock that is a year
ahead moves no time. `windowlib accept-clock` says that such a clock is right anyway.
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

PLAN = "Nothing was planned: by a wrong clock events would be admitted, and windows fire, that must not, for good"


class ClockRefused(WindowError):
    """This machine's clock is far from the newest batch and the newest file."""


def plan_time_ms(now_ms: int, state: LedgerState) -> int:
    """The time of a plan made at `now_ms`: that, or the newest batch's if it is later."""
    return now_ms if state.time_ms is None else max(now_ms, state.time_ms)


def rerun_time_ms(now_ms: int, state: LedgerState) -> int:
    """The time of a rerun planned at `now_ms`: at most `FAR_MS` after the newest batch, as a rerun moves no time."""
    limit_ms = now_ms if state.time_ms is None else state.time_ms + FAR_MS
    return min(plan_time_ms(now_ms, state), limit_ms)


def check_clock(
    file: Path, now_ms: int, state: LedgerState, files: Sequence[SourceFile] = (), refused: str = PLAN
) -> None:
    """Raises `ClockRefused` where the clock is more than `FAR_MS` from what vouches for it; `file` is the definition's,
    and `refused` says what was not done, and why."""
    if state.time_ms is None:
        return
    newest_ms = max([state.time_ms, *(one.modified_ns // 1_000_000 for one in files)])
    if now_ms - newest_ms > FAR_MS:
        apart, what = now_ms - newest_ms, "ahead of the newest batch and the newest file"
    elif state.time_ms - now_ms > FAR_MS:
        apart, newest_ms, what = state.time_ms - now_ms, state.time_ms, "behind the newest batch"
    else:
        return
    raise ClockRefused(
        f"this machine's clock says {instant(now_ms)}, {format_duration(apart // DAY_MS * DAY_MS)} {what}"
        f" ({instant(newest_ms)}). {refused}. Set the clock right; if it is right, say so:"
        f" {to_paste('accept-clock', file, *WHY)}"
    )
