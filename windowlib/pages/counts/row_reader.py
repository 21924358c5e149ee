"""Rows of tables by the hour of a result's end or of an event, for the days that a page shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.definition.toml.durations import UNITS
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import overlapping
from windowlib.delta.tables import Tables
from windowlib.model.rerun import TimeRange
from windowlib.pages.counts.count_cache import CountCache
from windowlib.pages.counts.hour_counts import times_ms
from windowlib.pages.counts.row_counts import (
    HourCounts,
    NumericOutput,
    OutputValue,
    PeriodCount,
    by_hour,
    merged,
    merged_values,
    start_ms,
)
from windowlib.pages.local_hours import hours_in
from windowlib.storage.object_file import opened

MOST_ROWS = 3_000_000  # rows that are read of a table; with more results, fewer days are shown
FURTHEST_MS = 400 * UNITS["d"]  # rows further from the shown days are not counted
OF_OPERATORS = ("rerun", "migrate", "forget")  # causes of changes that do not come from events


@dataclass(frozen=True, slots=True)
class ShownDays:
    """Consecutive days of a zone, oldest first."""

    days: Sequence[date]
    zone: ZoneInfo

    @classmethod
    def of(cls, first: date, last: date, zone: ZoneInfo) -> ShownDays:
        """Days from `first` to `last` (inclusive)."""
        return cls([first + timedelta(days=number) for number in range((last - first).days + 1)], zone)

    def bounds_ms(self, day: date) -> tuple[int, int]:
        """Start and end (exclusive) of a day.

        >>> spring = date(2026, 3, 29)
        >>> start, end = ShownDays.of(spring, spring, ZoneInfo("Europe/Berlin")).bounds_ms(spring)
        >>> (end - start) // 3_600_000
        23
        """
        return start_ms(day, self.zone), start_ms(day + timedelta(days=1), self.zone)

    def span(self, later_ms: int) -> TimeRange:
        """Time from the first day to the last. Both bounds are `later_ms` later."""
        return TimeRange(self.bounds_ms(self.days[0])[0] + later_ms, self.bounds_ms(self.days[-1])[1] + later_ms)


@dataclass(frozen=True, slots=True)
class RowReader:
    """Counts the rows of files by hour. The first `in_headline` of the outputs are the headline."""

    tables: Tables
    shown: ShownDays
    outputs: Sequence[NumericOutput]
    in_headline: int
    cache: CountCache[HourCounts]

    @property
    def headline(self) -> Sequence[NumericOutput]:
        return self.outputs[: self.in_headline]

    def results(self, files: Iterable[DataFile]) -> dict[str, HourCounts]:
        """Results of the shown days by the path of their file, and by the hour of their last millisecond."""
        chosen = overlapping(files, "window_end", "window_end", self.shown.span(1))
        counts = self._counted("results", chosen, "window_end")
        return {file.path: of_file for file, of_file in zip(chosen, counts, strict=True)}

    def values(self, counts: HourCounts) -> dict[str, OutputValue]:
        """Values of the outputs in the results of a file."""
        return {
            output.name: merged_values(hour.values[place] for hour in counts.values())
            for place, output in enumerate(self.outputs)
        }

    def reworked(self, version: int | None) -> dict[int, PeriodCount]:
        """Changes of results that operators requested, by hour, with their batches."""
        causes = pa.array(OF_OPERATORS)
        files = self.tables["result_changes"].files_where(version, lambda f: pc.is_in(f["partition.cause"], causes))
        chosen = overlapping(files, "window_end", "window_end", self.shown.span(1))
        return merged(self._counted("result_changes", chosen, "window_end"))

    def events(self, table: str, files: Iterable[DataFile]) -> dict[int, PeriodCount] | None:
        """Rows of a table by the hour of their event time; None if there are too many."""
        chosen = overlapping(files, "event_time", "event_time", self.shown.span(0))
        if sum(file.rows for file in chosen) > MOST_ROWS:
            return None
        return merged(self._counted(table, chosen, "event_time"))

    def _counted(self, table: str, files: Iterable[DataFile], time: str) -> list[HourCounts]:
        return self.cache.of_all({f"{table}/{file.path}": file for file in files}, partial(self._count, table, time))

    def _count(self, table: str, time: str, file: DataFile) -> HourCounts:
        """Counts the rows of a file by the hour of a time. The end of a window counts in the hour before it."""
        stored = pq.ParquetFile(opened(self.tables[table].store, file.path, file.size_bytes))
        further = {
            "results": [output.name for output in self.outputs],
            "result_changes": ["batch_id"],
            "late_events": ["readmitted_by"],
        }.get(table, [])
        present = {*stored.schema_arrow.names}
        rows = stored.read(columns=[time, *(name for name in further if name in present)])
        rows = rows.filter(pc.is_valid(rows[time])) if rows[time].null_count else rows
        if table == "late_events":
            rows = rows.filter(pc.is_null(rows["readmitted_by"]))
        moments = times_ms(rows[time]) - (1 if time == "window_end" else 0)
        near = TimeRange(self.shown.span(0).from_ms - FURTHEST_MS, self.shown.span(0).to_ms + FURTHEST_MS)
        is_near = (moments >= near.from_ms) & (moments < near.to_ms)
        if not is_near.all():
            rows, moments = rows.filter(pa.array(is_near)), moments[is_near]
        hours = hours_in(self.shown.zone.key)
        return by_hour(hours, moments, rows.drop_columns([time]), self.outputs if table == "results" else ())
