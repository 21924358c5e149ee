"""Admission of source rows as events, and the reasons for refusing rows.

An admitted row meets all these conditions:

- All its key columns have values.
- Its event time is neither missing nor too far in the future.
- It has at least one window, or is late by its own time.
- With a gap per element: the gap is > 0, and the event time plus the gap is at most MAX_TIMESTAMP_MS.

Every other row is refused with the first reason in `REASONS` that applies. Exception: `hole` from this module precedes
`duplicate`, which a later step sets. Refused rows never move the watermark, except for valid rows in a
hole between windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.plans import erased, names
from windowlib.plans.erased import MALFORMED, ErasedKeys
from windowlib.plans.functions import F, quoted
from windowlib.plans.geometry import aligned_start_ms, in_hole, latest_end

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windowlib.plans.dialect import Dialect

FUTURE_AFTER_MS, LATE_UP_TO_MS = names.internal("future_after_ms"), names.internal("late_up_to_ms")
REASONS = ("malformed", "null_timestamp", "null_key", "future", "bad_gap", "duplicate", "hole")

# Event times from year 2 to 9998: a TIMESTAMP can hold the bounds of windows of at most a year.
# Longer windows need later event times (`Admission.earliest_ms`). `future_after_ms` limits the ends of windows.
MIN_TIMESTAMP_MS = -62_104_060_800_000
MAX_TIMESTAMP_MS = 253_370_764_799_999
YEAR_MS = 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class Admission:
    """Rules of admission: the columns that they read, and the instant of the run.

    - `timestamp_unit`: None for a TIMESTAMP column, else s, ms or us since the epoch.
    - `future_after_ms`: the greatest event time allowed, or None for no bound.
    - `late_up_to_ms`: greatest max_timestamp_ms of late windows.
    - `time_zone`: zone of event times that have no zone, or None for UTC.
    - `by_event_time`: false for windows of processing time.
    - `erased`: rows of these keys are skipped; they are neither admitted nor refused.
    """

    keys: Sequence[str]
    timestamp: str
    timestamp_unit: str | None
    assigner: Assigner
    late_up_to_ms: int
    future_after_ms: int | None = None
    by_event_time: bool = True
    erased: ErasedKeys | None = None
    time_zone: str | None = None

    @property
    def earliest_ms(self) -> int:
        """Least event time whose window bounds a TIMESTAMP can hold. Merging windows start at an event.

        Windows of unknown length count as at most a year long.

        >>> from windowlib.model.assigners import Tumbling
        >>> day_ms = 86_400_000
        >>> rules = [Admission((), "at", None, Tumbling(size_ms=days * day_ms), 0) for days in (365, 366)]
        >>> [admission.earliest_ms - MIN_TIMESTAMP_MS for admission in rules] == [0, day_ms]
        True
        """
        geometry = geometry_of(self.assigner)
        starts_before = self.by_event_time and not geometry.merges
        return MIN_TIMESTAMP_MS + max(0, (geometry.longest_ms or 0) - YEAR_MS if starts_before else 0)

    @property
    def has_holes(self) -> bool:
        """Tests if some event times are known to lie in no window. Otherwise the operator finds events in holes."""
        return self.by_event_time and geometry_of(self.assigner).has_holes is True


def events(rows: DataFrame, admission: Admission, dialect: Dialect) -> DataFrame:
    """Adds event time and reason of refusal to the source rows, and removes rows of erased keys.

    Does not mark duplicates.

    rows:    the source's columns, CORRUPT (string, null if the row is readable), maybe MISFIT (string)
    returns: the columns of `rows`, TIMESTAMP_MS (long), REASON (string, null: admitted);
             timestamp_ms, a copy of TIMESTAMP_MS, unless the source has a column of that name
    """
    bounds = {} if admission.future_after_ms is None else {FUTURE_AFTER_MS: admission.future_after_ms}
    if admission.has_holes:
        bounds[LATE_UP_TO_MS] = admission.late_up_to_ms
    timed = dialect.with_values(rows, bounds) if bounds else rows
    judged = timed.withColumn(names.TIMESTAMP_MS, timestamp_ms(admission, rows)).withColumn(
        names.REASON, reason(admission, misfits=names.MISFIT in rows.columns)
    )
    if names.EVENT_TIME not in map(str.casefold, rows.columns):
        judged = judged.withColumn(names.EVENT_TIME, F.col(names.TIMESTAMP_MS))
    if admission.erased:
        judged = erased.without(judged, admission.erased)
    return judged.drop(*bounds) if bounds else judged


def _kind(rows: DataFrame, admission: Admission) -> str | None:
    """Spark's name for the type of the event time, without its parameters."""
    kinds = {field.name.casefold(): field.dataType.typeName() for field in rows.schema}
    return kinds.get(admission.timestamp.casefold())


