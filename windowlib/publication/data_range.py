"""Time range of a pipeline's data: from the start of the first window with a published result to the end of the last
window.

The range comes from the file statistics of `results` as of the newest commit. No file is read. A rerun without "from"
or "to" takes the missing bound from this range.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windowlib.contract.result_tables import RESULTS
from windowlib.definition.instants import iso_instant, time_of
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.ledger.rerun_request import RerunRefused, time_range
from windowlib.ledger.rows import Commit
from windowlib.model.rerun import TimeRange


@dataclass(frozen=True, slots=True)
class RequestedRange:
    """Requested range of a rerun, and a sentence for each bound that was empty."""

    range: TimeRange
    proposed: tuple[str, ...] = ()


def data_range(tables: Tables, commit: Commit | None) -> TimeRange | None:
    """Range of all published results; None if there are no results, or if windows have no bounds in time."""
    version = commit.versions.get(RESULTS.name) if commit else None
    return range_of(tables[RESULTS.name].files(version))


def range_of(files: Iterable[DataFile]) -> TimeRange | None:
    """Range of the results in `files`; None without rows, or if a file with rows has no statistics of its bounds.

    >>> from windowlib.definition.instants import utc
    >>> def results(start_ms, end_ms):
    ...     return DataFile("f", 1, 1, low={"window_start": utc(start_ms)}, high={"window_end": utc(end_ms)})
    >>> range_of([results(10, 20), results(0, 15)]), range_of([results(0, 5), DataFile("g", 1, 1)]), range_of([])
    (TimeRange(from_ms=0, to_ms=20), None, None)
    """
    bounds = [(file.low.get("window_start"), file.high.get("window_end")) for file in files if file.rows]
    starts = [time_of(start) for start, _ in bounds if start is not None]
    ends = [time_of(end) for _, end in bounds if end is not None]
    return TimeRange(min(starts), max(ends)) if bounds and len(starts) == len(ends) == len(bounds) else None


def asked_range(
    from_text: str,
    to_text: str,
    data: TimeRange | None,
    now_ms: int,
    ahead_ms: int = 0,
    time_zone: str | None = None,
) -> RequestedRange:
    """Parses a time range (`time_range`). An empty string stands for the bound of `data`. Raises `RerunRefused`.

    An empty end is at most now, although an advanced watermark may have published windows that end later. A given end
    may be in the future by `ahead_ms`.

    >>> asked_range("", "2026-03-04T00:00Z", TimeRange(1_772_496_000_000, 1_772_600_000_000), 1_800_000_000_000)
    ... # doctest: +NORMALIZE_WHITESPACE
    RequestedRange(range=TimeRange(from_ms=1772496000000, to_ms=1772582400000),
          proposed=("from was empty: 2026-03-03T00:00:00Z, the first result's window start",))
    """
    empty = [name for name, text in (("from", from_text), ("to", to_text)) if not text.strip()]
    if not empty:
        return RequestedRange(time_range(from_text, to_text, now_ms, ahead_ms, time_zone))
    if data is None:
        raise RerunRefused(
            f"{' and '.join(empty)} {'is' if len(empty) == 1 else 'are'} empty, and there are no results yet to take"
            " the range from. Give a time with its zone, such as 2026-03-03T00:00Z"
        )
    proposed = []
    if "from" in empty:
        from_text = str(iso_instant(data.from_ms))
        proposed.append(f"from was empty: {from_text}, the first result's window start")
    if "to" in empty:
        to_text = str(iso_instant(min(data.to_ms, now_ms)))
        what = "the last result's window end" if data.to_ms <= now_ms else "now; the last result's window ends later"
        proposed.append(f"to was empty: {to_text}, {what}")
    try:
        return RequestedRange(time_range(from_text, to_text, now_ms, ahead_ms, time_zone), tuple(proposed))
    except RerunRefused as refused:
        raise RerunRefused(f"{refused} ({'; '.join(proposed)})") from None
