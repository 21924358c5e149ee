"""Windows that a rerun recomputes: all windows that overlap the requested range, or all chains of touching windows.

If a chain extends beyond the events that were read, the rerun reads more events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.batches.pinned import Pinned
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import overlapping_ms
from windowlib.model.rerun import TimeRange, first_slack_ms, needed, readmitted, touching
from windowlib.plans import reruns
from windowlib.plans.functions import F
from windowlib.plans.step import Step
from windowlib.reruns.events import CHOSEN, RerunEvents, read_events, requested_range, rules_of
from windowlib.reruns.rejudged_rows import with_repeats
from windowlib.reruns.source import KnownFile, reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

START_MS, END_MS = "unix_millis(window_start)", "unix_millis(window_end)"  # bounds of a row of `results`


@dataclass(frozen=True, slots=True)
class Closure:
    """Windows to recompute: the windows in `chains` if `by_chains` is set, else all that overlap `windows`.

    `chains` is None if there are no chains.

    `bounds` are the columns of `open_windows` that bound a window or a slice.
    """

    windows: TimeRange
    bounds: tuple[str, str]
    by_chains: bool = False
    chains: DataFrame | None = None

    @property
    def is_empty(self) -> bool:
        """Tests if the closure has no window."""
        return self.by_chains and self.chains is None

    def inside(self, rows: DataFrame, step: Step, start: str, end: str) -> DataFrame:
        """Rows whose interval (SQL, in ms) belongs to the closure."""
        if self.chains is not None:
            return reruns.in_chains(rows, self.chains, step, start, end)
        return rows.where(f"{start} < {self.windows.to_ms} AND {end} > {self.windows.from_ms}")

    def others(self, in_flight: DataFrame, step: Step) -> DataFrame:
        """Windows or slices in flight that do not belong to the closure."""
        start, end = self.bounds
        if self.chains is not None:
            return reruns.in_chains(in_flight, self.chains, step, start, end, inside=False)
        return in_flight.where(f"{start} >= {self.windows.to_ms} OR {end} <= {self.windows.from_ms}")

    def recomputed(self, rows: DataFrame, step: Step) -> DataFrame:
        """Rows of a plan, state and results alike, that belong to the closure."""
        start, end = self.bounds
        return self.inside(rows, step, f"coalesce({start}, {START_MS})", f"coalesce({end}, {END_MS})")

    def state_files(self, tables: Pinned) -> list[DataFile]:
        """Files of `open_windows` that may hold windows or slices of the closure."""
        return overlapping_ms(tables.files("open_windows"), self.bounds, self.windows)


def find_closure(inputs: Inputs, files: Sequence[KnownFile]) -> tuple[Closure, RerunEvents]:
    """Closure of a rerun, and the events from which the rerun recomputes its windows."""
    requested = requested_range(inputs)
    return _by_chains(inputs, files, requested) if rules_of(inputs).by_chains else _by_time(inputs, files, requested)


def _by_time(inputs: Inputs, files: Sequence[KnownFile], requested: TimeRange) -> tuple[Closure, RerunEvents]:
    assigner = inputs.definition.spec.assigner
    covered = readmitted(assigner, requested)
    files = with_repeats(inputs, files, covered)
    files = reading(inputs.source, assigner, files, needed(assigner, requested))
    return Closure(covered, inputs.kind.bounds), read_events(inputs, files, covered)


def _by_chains(inputs: Inputs, files: Sequence[KnownFile], requested: TimeRange) -> tuple[Closure, RerunEvents]:
    """Reads events around the range until no chain extends beyond the events that were read.

    Returns slices instead of events if the plan has slices.
    """
    assigner, files = inputs.definition.spec.assigner, with_repeats(inputs, files, requested)
    slack_ms = first_slack_ms(assigner)
    span = TimeRange(requested.from_ms - slack_ms, requested.to_ms + slack_ms)
    while True:
        read = read_events(inputs, reading(inputs.source, assigner, files, span), requested)
        sliced = _sliced(inputs, read)
        closure = _chains(inputs, sliced, read.rows, requested, span)
        reached = closure.windows
        if closure.is_empty or span.holds(touching(assigner, reached)):
            return closure, sliced
        slack_ms *= 2
        span = TimeRange(min(span.from_ms, reached.from_ms - slack_ms), max(span.to_ms, reached.to_ms + slack_ms))


def _sliced(inputs: Inputs, read: RerunEvents) -> RerunEvents:
    slices = None if read.rows is None else rules_of(inputs).sliced(read.rows, read.step)
    if slices is None:
        return read
    return read.with_rows(inputs.staged.write_and_read(slices, inputs.staged.unused("slices")))


def _chains(
    inputs: Inputs, sliced: RerunEvents, events: DataFrame | None, requested: TimeRange, span: TimeRange
) -> Closure:
    """Closure of the chains that the events of `span` determine."""
    step, late_only = sliced.step, inputs.rerun.late_only
    bounds = inputs.kind.bounds
    nothing = Closure(requested, bounds, by_chains=True)
    intervals = [
        frame.withColumn(reruns.CHOSEN, F.lit(False))
        for frame in _intervals(inputs.tables, bounds, sliced.rows, step, span)
    ]
    if late_only and events is not None:
        own = reruns.own_windows(events.where(CHOSEN), step)
        intervals.append(own.withColumn(reruns.CHOSEN, F.lit(True)))
    if not intervals:
        return nothing
    in_chains = reruns.chains(intervals, None if late_only else requested, step)
    chains = inputs.staged.write_and_read(in_chains, inputs.staged.unused("chains"))
    reached = chains.agg(F.min(reruns.CHAIN_START_MS), F.max(reruns.CHAIN_END_MS)).first()
    if reached is None or reached[0] is None:
        return nothing
    return Closure(TimeRange(reached[0], reached[1]), bounds, by_chains=True, chains=chains)


def _intervals(
    tables: Pinned, bounds: tuple[str, str], slices: DataFrame | None, step: Step, span: TimeRange
) -> list[DataFrame]:
    """Intervals that may touch: sessions of the events that were read, published windows, and windows in flight."""
    columns = [*step.key_columns, *map(F.col, bounds)]
    of_results = [F.expr(sql).alias(name) for sql, name in zip((START_MS, END_MS), bounds, strict=True)]
    published = tables.rows("results", tables.files_in("results", span))
    in_flight = tables.rows("open_windows", overlapping_ms(tables.files("open_windows"), bounds, span))
    return [
        *([] if slices is None else [slices.select(*columns)]),
        *([] if published is None else [published.select(*step.key_columns, *of_results)]),
        *([] if in_flight is None else [in_flight.select(*columns)]),
    ]
