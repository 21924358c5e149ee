"""One step of a plan: the windows in flight and a batch of events in, what fires and what stays in flight out.

Every plan (`sessions`, `aligned`, `counts`, `general`) gives one relation, so that one Spark job writes everything. Its
rows differ in `part`:

==========  =======================================================================================================
`open`      state that stays in flight
`on_time`   a result whose window the watermark has just passed, or one that is early
`late`      a result that a late event made, where there was none
`update`    a result that replaces published rows, named in `replaced`
`gone`      general plan: a window that has no row now; those that it replaces are named in `replaced`
`dropped`   a window that is late as a whole: its events go to the late side output; general plan: one late event
`contents`  general plan: elements that a window keeps
`hole`      general plan: an event that is in no window, and not late
==========  =======================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windowlib.contract.result_tables import COMPUTED, FILLED, RESULT_COLUMNS
from windowlib.model.assigners import Assigner
from windowlib.model.spec import WindowSpec
from windowlib.plans import names
from windowlib.plans.admission import own_window_end_ms
from windowlib.plans.aggregates.columns import all_merges, all_partial_names, all_partials, finishes
from windowlib.plans.aggregates.mergeable.since import NAME as MARK
from windowlib.plans.functions import F, quoted
from windowlib.plans.partitions import end_partition, window_day
from windowlib.plans.shared import Slicing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windowlib.plans.dialect import Counters, Dialect

OPEN, ON_TIME, LATE, UPDATE, DROPPED = "open", "on_time", "late", "update", "dropped"
PUBLISHED = "published"  # the column of windows in flight
CONTENTS, HOLE, GONE = "contents", "hole", "gone"  # of the general plan alone
FIRED = (ON_TIME, LATE, UPDATE)
WINDOWS = "array<struct<window_start_ms:bigint,window_end_ms:bigint>>"
ITSELF = "array(named_struct('window_start_ms', window_start_ms, 'window_end_ms', window_end_ms))"  # of type WINDOWS


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch is computed with. Watermarks are those before and after the batch.

    Windows whose max_timestamp_ms is not above `late_in_ms` were late when the batch began, those not above
    `late_out_ms` are retired when it ends; where `lateness_changed` since the batch before, windows in flight may be
    late, and timers of another lateness. `keeps_published`: windows in flight name the published ones that they will
    replace; `rewrites_state`: those that are stored do not yet, and a table changes its columns with all its files.
    `partition_ms` is the width of a state partition; `aggregates` is the definition's `AggregateSet`; `outputs` are the
    columns (name → Spark type) that a function in Python gives in place of theirs; `dialect` is that of the
    engine; `shared` says how slices that several definitions share were made, where a plan is given those in place of
    events. The operator needs the whole `spec`, and the source columns that its code reads (`reads`).
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
    dialect: Dialect = field(kw_only=True)

    @property
    def specification(self) -> WindowSpec:
        """The spec, of a step that was made from a definition."""
        assert self.spec is not None, "this step has no spec"
        return self.spec

    @property
    def key_columns(self) -> list[Column]:
        return [F.col(quoted(key)) for key in self.keys]

    @property
    def other_key_columns(self) -> list[Column]:
        """The key under other names, so that rows can be joined with others: by `with_same_key`."""
        return [F.col(quoted(key)).alias(names.internal(f"key{i}")) for i, key in enumerate(self.keys)]

    def with_same_key(self, condition: Column) -> Column:
        """The condition of a join, and that the key of one side is that which the other has as `other_key_columns`."""
        same = [f"{names.internal(f'key{i}')} = {quoted(key)}" for i, key in enumerate(self.keys)]
        return condition & F.expr(" AND ".join(same) or "true")

    def partials(self, *, by_time: bool = False) -> list[Column]:
        """Partial aggregates over events: those over event times (long), and the definition's.

        `by_time`: only to be asked for the types of what the operator folds.
        """
        return all_partials(self.aggregates.aggregates, self.dialect, by_time=by_time)

    def merges(self) -> list[Column]:
        """The same over rows that hold them."""
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
    def result_names(self) -> list[str]:
        """The columns of `results`, its partition column aside."""
        filled = {
            "<key>": self.keys,
            "<aggregates>": self.output_names,
            FILLED: (),  # one of the outputs, once columns were added
            "result_number": () if self.outputs is None else ("result_number",),
            "window_day": (),
        }
        return [name for column in RESULT_COLUMNS for name in filled.get(column.name, (column.name,))]

    @property
    def value_names(self) -> list[str]:
        """The columns of `results` that follow from the events of a window."""
        return [*COMPUTED, *self.output_names]

    def values(self, *, whole: bool = False) -> dict[str, str]:
        """The same as SQL over rows of merged partials; `whole`: the rows hold all events, whatever their marks say."""
        return {**COMPUTED, **finishes(self.aggregates, self.dialect, whole=whole)}


# What a firing rests on: all events of its window, of one that had passed only the new ones.
FIRED_EVENTS = names.internal("events")

# The run's own values, as `with_instant` adds them.
WATERMARK_IN, WATERMARK_OUT, BATCH_ID = map(names.internal, ("watermark_in_ms", "watermark_out_ms", "batch_id"))
# The greatest max_timestamp_ms that was, or is, late.
LATE_IN, LATE_OUT = map(names.internal, ("late_in_ms", "late_out_ms"))


def with_instant(rows: DataFrame, step: Step, **more_ms: int) -> DataFrame:
    """`rows` with the values that differ from batch to batch as columns: watermarks, batch id, and `more_ms`."""
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
    """The columns of `results` where `fired`, else null, as SQL over rows with window bounds and merged partials."""
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
    """The partition a row goes to, as SQL: by its end while in flight, by its day once it is a result."""
    open_in, day = end_partition(end_ms, step.partition_ms), window_day("window_end_ms - 1")
    return f"CASE part WHEN '{OPEN}' THEN {open_in} WHEN '{DROPPED}' THEN 0 ELSE {day} END"


def strings(values: str) -> str:
    """An array of texts, as SQL: of one type whatever may be null in it, which not every engine sees by itself."""
    return f"cast(array({values}) AS array<string>)"


def counted(
    contents: DataFrame, counters: Counters, *, dropped: str, kept: str, more: Mapping[str, str] | None = None
) -> DataFrame:
    """`contents`, counting elements on the way: what was there before, what is late, what stays, what is retired.

    What is dropped and was there before has become late by a shorter allowed lateness: it is retired.
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
    """The events that would be late if they were alone."""
    return events.where(own_window_end_ms(step.assigner) - 1 <= step.late_in_ms)


