"""One step of a plan: takes the windows in flight and a batch of events, returns fired windows and the new state.

Every plan (`sessions`, `aligned`, `counts`, `general`) returns one relation, so that one Spark job writes everything.
The column `part` tells its rows apart:

==========  =======================================================================================================
`open`      state that stays in flight
`on_time`   a result of a window that the watermark has just passed, or an early result
`late`      a result that a late event causes for a window without a published row
`update`    a result that replaces the published rows named in `replaced`
`gone`      general plan: a window that no longer has a result; it removes the rows named in `replaced`
`dropped`   a window that is late as a whole: its events go to the late side output; general plan: one late event
`contents`  general plan: elements that a window keeps
`hole`      general plan: an event that is in no window and not late
==========  =======================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windowlib.contract.result_tables import COMPUTED, FILLED, LOCAL_BOUNDS, RESULT_COLUMNS
from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.model.spec import WindowSpec
from windowlib.plans import names
from windowlib.plans.aggregates.columns import all_merges, all_partial_names, all_partials, finishes
from windowlib.plans.aggregates.mergeable.since import NAME as MARK
from windowlib.plans.functions import F, quoted
from windowlib.plans.geometry import is_late
from windowlib.plans.grids.by_calendar import CalendarGrid
from windowlib.plans.grids.local_times import local_text_sql
from windowlib.plans.partitions import end_partition, window_day
from windowlib.plans.shared import Slicing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windowlib.plans.dialect import Counters, Dialect

OPEN, ON_TIME, LATE, UPDATE, DROPPED = "open", "on_time", "late", "update", "dropped"
PUBLISHED = "published"  # column of a window in flight: the published windows that it will replace
CONTENTS, HOLE, GONE = "contents", "hole", "gone"  # only in the general plan
FIRED = (ON_TIME, LATE, UPDATE)
WINDOWS = "array<struct<window_start_ms:bigint,window_end_ms:bigint>>"
ITSELF = "array(named_struct('window_start_ms', window_start_ms, 'window_end_ms', window_end_ms))"  # of type WINDOWS


@dataclass(frozen=True, slots=True)
class Step:
    """Definition and instant of a batch: the input of its plan besides rows.

    - `watermark_in_ms`, `watermark_out_ms`: the watermarks before and after the batch.
    - `late_in_ms`: greatest max_timestamp_ms of windows that were late when the batch began.
    - `late_out_ms`: greatest max_timestamp_ms of windows that are retired when the batch ends.
    - `lateness_changed`: the allowed lateness differs from the previous batch. Windows in flight may then be late, and
      their timers may follow the earlier lateness.
    - `keeps_published`: rows of windows in flight list the published windows that they will replace.
    - `rewrites_state`: stored windows lack this list. All state files are rewritten, because they get a column.
    - `partition_ms`: the width of a state partition.
    - `aggregates`: the definition's `AggregateSet`.
    - `outputs`: the columns (name → Spark type) that a Python function returns in place of the aggregates.
    - `spans`: spans of time that hold the events and slices of the step; only windows of a calendar need them.
    - `shared`: layout of slices shared by several definitions, if the plan reads shared slices instead of events.
    - `spec`, `reads`: the specification, and the source columns that the user's code reads.
    """

    assigner: Assigner
    keys: Sequence[str]
    aggregates: Any
    watermark_in_ms: int
    watermark_out_ms: int
    late_in_ms: int
    late_out_ms: int
    batch_id: int
    partition_ms: int
    plan_time_ms: int = 0
    lateness_changed: bool = False
    keeps_published: bool = False
    rewrites_state: bool = False
    spec: WindowSpec | None = None
    reads: Sequence[str] = ()
    outputs: Mapping[str, str] | None = None
    shared: Slicing | None = None
    spans: Sequence[TimeRange] = ()
    dialect: Dialect = field(kw_only=True)

    @property
    def specification(self) -> WindowSpec:
        """The spec. It is never None in a step of a definition."""
        assert self.spec is not None, "this step has no spec"
        return self.spec

    @property
    def key_columns(self) -> list[Column]:
        return [F.col(quoted(key)) for key in self.keys]

    @property
    def other_key_columns(self) -> list[Column]:
        """Key columns under internal names, for a join by `with_same_key`."""
        return [F.col(quoted(key)).alias(names.internal(f"key{i}")) for i, key in enumerate(self.keys)]

    def with_same_key(self, condition: Column) -> Column:
        """Adds equal keys to a join condition. One side has its key as `other_key_columns`."""
        same = [f"{names.internal(f'key{i}')} = {quoted(key)}" for i, key in enumerate(self.keys)]
        return condition & F.expr(" AND ".join(same) or "true")

    def partials(self, *, by_time: bool = False) -> list[Column]:
        """Partial aggregates over events: the partials of event times (long), and the partials of the definition.

        With `by_time`, returns columns that only reveal the types of the parts that the operator folds.
        """
        return all_partials(self.aggregates.aggregates, self.dialect, by_time=by_time)

    def merges(self) -> list[Column]:
        """Aggregates that merge rows of partials."""
        return all_merges(self.aggregates.aggregates, self.dialect)

    @property
    def partial_names(self) -> list[str]:
        return all_partial_names(self.aggregates.aggregates)

    @property
    def output_names(self) -> list[str]:
        if self.outputs is not None:
            return list(self.outputs)
        return [column.name for column in self.aggregates.columns]

    @property
    def local_bounds(self) -> Sequence[str]:
        """The columns of `results` with local times; none without a calendar."""
        return () if geometry_of(self.assigner).calendar is None else (*LOCAL_BOUNDS,)

    @property
    def result_names(self) -> list[str]:
        """The columns of `results` without its partition column."""
        filled = {
            "<key>": self.keys,
            **{name: (name,) if name in self.local_bounds else () for name in LOCAL_BOUNDS},
            "<aggregates>": self.output_names,
            FILLED: (),  # among the outputs once columns were added
            "result_number": () if self.outputs is None else ("result_number",),
            "window_day": (),
        }
        return [name for column in RESULT_COLUMNS for name in filled.get(column.name, (column.name,))]

    @property
    def value_names(self) -> list[str]:
        """The columns of `results` that follow from the events of a window."""
        return [*self.local_bounds, *COMPUTED, *self.output_names]

    def values(self, *, whole: bool = False) -> dict[str, str]:
        """SQL of each column in `value_names` over rows of window bounds and merged partials.

        With `whole`, rows hold all events of a window, so the marks of added aggregates are ignored.
        """
        return {**self.computed(), **finishes(self.aggregates, self.dialect, whole=whole)}

    def computed(self) -> dict[str, str]:
        """`values` without the aggregates."""
        geometry = geometry_of(self.assigner)
        if geometry.calendar is None:
            return dict(COMPUTED)
        reached = CalendarGrid(geometry.calendar, geometry.intervals, geometry.within, self.spans).reached
        local = {
            name: local_text_sql(geometry.calendar, reached, f"{bound}_ms") for name, bound in LOCAL_BOUNDS.items()
        }
        return {**local, **COMPUTED}


# Number of events behind a firing: all events of its window, or only new events if the watermark had passed the window.
FIRED_EVENTS = names.internal("events")

# Columns that `with_instant` adds: values of the run.
WATERMARK_IN, WATERMARK_OUT, BATCH_ID = map(names.internal, ("watermark_in_ms", "watermark_out_ms", "batch_id"))
# Greatest max_timestamp_ms of late windows before and after the batch.
LATE_IN, LATE_OUT = map(names.internal, ("late_in_ms", "late_out_ms"))


def with_instant(rows: DataFrame, step: Step, **more_ms: int) -> DataFrame:
    """Adds the values that differ from batch to batch as columns: watermarks, batch id, and `more_ms`."""
    values = {
        WATERMARK_IN: step.watermark_in_ms,
        WATERMARK_OUT: step.watermark_out_ms,
        LATE_IN: step.late_in_ms,
        LATE_OUT: step.late_out_ms,
        BATCH_ID: step.batch_id,
        **more_ms,
    }
    return step.dialect.with_values(rows, values)


def results(step: Step, fired: str) -> list[str]:
    """Columns of `results` as SQL over rows with window bounds and merged partials. They are null unless `fired`."""
    values = {
        "window_start": "timestamp_millis(window_start_ms)",
        "window_end": "timestamp_millis(window_end_ms)",
        **step.values(),
        "firing": "1",
        "timing": f"if(window_end_ms - 1 <= {WATERMARK_IN}, 'late', 'on_time')",
        "batch_id": BATCH_ID,
    }
    return [f"if({fired}, {value}, null) AS {quoted(name)}" for name, value in values.items()]


def partition(end_ms: str, step: Step) -> str:
    """SQL of a row's partition: from the window's end for state, from the window's day for results."""
    open_in, day = end_partition(end_ms, step.partition_ms), window_day("window_end_ms - 1")
    return f"CASE part WHEN '{OPEN}' THEN {open_in} WHEN '{DROPPED}' THEN 0 ELSE {day} END"


