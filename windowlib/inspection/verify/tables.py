"""Windows in a pipeline's tables, in comparable form: bounds in ms, finished aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.contract.result_tables import UNCOMPARED
from windowlib.contract.state_tables import PARTIAL_NAMES
from windowlib.delta.statistics import overlapping_ms
from windowlib.inspection.verify.compared import TableShape
from windowlib.inspection.verify.expected import ExpectedWindows, meets_any
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.model.rerun import TimeRange
from windowlib.plans.functions import F, quoted
from windowlib.plans.reruns import in_chains
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

START, END = "window_start_ms", "window_end_ms"
OF_RESULTS = {START: "unix_millis(window_start)", END: "unix_millis(window_end)"}


def shape_of(table: str, step: Step, *, by_time: bool) -> TableShape:
    """Columns to compare in a table. With `by_time`, window bounds identify a row, otherwise its firing or slice."""
    exact = step.aggregates.exact
    if table == "results":
        values = [name for name in step.value_names if name not in UNCOMPARED]
        return TableShape(table, step.keys, (START, END) if by_time else ("firing",), values, exact)
    values = [*PARTIAL_NAMES, *step.output_names]
    return TableShape(table, step.keys, (START, END) if by_time else ("slice_index",), values, exact)


def results(inputs: Inputs, step: Step, request: VerifyRequest) -> DataFrame | None:
    """The requested rows of `results`."""
    files = inputs.tables.files_in("results", request.span) if request.span else None
    rows = inputs.tables.rows("results", files)
    if rows is None:
        return None
    shape = shape_of("results", step, by_time=inputs.definition.plan.windows_end)
    columns = [f"{OF_RESULTS.get(name, quoted(name))} AS {quoted(name)}" for name in (*shape.identity, *shape.values)]
    return request.sampled(rows.selectExpr(*columns), step.keys)


def in_flight(inputs: Inputs, step: Step, request: VerifyRequest) -> DataFrame | None:
    """The requested rows of `open_windows`. For aligned windows, START and END are the bounds of the slice."""
    by_time, bounds = inputs.definition.plan.windows_end, inputs.definition.plan.bounds
    files = inputs.tables.files("open_windows")
    rows = inputs.tables.rows("open_windows", overlapping_ms(files, bounds, request.span) if request.span else files)
    if rows is None:
        return None
    if by_time and bounds != (START, END):
        own = [f"{quoted(theirs)} AS {ours}" for theirs, ours in zip(bounds, (START, END), strict=True)]
        rows = rows.selectExpr(*map(quoted, [*step.keys, *step.partial_names]), *own)
    return request.sampled(finished(rows, shape_of("open_windows", step, by_time=by_time), step), step.keys)


def finished(rows: DataFrame, shape: TableShape, step: Step, *, whole: bool = False) -> DataFrame:
    """Finishes the partial aggregates of rows. With `whole`, added columns get their values in all rows."""
    sql = step.values(whole=whole)
    return rows.selectExpr(
        *(f"{sql.get(name, quoted(name))} AS {quoted(name)}" for name in (*shape.identity, *shape.values))
    )


def chosen(
    rows: DataFrame | None, request: VerifyRequest, expected: ExpectedWindows, unsure: Sequence[TimeRange]
) -> DataFrame | None:
    """Rows whose windows overlap the requested range. Omits rows that cannot be compared."""
    if rows is None or START not in rows.columns:
        return rows
    step = expected.step
    rows = rows.where(request.meets(START, END))
    rows = rows.where(f"NOT {meets_any(unsure, START, END, touching=step.assigner.merges)}")
    if expected.unsure is not None:
        rows = in_chains(rows, expected.unsure, step, START, END, inside=False)
    return rows


def span_of(frames: Sequence[DataFrame | None], request: TimeRange) -> TimeRange:
    """Range from the first start to the last end of these windows and of the request."""
    first, last = request.from_ms, request.to_ms
    for rows in frames:
        bounds = None if rows is None else rows.agg(F.min(START), F.max(END)).first()
        if bounds is not None and bounds[0] is not None:
            first, last = min(first, bounds[0]), max(last, bounds[1])
    return TimeRange(first, last)
