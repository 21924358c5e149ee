"""Edges of a calendar as SQL: number, start and end of the interval of a time, and the time of an edge.

Between two changes of the clock, edges lie at equal distances. Such a run of edges is plain arithmetic. The SQL is a
balanced tree of conditions over the runs that meet the times of the rows, so it needs no join. Mostly this is a single
run, and the SQL is the same from batch to batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from windowlib.model.calendar import Calendar, EdgeRun
from windowlib.model.rerun import TimeRange

BLOCK_MS = 366 * 86_400_000  # runs are asked for in blocks, so that they are the same in all batches of a block


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of edges. `until_ms` is the first edge of the next run, None if it is not known."""

    run: EdgeRun
    until_ms: int | None

    def start(self, time: str) -> str:
        return f"{time} - pmod({time} - ({self.run.first_ms}L), {self.run.every_ms}L)"

    def next(self, time: str) -> str:
        following = f"{self.start(time)} + {self.run.every_ms}L"
        return following if self.until_ms is None else f"least({following}, {self.until_ms}L)"

    def number(self, time: str) -> str:
        return f"{self.run.number}L + ({time} - ({self.run.first_ms}L)) div {self.run.every_ms}L"

    def edge(self, number: str) -> str:
        return f"{self.run.first_ms}L + ({number} - ({self.run.number}L)) * {self.run.every_ms}L"


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """The edges of a calendar in spans of time. All SQL is exact for times in these spans, and undefined elsewhere.

    `time` and `number` in the methods are names of columns.
    """

    pieces: Sequence[Piece]

    @classmethod
    def inside(cls, calendar: Calendar, spans: Iterable[TimeRange]) -> EdgeColumns:
        """The edges that intervals meeting the spans have, ends included."""
        wanted = sorted(spans, key=lambda span: span.from_ms)
        blocks = {block for span in wanted for block in range(span.from_ms // BLOCK_MS, span.to_ms // BLOCK_MS + 1)}
        runs = {run.first_ms: run for block in sorted(blocks) for run in _runs(calendar, block)}
        pieces: list[Piece] = []
        for first_ms in sorted(runs):
            if pieces and _continues(pieces[-1].run, runs[first_ms]):
                continue
            if pieces:
                pieces[-1] = replace(pieces[-1], until_ms=first_ms)
            pieces.append(Piece(runs[first_ms], None))
        ends = [span.to_ms for span in wanted]
        return cls([piece for piece in pieces if _meets(piece, wanted, ends)])

    def start(self, time: str) -> str:
        """SQL of the last edge at or before a time."""
        return self._chosen(time, [(piece.run.first_ms, piece.start(time)) for piece in self.pieces])

    def next(self, time: str) -> str:
        """SQL of the first edge after a time."""
        return self._chosen(time, [(piece.run.first_ms, piece.next(time)) for piece in self.pieces])

    def number(self, time: str) -> str:
        """SQL of the number of the interval that holds a time."""
        return self._chosen(time, [(piece.run.first_ms, piece.number(time)) for piece in self.pieces])

    def edge(self, number: str) -> str:
        """SQL of the start of the interval with a number."""
        return self._chosen(number, [(piece.run.number, piece.edge(number)) for piece in self.pieces])

    @staticmethod
    def _chosen(column: str, parts: Sequence[tuple[int, str]]) -> str:
        return chosen(column, parts, "bigint")


def chosen(column: str, parts: Sequence[tuple[int, str]], kind: str) -> str:
    """SQL of the last part that begins at or before the column's value: about log2(parts) comparisons.

    parts: where each begins, in rising order, and its SQL

    >>> chosen("t", [(0, "'a'"), (5, "'b'")], "string")
    "if(t < 5L, ('a'), ('b'))"
    """
    if len(parts) <= 1:
        return f"({parts[0][1]})" if parts else f"cast(null AS {kind})"
    low, high = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    return f"if({column} < {high[0][0]}L, {chosen(column, low, kind)}, {chosen(column, high, kind)})"


def _continues(run: EdgeRun, other: EdgeRun) -> bool:
    """Tests if the edges of a run include those of a later run, which only another block of time begins."""
    steps, rest = divmod(other.first_ms - run.first_ms, run.every_ms)
    return (run.every_ms, rest, run.number + steps) == (other.every_ms, 0, other.number)


def _meets(piece: Piece, spans: Sequence[TimeRange], ends: Sequence[int]) -> bool:
    """Tests if a piece meets one of the spans, which are in order of their starts and of their `ends`."""
    nearest = bisect_left(ends, piece.run.first_ms)
    return nearest < len(spans) and (piece.until_ms is None or spans[nearest].from_ms < piece.until_ms)


@lru_cache(maxsize=4096)
def _runs(calendar: Calendar, block: int) -> Sequence[EdgeRun]:
    return tuple(calendar.runs(block * BLOCK_MS, (block + 1) * BLOCK_MS))
