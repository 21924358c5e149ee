"""What batches of several pipelines share in a run: one read of their source, one look at it, one set of slices.

Batches share when their plans hold the same files of one source with the same key, event time and schema, and when
their windows are put together from slices in any case: sessions of a fixed gap, tumbling and sliding windows, none with
`event_id` (what is a duplicate is each pipeline's own memory), `first` or `last` (they sort events by arrival).

Everything that is each pipeline's own stays so: its watermark, what is late, its state, checks and commits. Which rows
are refused must be the same for all: the guard against times in the future (`max_future_skew`) uses each plan's own
clock, so where the strictest guard finds any such row, nothing is shared.

The slices are kept by Spark (memory, then disk) until all have used them, in the partitions of their keys, so that most
of what follows needs no shuffle. The rows that are refused or may be late, if any, are kept next to them.
"""

from __future__ import annotations

import shutil
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
from windowlib.source import rows as source
from windowlib.source.intake import BatchIntake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windowlib.plans.admission import Admission
    from windowlib.plans.dialect import Dialect
    from windowlib.plans.shared import Slicing

MOST_SLICES = 0.5  # for each event, in a batch that is worth more than one task
FOLDER = "_shared"  # in the folder of one of the pipelines: text that was parsed for all of them


def not_worth_sharing(shared: SharedInputs) -> bool:
    """Whether so many slices were made of so many events that each plan had better slice the events itself."""
    admitted = shared.seen.admitted
    return admitted > ROWS_PER_TASK and shared.slice_rows > MOST_SLICES * admitted


def release(shared: SharedInputs) -> None:
    """Gives up what Spark has kept, and what was written for all."""
    shared.slices.unpersist()
    shared.rows.unpersist()
    shutil.rmtree(shared.folder, ignore_errors=True)


def sharing_key(batch: Inputs) -> Hashable | None:
    """What is equal for batches that share; None for one that shares nothing."""
    if not batch.plan.files or batch.plan.rerun or sharing_refusal(batch.definition):
        return None  # a rerun reads other files too
    if not dialect_of(batch.spark).keeps_rows:
        return None  # reading again is as fast
    admission = admission_of(batch)
    if admission.erased:
        return None  # which keys are erased is each pipeline's own
    of = batch.source
    files = tuple((file.path, file.size_bytes, file.modified_ns) for file in batch.plan.files)
    columns = tuple(of.columns.items()), tuple(of.rename.items()), (*of.nested.items(), of.dialect.model_dump_json())
    return of.format, of.path, of.key, of.timestamp, of.timestamp_unit, admission.earliest_ms, columns, files


def share(batches: Sequence[Inputs]) -> SharedInputs | None:
    """Reads and slices the source once for batches of one sharing key; None where they had better go alone."""
    from windowlib.plans import admission, names, shared

    first, spark = batches[0], batches[0].spark
    dialect = dialect_of(spark)
    folder = first.definition.root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    if any(batch.source_types != first.source_types for batch in batches[1:]) and not all(
        map(_is_as_recorded, batches)
    ):
        return None
    raw = source.rows(spark, first.source, first.plan.files, folder, first.source_types)
    admissions = [admission_of(batch) for batch in batches]
    strictest = replace(admissions[0], future_after_ms=_strictest(admissions))
    judge = without_guard(first.source, first.plan.files, strictest)
    rows = admission.events(raw.frame, judge, dialect)
    seen = _look(batches, rows, raw.paths, strictest)
    if seen.reasons["future"] and len({one.future_after_ms for one in admissions}) > 1:
        return None
    events = AdmittedRows(rows, raw.columns, raw.paths).events(seen)
    if events is None:
        return None
    slicing = _slicing(batches, rows, dialect)
    dialect.size_tasks(spark, seen.rows, first.definition.spark.conf)
    made = shared.slices(events, slicing)
    if seen.rows > ROWS_PER_TASK and seen.row_groups != 1 and slicing.keys:
        made = made.repartition(_tasks(spark), *slicing.key_columns)
    slices = made.persist()
    late_up_to_ms = [one.late_up_to_ms for one in admissions if intake.as_judged_by(seen, one).may_be_late]
    if late_up_to_ms or any(seen.reasons.values()):
        # No window ends before its event's time + 1.
        may_be_late = f" OR {names.TIMESTAMP_MS} <= {max(late_up_to_ms)}" if late_up_to_ms else ""
        rows = rows.where(f"{names.REASON} IS NOT NULL{may_be_late}").persist()
    return SharedInputs(rows, raw.columns, raw.paths, seen, slicing, slices, slices.count(), folder)


def _is_as_recorded(batch: Inputs) -> bool:
    """Whether its files have the types that are recorded, so that each pipeline reads the same."""
    return batch.source.is_text or parquet_rows.is_as_recorded(batch.source, batch.plan.files, batch.source_types or {})


def _look(batches: Sequence[Inputs], rows: DataFrame, uris: Mapping[str, str], strictest: Admission) -> BatchIntake:
    """What the batches hold, by the footers of their files where those do for all, else by the figures job."""
    of = batches[0].source
    if not of.is_text and folders_fit(batches[0]):
        seen = footers.look(of.path, batches[0].plan.files, in_files(of, strictest))
        if seen and all(footers_suffice(batch, intake.as_judged_by(seen, admission_of(batch))) for batch in batches):
            return seen
    bucket_ms = min(batch.definition.storage.state_partition_ms for batch in batches)
    return intake.look(rows, strictest, bucket_ms, uris)


def _slicing(batches: Sequence[Inputs], rows: DataFrame, dialect: Dialect) -> Slicing:
    from windowlib.plans.aggregates.columns import typed
    from windowlib.plans.shared import Slicing, all_aggregates

    assigners: list[Any] = [batch.definition.spec.assigner for batch in batches]
    together = typed(all_aggregates(batch.definition.aggregates for batch in batches), rows, dialect)
    return Slicing(*shared_slices(assigners), batches[0].source.key, together.aggregates, dialect)


def _strictest(admissions: Iterable[Admission]) -> int | None:
    bounds = [one.future_after_ms for one in admissions if one.future_after_ms is not None]
    return min(bounds, default=None)


def _tasks(spark: SparkSession) -> int:
    return int(str(spark.conf.get("spark.sql.shuffle.partitions")))