def strings(values: str) -> str:
    """SQL of an array of strings. The cast sets the type, because some engines cannot derive it from nulls."""
    return f"cast(array({values}) AS array<string>)"


def counted(
    contents: DataFrame, counters: Counters, *, dropped: str, kept: str, more: Mapping[str, str] | None = None
) -> DataFrame:
    """Returns `contents`, and counts its elements when a job computes it: before the batch, late, kept and retired.

    A shorter allowed lateness can make stored elements late. Such elements are dropped and count as retired.
    """
    sums = {
        **(more or {}),
        "elements_before": "before",
        "elements_dropped": f"if({dropped}, elements - before, 0)",
        "elements_kept": f"if({kept}, elements, 0)",
        "elements_retired": f"if({kept}, 0, if({dropped}, before, elements))",
        "rows_retired": f"if({kept} OR ({dropped} AND before = 0), 0, 1)",
    }
    return counters.over(contents, sums)


def late_alone(events: DataFrame, step: Step) -> DataFrame:
    """Events whose own window, before any merge, is late."""
    return events.where(is_late(step.assigner, step.late_in_ms))


def counted_by_part(rows: DataFrame, counters: Counters, *, with_events: bool = False) -> DataFrame:
    """Returns `rows`, and counts the rows of each part when a job computes them.

    `with_events` also sums the column FIRED_EVENTS and then drops it, because no table has this column.
    """
    sums = {f"{part}_rows": f"if(part = '{part}', 1, 0)" for part in (OPEN, *FIRED, DROPPED)}
    if not with_events:  # plans with FIRED_EVENTS fire only at the end of a window
        early = "timing = 'early' AND part"
        sums |= {"early_rows": f"if({early} = '{ON_TIME}', 1, 0)", "early_updates": f"if({early} = '{UPDATE}', 1, 0)"}
        return counters.over(rows, sums)
    sums |= {"events_fired": f"coalesce({FIRED_EVENTS}, 0)", "rows_unfounded": f"if({FIRED_EVENTS} = 0, 1, 0)"}
    return counters.over(rows, sums, without=[FIRED_EVENTS])


def events_of_a_firing(fired: str) -> str:
    """The column FIRED_EVENTS as SQL over windows with `elements` and `before`. It is null unless `fired`."""
    again = f"window_end_ms - 1 <= {WATERMARK_IN}"
    return f"if({fired}, if({again}, elements - before, elements), null) AS {FIRED_EVENTS}"


def miscounted(step: Step) -> dict[str, str]:
    """Counter that must stay 0: rows whose aggregate count(*) differs from their number of elements.

    A count(*) that was added to a live pipeline must equal the count of its mark instead.
    """
    counted, plain = "elements", list[str]()
    for index, aggregate in enumerate(step.aggregates.aggregates):
        if aggregate.function == MARK:
            counted = f"p{index}_count"
        elif (aggregate.function, aggregate.argument_sql, aggregate.where_sql) == ("count", None, None):
            plain.append(f"p{index}_count <> {counted}")
    return {"rows_miscounted": f"if({' OR '.join(plain)}, 1, 0)"} if plain else {}
