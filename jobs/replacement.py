"""Published results that a batch replaces: the rows a late event updates, the sessions that merge into a larger one.

The files of `results` that hold such rows are written again without them (found by time), and the new
rows are added in the same commit, so a reader never sees an event twice, nor misses it. `result_changes` gets every
row that was withdrawn or changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from jobs import publish, windows_job
from jobs.watermarks import utc
from windowlib.plans.admission import quoted
from windowlib.plans.step import DAY_MS, Step

if TYPE_CHECKING:
    from jobs.batch import Batch
    from jobs.delta import DataFile

MILLISECOND = timedelta(milliseconds=1)
KEPT, CHANGED, ENTERED, WITHDRAWN = "kept", "changed", "entered", "withdrawn"


def replace_results(batch: Batch, updates: Sequence[Path], step: Step) -> None:
    """Puts the staged rows of part `update` in the place of the rows they name in `replaced`."""
    touched = _touched(batch.files("results"), updates)
    batch.changes["results"].remove = touched
    old = batch.table("results", touched)
    assert old is not None, "a published window is in `results`"
    new = windows_job.staged_rows(batch, updates)
    batch.write(_rows(new, old, step), "replacement", "part", "slot")
    _publish(batch)


def _touched(files: Sequence[DataFile], updates: Sequence[Path]) -> list[DataFile]:
    """The files of `results` in whose span of time a replaced window begins; such a window is in one of them.

    A file that holds none of those windows after all is written again as it is.
    """
    found: dict[str, DataFile] = {}
    for path in updates:
        replaced = pq.read_table(path, columns=["replaced"]).column("replaced").combine_chunks().flatten()
        starts_ms = np.sort(replaced.field("window_start_ms").to_numpy())
        for file in files:
            low, high = ((bound["window_start"] - utc(0)) // MILLISECOND for bound in (file.low, file.high))
            if np.searchsorted(starts_ms, low, "left") < np.searchsorted(starts_ms, high, "right"):
                found[file.path] = file
    return list(found.values())


def _rows(new: DataFrame, old: DataFrame, step: Step) -> DataFrame:
    """Rows to keep, new rows (changed: same bounds as before; entered: other bounds), and withdrawn ones."""
    columns = [quoted(name) for name in step.result_names]
    number = F.lit(1) if step.outputs is None else F.col("result_number")
    by = F.struct("window_start", "window_end").alias("_by")  # the window that takes the place
    named = new.select(*step.key_columns, by, F.explode("replaced").alias("_old")).select(
        *step.key_columns,
        F.timestamp_millis("_old.window_start_ms").alias("window_start"),
        F.timestamp_millis("_old.window_end_ms").alias("window_end"),
        "_by",
    )
    if step.outputs is not None:  # a function gives several rows of one firing, each of which names what it replaces
        named = named.distinct()
    marked = old.join(named, [*step.keys, "window_start", "window_end"], "left")
    kept = marked.where("_by IS NULL").select(*columns, F.lit(KEPT).alias("part"))
    gone = marked.where("_by IS NOT NULL").select(*columns, "_by", F.lit(False).alias("_new"))
    both = gone.unionByName(new.select(*columns, by, F.lit(True).alias("_new")))

    of_one = Window.partitionBy(*step.key_columns, "_by")
    is_new, same_bounds = F.col("_new"), F.col("_by") == F.struct("window_start", "window_end")
    facts = {
        "_firings": F.max(F.when(~is_new, F.col("firing"))).over(of_one),
        "_rows_before": F.max(F.when(~is_new & same_bounds, number)).over(of_one),
        "_rows_now": F.max(F.when(is_new, number)).over(of_one),
    }
    part = F.when(is_new, F.when(number <= F.col("_rows_before"), CHANGED).otherwise(ENTERED)).when(
        ~same_bounds | (number > F.col("_rows_now")), WITHDRAWN
    )
    replacing = both.withColumns(facts).withColumns(
        {
            "part": part,
            "firing": F.when(is_new, F.coalesce("_firings", F.lit(0)) + 1).otherwise(F.col("firing")),
            "batch_id": F.lit(step.batch_id).cast("long"),
        }
    )
    rows = kept.unionByName(replacing.where("part IS NOT NULL").select(*columns, "part"))
    return rows.withColumn("slot", F.floor((F.unix_millis("window_end") - 1) / F.lit(DAY_MS)))


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
