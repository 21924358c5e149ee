"""The windows job of a batch: reads the state it can reach, runs the plan, writes once, sorts files into tables.

Which plan is the definition's matter (`Definition.plan`). What differs between plans is here: which files of the state
they read, what they are given beside events and state, and which tables their rows go to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import own_code, publish
from jobs.publish import Changes
from jobs.reach import Bucket, Reach, earliest_firing_ms, reach
from jobs.spark import size_tasks
from windowlib.plans.kind import PlanKind
from windowlib.windows import MAX_TIME_MS, MIN_TIME_MS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.batch import Batch
    from jobs.delta import DataFile
    from jobs.intake import Seen
    from windowlib.plans.engine import Counters
    from windowlib.plans.step import Step

COMPACT_AFTER = 16  # files of stored elements in one partition: the next run that reads them writes what lives as one


def run(batch: Batch, events: DataFrame | None, seen: Seen, step: Step) -> dict[str, int]:
    """Writes what fires, what stays in flight and what is late, and moves the files; gives what it counted."""
    from windowlib.plans.step import counted_by_part

    reached = reach(batch.files("open_windows"), _buckets(batch, seen, step), step)
    changes = batch.changes["open_windows"] = Changes(remove=reached.replaced)
    batch.changes["results"] = Changes()
    batch.changes["result_changes"] = Changes()
    if step.kind is PlanKind.GENERAL and batch.definition.spec.keeps_elements:
        batch.changes["state_windows"] = Changes()
    fresh, rows = (batch.shared.slices, batch.shared.slice_rows) if batch.shared else (events, seen.rows)
    rows += sum(file.rows for file in reached.rewritten + reached.read)
    size_tasks(batch.spark, rows, batch.definition.spark.conf)
    state = _state(batch, reached, step)
    if events is None and state is None:
        return {}
    elements, parts = step.engine.counters(), step.engine.counters()
    settle: Callable[[], None] | None = None
    if step.kind is PlanKind.GENERAL:
        made, state_columns, settle = _general(batch, events, state, reached, step, elements)
    else:
        made, state_columns = _native(fresh, state, seen, step, elements)
    batch.write(counted_by_part(made, parts), "windows", "part", "slot")
    batch.windows_schema = made.schema
    changes.schema = publish.table_schema(made.schema, state_columns, {"end_partition": "long"})
    batch.results_schema = publish.table_schema(made.schema, step.result_names, {"window_day": "date"})
    _move(batch, changes)
    counted = elements.values()
    if settle is not None:
        settle()
        counted = _as_figures(counted, seen)
    return {**counted, **parts.values()}


def written(batch: Batch, part: str) -> list[str]:
    """The files of a part that the windows job has written and that are still where it wrote them."""
    return [str(path) for path, p in publish.staged(batch.staging / "windows") if p["part"] == part]


def staged_rows(batch: Batch, files: Iterable[str | Path]) -> DataFrame:
    """What stands in files that the windows job has written. Told their columns, Spark need not look for them first."""
    from pyspark.sql.types import StructType

    assert batch.windows_schema is not None, "set by the windows job"
    in_folders = ("part", "slot")
    schema = StructType([field for field in batch.windows_schema if field.name not in in_folders])
    return batch.spark.read.schema(schema).parquet(*map(str, files))


def _native(
    events: DataFrame | None, state: DataFrame | None, seen: Seen, step: Step, counters: Counters
) -> tuple[DataFrame, list[str]]:
    from windowlib.plans import aligned, counts, sessions

    match step.kind:
        case PlanKind.COUNTS:
            return counts.advance(events, state, step, counters), counts.state_columns(step)
        case PlanKind.SESSIONS:
            return sessions.advance(events, state, step, counters), sessions.state_columns(step)
    earliest_ms = earliest_firing_ms(seen.buckets, step)
    made = aligned.advance(events, state, step, counters, earliest_ms=earliest_ms)
    return made, aligned.state_columns(step)


def _general(
    batch: Batch,
    events: DataFrame | None,
    state: DataFrame | None,
    reached: Reach,
    step: Step,
    counters: Counters,
) -> tuple[DataFrame, list[str], Callable[[], None]]:
    """The general plan with the stored elements of the partitions it reads; and what is to be done with those after."""
    from windowlib.plans import general

    definition, window = batch.definition, batch.definition.window
    for reference in definition.own_classes:
        own_code.ship(reference)
    outputs = dict(window.output) if window.function else None
    program = general.program(definition.spec, step.aggregates, definition.reads, outputs)
    partitions = {file.partition["end_partition"] for file in reached.rewritten}
    stored = [file for file in batch.files("state_windows") if file.partition["end_partition"] in partitions]
    compacted = {p for p in partitions if sum(f.partition["end_partition"] == p for f in stored) >= COMPACT_AFTER}
    made = general.advance(
        events,
        state,
        step,
        counters,
        run=program,
        contents=batch.table("state_windows", stored),
        compacted=compacted,
    )
    if "state_windows" in batch.changes:
        changes = batch.changes["state_windows"]
        changes.schema = publish.table_schema(made.schema, general.stored_columns(step), {"end_partition": "long"})
    return made, general.state_columns(step), lambda: _drop_dead(batch, stored, compacted)


def _drop_dead(batch: Batch, stored: Collection[DataFile], compacted: Collection[int]) -> None:
    """Takes away the stored elements of partitions that were compacted, or where no window holds any."""
    alive = {file.partition["end_partition"] for file in batch.changes["open_windows"].add if file.high.get("elements")}
    for file in stored:
        partition = file.partition["end_partition"]
        if partition in compacted or partition not in alive:
            batch.changes["state_windows"].remove.append(file)


def _as_figures(counted: dict[str, int], seen: Seen) -> dict[str, int]:
    """The general plan's counts under the names of the figures; elements in holes become refused rows.

    An element counts once for each window that holds it; retired is what is neither there any more nor was refused.
    """
    holes = counted["n_holes"]
    seen.admitted -= holes
    seen.reasons["hole"] = seen.reasons.get("hole", 0) + holes
    taken = counted["n_taken"] - holes - counted["n_dropped"]
    return {
        "elements_before": counted["n_before"],
        "elements_dropped": counted["n_dropped"],
        "elements_kept": counted["n_after"],
        "elements_retired": counted["n_before"] + taken - counted["n_after"],
        "rows_retired": counted["n_retired_rows"],
    }


def _buckets(batch: Batch, seen: Seen, step: Step) -> list[Bucket]:
    """Where in time the batch's windows lie: of processing time around the plan time, of an own assigner anywhere."""
    if not seen.buckets or step.kind is not PlanKind.GENERAL:
        return seen.buckets
    if batch.definition.window.type == "custom":
        return [Bucket(MIN_TIME_MS, MAX_TIME_MS, MAX_TIME_MS)]
    if batch.definition.spec.time == "processing":
        return [Bucket(step.plan_time_ms, step.plan_time_ms, MAX_TIME_MS)]
    return seen.buckets


