"""Protocol of a kind of plan, implemented by sessions, aligned windows, count windows and the general plan.

Code outside `windowlib.plans.kinds` never tests which plan a pipeline has. It uses this Protocol.
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
    from pyspark.sql import DataFrame

Bounds = tuple[int, int]
WINDOW_BOUNDS = ("window_start_ms", "window_end_ms")
STATE_WINDOW_BOUNDS = ("state_window_start_ms", "state_window_end_ms")


@dataclass(frozen=True, slots=True)
class PlanInput:
    """Input of a plan for one batch.

    - `events`: admitted rows, or slices shared by several definitions. None if there are no events.
    - `rewritten`: rows of the state files that the batch replaces.
    - `read`: rows of the state files that the batch only reads.
    - `buckets`: spans of event time that hold the events.
    - `contents`: stored elements.
    - `compacted`: state partitions whose contents are written again.
    """

    events: DataFrame | None
    rewritten: DataFrame | None = None
    read: DataFrame | None = None
    buckets: Sequence[Bucket] = ()
    contents: DataFrame | None = None
    compacted: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class InFlight:
    """A window in flight. `replaces_ms` has the bounds of the published windows that its next firing replaces."""

    bounds_ms: Bounds
    elements: int
    state_window_ms: Bounds | None = None
    replaces_ms: tuple[Bounds, ...] = ()


class RerunRules(Protocol):
    """Rules for recomputing the windows of a time range."""

    @property
    def by_chains(self) -> bool:
        """Tests if a rerun recomputes chains of windows, which may extend beyond the requested range."""
        ...

    def sliced(self, events: DataFrame, step: Step) -> DataFrame | None:
        """Slices of the events, computed once for several uses; None if the plan makes windows directly from events."""
        ...

    def recomputed(self, rows: DataFrame, step: Step, from_ms: int, counters: Counters) -> DataFrame:
        """Rows of the plan for `rows` (events, or their slices from `sliced`), without earlier windows in flight.

        Windows that end at or before `from_ms` are not needed.
        """
        ...

    def remaining(self, rows: DataFrame, step: Step) -> DataFrame:
        """Rows in flight that are not past their cleanup time, with their state partition as PARTITION."""
        ...


class PlanKind(Protocol):
    """Kind of plan for a definition's windows, with everything that differs between plans.

    The defaults here hold for most plans.

    - `work`: name, in words, of the intermediate rows that the plan makes from a batch's events.
    - `runs_operator`: the plan runs the operator, element by element. Timers of processing time are possible.
    - `needs_arrival`: windows depend on the arrival order of events.
    - `shares_slices`: windows are made of slices of time, which several definitions may share.
    - `windows_end`: every window ends at a time.
    - `bounds`: the state columns with the bounds of a window or slice. A file without their statistics may hold any
      window.
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
        """Rules for recomputing a time range, or the reason why the plan cannot."""
        ...

    def assigner(self, spec: WindowSpec) -> Assigner:
        """Assigner that the steps of the plan use."""
        return spec.assigner

    def state_columns(self, step: Step) -> list[str]:
        """The columns of `open_windows` without its partition column."""
        ...

    def stored_columns(self, step: Step) -> list[str]:
        """The columns of `state_windows` without its partition column; empty if the plan keeps no elements."""
        return []

    def reserved_columns(self, allowed_lateness_ms: int) -> Collection[str]:
        """Names of the plan's own columns, in lower case. No output column may have such a name."""
        return ()

    def buckets(self, buckets: Sequence[Bucket], step: Step) -> Sequence[Bucket]:
        """Time spans of a batch's windows. `buckets` are the time spans of the batch's events."""
        return buckets

    def touches(self, file: StateFile, buckets: Sequence[Bucket], step: Step) -> bool:
        """Tests if an event of the batch may change a row of a state file."""
        return windows_touch(file, buckets)

    def reach(self, files: Sequence[File], buckets: Sequence[Bucket], step: Step) -> Reach[File]:
        """State files that a batch rewrites, reads or drops."""
        ...

    def is_due(self, reach: Reach[File], step: Step, ends_ms: Callable[[File], NDArray[np.int64]]) -> bool:
        """Tests if the advance of time fires or retires a row of the files in `reach`, even without events.

        `ends_ms` returns the window_end_ms of a file's rows, for cases that statistics cannot decide.
        """
        return not reach.is_empty

    def advance(self, batch: PlanInput, step: Step, counters: Counters) -> DataFrame:
        """Applies a batch to the state rows in `batch`. `windowlib.plans.step` describes the returned rows."""
        ...

    def late(self, events: DataFrame, dropped: DataFrame | None, step: Step, may_be_late: bool) -> DataFrame | None:
        """Late events of a batch with WINDOW_START_MS and WINDOW_END_MS of the missed window; None if there are none.

        `dropped` holds the rows of the part `dropped`. `may_be_late` is True if the own window of some event is late.
        """
        return None

    def ending(self, files: Sequence[File], step: Step) -> Sequence[File]:
        """State files whose windows have an end; the global window has none."""
        return files

    def past_cleanup(self, file: StateFile, step: Step) -> bool:
        """Tests if a file from `ending` holds a row that the batch should have retired."""
        ...

    def overdue(self, file: StateFile, step: Step) -> bool:
        """Tests if a file that the batch left unchanged holds a window that should have fired or been retired."""
        return False

    def in_flight(self, rows: Iterable[Mapping[str, Any]], spec: WindowSpec, late_up_to_ms: int) -> Iterator[InFlight]:
        """Windows in flight in the state rows of a key, without windows that are late at `late_up_to_ms`."""
        return map(window_of, rows)


def windows_touch(file: StateFile, buckets: Sequence[Bucket]) -> bool:
    """Tests if a window in the state file may touch the own window of an event in `buckets`, before any merge."""
    first_ms, end_ms = file.low["window_start_ms"], file.high["window_end_ms"]
    return any(b.min_timestamp_ms <= end_ms and first_ms <= b.max_window_end_ms for b in buckets)


def window_of(row: Mapping[str, Any]) -> InFlight:
    """Window in flight of a state row."""
    earlier = row.get("published") or row.get("fired") or ()
    return InFlight(
        (row["window_start_ms"], row["window_end_ms"]),
        row.get("elements") or 0,
        (row["state_window_start_ms"], row["state_window_end_ms"]),
        tuple((window["window_start_ms"], window["window_end_ms"]) for window in earlier),
    )