def timestamp_ms(admission: Admission, rows: DataFrame) -> Column:
    """Event time of `rows`, floored to whole milliseconds; null if it is missing or does not fit."""
    name = quoted(admission.timestamp)
    column = F.col(name)
    if admission.timestamp_unit and _kind(rows, admission) in ("float", "double", "decimal"):
        return _floored(name, admission.timestamp_unit)
    match admission.timestamp_unit:
        case None if admission.time_zone and _kind(rows, admission) in ("timestamp_ntz", "date"):
            return thousandth(f"unix_micros(to_utc_timestamp(cast({name} AS timestamp), '{admission.time_zone}'))")
        case None:
            return thousandth(f"unix_micros(cast({name} AS timestamp))")
        case "s":
            return F.try_multiply(column.cast("long"), F.lit(1000).cast("long"))
        case "us":
            return thousandth(f"cast({name} AS bigint)")
        case _:
            return column.cast("long")


def _floored(number: str, unit: str) -> Column:
    """Floors a double or decimal to whole milliseconds by its decimal digits: 0.3 counts as exactly 0.3.

    Negative numbers that the decimal rounds to 0 still floor to −1. NaN and infinities are not times: null.
    """
    digits = 32 if unit == "s" else 38  # the product has 20 fraction digits, too
    exact = f"try_cast({number} AS decimal({digits}, 20))"
    whole = f"cast(floor({exact}{' * 1000' if unit == 's' else ''}) AS bigint)"
    floored = f"if({number} < 0 AND {exact} = 0, -1L, {whole})"
    return thousandth(floored) if unit == "us" else F.expr(floored)


def thousandth(units: str) -> Column:
    """Divides integers by 1000 and floors the result, also below 0. Exact in the whole 64-bit range.

    Converts microseconds to milliseconds, and nanoseconds to microseconds (`windowlib.model.times`).
    """
    return F.expr(f"{units} div 1000L - if({units} % 1000L < 0, 1L, 0L)")


def reason(admission: Admission, *, misfits: bool = False) -> Column:
    """Reason for refusing a row, or null. Reads TIMESTAMP_MS and CORRUPT, and MISFIT if `misfits`."""
    timestamp = F.col(names.TIMESTAMP_MS)
    no_key = F.expr(" OR ".join(f"{quoted(key)} IS NULL" for key in admission.keys) or "false")
    unfit = F.col(quoted(admission.timestamp)).isNotNull() & (
        timestamp.isNull() | ~timestamp.between(admission.earliest_ms, MAX_TIMESTAMP_MS)
    )
    broken = F.col(names.CORRUPT).isNotNull() | unfit
    if misfits:
        broken = broken | F.col(names.MISFIT).isNotNull()
    result = F.when(broken, MALFORMED).when(timestamp.isNull(), "null_timestamp").when(no_key, "null_key")
    if admission.future_after_ms is not None:
        result = result.when(timestamp > F.col(FUTURE_AFTER_MS), "future")
    gap_column = geometry_of(admission.assigner).gap_column
    if gap_column is not None:
        gap = F.col(quoted(gap_column))
        result = result.when(gap.isNull() | (gap <= 0) | (gap > MAX_TIMESTAMP_MS - timestamp), "bad_gap")
    if admission.has_holes:
        # As in Flink: an element without a window is late if its own time is late. Otherwise it is in a hole.
        result = result.when(in_hole(admission.assigner) & (timestamp > F.col(LATE_UP_TO_MS)), "hole")
    return result


def figures(events: DataFrame, admission: Admission, bucket_ms: int, file: Column) -> DataFrame:
    """Figures that the driver needs to advance time: one row per source file, reason and bucket of event time.

    events:  the columns of `events`, SOURCE_ROW, and the columns of `file`, an expression that differs between files
    returns: file, reason (null: admitted), rows
             admitted rows only: bucket (its start in ms), min_window_end_ms, max_window_end_ms (of the events' own
             windows; MAX_TIMESTAMP_MS if unknown)
             admitted rows and rows in a hole: min_timestamp_ms, max_timestamp_ms, max_row (row of the greatest time)
    """
    admitted = F.col(names.REASON).isNull()
    # A window without end, or with an end that only the user's code knows, may reach to the end of time. So the batch
    # may touch every window in flight, and only the operator decides which events are late.
    end = latest_end(admission.assigner)
    own_end = F.when(admitted, F.lit(MAX_TIMESTAMP_MS) if end is None else end)
    timestamp = F.when(admitted | (F.col(names.REASON) == "hole"), F.col(names.TIMESTAMP_MS))
    bucket = F.when(admitted, aligned_start_ms(F.col(names.TIMESTAMP_MS), bucket_ms)).alias("bucket")
    return events.groupBy(file.alias("file"), F.col(names.REASON).alias("reason"), bucket).agg(
        F.count(F.lit(1)).alias("rows"),
        F.min(timestamp).alias("min_timestamp_ms"),
        F.max(timestamp).alias("max_timestamp_ms"),
        F.max_by(names.SOURCE_ROW, timestamp).alias("max_row"),
        F.min(own_end).alias("min_window_end_ms"),
        F.max(own_end).alias("max_window_end_ms"),
    )
