"""Which files of the state a batch can reach: decided from their statistics, without reading them.

A file is *rewritten* when the batch may change one of its rows, *read* when its rows are only needed to fire a window,
*dropped* unread when every row has fired and is past its cleanup time, and otherwise left as it is. So a run costs
what its events and the passing of time touch, not what is retained. The rules are each plan's own
(`windowlib.plans.kinds`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Generic, Protocol, TypeVar


class StateFile(Protocol):
    """A file of the state as its statistics describe it: `low`, `high` hold the bounds of its columns."""

    @property
    def partition(self) -> Mapping[str, Any]: ...

    @property
    def low(self) -> Mapping[str, Any]: ...

    @property
    def high(self) -> Mapping[str, Any]: ...


File = TypeVar("File", bound=StateFile)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A span of event time that the batch has events in: their times, and the greatest end of their own windows."""

    min_timestamp_ms: int
    max_timestamp_ms: int
    max_window_end_ms: int


class Verdict(Enum):
    """What a batch does with a file of the state."""

    REWRITTEN = auto()
    READ = auto()
    DROPPED = auto()
    LEFT = auto()


@dataclass(frozen=True, slots=True)
class Reach(Generic[File]):
    """The files of the state that a batch reaches."""

    rewritten: Sequence[File] = ()
    read: Sequence[File] = ()
    dropped: Sequence[File] = ()

    @property
    def replaced(self) -> list[File]:
        """The files that the commit removes."""
        return [*self.rewritten, *self.dropped]

    @property
    def is_empty(self) -> bool:
        return not (self.rewritten or self.read or self.dropped)


def reached(files: Sequence[File], verdict: Callable[[File], Verdict]) -> Reach[File]:
    """The files by what is done with each."""
    found: dict[Verdict, list[File]] = {one: [] for one in Verdict}
    for file in files:
        found[verdict(file)].append(file)
    return Reach(found[Verdict.REWRITTEN], found[Verdict.READ], found[Verdict.DROPPED])
