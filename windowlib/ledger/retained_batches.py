"""Which cuts of a pipeline's tables stay readable, and what is said of those that do not.

A *cut* is all tables at the versions that one commit row names. Kept are those that `[retention] cuts` says, counted
back from now, and the one that was the newest when that span began. So is what undoing a migration goes back to, until
it is finished or `UNDO_MS` old. A reader who has just opened the newest cut keeps
it for `READING_MS`, whatever the definition says.

Times are those at which batches were committed, none before that of an earlier batch: a clock that was once wrong lets
no cut go too early. Where the clock of now is far ahead of the newest batch, as it is after a long pause or where it is
wrong, the span is counted from that batch, until an operator accepts the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from windowlib.definition.toml.retention import RetentionPeriod
from windowlib.ledger.maintenances import last
from windowlib.ledger.rows import Commit
from windowlib.model.errors import WindowError
from windowlib.plans.partitions import DAY_MS

READING_MS = 3_600_000  # so long a reader may take for what it has opened
FAR_MS = 40 * DAY_MS  # longer than a month, so that windows of a month in processing time end by themselves
UNDO_MS = 30 * DAY_MS  # so long a migration that is not finished can be undone


class CutExpired(WindowError, LookupError):
    """A batch's cut is no longer kept."""


def vouched_ms(planned_ms: int | None, now_ms: int) -> int:
    """`now_ms`; where that is far ahead of when the newest batch was planned, or of what an operator has accepted
    since, that time. When it was committed vouches for nothing: what maintenance makes is, by any clock.

    >>> [vouched_ms(planned_ms, 10 + FAR_MS) for planned_ms in (9, 10)]
    [9, 3456000010]
    """
    return now_ms if planned_ms is None or now_ms - planned_ms <= FAR_MS else planned_ms


def first_kept(commits: Sequence[Commit], kept: RetentionPeriod, now_ms: int) -> Commit:
    """The oldest batch, of those that were committed (oldest first; at least one), whose cut stays readable.

    >>> def commit(batch_id, at_ms):
    ...     return Commit(batch_id, {}, None, 0, "", "", {}, at_ms, plan_time_ms=at_ms, late_out_ms=0)
    >>> hour = 3_600_000
    >>> commits = [commit(n, n * hour) for n in range(1, 6)]
    >>> [first_kept(commits, RetentionPeriod(batches=n), 9 * hour).batch_id for n in (2, 9)]
    [4, 1]
    >>> first_kept(commits, RetentionPeriod(ms=3 * hour), 6 * hour).batch_id
    3
    >>> first_kept(commits, RetentionPeriod(batches=1), 5 * hour).batch_id  # who has opened batch 4 may be reading
    4
    """
    times = list(accumulate((one.at_ms for one in commits), max))

    def newest_at(time_ms: int) -> int:
        return max((number for number, at_ms in enumerate(times) if at_ms <= time_ms), default=0)

    by_rule = newest_at(now_ms - kept.ms) if kept.ms is not None else max(len(commits) - (kept.batches or 1), 0)
    return commits[min(by_rule, newest_at(now_ms - READING_MS))]


def undone_to(commits: Sequence[Commit], migration: int, now_ms: int) -> Commit | None:
    """The batch that undoing the migration of a batch goes back to; None once that migration is `UNDO_MS` old.

    >>> def commit(batch_id, at_ms):
    ...     return Commit(batch_id, {}, None, 0, "", "", {}, at_ms, plan_time_ms=at_ms, late_out_ms=0)
    >>> commits = [commit(n, n) for n in (1, 2, 5)]
    >>> undone_to(commits, 5, 6).batch_id, undone_to(commits, 5, 6 + UNDO_MS)
    (2, None)
    """
    at_ms = next((one.at_ms for one in commits if one.batch_id == migration), None)
    before = [one for one in commits if one.batch_id < migration]
    return before[-1] if at_ms is not None and before and now_ms - at_ms <= UNDO_MS else None


def check_kept(root: Path, batch_id: int, cannot: str) -> None:
    """Raises `CutExpired` where the cut of a batch is no longer kept; `cannot` says what is impossible then."""
    made = last(root)
    if made and batch_id < made.kept_from:
        raise CutExpired(
            f"{cannot}: `windowlib maintain` has deleted what only cuts before that of batch {made.kept_from} needed,"
            f' as retention.cuts = "{made.cuts}" says. Batches from {made.kept_from} on are there as they were'
        )
