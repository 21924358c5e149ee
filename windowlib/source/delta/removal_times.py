"""Time range of the events that a removal affects, from the ledger, the footers and partition values."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import TYPE_CHECKING

from windowlib.definition.instants import time_of
from windowlib.model.rerun import TimeRange
from windowlib.model.times import floored_ms
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.source import footers
from windowlib.source.columns.column_types import kind_of
from windowlib.source.columns.partition_values import is_value, types_of, value_of

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source
    from windowlib.source.delta.removals import Removal, Spans
    from windowlib.source.listed import ListedFile


def span_of(source: Source, removal: Removal, spans: Spans, latest_ms: int) -> TimeRange | None:
    """Time range of a removal's events, derived without reading rows; None if no event time is known.

    `spans` gives the times of removed files. Footers or partition values give the times of added files. Times after
    `latest_ms` are ignored, since later events are not admitted.
    """
    spans_known = [span for path in removal.gone if (span := spans[path])]
    most_ms = min(latest_ms, MAX_TIMESTAMP_MS)
    for file in removal.fresh:
        times = _times_of(source, file)
        if times and (low_ms := max(times[0], MIN_TIMESTAMP_MS)) <= (high_ms := min(times[1], most_ms)):
            spans_known.append(TimeRange(low_ms, high_ms + 1))
    if not spans_known:
        return None
    return TimeRange(min(span.from_ms for span in spans_known), max(span.to_ms for span in spans_known))


def _times_of(source: Source, file: ListedFile) -> tuple[int, int] | None:
    """Least and greatest event time of a file's rows in ms, refused rows included; None if not known."""
    column, zone = source.in_files(source.timestamp), source.dialect.time_zone
    if column not in file.values:
        footer = footers.footer(source.store, file)
        return footers.span(footer, column, source.timestamp_unit, zone)
    kind = "bigint" if source.timestamp_unit else kind_of(types_of(source, [file], {})[column])
    text = file.values[column]
    if text is None or not is_value(text, kind):
        return None
    margin_ms = footers.DAY_MS if zone else 0
    match value_of(text, kind):
        case datetime() as moment:
            time_ms = time_of(moment)
        case date() as day:
            time_ms = time_of(datetime.combine(day, time()))
        case int() as number if source.timestamp_unit:
            time_ms = floored_ms(number, source.timestamp_unit)
        case _:
            return None
    return time_ms - margin_ms, time_ms + margin_ms
