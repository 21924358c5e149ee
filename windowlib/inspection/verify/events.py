"""Source rows that count: admitted rows of the files that batches read, without rows that stayed refused.

Event time, key and gap are judged again, as at admission. Refusals of duplicates, and of events too far in the future,
depend on past state, so they are taken from `quarantine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.batches.reading import admission_of
from windowlib.batches.steps import scratch
from windowlib.delta.statistics import of_sources
from windowlib.inspection.verify.recorded import ReadFile, RecordedPast
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.plans import admission, names
from windowlib.plans.aggregates.added import by_batch
from windowlib.plans.functions import F, quoted
from windowlib.plans.step import Step
from windowlib.reruns.row_positions import PLACE, rows_of
from windowlib.source import rows as source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PATH, CORRECTED_BY, LISTED = names.internal("path"), names.internal("corrected_by"), names.internal("listed")
READ_BY = names.internal("read_by")  # equals BATCH, for the marks of added aggregates
BATCH, LATE_IN, READMITTED_BY, IS_LATE = map(names.internal, ("batch", "late_in", "readmitted_by", "is_late"))


@dataclass(frozen=True, slots=True)
class CountedRows:
    """The rows that count, and the plan step with their types.

    rows: used columns of the source, TIMESTAMP_MS, ARRIVAL (only if needed), BATCH (batch that read the row), LATE_IN
          (windows with a last ms up to LATE_IN were late when that batch began), READMITTED_BY (rerun that put the row
          into a window, or 0), IS_LATE (true if the row is in `late_events` and in no window)
    """

    rows: DataFrame
    step: Step


def counted(
    inputs: Inputs, files: Sequence[ReadFile], recorded: RecordedPast, request: VerifyRequest
) -> CountedRows | None:
    """The rows of these files that count; None if there are no files."""
    if not files:
        return None
    step = scratch(inputs, recorded.past.now.watermark_ms)
    step.dialect.size_tasks(inputs.spark, sum(file.known.rows for file in files), inputs.definition.spark.conf)
    raw = rows_of(inputs, [file.known for file in files], inputs.source_types)
    judge = replace(admission_of(inputs), late_up_to_ms=MIN_WATERMARK, future_after_ms=None)
    rows = admission.events(raw.frame, judge, step.dialect)
    definition = inputs.definition
    if definition.plan.needs_arrival or definition.aggregates.needs_arrival:
        rows = rows.withColumn(names.ARRIVAL, raw.arrival())
    from windowlib.plans.aggregates.columns import typed

    step = replace(step, aggregates=by_batch(typed(step.aggregates, rows, step.dialect), READ_BY))
    used = [name for name in (*definition.uses.columns, names.TIMESTAMP_MS, names.ARRIVAL) if name in rows.columns]
    rows = request.sampled(rows.where(f"{names.REASON} IS NULL"), definition.source.key)
    rows = rows.select(*map(quoted, dict.fromkeys(used)), *PLACE)
    marked = _marked(inputs, rows, _names(inputs, files, raw, recorded), files)
    return CountedRows(marked.withColumn(READ_BY, F.col(BATCH)) if definition.added else marked, step)


def _names(inputs: Inputs, files: Sequence[ReadFile], raw: source.SourceRows, recorded: RecordedPast) -> DataFrame:
    """Frame with path, batch, lateness bound and correcting rerun of each file."""
    by_path = {file.known.path: file for file in files}
    past, rows = recorded.past, []
    for uri, path in raw.paths.items():
        file = by_path[path]
        rows.append((uri, path, file.batch_id, past.before[file.batch_id].late_up_to_ms, file.corrected_by))
    columns = f"{names.SOURCE_FILE} string, {PATH} string, {BATCH} long, {LATE_IN} long, {CORRECTED_BY} long"
    return inputs.spark.createDataFrame(rows, columns)


def _marked(inputs: Inputs, rows: DataFrame, file_facts: DataFrame, files: Sequence[ReadFile]) -> DataFrame:
    """The rows with their recorded batch, rerun and lateness, without refused rows."""
    paths = [file.known.path for file in files]
    refused, late = _of_files(inputs, "quarantine", paths), _of_files(inputs, "late_events", paths)
    place = [F.col("source_file").alias(PATH), F.col("source_row").alias(names.SOURCE_ROW)]
    rows = rows.join(F.broadcast(file_facts), names.SOURCE_FILE).drop(names.SOURCE_FILE)
    if refused is not None:
        places = refused.where("reason IN ('duplicate', 'future')").select(*place)
        rows = rows.join(places, [PATH, names.SOURCE_ROW], "left_anti")
    readmitted_by = F.lit(0).cast("long")
    is_late = F.lit(False)
    if late is not None:
        marks = late.where("window_start IS NOT NULL").select(
            *place, F.col("readmitted_by").alias(READMITTED_BY), F.lit(True).alias(LISTED)
        )
        rows = rows.join(marks, [PATH, names.SOURCE_ROW], "left")
        readmitted_by = F.coalesce(READMITTED_BY, readmitted_by)
        is_late = F.coalesce(F.col(LISTED) & F.col(READMITTED_BY).isNull(), is_late)
    by = F.when(F.col(CORRECTED_BY) > 0, F.col(CORRECTED_BY)).otherwise(readmitted_by)
    marked = rows.withColumns({READMITTED_BY: by, IS_LATE: is_late})
    return marked.drop(PATH, names.SOURCE_ROW, CORRECTED_BY, LISTED)


def _of_files(inputs: Inputs, table: str, paths: Sequence[str]) -> DataFrame | None:
    """Rows of a table that may come from the source files `paths`."""
    return inputs.tables.rows(table, of_sources(inputs.tables.files(table), paths))
