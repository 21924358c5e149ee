"""Count windows: every batch with an event rewrites the whole state, and no time range can be recomputed.

The plan itself is `windowlib.plans.counts`. A state row is a slice of consecutive elements of a key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windowlib.model.assigners import Assigner
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import GLOBAL_WINDOW
from windowlib.plans import counts
from windowlib.plans.dialect import Counters
from windowlib.plans.kinds.count_windows import CountWindows
from windowlib.plans.kinds.kind import InFlight, PlanInput, PlanKind, RerunRules
from windowlib.plans.reach import Bucket, File, Reach, StateFile
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Counts(PlanKind):
    """Plan whose windows depend on the sequence number of each element in its key, in order of arrival."""

    windows: CountWindows

    name = "counts"
    work = "numbers, slices"
    needs_arrival = True
    windows_end = False

    @property
    def rerun(self) -> RerunRules | str:
        return (
            "an event's window depends on the number of events before it, so an additional event would move the bounds"
            " of every later window of its key"
        )

    def assigner(self, spec: WindowSpec) -> Assigner:
        return self.windows

    def state_columns(self, step: Step) -> list[str]:
        return counts.state_columns(step)

    def reserved_columns(self, allowed_lateness_ms: int) -> Collection[str]:
        return {"slice_index"}

    # -- the state ------------------------------------------------------------------------------------------------

    def touches(self, file: StateFile, buckets: Sequence[Bucket], step: Step) -> bool:
        return bool(buckets)

    def reach(self, files: Sequence[File], buckets: Sequence[Bucket], step: Step) -> Reach[File]:
        return Reach(rewritten=files) if buckets else Reach()

    def ending(self, files: Sequence[File], step: Step) -> Sequence[File]:
        return []

    def past_cleanup(self, file: StateFile, step: Step) -> bool:
        return False

    def in_flight(self, rows: Iterable[Mapping[str, Any]], spec: WindowSpec, late_up_to_ms: int) -> Iterator[InFlight]:
        """Yields the global window with the number of elements in the key's next window. Yields nothing without
        elements.

        The newest slice of a key is always stored, even if the next window holds none of its elements.

        >>> [*Counts(CountWindows(3, 3)).in_flight([{"slice_index": 2, "elements": 3}], None, 0)]
        []
        """
        width, slices = self.windows.slice_size, [(row["slice_index"], row["elements"]) for row in rows]
        reached = max((index * width + elements for index, elements in slices), default=0)
        first = (reached // self.windows.slide + 1) * self.windows.slide - self.windows.size  # of the next window
        if elements := sum(elements for index, elements in slices if index * width >= first):
            yield InFlight((GLOBAL_WINDOW.start_ms, GLOBAL_WINDOW.end_ms), elements)

    # -- a batch --------------------------------------------------------------------------------------------------

    def advance(self, batch: PlanInput, step: Step, counters: Counters) -> DataFrame:
        return counts.advance(batch.events, batch.rewritten, step, counters)