def _state(batch: Batch, reached: Reach, step: Step) -> DataFrame | None:
    from pyspark.sql import functions as F

    rewritten = batch.table("open_windows", reached.rewritten)
    if step.kind is not PlanKind.ALIGNED:
        return rewritten
    frames = [
        frame.withColumn("rewritten", F.lit(flag))
        for frame, flag in ((rewritten, True), (batch.table("open_windows", reached.read), False))
        if frame is not None
    ]
    return frames[0].unionByName(frames[1]) if len(frames) == 2 else frames[0] if frames else None


def _move(batch: Batch, open_windows: Changes) -> None:
    """Files of state and of results into their tables; updates, late events and holes are left for the jobs to come."""
    from windowlib.plans.step import CONTENTS, LATE, ON_TIME, OPEN

    for path, partition in publish.staged(batch.staging / "windows"):
        slot = {"end_partition": int(partition["slot"])}
        match partition["part"]:
            case part if part == OPEN:
                open_windows.add.append(publish.move(path, batch.folder("open_windows"), batch.name(path), slot))
            case part if part == CONTENTS:
                file = publish.move(path, batch.folder("state_windows"), batch.name(path), slot)
                batch.changes["state_windows"].add.append(file)
            case part if part in (ON_TIME, LATE):
                batch.publish_result(path, publish.day(partition["slot"]), "firing" if part == ON_TIME else "late")
