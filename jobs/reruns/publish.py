"""From what a rerun has computed to the changes of each table: results, windows in flight, late events, files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import Schema

from jobs import delta, opened, publish
from jobs.intake import FileFigures
from jobs.publish import Changes
from jobs.reruns.source import source_rows
from jobs.tables import SOURCE_FILES
from windowlib.plans.kind import PlanKind
from windowlib.plans.step import DAY_MS
from windowlib.rerun import TimeRange

if TYPE_CHECKING:
    from pyspark.sql import Column

    from jobs.reruns.batch import Findings, Rerun
    from windowlib.plans.step import Step

CAUSE = "rerun"


def publish_all(batch: Rerun, found: Findings) -> None:
    """Fills `batch.changes`."""
    for table in ("results", "result_changes", "open_windows", "late_events"):
        batch.changes[table] = Changes()
    changed = any(file.changed for file in found.files)
    if not found.is_empty:
        _results(batch, found)
        _in_flight(batch, found)
    if changed or not found.is_empty:
        _late_events(batch, found)
    if changed:
        _changed_files(batch, found)


def _results(batch: Rerun, found: Findings) -> None:
    """Changed and withdrawn rows out of the files that hold them; changed and new ones in."""
    from pyspark.sql import functions as F

    staged = list(publish.staged(batch.staging / "difference"))
    gone = [str(path) for path, p in staged if p["part"] != "entered"]
    if gone:
        replaced = batch.spark.read.parquet(*gone)
        names = {Path(row["_file"]).name for row in replaced.select("_file").distinct().collect()}
        touched = [file for file in batch.files("results") if Path(file.path).name in names]
        identity = [*batch.definition.source.key, "window_start", "window_end"]
        rows = batch.table("results", touched)
        assert rows is not None, "a published window is in `results`"
        kept = rows.join(replaced.select(*(f"`{name}`" for name in identity)), identity, "left_anti")
        slot = F.floor((F.unix_millis("window_end") - 1) / F.lit(DAY_MS)).alias("slot")
        batch.write(kept.select(*(f"`{name}`" for name in rows.columns), slot), "kept", "slot")
        batch.changes["results"].remove = touched
    if staged:
        schema = found.made and publish.table_schema(found.made, found.step.result_names, {"window_day": "date"})
        schema = schema or _schema(batch, "results")
        batch.changes["results"].schema = schema
        batch.changes["result_changes"].schema = publish.changes_schema(schema)
    for path, partition in publish.staged(batch.staging / "kept"):
        batch.publish_result(path, publish.day(partition["slot"]), None)
    for path, partition in staged:
        day = publish.day(partition["slot"])
        match partition["part"]:
            case "changed":
                batch.publish_result(path, day, CAUSE, "change")
            case "entered":
                batch.publish_result(path, day, CAUSE)
            case _:
                batch.publish_withdrawn(path, day, CAUSE)


def _schema(batch: Rerun, table: str) -> Schema:
    version = batch.before.versions[table] if batch.before else 0
    return opened.at(batch.folder(table), version).schema()


def _in_flight(batch: Rerun, found: Findings) -> None:
    """Windows in flight of the closure out, the new ones in; slices count as windows do."""
    from windowlib.plans import aligned, sessions

    changes, step = batch.changes["open_windows"], found.step
    new = [(path, p) for path, p in publish.staged(batch.staging / "rerun") if p["part"] == "open"]
    touched = batch.state_files(found.closure.windows)
    rows = batch.table("open_windows", touched)
    if rows is not None:
        batch.write(batch.outside(rows, found).withColumn("slot", _end_partition(step)), "kept_open", "slot")
        changes.remove = touched
    for path, partition in [*new, *publish.staged(batch.staging / "kept_open")]:
        slot = {"end_partition": int(partition["slot"])}
        file = publish.move(path, batch.folder("open_windows"), batch.name(path), slot)
        if file.rows:
            changes.add.append(file)
    if new and found.made is not None:
        columns = (sessions if step.kind is PlanKind.SESSIONS else aligned).state_columns(step)
        changes.schema = publish.table_schema(found.made, columns, {"end_partition": "long"})


def _end_partition(step: Step) -> Column:
    """The partition of a window, or slice, in flight."""
    from pyspark.sql import functions as F

    from windowlib.plans.aligned import Grid

    end = F.col("window_end_ms")
    if step.kind is PlanKind.ALIGNED:
        end = Grid.of(step.assigner).last_window_end_ms(F.col("state_window_start_ms"))  # type: ignore[arg-type]
    return F.floor(end / F.lit(step.partition_ms))


def _late_events(batch: Rerun, found: Findings) -> None:
    """Late events that are in a window now are told so; those of changed files are no rows of the source any more."""
    from pyspark.sql import functions as F

    windows, asked = found.closure.windows, batch.correction.range
    # Late events of a changed file may lie before and after all windows; in the range they lie in any case.
    files = batch.late_files(TimeRange(min(windows.from_ms, asked.from_ms), max(windows.to_ms, asked.to_ms)))
    rows = batch.table_with_file("late_events", files)
    present = [(file.path, file.changed) for file in found.files if file.now]
    if rows is None or not present:
        return
    place = ["source_file", "source_row"]
    named = F.broadcast(batch.spark.createDataFrame(present, "source_file string, _changed boolean"))
    known = rows.join(named, "source_file", "left")
    waiting = known.where("readmitted_by IS NULL AND NOT _changed")
    taken = batch.taken_in(waiting, found).select(*place, F.lit(True).alias("_taken"))
    marked = known.join(taken, place, "left")
    names = {Path(row["_file"]).name for row in marked.where("_taken OR _changed").select("_file").distinct().collect()}
    touched = [file for file in files if Path(file.path).name in names]
    if not touched:
        return
    counters = found.step.engine.counters()
    counted = counters.over(
        marked.where(F.regexp_extract("_file", r"[^/]+$", 0).isin(names)),
        {"taken": "if(_taken, 1, 0)", "gone": "if(_changed, 1, 0)"},
    )
    readmitted_by = F.when(F.col("_taken"), F.lit(batch.plan.batch_id).cast("long")).otherwise(F.col("readmitted_by"))
    again = counted.where("_changed IS NULL OR NOT _changed").withColumn("readmitted_by", readmitted_by)
    columns = [f"`{name}`" for name in rows.columns if name != "_file"]
    batch.write(again.select(*columns), "late_events")
    told = counters.values()
    batch.readmitted, batch.late_gone = told["taken"], told["gone"]
    _add(batch, "late_events")
    batch.changes["late_events"].remove = touched


def _changed_files(batch: Rerun, found: Findings) -> None:
    """What is kept of changed files: their size and times, the rows they have refused, the ids they have brought."""
    from pyspark.sql import functions as F

    changed = {file.path: file for file in found.files if file.changed}
    name, folder = SOURCE_FILES.name, batch.folder(SOURCE_FILES.name)
    known = batch.files(name)
    rows = []
    for row in source_rows(folder, known):
        if file := changed.get(row["path"]):
            now = found.changed.files.get(file.path, FileFigures())
            assert file.now
            row |= {"size_bytes": file.now.size_bytes, "modified_ns": file.now.modified_ns, "rows": now.rows}
            row |= {"min_timestamp_ms": now.min_timestamp_ms, "max_timestamp_ms": now.max_timestamp_ms}
        rows.append(row)
    table = pa.Table.from_pylist(rows, schema=SOURCE_FILES.columns)
    batch.changes[name] = Changes(add=[delta.write(folder, table)], remove=known)

    changes = batch.changes["quarantine"] = Changes()
    changes.remove = batch.of_sources("quarantine", list(changed))
    stays = batch.table("quarantine", changes.remove)
    assert found.refused is not None, "changed files are judged anew"
    refused = found.refused
    if stays is not None:
        named = batch.spark.createDataFrame([(path,) for path in changed], "source_file string")
        refused = stays.join(F.broadcast(named), "source_file", "left_anti").unionByName(refused)
    if stays is not None or any(found.changed.reasons.values()):
        batch.write(refused, "quarantine")
        _add(batch, "quarantine")

    event_id, events = batch.definition.source.event_id, found.changed_events
    if event_id and events is not None:
        batch.changes["seen_ids"] = Changes()
        oldest_ms = batch.watermark_in_ms - batch.definition.source.dedup_horizon_ms
        ids = events.select(F.col(f"`{event_id}`").cast("string").alias("event_id"), "timestamp_ms")
        new = ids.where(f"event_id IS NOT NULL AND timestamp_ms > {oldest_ms}")
        if (seen := batch.table("seen_ids")) is not None:
            new = new.join(seen.select("event_id"), "event_id", "left_anti")
        batch.write(new.select("event_id", "timestamp_ms"), "seen_ids")
        _add(batch, "seen_ids")


def _add(batch: Rerun, table: str) -> None:
    for path, _ in publish.staged(batch.staging / table):
        file = publish.move(path, batch.existing_folder(table), batch.name(path), {})
        if file.rows:
            batch.changes[table].add.append(file)
