"""Changes of a rerun: its windows, computed by the ordinary plan, and their difference to published results.

1. *closure*: finds the windows to recompute (`windowlib.reruns.closure`).
2. *windows*: runs the ordinary plan over all events of the closure as one batch, with nothing in flight before it.
3. *difference*: compares the windows with `results`. Rows with equal values stay in their files.

Files are written to the attempt's own folder only. A dry run consists of exactly these steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.plans import names, reruns
from windowlib.plans.partitions import PARTITION
from windowlib.plans.step import FIRED_EVENTS, ON_TIME, OPEN, Step
from windowlib.reruns.closure import END_MS, START_MS, Closure, find_closure
from windowlib.reruns.events import RerunEvents, is_chosen, rules_of, with_times
from windowlib.reruns.row_positions import PLACE_IN_TABLES
from windowlib.reruns.source import files_of
from windowlib.source import event_spans
from windowlib.storage.at_once import at_once
from windowlib.storage.store import ObjectInfo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

WINDOWS, DIFFERENCE = "rerun", "difference"  # folders of the attempt: new windows, and their difference to results


@dataclass(frozen=True, slots=True)
class Findings:
    """Changes that a rerun has computed.

    The new windows and the difference lie in the attempt's folder. `columns` are the columns of the new windows; None
    if no event counts. `differing` counts the rows of the difference by kind.
    """

    read: RerunEvents
    closure: Closure
    columns: StructType | None = None
    differing: Mapping[str, int] = field(default_factory=dict)

    @property
    def step(self) -> Step:
        return self.read.step

    def readmitted(self, inputs: Inputs, late: DataFrame) -> DataFrame:
        """Late events that the rerun puts into a window."""
        if self.closure.is_empty:
            return late.where("false")
        if self.read.again is not None:
            late = late.join(self.read.again, PLACE_IN_TABLES, "left_anti")
        chosen = late.where("window_start IS NOT NULL").where(is_chosen(inputs, self.closure.windows))
        if self.closure.by_chains:
            time = "unix_millis(event_time)"
            return self.closure.inside(chosen, self.step, time, f"{time} + 1")
        return chosen


def find_changes(inputs: Inputs) -> Findings:
    """Computes the closure, its windows, and their difference to `results`. Raises `RerunRefused`."""
    assert inputs.before is not None, "a pipeline without a batch has nothing to rerun"
    files = with_times(
        inputs, files_of(inputs.source, inputs.definition.uses, inputs.opened, inputs.before, inputs.plan)
    )
    closure, read = find_closure(inputs, files)
    if closure.is_empty:
        return Findings(read, closure)
    rows = sum(file.rows for file in read.files)
    read.step.dialect.size_tasks(inputs.spark, rows, inputs.definition.spark.conf)
    columns = _windows(inputs, closure, read)
    return Findings(read, closure, columns, _difference(inputs, closure, read.step, columns))


def opened(inputs: Inputs) -> list[tuple[ObjectInfo, dict[str, str]]]:
    """Staged files of windows that the rerun leaves in flight."""
    return [written for written in inputs.staged.written(WINDOWS) if written[1]["part"] == OPEN]


def published(inputs: Inputs, closure: Closure, step: Step) -> DataFrame | None:
    """Current results of the closure, with FILE; None if there are none."""
    rows = inputs.tables.rows_with_file("results", inputs.tables.files_in("results", closure.windows))
    return None if rows is None else closure.inside(rows, step, START_MS, END_MS)


def _windows(inputs: Inputs, closure: Closure, read: RerunEvents) -> StructType | None:
    """Writes the windows of the closure. Returns their columns; None if no event counts."""
    if read.rows is None:
        return None
    step, counters = event_spans.with_rows(read.step, read.rows), read.step.dialect.counters()
    windows = rules_of(inputs).recomputed(read.rows, step, closure.windows.from_ms, counters)
    inputs.staged.write(closure.recomputed(windows, step).drop(FIRED_EVENTS), WINDOWS, "part", PARTITION)
    return windows.schema


def _difference(inputs: Inputs, closure: Closure, step: Step, columns: StructType | None) -> dict[str, int]:
    """Writes the difference to `results`. Returns the number of its rows by kind."""
    new, old = _new(inputs, step, columns), published(inputs, closure, step)
    if new is None and old is None:
        return {}
    if new is None and old is not None:
        new = old.where("false").drop(names.FILE)
    if old is None and new is not None:
        old = new.where("false").selectExpr("*", f"cast(null AS string) AS {names.FILE}")
    assert new is not None, "one is made from the other"
    assert old is not None, "one is made from the other"
    inputs.staged.write(reruns.difference(new, old, step), DIFFERENCE, "part", PARTITION)
    counted: Counter[str] = Counter()
    written = inputs.staged.written(DIFFERENCE)
    counts = at_once(inputs.staged.count, [file for file, _ in written])
    for (_, partition), count in zip(written, counts, strict=True):
        counted[partition["part"]] += count
    return dict(counted)


def _new(inputs: Inputs, step: Step, columns: StructType | None) -> DataFrame | None:
    """Recomputed results of the closure; None if there are none."""
    from pyspark.sql.types import StructType

    staged = inputs.staged
    paths = [file.path for file, partition in staged.written(WINDOWS) if partition["part"] == ON_TIME]
    if columns is None or not paths:
        return None
    schema = StructType([columns[name] for name in step.result_names])
    return inputs.spark.read.schema(schema).parquet(*map(staged.url, paths))