def counted_by_part(rows: DataFrame, counters: Counters, *, with_events: bool = False) -> DataFrame:
    """`rows`, counting those of each part on the way; `with_events` also what they fire, by their column FIRED_EVENTS.

    The column is not in what is returned: no table has it.
    """
    sums = {f"{part}_rows": f"if(part = '{part}', 1, 0)" for part in (OPEN, *FIRED, DROPPED)}
    if not with_events:  # the other plans fire at the end of a window alone
        early = "timing = 'early' AND part"
        sums |= {"early_rows": f"if({early} = '{ON_TIME}', 1, 0)", "early_updates": f"if({early} = '{UPDATE}', 1, 0)"}
        return counters.over(rows, sums)
    sums |= {"events_fired": f"coalesce({FIRED_EVENTS}, 0)", "rows_unfounded": f"if({FIRED_EVENTS} = 0, 1, 0)"}
    return counters.over(rows, sums, without=[FIRED_EVENTS])


def events_of_a_firing(fired: str) -> str:
    """The column FIRED_EVENTS where `fired`, else null, as SQL over windows with `elements` and `before`."""
    again = f"window_end_ms - 1 <= {WATERMARK_IN}"
    return f"if({fired}, if({again}, elements - before, elements), null) AS {FIRED_EVENTS}"


def miscounted(step: Step) -> dict[str, str]:
    """What to count so that it must be 0: contents whose own count(*) is not the number of their elements.

    One that was added has counted those of which its mark knows.
    """
    counted, plain = "elements", list[str]()
    for index, one in enumerate(step.aggregates.aggregates):
        if one.function == MARK:
            counted = f"p{index}_count"
        elif (one.function, one.argument_sql, one.where_sql) == ("count", None, None):
            plain.append(f"p{index}_count <> {counted}")
    return {"rows_miscounted": f"if({' OR '.join(plain)}, 1, 0)"} if plain else {}
