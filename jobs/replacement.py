"""Published results that a batch replaces: the rows a late event updates, the sessions that merge into a larger one.

The files of `results` that hold such rows are written again without them (found by time, then by key), and the new
rows are added in the same commit, so a reader never sees an event twice, nor misses it. `result_changes` gets every
row that was withdrawn or changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs import publish
from windowlib.plans.admission import quoted
from windowlib.plans.step import DAY_MS, Step

if TYPE_CHECKING:
    from jobs.batch import Batch
    from jobs.delta import DataFile

KEPT, CHANGED, ENTERED, WITHDRAWN = "kept", "changed", "entered", "withdrawn"


def replace_results(batch: Batch, updates: Sequence[Path], step: Step) -> None:
    """Puts the staged rows of part `update` in the place of the rows they name in `replaced`."""
    new = batch.spark.read.parquet(*map(str, updates))
    replaced = new.select(*step.key_columns, F.explode("replaced").alias("_old")).select(
        *step.key_columns,
        F.timestamp_millis("_old.window_start_ms").alias("window_start"),
        F.timestamp_millis("_old.window_end_ms").alias("window_end"),
        F.lit(True).alias("_replaced"),
    )
    if step.outputs is not None:  # a function gives several rows of one firing, each of which names what it replaces
        replaced = replaced.distinct()
    candidates = _candidates(batch, updates)
    old = batch.table("results", candidates, file_column="_file")
    assert old is not None, "a published window is in `results`"
    identity = [*step.keys, "window_start", "window_end"]
    holding = old.join(replaced, identity, "left_semi").select("_file").distinct().collect()
    names = {Path(row["_file"]).name for row in holding}
    touched = [file for file in candidates if Path(file.path).name in names]
    batch.changes["results"].remove = touched
    rewritten = batch.table("results", touched)
    assert rewritten is not None
    marked = rewritten.join(replaced, identity, "left")
    batch.write(_rows(new, marked, step), "replacement", "part", "slot")
    _publish(batch)


def _candidates(batch: Batch, updates: Sequence[Path]) -> list[DataFile]:
    """The files of `results` that may hold a replaced row, by the span of the windows that replace them."""
    from jobs.delta import data_file

    files = [data_file(path.parent, path.name) for path in updates]
    first = min(file.low["window_start"] for file in files)
    last = max(file.high["window_end"] for file in files)
    return [f for f in batch.files("results") if f.high["window_end"] >= first and f.low["window_start"] <= last]


def _rows(new: DataFrame, marked: DataFrame, step: Step) -> DataFrame:
    """Rows to keep, new rows (changed: same bounds as before; entered: other bounds), and withdrawn ones."""
    columns = [quoted(name) for name in step.result_names]
    slot = F.floor((F.unix_millis("window_end") - 1) / F.lit(DAY_MS)).alias("slot")
    kept = marked.where("_replaced IS NULL").select(*columns, F.lit(KEPT).alias("part"), slot)
    gone = marked.where("_replaced")
    own = F.struct(
        F.unix_millis("window_start").alias("window_start_ms"), F.unix_millis("window_end").alias("window_end_ms")
    )
    keys = [quoted(key) for key in step.keys]
    bounds = {"_start": F.col("window_start"), "_end": F.col("window_end")}
    number = F.lit(1) if step.outputs is None else F.col("result_number")
    firings = gone.groupBy(*keys, F.col("window_start").alias("_s"), F.col("window_end").alias("_e")).agg(
        F.max("firing").alias("_n"), F.max(number).alias("_rows")
    )
    told = (
        new.withColumns(bounds)
        .withColumn("_old", F.explode("replaced"))
        .withColumns({"_s": F.timestamp_millis("_old.window_start_ms"), "_e": F.timestamp_millis("_old.window_end_ms")})
        .join(firings, [*step.keys, "_s", "_e"], "left")
        .groupBy(*keys, "_start", "_end")
        .agg(
            F.max("_n").alias("_earlier"),
            F.max(F.when((F.col("_s") == F.col("_start")) & (F.col("_e") == F.col("_end")), F.col("_rows"))).alias(
                "_rows"
            ),
        )
    )
    numbered = new.withColumns(bounds).join(told, [*step.keys, "_start", "_end"])
    changed = F.array_contains("replaced", own) & (number <= F.coalesce("_rows", F.lit(0)))
    renewed = numbered.withColumn("part", F.when(changed, CHANGED).otherwise(ENTERED)).withColumn(
        "firing", F.coalesce("_earlier", F.lit(0)) + 1
    )
    identity = [*step.keys, "window_start", "window_end", *([] if step.outputs is None else ["result_number"])]
    withdrawn = (
        gone.join(new.select(*map(quoted, identity)), identity, "left_anti")
        .withColumn("batch_id", F.lit(step.batch_id).cast("long"))
        .select(*columns, F.lit(WITHDRAWN).alias("part"), slot)
    )
    return kept.unionByName(renewed.select(*columns, "part", slot)).unionByName(withdrawn)


def _publish(batch: Batch) -> None:
    """Moves the written files into `results` and `result_changes`."""
    for path, partition in publish.staged(batch.staging / "replacement"):
        day = publish.day(partition["slot"])
        match partition["part"]:
            case part if part == KEPT:
                batch.publish_result(path, day, None)
            case part if part == CHANGED:
                batch.publish_result(path, day, "late", "change")
            case part if part == ENTERED:
                batch.publish_result(path, day, "merge")
            case _:
                batch.publish_withdrawn(path, day, "merge")
