"""Count windows as a Spark plan: sequence numbers, slices, outcome.

After every ``slide`` elements of a key, in order of arrival, the last ``size`` elements fire. The k-th firing covers
the elements with sequence numbers ``(max(0, k * slide - size), k * slide]``. The specs of these windows are
`tumbling_count` (size = slide) and `sliding_count` of windowlib.model.spec: Flink's global windows with count trigger.

1. *Numbers*. Each event gets the next sequence number of its key.
2. *Slices*. A slice is ``gcd(size, slide)`` consecutive elements, which are always in the same windows.
3. *Outcome*. A firing is assembled from its slices. A slice is kept while a future window needs it. The newest slice of
   a key is always kept, because it gives the last sequence number: ``slice_index * gcd(size, slide) + elements``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.plans import names
from windowlib.plans.aggregates.bounds import within_bounds
from windowlib.plans.functions import F, quoted
from windowlib.plans.kinds.count_windows import count_windows
from windowlib.plans.partitions import PARTITION, window_day
from windowlib.plans.step import BATCH_ID, ON_TIME, OPEN, WINDOWS, Step, counted, with_instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.plans.dialect import Counters


REACHED, NUMBER = names.internal("reached"), names.internal("number")


def advance(events: DataFrame | None, state: DataFrame | None, step: Step, counters: Counters) -> DataFrame:
    """Applies a batch to the slices in flight.

    events:  the source's columns, TIMESTAMP_MS, ARRIVAL (long, unique)              one row per admitted event
    state:   key, slice_index (from 0), partials                                     one row per key and slice
    returns: the columns of `state`, `results` (without bounds; firing is k), `replaced` (null), part (open, on_time),
             end_partition (0 while open, then the day of the last event)                     see windowlib.plans.step
    """
    fresh = None if events is None else slices(numbered(events, state, step), step)
    return outcome(merged(fresh, state, step), step, counters)


def numbered(events: DataFrame, state: DataFrame | None, step: Step) -> DataFrame:
    """Adds NUMBER: the sequence number of an event in its key, from 1, in order of arrival."""
    rows = events.withColumn(REACHED, F.lit(None).cast("long"))
    if state is not None:
        reached = f"slice_index * {count_windows(step).slice_size} + elements AS {REACHED}"
        rows = step.dialect.union([rows, state.selectExpr(*map(quoted, step.keys), reached)])
    # Rows of the state have no arrival, so they sort before the events of their key.
    so_far = _over(step, f"ORDER BY {names.ARRIVAL} NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    number = f"coalesce(max({REACHED}) {so_far}, 0) + count({names.ARRIVAL}) {so_far}"
    return rows.withColumn(NUMBER, F.expr(number)).where(f"{names.ARRIVAL} IS NOT NULL")


def slices(events: DataFrame, step: Step) -> DataFrame:
    """Slices of numbered events, one row per key and slice: slice_index, partials."""
    index = F.expr(f"({NUMBER} - 1) div {count_windows(step).slice_size}").alias("slice_index")
    return events.groupBy(*step.key_columns, index).agg(*step.partials())


def merged(fresh: DataFrame | None, state: DataFrame | None, step: Step) -> DataFrame:
    """Merges the slices of the batch with the slices in flight.

    Adds the column `before`, the number of elements of the slice before the batch.
    """
    columns = [*map(quoted, state_columns(step))]
    parts = [] if fresh is None else [fresh.selectExpr(*columns, "0L AS before")]
    if state is not None:
        parts.append(state.selectExpr(*columns, "elements AS before"))
    if len(parts) == 1:
        return parts[0]
    # Numbered events are already partitioned by key, so Spark shuffles only the slices in flight.
    both = step.dialect.together(parts, step.keys).groupBy(*step.key_columns, "slice_index")
    return both.agg(*step.merges(), F.sum("before").alias("before"))


def outcome(contents: DataFrame, step: Step, counters: Counters) -> DataFrame:
    """Assembles firings from slices (_firing = k), and keeps slices that future windows need (_firing = 0)."""
    windows = count_windows(step)
    size, slide, start = windows.size, windows.slide, f"slice_index * {windows.slice_size}"
    end, over_key = f"({start} + {windows.slice_size})", _over(step)
    reached = contents.selectExpr(
        "*",
        f"max(if(before > 0, {start} + before, 0)) {over_key} div {slide} AS _fired_before",
        f"max({start} + elements) {over_key} div {slide} AS _fired",
        f"max(slice_index) {over_key} AS _newest",
    )
    ranged = reached.selectExpr(
        "*",
        f"greatest(_fired_before + 1, ({end} + {slide - 1}) div {slide}) AS _first",
        f"least(_fired, ({start} + {size}) div {slide}) AS _last",
        f"{start} >= (_fired + 1) * {slide} - {size} OR slice_index = _newest AS _kept",
    )
    counted_rows = counted(ranged, counters, dropped="false", kept="_kept")
    firings = "concat(if(_kept, array(0L), array()), if(_first <= _last, sequence(_first, _last), array()))"
    each = counted_rows.selectExpr("*", f"explode({firings}) AS _firing")
    if size > windows.slice_size:
        index = F.expr("if(_firing = 0, slice_index, null)").alias("slice_index")
        each = each.groupBy(*step.key_columns, "_firing", index).agg(*step.merges())
    return _rows(with_instant(each, step), step)


def _rows(each: DataFrame, step: Step) -> DataFrame:
    """Rows of the plan, made from kept slices and from the contents of firings."""
    values = {
        "window_start": "cast(null AS timestamp)",
        "window_end": "cast(null AS timestamp)",
        **step.values(),
        "firing": "cast(_firing AS int)",
        "timing": "'early'",
        "batch_id": BATCH_ID,
    }
    return within_bounds(each, step, None).selectExpr(
        *map(quoted, step.keys),
        *(f"if(_firing = 0, {name}, null) AS {name}" for name in state_columns(step) if name not in step.keys),
        f"cast(null AS {WINDOWS}) AS replaced",
        *(f"if(_firing = 0, null, {sql}) AS {quoted(name)}" for name, sql in values.items()),
        f"if(_firing = 0, '{OPEN}', '{ON_TIME}') AS part",
        f"if(_firing = 0, 0L, {window_day('last_event_ms')}) AS {PARTITION}",
    )


def _over(step: Step, order: str = "") -> str:
    per_key = f"PARTITION BY {', '.join(map(quoted, step.keys))}" if step.keys else ""
    return f"OVER ({per_key} {order})"


def state_columns(step: Step) -> list[str]:
    """The columns of `open_windows` without its partition column."""
    return [*step.keys, "slice_index", *step.partial_names]
