"""What a side is."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from benchmarks.query import Query
from windowlib.model.errors import WindowError


class MissingSide(WindowError):
    """Something that a side needs is not installed."""


Piece = Literal["step", "finish"]
STEP: Piece = "step"
FINISH: Piece = "finish"


@dataclass(frozen=True, slots=True)
class Task:
    """What a side is given: a folder of its own, with the arrived files in `incoming`, and the queries."""

    folder: Path
    queries: tuple[Query, ...]

    @property
    def incoming(self) -> Path:
        return self.folder / "incoming"

    def files(self) -> list[Path]:
        """What has arrived, oldest first."""
        return sorted(self.incoming.glob("*.parquet"))


Work = Generator[None, Piece, None]


def everything_is_there() -> None:
    """For a side that needs no more than the project does."""


def link(file: Path, task: Task) -> None:
    """Lets `file` arrive, all at once."""
    (task.incoming / file.name).hardlink_to(file)


@dataclass(frozen=True, slots=True)
class Side:
    """One way to compute a query.

    work        what is timed, see `benchmarks.sides`
    published   what it has published for a query, as `query.normal` gives it; None: nothing that can be compared
    new_process each piece of work is timed from the start of a process to its end
    refuses     why it cannot do a query; None where it can
    need        raises MissingSide, with what to do, where something is not installed
    deliver     lets a file arrive; not timed
    final_only  it publishes a result only once it can change no more
    """

    name: str
    says: str
    work: Callable[[Task], Work]
    published: Callable[[Task, Query], pa.Table] | None
    new_process: bool = False
    refuses: Callable[[Query], str | None] = lambda query: None
    need: Callable[[], None] = everything_is_there
    deliver: Callable[[Path, Task], None] = link
    final_only: bool = False
