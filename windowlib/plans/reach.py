"""Reach of a batch: the state files that it must rewrite, read or drop, decided from their statistics alone.

- *rewritten*: the batch may change a row of the file
- *read*: the file's rows are only needed to fire a window
- *dropped*, without reading: every row has fired and is past its cleanup time
- *left*: none of these applies; the batch ignores the file

So the cost of a run depends on its events and the advance of time, not on the retained state. Each plan has its own
rules (`windowlib.plans.kinds`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Generic, Protocol, TypeVar


class StateFile(Protocol):
    """Statistics of a state file. `low` and `high` hold the least and greatest value of its columns."""

    @property
    def partition(self) -> Mapping[str, Any]: ...

    @property
    def low(self) -> Mapping[str, Any]: ...

    @property
    def high(self) -> Mapping[str, Any]: ...


File = TypeVar("File", bound=StateFile)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Span of event time with events of the batch. Least and greatest event time are inclusive.

    `max_window_end_ms` is the greatest end of the events' own windows, before any merge.
    """

    min_timestamp_ms: int
    max_timestamp_ms: int
    max_window_end_ms: int


class Verdict(Enum):
    """Treatment of a state file by a batch."""

    REWRITTEN = auto()
    READ = auto()
    DROPPED = auto()
    LEFT = auto()


@dataclass(frozen=True, slots=True)
class Reach(Generic[File]):
    """State files that a batch rewrites, reads or drops."""

    rewritten: Sequence[File] = ()
    read: Sequence[File] = ()
    dropped: Sequence[File] = ()

    @property
    def replaced(self) -> list[File]:
        """Files that the commit removes."""
        return [*self.rewritten, *self.dropped]

    @property
    def is_empty(self) -> bool:
        return not (self.rewritten or self.read or self.dropped)


def reached(files: Sequence[File], verdict: Callable[[File], Verdict]) -> Reach[File]:
    """Groups files by their verdicts."""
    by_verdict: dict[Verdict, list[File]] = {treatment: [] for treatment in Verdict}
    for file in files:
        by_verdict[verdict(file)].append(file)
    return Reach(by_verdict[Verdict.REWRITTEN], by_verdict[Verdict.READ], by_verdict[Verdict.DROPPED])
