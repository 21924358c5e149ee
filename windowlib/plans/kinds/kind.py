"""What a plan is asked: the Protocol that sessions, aligned windows, count windows and the general plan implement.

Nothing outside `windowlib.plans.kinds` asks which plan a pipeline has; it asks the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from windowlib.model.assigners import Assigner
from windowlib.model.spec import WindowSpec
from windowlib.plans.dialect import Counters
from windowlib.plans.reach import Bucket, File, Reach, StateFile
from windowlib.plans.step import Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

Bounds = tuple[int, int]
WINDOW_BOUNDS = ("window_start_ms", "window_end_ms")
STATE_WINDOW_BOUNDS = ("state_window_start_ms", "state_window_end_ms")


@dataclass(frozen=True, slots=True)
class Given:
    """What a batch gives its plan.

    `events` are admitted rows, or the slices that several definitions share (None: none); `rewritten` and `read` are
    rows of the state, of files that are replaced and of others; `contents` are stored elements, those of `compacted`
    partitions to be written again.
    """

    events: DataFrame | None
    rewritten: DataFrame | None = None
    read: DataFrame | None = None
    buckets: Sequence[Bucket] = ()
    contents: DataFrame | None = None
    compacted: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class InFlight:
    """A window in flight. `replaces_ms`: the published windows whose place it takes when it fires."""

    bounds_ms: Bounds
    elements: int
    state_window_ms: Bounds | None = None
    replaces_ms: tuple[Bounds, ...] = ()


class RerunRules(Protocol):
    """How the windows of a range of time are recomputed."""

    @property
    def by_chains(self) -> bool:
        """Whether the windows of a rerun are chains that may reach further than its range."""
        ...

    def sliced(self, events: DataFrame, step: Step) -> DataFrame | None:
        """The rows that windows are made of where those are worth computing once; None: the events themselves."""
        ...

    def recomputed(self, rows: DataFrame, step: Step, from_ms: int, counters: Counters) -> DataFrame:
        """The plan's rows for events, or what `sliced` made of them, with nothing in flight before.

        No window that ends by `from_ms` is asked for.
        """
        ...

    def end_partition(self, step: Step) -> Column:
        """The partition of a row in flight."""
        ...

    def last_ms(self, step: Step) -> Column:
        """The max_timestamp_ms of a row in flight, or of the last window over it."""
        ...


class PlanKind(Protocol):
    """What runs the windows of a definition, and all that differs between plans. What is said here holds for most.

    `work`: what is made of the events of a batch, in words. `runs_operator`: the operator itself runs, element by
    element, so there are timers of processing time, too. `needs_arrival`: the order in which events arrived decides
    about windows. `shares_slices`: windows are made of slices of time, which several definitions may share.
    `windows_end`: a window ends at a time. `bounds`: the columns of the state that bound a window, or a slice; a file
    without them may hold any.
    """

    name: ClassVar[str]
    work: ClassVar[str] = "slices"
    runs_operator: ClassVar[bool] = False
    needs_arrival: ClassVar[bool] = False
    shares_slices: ClassVar[bool] = False
    windows_end: ClassVar[bool] = True
    bounds: ClassVar[tuple[str, str]] = WINDOW_BOUNDS

    @property
    def rerun(self) -> RerunRules | str:
        """How a range of time is recomputed, or why it cannot be."""
        ...

    def assigner(self, spec: WindowSpec) -> Assigner:
        """What assigns windows, as the plan's steps have it."""
        return spec.assigner

    def state_columns(self, step: Step) -> list[str]:
        """The columns of a row of `open_windows`, its partition column aside."""
        ...

    def stored_columns(self, step: Step) -> list[str]:
        """The columns of a row of `state_windows`, its partition column aside; none where no elements are kept."""
        return []

    def reserved_columns(self, allowed_lateness_ms: int) -> Collection[str]:
        """The columns of its rows, in lower case, that no output may be called."""
        return ()

    def buckets(self, buckets: Sequence[Bucket], step: Step) -> Sequence[Bucket]:
        """Where in time the windows of a batch lie whose events lie in `buckets`."""
        return buckets

    def touches(self, file: StateFile, buckets: Sequence[Bucket], step: Step) -> bool:
        """Whether an event of the batch may change a row of the file."""
        return windows_touch(file, buckets)

    def reach(self, files: Sequence[File], buckets: Sequence[Bucket], step: Step) -> Reach[File]:
        """The state files that a batch reaches."""
        ...

    def is_due(self, reach: Reach[File], step: Step, ends_ms: Callable[[File], NDArray[np.int64]]) -> bool:
        """Whether time alone, which reaches these files, fires or retires a row of theirs.

        `ends_ms` gives the window_end_ms of a file's rows, where its statistics do not say it.
        """
        return not reach.is_empty

    def advance(self, given: Given, step: Step, counters: Counters) -> DataFrame:
        """What a batch makes of the state that it reaches (`windowlib.plans.step` describes the rows)."""
        ...

    def late(self, events: DataFrame, dropped: DataFrame | None, step: Step, may_be_late: bool) -> DataFrame | None:
        """The late events of a batch with window_start_ms, window_end_ms of the window missed; None without any.

        `dropped` are the rows of that part; `may_be_late` says whether an event would be late alone.
        """
        return None

    def ending(self, files: Sequence[File], step: Step) -> Sequence[File]:
        """The state files whose windows end at a time."""
        return files

    def past_cleanup(self, file: StateFile, step: Step) -> bool:
        """Whether one of the `ending` files holds a row that should have been retired by the end of the batch."""
        ...

    def overdue(self, file: StateFile, step: Step) -> bool:
        """Whether a file that the batch left as it is holds a window that the watermark has reached or retired."""
        return False

    def in_flight(self, rows: Iterable[Mapping[str, Any]], spec: WindowSpec, late_up_to_ms: int) -> Iterator[InFlight]:
        """The windows in flight that rows of the state of one key hold; those up to a time are late, and gone."""
        return map(window_of, rows)


def windows_touch(file: StateFile, buckets: Sequence[Bucket]) -> bool:
    """Whether a window of the file may touch one of an event's own windows."""
    first_ms, end_ms = file.low["window_start_ms"], file.high["window_end_ms"]
    return any(b.min_timestamp_ms <= end_ms and first_ms <= b.max_window_end_ms for b in buckets)


def window_of(row: Mapping[str, Any]) -> InFlight:
    """The window of a row of the state that holds one."""
    earlier = row.get("published") or row.get("fired") or ()
    return InFlight(
        (row["window_start_ms"], row["window_end_ms"]),
        row.get("elements") or 0,
        (row["state_window_start_ms"], row["state_window_end_ms"]),
        tuple((one["window_start_ms"], one["window_end_ms"]) for one in earlier),
    )
