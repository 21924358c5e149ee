"""Several pipelines in one run. Pipelines whose next batches read the same files share work.

    plan every pipeline -> group the batches -> share slices -> compute, check, commit one after the other -> again

Each pipeline keeps its own ledger, claim, watermark, tables, checks and commits. An error of a pipeline does not affect
other pipelines. A pipeline that is one batch behind goes first, so that all pipelines can share the next batch. A
pipeline that is further behind catches up alone. If sharing fails, each pipeline runs alone, and the pipeline that
caused the failure reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windowlib.batches.sharing import not_worth_sharing, release, share, sharing_key
from windowlib.definition.definition import Definition
from windowlib.definition.several import check_together
from windowlib.definition.toml.durations import format_duration
from windowlib.definition.toml.source import Source
from windowlib.model.errors import reason_of
from windowlib.quality import check
from windowlib.runs.attempt import Attempt, BatchReport
from windowlib.runs.claimed_pipeline import BegunBatch, OnLost, at_work, causes_named, first_batch, irreplaceable
from windowlib.runs.deadline import within
from windowlib.runs.run import DueBatch, RunRequest
from windowlib.source.listed import SourceListing
from windowlib.source.listing import Since, found_files

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pyspark.sql import SparkSession

    from windowlib.batches.inputs import SharedInputs


OnBatch = Callable[[Definition, BatchReport], None]


@dataclass(slots=True)
class RunOutcome:
    """Outcome of the run of one pipeline: its batches, and the error that stopped it."""

    definition: Definition
    reports: list[BatchReport] = field(default_factory=list)
    error: BaseException | None = None


def advance_together(
    runs: Sequence[RunRequest],
    spark: Callable[[], SparkSession],
    *,
    on_batch: OnBatch = lambda definition, report: None,
    max_batches: int | None = None,
    on_lost: OnLost = irreplaceable,
) -> list[RunOutcome]:
    """Runs every pipeline until nothing is left (or `max_batches` each), and returns the outcome of each.

    `spark` is called once for each batch, and may return the same session. `on_batch` is called after each batch. The
    `note` of the first run is called if pipelines could have shared work and did not. Raises `InvalidSpec` if the
    definitions cannot run in one Spark session or are not different pipelines.
    """
    check_together([run.definition for run in runs])
    listing = Listing()
    members = [Member(replace(run, look=listing.files), RunOutcome(run.definition)) for run in runs]
    if working := [member for member in members if member.has_work()]:
        check.preload()
        with ExitStack() as claims:
            for member in working:
                claims.push(member.lease)
                member.claims(spark, on_lost, max_batches)
            listing.forget()  # waiting for claims may have taken minutes
            for member, report in _rounds(working, listing):
                on_batch(member.run.definition, report)
    ends = [member.ended for member in members]
    for end in ends:
        if end.error is not None and not isinstance(end.error, Exception):
            raise end.error
    return ends


def _rounds(members: Sequence[Member], listing: Listing) -> Iterator[tuple[Member, BatchReport]]:
    """Yields each batch of the working pipelines when it is committed, round by round."""
    sharing = Sharing(members[0].run.note)
    while members := [member for member in members if member.begins()]:
        listing.forget()
        for group in groups(one_behind(members) or members):
            with sharing.among(group) as shared:
                for member in group:
                    if report := member.completes(shared):
                        yield member, report


@dataclass(slots=True)
class Listing:
    """Files of each source, listed once per round. A file that arrives meanwhile is new to all pipelines or to none."""

    listings: dict[tuple[Hashable, ...], SourceListing] = field(default_factory=dict)

    def files(self, source: Source, since: Since) -> SourceListing:
        """Files of a source, listed at the first request of a round. Later requests return the same listing.

        `since` is the start of the listing.
        """
        place = source.format, source.path, source.include, source.exclude, source.removals, since
        if place not in self.listings:
            self.listings[place] = found_files(source, since)
        return self.listings[place]

    def forget(self) -> None:
        """Drops the listings, so that the next request lists the source again."""
        self.listings = {}


@dataclass(slots=True)
class Member:
    """One of several pipelines in a run. It holds its claim until it has no work left. `ended` collects its reports and
    its error.
    """

    run: RunRequest
    ended: RunOutcome
    lease: ExitStack = field(default_factory=ExitStack)
    first: DueBatch | None = None
    work: BegunBatch | None = None

    @property
    def attempt(self) -> Attempt | None:
        """Begun attempt of the pipeline; None if there is nothing to compute."""
        return None if self.work is None else self.work.attempt

    def has_work(self) -> bool:
        """Plans the first batch. Returns False if there is nothing to do."""
        with self._by_itself():
            self.first = first_batch(self.run)
        return self.first is not None

    def claims(self, spark: Callable[[], SparkSession], on_lost: OnLost, max_batches: int | None) -> None:
        """Claims the pipeline."""
        assert self.first is not None, "a member without work claims nothing"
        with self._by_itself():
            self.work = self.lease.enter_context(at_work(self.run, self.first, spark, on_lost, max_batches))

    def begins(self) -> bool:
        """Begins the next batch, unless one has begun. Returns False and releases the claim if no batch is due."""
        with self._by_itself():
            if self.work is None or self.ended.error is not None:
                return False
            if self.work.plan or self.work.begins():
                return True
            self.lease.close()
        return False

    def completes(self, shared: SharedInputs | None) -> BatchReport | None:
        """Completes the begun batch and returns its report; None if it fails or must be begun again."""
        assert self.work is not None, "every member of a group has begun a batch"
        with self._by_itself():
            if report := self.work.completes(shared):
                self.ended.reports.append(report)
            return report
        return None

    @contextmanager
    def _by_itself(self) -> Iterator[None]:
        """Records an error of the block and ends this pipeline. The other pipelines go on."""
        try:
            with causes_named(self.run):
                yield
        except (Exception, SystemExit) as error:
            self.ended.error = error
            self.lease.close()


@dataclass(frozen=True, slots=True)
class Sharing:
    """Shared work of batches. Pipelines of a group in `unprofitable` run alone, because sharing does not pay."""

    on_note: Callable[[str], None]
    unprofitable: set[tuple[str, ...]] = field(default_factory=set)

    @contextmanager
    def among(self, group: Sequence[Member]) -> Iterator[SharedInputs | None]:
        """Shared work of the batches of a group, for the duration of the block; None if each should run alone."""
        shared = self._share(group) if len(group) > 1 else None
        try:
            yield shared
        finally:
            if shared is not None:
                release(shared)

    def _share(self, group: Sequence[Member]) -> SharedInputs | None:
        names = tuple(sorted(member.run.definition.name for member in group))
        if names in self.unprofitable:
            return None
        try:
            inputs = [member.attempt.inputs for member in group if member.attempt]
            longest_ms = max(pipeline_inputs.definition.batch_timeout_ms for pipeline_inputs in inputs)
            with within(longest_ms, "the shared work", [inputs[0].spark]):
                shared = share(inputs)
        except Exception as error:
            alone = f"{', '.join(names)} could not share their slices, so each reads the source alone"
            self.on_note(f"{alone}: {reason_of(error)}")
            return None
        if shared is not None and not_worth_sharing(shared):
            self.unprofitable.add(names)
            width, slices, events = format_duration(shared.slicing.width_ms), shared.slice_rows, shared.intake.admitted
            self.on_note(
                f"{', '.join(names)} share slices of {width}, {slices:,} of {events:,} events: too many"
                " for sharing to pay, so further batches run alone. Run definitions together whose sizes, slides,"
                " offsets and gaps are multiples of one another"
            )
        return shared


def groups(members: Sequence[Member]) -> list[list[Member]]:
    """Groups of pipelines that may share work. A pipeline that cannot share work forms its own group."""
    by_key: dict[Hashable, list[Member]] = {}
    for member in members:
        by_key.setdefault(_key(member) or id(member), []).append(member)
    return list(by_key.values())


def one_behind(members: Sequence[Member]) -> list[Member]:
    """Pipelines whose next batch ends where the next batch of another pipeline of the same source begins."""
    planned = [(member, member.attempt.due.plan) for member in members if member.attempt]
    begin = {(member.run.definition.source.path, plan.from_sequence) for member, plan in planned if plan.files}
    return [
        member
        for member, plan in planned
        if (member.run.definition.source.path, plan.to_sequence) in begin and _key(member) is not None
    ]


def _key(member: Member) -> Hashable | None:
    return None if member.attempt is None else sharing_key(member.attempt.inputs)
