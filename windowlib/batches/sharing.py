"""Work that batches of several pipelines share in a run: one read of their source, its figures, one set of slices.

Batches can share under these conditions:

* Their plans hold the same files of one source, with the same key, event time and schema.
* Their windows are built from slices: sessions with a fixed gap, tumbling, sliding and cumulating windows.
* No pipeline has an `event_id`, because each pipeline knows its own duplicates.
* No pipeline uses `first` or `last`, because these aggregates sort events by arrival.

Each pipeline keeps its own watermark, lateness, state, checks and commits. The refused rows must be the same for all
pipelines. The guard against times in the future (`max_future_skew`) depends on the plan time. If the guards differ and
the strictest guard refuses a row, nothing is shared.

Spark keeps the slices (memory, then disk), partitioned by key, until all pipelines have used them. So most later steps
need no shuffle. Spark also keeps rows that are refused or may be late.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windowlib.batches.inputs import Inputs, SharedInputs
from windowlib.batches.reading import AdmittedRows, admission_of, folders_fit, footers_suffice, in_files, without_guard
from windowlib.definition.several import sharing_refusal
from windowlib.engines.choice import dialect_of
from windowlib.engines.spark import ROWS_PER_TASK
from windowlib.model.slices import shared_slices
from windowlib.source import footers, intake, parquet_rows
from windowlib.source.intake import BatchIntake
from windowlib.source.rows import rows as read_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windowlib.plans.admission import Admission
    from windowlib.plans.dialect import Dialect
    from windowlib.plans.shared import Slicing

MOST_SLICES = 0.5  # slices per event, in a batch of more than one task
FOLDER = "_shared"  # in the folder of one pipeline: JSON and CSV rows, parsed once for all pipelines


def not_worth_sharing(shared: SharedInputs) -> bool:
    """Tests if there are so many slices per event that each plan should slice the events itself."""
    admitted = shared.intake.admitted
    return admitted > ROWS_PER_TASK and shared.slice_rows > MOST_SLICES * admitted


def release(shared: SharedInputs) -> None:
    """Releases the rows and slices that Spark keeps, and deletes the files that were written for all pipelines."""
    shared.slices.unpersist()
    shared.rows.unpersist()
    shared.folder.clear()


def sharing_key(batch: Inputs) -> Hashable | None:
    """Key that is equal for batches that can share; None if the batch cannot share."""
    if not batch.plan.files or batch.plan.rerun or sharing_refusal(batch.definition):
        return None  # a rerun reads other files too
    if not dialect_of(batch.spark).keeps_rows:
        return None  # reading again is as fast
    admission = admission_of(batch)
    if admission.erased:
        return None  # each pipeline has its own erased keys
    source = batch.source
    files = tuple((file.path, file.size_bytes, file.modified_ns) for file in batch.plan.files)
    columns = (
        tuple(source.columns.items()),
        tuple(source.rename.items()),
        (*source.nested.items(), source.dialect.model_dump_json()),
    )
    return (
        source.format,
        source.path,
        source.key,
        source.timestamp,
        source.timestamp_unit,
        admission.earliest_ms,
        columns,
        files,
    )


def share(batches: Sequence[Inputs]) -> SharedInputs | None:
    """Reads and slices the source once for batches of one sharing key; None if each batch should run alone."""
    from windowlib.plans import admission, names, shared

    first, spark = batches[0], batches[0].spark
    dialect = dialect_of(spark)
    folder = first.definition.store.below(FOLDER)
    folder.clear()
    if any(batch.source_types != first.source_types for batch in batches[1:]) and not all(
        map(_is_as_recorded, batches)
    ):
        return None
    raw = read_rows(spark, first.source, first.plan.files, folder, first.source_types)
    admissions = [admission_of(batch) for batch in batches]
    strictest = replace(admissions[0], future_after_ms=_strictest(admissions))
    judge = without_guard(first.source, first.plan.files, strictest)
    rows = admission.events(raw.frame, judge, dialect)
    batch_intake = _look(batches, rows, raw.paths, strictest)
    if batch_intake.reasons["future"] and len({rule.future_after_ms for rule in admissions}) > 1:
        return None
    events = AdmittedRows(rows, raw.columns, raw.paths).events(batch_intake)
    if events is None:
        return None
    slicing = _slicing(batches, rows, dialect)
    dialect.size_tasks(spark, batch_intake.rows, first.definition.spark.conf)
    sliced = shared.slices(events, slicing)
    if batch_intake.rows > ROWS_PER_TASK and batch_intake.row_groups != 1 and slicing.keys:
        sliced = sliced.repartition(_tasks(spark), *slicing.key_columns)
    slices = sliced.persist()
    late_up_to_ms = [rule.late_up_to_ms for rule in admissions if intake.as_judged_by(batch_intake, rule).may_be_late]
    if late_up_to_ms or any(batch_intake.reasons.values()):
        # No window ends before its event's time + 1.
        may_be_late = f" OR {names.TIMESTAMP_MS} <= {max(late_up_to_ms)}" if late_up_to_ms else ""
        rows = rows.where(f"{names.REASON} IS NOT NULL{may_be_late}").persist()
    return SharedInputs(rows, raw.columns, raw.paths, batch_intake, slicing, slices, slices.count(), folder)


def _is_as_recorded(batch: Inputs) -> bool:
    """Tests if the files have the recorded types, so that all pipelines read the same values."""
    return batch.source.is_text or parquet_rows.is_as_recorded(batch.source, batch.plan.files, batch.source_types or {})


def _look(batches: Sequence[Inputs], rows: DataFrame, uris: Mapping[str, str], strictest: Admission) -> BatchIntake:
    """Measures the batches: from the footers of their files if these suffice for all, else with the figures job."""
    source = batches[0].source
    if not source.is_text and folders_fit(batches[0]):
        batch_intake = footers.look(source.store, batches[0].plan.files, in_files(source, strictest))
        if batch_intake and all(
            footers_suffice(batch, intake.as_judged_by(batch_intake, admission_of(batch))) for batch in batches
        ):
            return batch_intake
    bucket_ms = min(batch.definition.storage.state_partition_ms for batch in batches)
    return intake.look(rows, strictest, bucket_ms, uris)


def _slicing(batches: Sequence[Inputs], rows: DataFrame, dialect: Dialect) -> Slicing:
    from windowlib.plans.aggregates.columns import typed
    from windowlib.plans.shared import Slicing, all_aggregates

    assigners: list[Any] = [batch.definition.spec.assigner for batch in batches]
    together = typed(all_aggregates(batch.definition.aggregates for batch in batches), rows, dialect)
    return Slicing(*shared_slices(assigners), batches[0].source.key, together.aggregates, dialect)


def _strictest(admissions: Iterable[Admission]) -> int | None:
    bounds = [rule.future_after_ms for rule in admissions if rule.future_after_ms is not None]
    return min(bounds, default=None)


def _tasks(spark: SparkSession) -> int:
    return int(str(spark.conf.get("spark.sql.shuffle.partitions")))
