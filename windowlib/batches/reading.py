"""Rows of a batch's source files: read, admitted or refused, and measured before the watermark can move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windowlib.batches.ids import seen_files
from windowlib.batches.inputs import Inputs
from windowlib.batches.steps import step_of
from windowlib.definition.toml.source import Source
from windowlib.engines.choice import dialect_of
from windowlib.engines.spark import ROWS_PER_TASK
from windowlib.ledger.rows import SourceFile
from windowlib.plans import admission, names
from windowlib.plans.admission import MAX_TIMESTAMP_MS, Admission
from windowlib.plans.duplicates import mark_duplicates
from windowlib.source import footers, intake
from windowlib.source.columns.partition_values import have_misfits, kinds_of
from windowlib.source.intake import BatchIntake
from windowlib.source.rows import SourceRows
from windowlib.source.rows import rows as read_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class AdmittedRows:
    """All rows of a batch's files, judged: with TIMESTAMP_MS, REASON, and ARRIVAL if the order of arrival is needed.

    REASON is null in admitted rows.

    columns: the source's own columns
    uris:    path of a file, relative to the source, by its URI
    """

    rows: DataFrame
    columns: Sequence[str]
    uris: Mapping[str, str]

    def events(self, batch_intake: BatchIntake) -> DataFrame | None:
        """Admitted rows; None if there are none."""
        if not batch_intake.admitted:
            return None
        events = self.rows if batch_intake.admitted == batch_intake.rows else self.rows.where(f"{names.REASON} IS NULL")
        # If one task reads all rows anyway, the slices need no shuffle.
        return events.coalesce(1) if batch_intake.rows <= ROWS_PER_TASK or batch_intake.row_groups == 1 else events


def read(inputs: Inputs) -> AdmittedRows | None:
    """Rows of the plan's files; None without files."""
    if inputs.shared:
        return AdmittedRows(inputs.shared.rows, inputs.shared.columns, inputs.shared.uris)
    if not inputs.plan.files:
        return None
    raw = read_rows(inputs.spark, inputs.source, inputs.plan.files, inputs.staging, inputs.source_types)
    return AdmittedRows(_admitted(inputs, raw), raw.columns, raw.paths)


def _admitted(inputs: Inputs, raw: SourceRows) -> DataFrame:
    event_id = inputs.source.event_id
    judge = without_guard(inputs.source, inputs.plan.files, admission_of(inputs))
    rows = admission.events(raw.frame, judge, dialect_of(inputs.spark))
    if inputs.kind.needs_arrival or inputs.definition.aggregates.needs_arrival or event_id:
        rows = rows.withColumn(names.ARRIVAL, raw.arrival())
    if event_id:
        seen_ids = inputs.tables.rows("seen_ids", seen_files(inputs))
        rows = mark_duplicates(rows, event_id, seen_ids, lambda ids: inputs.staged.write_and_read(ids, "repeated"))
    return rows


def look(inputs: Inputs, file_rows: AdmittedRows | None) -> BatchIntake:
    """Measures the batch: from the footers of its files if they suffice, else with the figures job."""
    if file_rows is None:
        return BatchIntake()
    source, judge = inputs.source, admission_of(inputs)
    if inputs.shared:
        return intake.as_judged_by(inputs.shared.intake, judge)
    if not source.is_text and not source.event_id and folders_fit(inputs):
        batch_intake = footers.look(source.store, inputs.plan.files, in_files(source, judge))
        if batch_intake and not _may_be_erased(batch_intake, judge) and footers_suffice(inputs, batch_intake):
            return batch_intake
    return look_at_rows(inputs, file_rows)


def look_at_rows(inputs: Inputs, file_rows: AdmittedRows) -> BatchIntake:
    """Measures the batch with the figures job."""
    return intake.look(
        file_rows.rows, admission_of(inputs), inputs.definition.storage.state_partition_ms, file_rows.uris
    )


def folders_fit(inputs: Inputs) -> bool:
    """Tests if all partition values in folder names fit their types. A file with a misfit has all its rows refused."""
    files = inputs.plan.files
    return not have_misfits(files, kinds_of(inputs.source, files, inputs.source_types or {}))


def _may_be_erased(batch_intake: BatchIntake, judge: Admission) -> bool:
    """Tests if the rows that the footers count may include rows of an erased key."""
    erased = judge.erased
    return erased is not None and any(
        erased.may_be_in(b.min_timestamp_ms, b.max_timestamp_ms) for b in batch_intake.buckets
    )


def footers_suffice(inputs: Inputs, batch_intake: BatchIntake) -> bool:
    """Tests if the coarse times of footers make the batch read at most as many rows of state as it has events."""
    step = step_of(inputs.definition, inputs.plan, inputs.watermark_in_ms, inputs.watermark_in_ms)
    kind, files = inputs.kind, inputs.tables.files("open_windows")
    return batch_intake.rows >= sum(file.rows for file in files if kind.touches(file, batch_intake.buckets, step))


def without_guard(source: Source, files: Sequence[SourceFile], judge: Admission) -> Admission:
    """Drops the rule's upper bound on event times, which costs a join, if no time in the footers exceeds the bound."""
    if source.is_text:
        return judge
    whole = in_files(source, judge)
    times = replace(whole, keys=())  # footers may count rows without a key here
    fits = footers.look(source.store, files, whole) or footers.look(source.store, files, times)
    return judge if fits is None else replace(judge, future_after_ms=None)


def in_files(source: Source, judge: Admission) -> Admission:
    """Admission rule with the column names of the files."""
    return replace(judge, keys=[*map(source.in_files, judge.keys)], timestamp=source.in_files(judge.timestamp))


def admission_of(inputs: Inputs) -> Admission:
    """Admission rule for the rows of the batch."""
    definition, skew_ms = inputs.definition, inputs.definition.watermark.max_future_skew_ms
    return replace(
        intake.times_of(inputs.source, definition.spec.assigner),
        late_up_to_ms=inputs.plan.late_in_ms,
        by_event_time=definition.spec.time == "event",
        future_after_ms=min(inputs.plan.plan_time_ms + skew_ms, MAX_TIMESTAMP_MS),
        erased=inputs.erased,
    )
