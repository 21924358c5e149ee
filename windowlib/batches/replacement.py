"""Published results that a batch replaces: rows that a late event updates, and sessions that merge.

The batch finds the files of `results` with such rows by time, writes them again without these rows, and adds the new
rows in the same commit. So a reader sees every event exactly once. `result_changes` gets every row that was changed,
added or removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from windowlib.batches.inputs import Inputs
from windowlib.batches.pinned import Pinned
from windowlib.batches.staging import Staging
from windowlib.batches.windows_job import Windows
from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.delta.data_files import DataFile, parquet_file
from windowlib.delta.statistics import may_hold_any
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.partitions import PARTITION, RESULT_DAY
from windowlib.plans.partitions import day as day_of
from windowlib.plans.step import GONE, UPDATE, Step
from windowlib.publication import publish
from windowlib.publication.publish import StagedChanges, joined
from windowlib.storage.at_once import at_once
from windowlib.storage.store import ObjectInfo, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BY, NEW, OLD, FIRINGS = map(names.internal, ("by", "new", "old", "firings"))
ROWS_BEFORE, ROWS_NOW = map(names.internal, ("rows_before", "rows_now"))
KEPT = "kept"


def write(inputs: Inputs, step: Step, windows: Windows) -> list[DataFile] | None:
    """Replaces published rows by the rows of part `update`, whose column `replaced` names the published rows.

    Rows of part `gone` name published rows to remove. The windows job wrote both parts. Returns the files of `results`
    that are written again to a staging folder; None if no row is replaced.
    """
    new, gone = windows.rows(inputs.staged, UPDATE), windows.rows(inputs.staged, GONE)
    replacing = new if gone is None else gone if new is None else new.unionByName(gone)
    if replacing is None or windows.results is None:
        return None
    touched = _touched(inputs.tables, inputs.staged.store, [*windows.left.get(UPDATE, ()), *windows.left.get(GONE, ())])
    old = inputs.tables.rows("results", touched)
    if old is None:
        old = replacing.where("false")
    inputs.staged.write(_rows(replacing, old, step), "replacement", "part", PARTITION)
    return touched


def changes(inputs: Inputs, touched: list[DataFile] | None, windows: Windows) -> dict[str, StagedChanges]:
    """Changes to `results` and `result_changes` by the rows that `write` has written."""
    if touched is None or windows.results is None:
        return {}
    replaced = joined([{"results": StagedChanges(remove=touched)}, *_published(inputs.staged)])
    return publish.with_schema(replaced, windows.results)


def _touched(tables: Pinned, store: Store, updates: Sequence[ObjectInfo]) -> list[DataFile]:
    """Files of `results` whose span of time contains the start of a replaced window.

    A file without such a window is written again unchanged.
    """
    files = at_once(lambda file: parquet_file(store, file.path, file.size_bytes), updates)
    replaced = (file.read(columns=["replaced"])["replaced"].combine_chunks().flatten() for file in files)
    starts_ms = np.sort(np.concatenate([windows.field("window_start_ms").to_numpy() for windows in replaced]))
    return tables.files_where("results", lambda files: may_hold_any(files, "window_start", starts_ms))


def _rows(new: DataFrame, old: DataFrame, step: Step) -> DataFrame:
    """Kept rows, new rows (changed: same bounds as before; added: other bounds), and removed rows, by part."""
    from pyspark.sql import Window

    columns = [quoted(name) for name in step.result_names]
    row_number = F.lit(1) if step.outputs is None else F.col("result_number")
    by = F.struct("window_start", "window_end").alias(BY)  # the replacing window
    named = new.select(*step.key_columns, by, F.explode("replaced").alias(OLD)).select(
        *step.key_columns,
        F.timestamp_millis(f"{OLD}.window_start_ms").alias("window_start"),
        F.timestamp_millis(f"{OLD}.window_end_ms").alias("window_end"),
        BY,
    )
    if step.outputs is not None:  # each row of a firing names the replaced windows
        named = named.distinct()
    marked = old.join(named, [*step.keys, "window_start", "window_end"], "left")
    kept = marked.where(f"{BY} IS NULL").select(*columns, F.lit(KEPT).alias("part"))
    gone = marked.where(f"{BY} IS NOT NULL").select(*columns, BY, F.lit(False).alias(NEW))
    before_and_after = gone.unionByName(new.select(*columns, by, F.lit(True).alias(NEW)))

    per_window = Window.partitionBy(*step.key_columns, BY)
    is_new, same_bounds = F.col(NEW), F.col(BY) == F.struct("window_start", "window_end")
    facts = {
        FIRINGS: F.max(F.when(~is_new, F.col("firing"))).over(per_window),
        ROWS_BEFORE: F.max(F.when(~is_new & same_bounds, row_number)).over(per_window),
        ROWS_NOW: F.max(F.when(is_new, row_number)).over(per_window),
    }
    change = F.when(is_new, F.when(row_number <= F.col(ROWS_BEFORE), CHANGED).otherwise(ADDED)).when(
        ~same_bounds | (row_number > F.col(ROWS_NOW)), REMOVED
    )
    part = F.when(row_number > 0, change)  # 0: a row of `gone`, which only names removed windows
    replacing = before_and_after.withColumns(facts).withColumns(
        {
            "part": part,
            "firing": F.when(is_new, F.coalesce(FIRINGS, F.lit(0)) + 1).otherwise(F.col("firing")),
            "batch_id": F.lit(step.batch_id).cast("long"),
        }
    )
    rows = kept.unionByName(replacing.where("part IS NOT NULL").select(*columns, "part"))
    return rows.withColumn(PARTITION, F.expr(RESULT_DAY))


def _published(staged: Staging) -> list[dict[str, StagedChanges]]:
    """Copies the written files to `results` and `result_changes`."""

    def copied(written: tuple[ObjectInfo, Mapping[str, str]]) -> dict[str, StagedChanges]:
        file, partition = written
        day = day_of(partition[PARTITION])
        match partition["part"]:
            case "kept":
                return staged.result(file, day, None, None)
            case "changed":
                return staged.result(file, day, CHANGED, "late")
            case "added":
                return staged.result(file, day, ADDED, "merge")
            case _:
                return staged.removed(file, day, "merge")

    return at_once(copied, staged.written("replacement"))
