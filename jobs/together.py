"""Several pipelines in one run: each runs as it would alone, and they meet before they compute.

Every pipeline has a thread with a run of its own (`jobs.advance`), so its ledger, claim, watermark, tables, checks and
commits are what they always are, and whatever ends one leaves the others alone. Where a batch would begin to read, it
waits until every other pipeline is there too, or has nothing left to do. Then batches that plan the same files share
one read and one set of slices (`jobs.sharing`), and all go on. A pipeline that is one batch behind the others goes
first, so that they may share what comes next; one that is further behind catches up by itself.

Should sharing fail, for whatever reason, each goes alone: the pipeline whose mistake it is then says so itself.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from expectations import check
from jobs.advance import BatchReport, advance
from jobs.batch import Batch
from jobs.definition import Definition
from jobs.definitions import check_together
from jobs.durations import format_duration
from jobs.ledger import Clock, wall_clock_ms
from jobs.planning import plan
from jobs.sharing import Shared, likeness, share
from jobs.source import Found, found_files

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Ended:
    """How the run of one pipeline ended: its batches, and what it was stopped by."""

    definition: Definition
    reports: list[BatchReport] = field(default_factory=list)
    error: BaseException | None = None


def advance_together(
    definitions: Sequence[Definition],
    spark: Callable[[], SparkSession],
    *,
    clock: Clock = wall_clock_ms,
    on_batch: Callable[[Definition, BatchReport], None] = lambda definition, report: None,
    on_note: Callable[[str], None] = lambda note: None,
    max_batches: int | None = None,
    finish: bool = False,
) -> list[Ended]:
    """Runs every pipeline until nothing is left (or `max_batches` each), and tells how each ended.

    `on_batch` is called for one batch at a time. `on_note` is told where pipelines could have shared and did not.
    Raises `InvalidSpec` where the definitions cannot run in one Spark session or are not different pipelines.
    """
    check_together(definitions)
    ends = [Ended(definition) for definition in definitions]
    listing = Listing()
    busy = [end for end in ends if _has_work(end, clock, finish, listing)]
    if not busy:
        return ends
    check.preload()
    session = spark()
    meeting = Meeting(len(busy), listing, on_note)
    one_at_a_time = threading.Lock()

    def run(end: Ended) -> None:
        def told(report: BatchReport) -> None:
            end.reports.append(report)
            with one_at_a_time:
                on_batch(end.definition, report)

        with meeting.attended():
            try:
                advance(
                    end.definition,
                    lambda: session,
                    clock=clock,
                    on_batch=told,
                    max_batches=max_batches,
                    finish=finish,
                    before_compute=meeting.arrive,
                    look=listing.files,
                )
            except BaseException as error:
                end.error = error

    threads = [
        threading.Thread(
            target=contextvars.copy_context().run, args=(run, end), name=f"windowlib-{end.definition.name}", daemon=True
        )
        for end in busy
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for end in ends:
        if end.error is not None and not isinstance(end.error, Exception):
            raise end.error
    return ends


def _has_work(end: Ended, clock: Clock, finish: bool, listing: Listing) -> bool:
    try:
        return plan(end.definition, clock, finish=finish, look=listing.files) is not None
    except Exception as error:
        end.error = error
        return False


class Listing:
    """The files of each source, looked for once for all: a file that arrives meanwhile is new to all or to none."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, Path], list[Found]] = {}
        self.lock = threading.Lock()

    def files(self, definition: Definition) -> list[Found]:
        """Every file that was there when somebody first asked."""
        where = definition.source.format, definition.source.path
        with self.lock:
            if where not in self.known:
                self.known[where] = found_files(definition)
            return self.known[where]

    def forget(self) -> None:
        """Looks again when somebody next asks."""
        with self.lock:
            self.known = {}


class Meeting:
    """Where the batches of several pipelines wait for one another before they compute.

    Everybody who attends is away (at work), or waits here; when nobody is away, those who wait are sent on.
    """

    def __init__(self, attending: int, listing: Listing, on_note: Callable[[str], None]) -> None:
        self.away, self.listing, self.on_note = attending, listing, on_note
        self.waiting: dict[int, Batch] = {}  # by identity
        self.kept: list[Shared] = []
        self.better_alone: set[tuple[str, ...]] = set()  # names of pipelines that shared in vain
        self.changed = threading.Condition()

    def attended(self) -> _Attendance:
        """A block at whose end somebody attends no more."""
        return _Attendance(self)

    def arrive(self, batch: Batch) -> None:
        """Waits until the batch may compute; by then it knows what it shares."""
        with self.changed:
            self.waiting[id(batch)] = batch
            self._one_less_away()
            self.changed.wait_for(lambda: id(batch) not in self.waiting)

    def leave(self) -> None:
        with self.changed:
            self._one_less_away()

    def _one_less_away(self) -> None:
        self.away -= 1
        if self.away:
            return
        for shared in self.kept:
            shared.release()
        self.kept = []
        self.listing.forget()
        go = one_behind(list(self.waiting.values())) or list(self.waiting.values())
        try:
            if len(go) > 1:
                self._share(go)
        finally:
            self.away = len(go)
            for batch in go:
                del self.waiting[id(batch)]
            self.changed.notify_all()

    def _share(self, batches: Sequence[Batch]) -> None:
        from jobs.sail import is_sail

        if is_sail(batches[0].spark):
            return  # it keeps nothing between jobs, and reads again as fast
        alike: dict[Hashable, list[Batch]] = {}
        for batch in batches:
            if (like := likeness(batch.definition, batch.plan)) is not None:
                alike.setdefault(like, []).append(batch)
        for members in alike.values():
            if len(members) > 1:
                self._share_among(members)

    def _share_among(self, members: Sequence[Batch]) -> None:
        names = tuple(sorted(batch.definition.name for batch in members))
        if names in self.better_alone:
            return
        try:
            shared = share(members)
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            self.on_note(f"{', '.join(names)} could not share their slices, so each reads the source alone: {reason}")
            return
        if shared is None:
            return
        self.kept.append(shared)
        for batch in members:
            batch.shared = shared
        if shared.hardly_fewer:
            self.better_alone.add(names)
            width, slices, events = format_duration(shared.slicing.width_ms), shared.slice_rows, shared.seen.admitted
            self.on_note(
                f"{', '.join(names)} share slices of {width}, {slices:,} of {events:,} events: too many to gain by it,"
                " so further batches go alone. Run definitions together whose sizes, slides, offsets and gaps are"
                " multiples of one another"
            )


class _Attendance:
    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        self.meeting.leave()


def one_behind(batches: Sequence[Batch]) -> list[Batch]:
    """Those that end where others of the same source begin."""
    begin = {(b.definition.source.path, b.plan.from_sequence) for b in batches if b.plan.files}
    return [
        b
        for b in batches
        if b.plan.files
        and (b.definition.source.path, b.plan.to_sequence) in begin
        and likeness(b.definition, b.plan) is not None
    ]
