"""Retention rule for the cuts of a pipeline's tables, and the error for an expired cut.

A *cut* is all tables at the versions that one commit row names. These cuts are kept:

- the cuts within `[retention] cuts`, counted back from now, and the newest cut before that span
- the cut that undoing a migration restores, until the migration is finished or `UNDO_MS` old
- the newest cut, for `READING_MS` after it is replaced, because a reader may just have opened it

The rule uses commit times. If a commit time is before the time of an earlier batch, the earlier batch's time counts
instead, so a clock that was once wrong expires no cut too early. After a long pause, or if the clock is wrong, the
clock is far ahead of the newest batch. The span is then counted back from that batch, until an operator accepts the
clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from windowlib.definition.toml.retention import RetentionPeriod
from windowlib.ledger.maintenances import last
from windowlib.ledger.rows import Commit
from windowlib.model.errors import WindowError
from windowlib.plans.partitions import DAY_MS
from windowlib.storage.store import Store

READING_MS = 3_600_000  # time that a reader may take for a cut that it has opened
FAR_MS = 40 * DAY_MS  # longer than a month, so that windows of a month in processing time end by themselves
UNDO_MS = 30 * DAY_MS  # a migration can be undone for this time, unless it is finished


class CutExpired(WindowError, LookupError):
    """The cut of a batch is no longer kept."""


def trusted_now_ms(planned_ms: int | None, now_ms: int) -> int:
    """Returns `now_ms`, or `planned_ms` if `now_ms` is more than `FAR_MS` after `planned_ms`.

    `planned_ms` is the plan time of the newest batch, or the time that an operator has accepted since. Commit times
    cannot confirm the clock, because maintenance commits by any clock.

    >>> [trusted_now_ms(planned_ms, 10 + FAR_MS) for planned_ms in (9, 10)]
    [9, 3456000010]
    """
    return now_ms if planned_ms is None or now_ms - planned_ms <= FAR_MS else planned_ms


def first_kept(commits: Sequence[Commit], kept: RetentionPeriod, now_ms: int) -> Commit:
    """Oldest batch whose cut stays readable. `commits` has at least one batch, oldest first.

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
    times = list(accumulate((commit.at_ms for commit in commits), max))

    def newest_at(time_ms: int) -> int:
        return max((number for number, at_ms in enumerate(times) if at_ms <= time_ms), default=0)

    by_rule = newest_at(now_ms - kept.ms) if kept.ms is not None else max(len(commits) - (kept.batches or 1), 0)
    return commits[min(by_rule, newest_at(now_ms - READING_MS))]


def undo_target(commits: Sequence[Commit], migration: int, now_ms: int) -> Commit | None:
    """Batch that undoing a migration restores; None if the migration is older than `UNDO_MS`. `migration` is the
    migration's batch.

    >>> def commit(batch_id, at_ms):
    ...     return Commit(batch_id, {}, None, 0, "", "", {}, at_ms, plan_time_ms=at_ms, late_out_ms=0)
    >>> commits = [commit(n, n) for n in (1, 2, 5)]
    >>> undo_target(commits, 5, 6).batch_id, undo_target(commits, 5, 6 + UNDO_MS)
    (2, None)
    """
    at_ms = next((commit.at_ms for commit in commits if commit.batch_id == migration), None)
    before = [commit for commit in commits if commit.batch_id < migration]
    return before[-1] if at_ms is not None and before and now_ms - at_ms <= UNDO_MS else None


def check_kept(store: Store, batch_id: int, cannot: str) -> None:
    """Raises `CutExpired` if the cut of a batch is no longer kept. `cannot` names the action that is now impossible."""
    maintenance = last(store)
    if maintenance and batch_id < maintenance.kept_from:
        raise CutExpired(
            f"{cannot}: `windowlib maintain` has deleted files of batches before {maintenance.kept_from}"
            f' (retention.cuts = "{maintenance.cuts}"). Batches from {maintenance.kept_from} on can still be read'
        )
