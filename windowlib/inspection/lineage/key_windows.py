"""Windows of one key around a time in a cut: published, in flight and changed.

Bounds are `(start_ms, end_ms)`, half-open. A window without bounds (global and count windows) gets the bounds of
`GLOBAL_WINDOW`. Files are chosen by the window times in their statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.definition.instants import nearest_utc, time_of
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import overlapping, overlapping_ms
from windowlib.inspection.lineage.cuts import EVER, Cut
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.model.windows import GLOBAL_WINDOW
from windowlib.plans.kinds.kind import Bounds, InFlight
from windowlib.publication.key import Key

UNBOUNDED: Bounds = (GLOBAL_WINDOW.start_ms, GLOBAL_WINDOW.end_ms)


@dataclass(frozen=True, slots=True)
class KeyWindows:
    """Search for the windows of a key in a cut."""

    cut: Cut
    key: Key

    def published(self, span: TimeRange) -> list[dict[str, Any]]:
        """The rows of `results` whose windows overlap the span, with the window in `bounds`."""
        return list(self._timed("results", span))

    def changes(self, span: TimeRange) -> list[dict[str, Any]]:
        """Rows of `result_changes` whose windows overlap the span, in batch order. `bounds` holds the window.

        Leaves out rows of undone batches, and rows from before a migration.
        """
        rows = (row for row in self._timed("result_changes", span) if row["batch_id"] in self.cut.batches)
        return sorted(rows, key=lambda row: (row["batch_id"], row["change"] != "added"))

    def in_flight(self, span: TimeRange) -> list[InFlight]:
        """The windows in flight that overlap the span."""
        return [window for window in self._flying(self._state_files(span)) if _overlaps(window.bounds_ms, span)]

    def around(self, at_ms: int) -> dict[Bounds, str]:
        """Windows that contain a time ("holds"). If none does, the nearest windows ("before", "after"), and the last
        removed window that contained the time ("held").
        """
        span = TimeRange(at_ms, at_ms + 1)
        holding = {row["bounds"] for row in self.published(span)} | {
            window.bounds_ms for window in self.in_flight(span)
        }
        if holding:
            return dict.fromkeys(sorted(holding), "holds")
        sides = {"before": self._nearest(at_ms, before=True), "after": self._nearest(at_ms, before=False)}
        nearest = {bounds: side for side, bounds in sides.items() if bounds is not None}
        return nearest | {row["bounds"]: "held" for row in self.changes(span)[-1:]}

    # -- results --------------------------------------------------------------------------------------------------

    def _timed(self, table: str, span: TimeRange) -> Iterator[dict[str, Any]]:
        files = overlapping(self.cut.files(table), "window_start", "window_end", span)
        first, last = pa.scalar(nearest_utc(span.from_ms)), pa.scalar(nearest_utc(span.to_ms))
        inside = (pc.field("window_start") < last) & (pc.field("window_end") > first)
        for row in self.cut.rows(table, files, key=self.key, where=inside | pc.field("window_start").is_null()):
            yield {**row, "bounds": _bounds(row)}

    # -- windows in flight ----------------------------------------------------------------------------------------

    @property
    def _beyond_ms(self) -> int:
        """Greatest distance by which a window may extend past one of its slices."""
        return geometry_of(self.cut.definition.spec.assigner).beyond_slice_ms

    def _state_files(self, span: TimeRange) -> list[DataFile]:
        wider = TimeRange(span.from_ms - self._beyond_ms, span.to_ms + self._beyond_ms)
        return overlapping_ms(self.cut.files("open_windows"), self.cut.definition.plan.bounds, wider)

    def _flying(self, files: Iterable[DataFile]) -> Iterator[InFlight]:
        """The windows in flight in the given state files."""
        definition, rows = self.cut.definition, self.cut.rows("open_windows", files, key=self.key)
        return definition.plan.in_flight(rows, definition.spec, self.cut.batch.late_out_ms)

    # -- nearest windows ------------------------------------------------------------------------------------------

    def _nearest(self, at_ms: int, *, before: bool) -> Bounds | None:
        """The nearest window on one side of a time. Opens files until no other file can hold a nearer window."""

        def nearness(bounds: Bounds) -> int:
            return bounds[1] if before else -bounds[0]

        best: Bounds | None = None
        for reached, windows in sorted(self._reaching(at_ms, before=before), key=lambda near: -near[0]):
            if best is not None and reached < nearness(best):
                break
            candidates = [bounds for bounds in windows() if (bounds[1] <= at_ms if before else bounds[0] > at_ms)]
            best = max([*candidates, *([] if best is None else [best])], key=nearness, default=None)
        return best

    def _reaching(self, at_ms: int, *, before: bool) -> Iterator[tuple[int, Callable[[], Iterable[Bounds]]]]:
        """Yields a pair for each file that may have windows on one side: an upper bound of their nearness, and a
        reader.

        Greater nearness means nearer to `at_ms`.
        """
        for file in self.cut.files("results"):
            low, high = file.low.get("window_start"), file.high.get("window_end")
            start_ms, end_ms = (None if time is None else time_of(time) for time in (low, high))
            if (near := _near(start_ms, end_ms, at_ms, before)) is not None:
                yield near, partial(self._published_in, file)
        first, last = self.cut.definition.plan.bounds
        for file in self.cut.files("open_windows"):
            start_ms, end_ms = file.low.get(first), file.high.get(last)
            start_ms = None if start_ms is None else start_ms - self._beyond_ms
            end_ms = None if end_ms is None else end_ms + self._beyond_ms
            if (near := _near(start_ms, end_ms, at_ms, before)) is not None:
                yield near, partial(self._flying_in, file)

    def _published_in(self, file: DataFile) -> list[Bounds]:
        rows = self.cut.rows("results", [file], columns=["window_start", "window_end"], key=self.key)
        return [_bounds(row) for row in rows]

    def _flying_in(self, file: DataFile) -> list[Bounds]:
        return [window.bounds_ms for window in self._flying([file])]


def _near(start_ms: int | None, end_ms: int | None, at_ms: int, before: bool) -> int | None:
    """Upper bound of the nearness of a file's windows, by first start and last end.

    None if the file has no window on this side of the time.
    """
    if before:
        if start_ms is not None and start_ms >= at_ms:
            return None
        return at_ms if end_ms is None else min(end_ms, at_ms)
    if end_ms is not None and end_ms <= at_ms:
        return None
    return -at_ms if start_ms is None else -max(start_ms, at_ms)


def _bounds(row: Mapping[str, Any]) -> Bounds:
    """The bounds of a row of `results`."""
    if row["window_start"] is None:
        return UNBOUNDED
    return time_of(row["window_start"]), time_of(row["window_end"])


def span_of(bounds: Bounds) -> TimeRange:
    """The time range of a window, limited to possible event times."""
    return TimeRange(max(bounds[0], EVER.from_ms), min(bounds[1], EVER.to_ms))


def _overlaps(bounds: Bounds, span: TimeRange) -> bool:
    return bounds[0] < span.to_ms and span.from_ms < bounds[1]
