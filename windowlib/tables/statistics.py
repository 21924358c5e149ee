"""Which files of a table may hold what is looked for, by their statistics; a file without them may hold anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windowlib.definition.instants import utc
from windowlib.model.rerun import TimeRange
from windowlib.tables.data_files import DataFile


def overlapping(files: Iterable[DataFile], first: str, last: str, span: TimeRange) -> list[DataFile]:
    """The files that may hold a row whose TIMESTAMPs `first` to `last` lie in the span or touch it."""
    low, high = utc(span.from_ms), utc(span.to_ms)
    return [f for f in files if f.low.get(first, low) <= high and f.high.get(last, high) >= low]


def overlapping_ms(files: Iterable[DataFile], bounds: tuple[str, str], span: TimeRange) -> list[DataFile]:
    """The same for columns in ms."""
    first, last = bounds
    low, high = span.from_ms, span.to_ms
    return [f for f in files if f.low.get(first, low) <= high and f.high.get(last, high) >= low]


def of_sources(files: Iterable[DataFile], paths: Sequence[str]) -> list[DataFile]:
    """The files that may hold rows which came from these files of the source."""
    if not paths:
        return []
    first, last = min(paths), max(paths)
    # The log keeps the beginning of a long text as the smallest, and then no largest.
    return [f for f in files if f.low.get("source_file", first) <= last and first <= f.high.get("source_file", last)]
