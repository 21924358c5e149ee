"""Rows that a rerun judges again if files have changed or are missing: rows of changed files, and rows of unchanged
files that were refused as duplicates.

An id counts once. Events of unchanged files still count. `seen_ids` has the ids of events outside of the covered range.
Of the judged rows with the same id, the first in arrival order counts, unless an event that still counts has that id.
If an id is already forgotten, as many of its rows stay refused as were refused before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.delta.statistics import overlapping
from windowlib.engines.choice import dialect_of
from windowlib.model.rerun import TimeRange
from windowlib.plans import names
from windowlib.plans.admission import Admission
from windowlib.plans.duplicates import id_of, mark_duplicates
from windowlib.plans.functions import F, quoted
from windowlib.plans.rejects import quarantined
from windowlib.reruns.row_positions import PLACE, PLACE_IN_TABLES, of_files, placed, with_mark
from windowlib.reruns.source import KnownFile
from windowlib.source import intake
from windowlib.source import rows as source
from windowlib.source.intake import BatchIntake

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REPEATED = names.internal("was_repeated")  # true if a row of an unchanged file was refused as a duplicate


@dataclass(frozen=True, slots=True)
class RejudgedRows:
    """Rows that were judged again, and the ids of events in `covered`.

    intake:    figures of changed files
    refused:   rows of changed files that are refused now
    released:  rows of unchanged files, refused as duplicates, that count now   source_file, source_row, time
    ids:       ids of all events in `covered` that count                        event_id, timestamp_ms
    """

    covered: TimeRange
    intake: BatchIntake = field(default_factory=BatchIntake)
    refused: DataFrame | None = None
    released: DataFrame | None = None
    ids: DataFrame | None = None

    def spans_released(self) -> dict[str, TimeRange]:
        """Time range from the first released row to the last, for each file with released rows."""
        return {} if self.released is None else _spans(self.released)


def with_repeats(inputs: Inputs, files: Sequence[KnownFile], covered: TimeRange) -> Sequence[KnownFile]:
    """Returns the files. `repeats` gets the time range of a file's duplicates in `covered` that are judged again."""
    if not are_judged_again(inputs, [file for file in files if file.meets(covered)]):
        return files
    quarantine = overlapping(inputs.tables.files("quarantine"), "event_time", "event_time", covered)
    refused = inputs.tables.rows("quarantine", quarantine)
    if refused is None:
        return files
    timed = refused.where("reason = 'duplicate'").withColumn(names.TIMESTAMP_MS, F.expr("unix_millis(event_time)"))
    spans = _spans(timed.where(_inside(covered)))
    return [replace(file, repeats=spans.get(file.path)) for file in files]


def are_judged_again(inputs: Inputs, files: Sequence[KnownFile]) -> bool:
    """Tests if a file has changed or is missing. Returns False with `late_only`."""
    return not inputs.rerun.late_only and any(file.changed or file.now is None for file in files)


def with_repeated(
    inputs: Inputs, rows: DataFrame, files: Sequence[KnownFile], raw: source.SourceRows, covered: TimeRange
) -> DataFrame:
    """Adds REPEATED to `rows`. Removes rows outside of `covered` that were refused as duplicates."""
    refused = of_files(inputs, "quarantine", [file.path for file in files if file.unchanged])
    if refused is None:
        return rows.withColumn(REPEATED, F.lit(False))
    places = refused.where("reason = 'duplicate'").select(*PLACE_IN_TABLES).distinct()
    marked = with_mark(rows, placed(inputs, places, raw), REPEATED)
    return marked.where(~F.col(REPEATED) | _inside(covered))


def judge(
    inputs: Inputs, rows: DataFrame, files: Sequence[KnownFile], raw: source.SourceRows, covered: TimeRange
) -> DataFrame:
    """Marks rows that are judged again with REASON = duplicate if another row has their event id."""
    event_id = inputs.source.event_id
    if not event_id:
        return rows
    again = F.col(REPEATED) | _of_changed(files, raw)
    counted, refused = [_ids(rows.where(~again), event_id)], _refused_as_often(inputs, rows.where(again), files)
    if (seen_ids := inputs.tables.rows("seen_ids")) is not None:
        inside = _inside(covered, "timestamp_ms")
        counted.append(seen_ids.where(~inside))
        refused = refused.join(seen_ids.where(inside).select("event_id"), "event_id", "left_anti")
    ids_in_use = dialect_of(inputs.spark).union([frame.select("event_id") for frame in (*counted, refused)]).distinct()
    name = inputs.staged.unused("repeated")
    marked = mark_duplicates(
        rows.where(again), event_id, ids_in_use, lambda ids: inputs.staged.write_and_read(ids, name)
    )
    return rows.where(~again).unionByName(marked)


