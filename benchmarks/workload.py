"""What a workload is made of: cases, and in each the batches that arrive one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.query import Query


class Generator(Protocol):
    """What makes the files."""

    def write(self, path: Path, number: int, events: int, start_ms: int, span_ms: int) -> None:
        """File `number`, always the same for the same arguments."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A batch: so many events of a stretch of time; without events nothing arrives.

    Batches of the same `label` share a line of the report; those that are not `timed` warm up or build state.
    """

    label: str
    source: Generator
    events: int
    start_ms: int
    span_ms: int
    timed: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """Batches for one or more queries, each side in a folder and a process of its own.

    finish       at the end, and not timed, every window fires: then late results are compared in their last state
    since_ms     only windows that begin at this time or later are compared
    memory       the greatest memory of a Python worker is measured
    """

    name: str
    queries: tuple[Query, ...]
    arrivals: Sequence[Arrival]
    finish: bool = False
    since_ms: int | None = None
    memory: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: `files` batches of `events` each, the first of them to warm up."""

    files: int
    events: int


@dataclass(frozen=True, slots=True)
class Workload:
    """`says` is one line for the help; `without` names the sides that cannot do it, and why."""

    name: str
    says: str
    cases: Callable[[Size], list[Case]]
    without: Mapping[str, str] = field(default_factory=dict)