def judged(
    inputs: Inputs,
    rows: DataFrame,
    files: Sequence[KnownFile],
    raw: source.SourceRows,
    like: Admission,
    covered: TimeRange,
) -> RejudgedRows:
    """Summarizes the rows that `judge` has marked. Checks rows of changed files by `like`, as a batch does."""
    changed = {file.path for file in files if file.changed}
    released, ids, event_id = None, None, inputs.source.event_id
    if event_id:
        ids = _ids(rows.where(_inside(covered)), event_id)
        kept = rows.where(F.col(REPEATED) & F.col(names.REASON).isNull()).select(*PLACE, names.TIMESTAMP_MS)
        kept = source.with_path(inputs.spark, kept, raw.paths).withColumnRenamed(names.SOURCE_ROW, "source_row")
        released = inputs.staged.write_and_read(kept, inputs.staged.unused("released"))
    if not changed:
        return RejudgedRows(covered, released=released, ids=ids)
    paths = {uri: path for uri, path in raw.paths.items() if path in changed}
    of_changed = rows.where(_of_changed(files, raw))
    refused = quarantined(of_changed, raw.columns, inputs.plan.batch_id, dialect_of(inputs.spark))
    refused = source.with_path(inputs.spark, refused, raw.paths)
    intake_of_changed = intake.look(of_changed, like, inputs.definition.storage.state_partition_ms, paths)
    return RejudgedRows(covered, intake_of_changed, refused, released, ids)


def _of_changed(files: Sequence[KnownFile], raw: source.SourceRows) -> Column:
    changed = {file.path for file in files if file.changed}
    uris = [uri for uri, path in raw.paths.items() if path in changed]
    return F.col(names.SOURCE_FILE).isin(uris) if uris else F.lit(False)


def _spans(rows: DataFrame) -> dict[str, TimeRange]:
    time = F.col(names.TIMESTAMP_MS)
    bounds = rows.groupBy("source_file").agg(F.min(time), F.max(time)).collect()
    return {path: TimeRange(first_ms, last_ms + 1) for path, first_ms, last_ms in bounds}


def _refused_as_often(inputs: Inputs, rows: DataFrame, files: Sequence[KnownFile]) -> DataFrame:
    """Ids of which `rows` has at most as many rows as were refused as duplicates before. Column: event_id."""
    event_id = inputs.source.event_id or ""
    counts = _ids(rows, event_id, F.col(REPEATED).cast("long").alias("refused"))
    counts = counts.groupBy("event_id").agg(F.count(F.lit(1)).alias("rows"), F.sum("refused").alias("refused"))
    quarantine = of_files(inputs, "quarantine", [file.path for file in files if file.changed])
    if quarantine is not None:
        stored_id = F.from_json("raw", f"{quoted(event_id)} string")[event_id].alias("event_id")
        before = (
            quarantine.where("reason = 'duplicate'")
            .select(stored_id)
            .groupBy("event_id")
            .agg(F.count("*").alias("before"))
        )
        counts = counts.join(before, "event_id", "left").withColumn("refused", F.expr("refused + coalesce(before, 0)"))
    return counts.where("rows <= refused").select("event_id")


def _ids(rows: DataFrame, event_id: str, *more: Column) -> DataFrame:
    """Ids of the rows that are not refused. Columns: event_id, timestamp_ms, and the columns `more`."""
    identifier, time = id_of(event_id).alias("event_id"), F.col(names.TIMESTAMP_MS).alias("timestamp_ms")
    accepted = rows.where(f"{names.REASON} IS NULL").select(identifier, time, *more)
    return accepted.where("event_id IS NOT NULL")


def _inside(covered: TimeRange, time: str = names.TIMESTAMP_MS) -> Column:
    return (F.col(time) >= covered.from_ms) & (F.col(time) < covered.to_ms)
