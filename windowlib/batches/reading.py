"""The rows of a batch's source files: read, admitted or refused, and looked at before time can move."""

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
from windowlib.ledger import erasures
from windowlib.ledger.rows import SourceFile
from windowlib.plans import admission, names
from windowlib.plans.admission import MAX_TIMESTAMP_MS, Admission
from windowlib.plans.duplicates import mark_duplicates
from windowlib.source import footers, intake
from windowlib.source import rows as source
from windowlib.source.columns.partition_values import have_misfits, kinds_of
from windowlib.source.intake import BatchIntake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class AdmittedRows:
    """Every row of a batch's files with TIMESTAMP_MS, REASON, and ARRIVAL where something needs the order of arrival.

    `columns` are the source's own; `uris` gives a file's path, relative to the source, for its URI.
    """

    rows: DataFrame
    columns: Sequence[str]
    uris: Mapping[str, str]

    def events(self, seen: BatchIntake) -> DataFrame | None:
        """The rows that are not refused; None without any."""
        if not seen.admitted:
            return None
        events = self.rows if seen.admitted == seen.rows else self.rows.where(f"{names.REASON} IS NULL")
        # Where one task reads them in any case, slices need no shuffle of their own.
        return events.coalesce(1) if seen.rows <= ROWS_PER_TASK or seen.row_groups == 1 else events


def read(inputs: Inputs) -> AdmittedRows | None:
    """The rows of the plan's files; None without files."""
    if inputs.shared:
        return AdmittedRows(inputs.shared.rows, inputs.shared.columns, inputs.shared.uris)
    if not inputs.plan.files:
        return None
    raw = source.rows(inputs.spark, inputs.source, inputs.plan.files, inputs.staging, inputs.source_types)
    return AdmittedRows(_admitted(inputs, raw), raw.columns, raw.paths)


def _admitted(inputs: Inputs, raw: source.SourceRows) -> DataFrame:
    event_id = inputs.source.event_id
    judge = without_guard(inputs.source, inputs.plan.files, admission_of(inputs))
    rows = admission.events(raw.frame, judge, dialect_of(inputs.spark))
    if inputs.kind.needs_arrival or inputs.definition.aggregates.needs_arrival or event_id:
        rows = rows.withColumn(names.ARRIVAL, raw.arrival())
    if event_id:
        seen = inputs.tables.rows("seen_ids", seen_files(inputs))
        rows = mark_duplicates(rows, event_id, seen, lambda ids: inputs.staged.write_and_read(ids, "repeated"))
    return rows


def look(inputs: Inputs, given: AdmittedRows | None) -> BatchIntake:
    """What the batch holds: by its files' footers where they suffice, else by the figures job."""
    if given is None:
        return BatchIntake()
    source, judge = inputs.source, admission_of(inputs)
    if inputs.shared:
        return intake.as_judged_by(inputs.shared.seen, judge)
    if not source.is_text and not source.event_id and folders_fit(inputs):
        seen = footers.look(source.path, inputs.plan.files, in_files(source, judge))
        if seen and not _may_be_erased(seen, judge) and footers_suffice(inputs, seen):
            return seen
    return look_at_rows(inputs, given)


def look_at_rows(inputs: Inputs, given: AdmittedRows) -> BatchIntake:
    """What the batch holds, by the figures job."""
    return intake.look(given.rows, admission_of(inputs), inputs.definition.storage.state_partition_ms, given.uris)


def folders_fit(inputs: Inputs) -> bool:
    """Tests if every value in the names of folders fits its type; else all rows of its file are refused."""
    files = inputs.plan.files
    return not have_misfits(files, kinds_of(inputs.source, files, inputs.source_types or {}))


def _may_be_erased(seen: BatchIntake, judge: Admission) -> bool:
    """Whether rows of an erased key may be among those that footers have counted."""
    erased = judge.erased
    return erased is not None and any(erased.may_be_in(b.min_timestamp_ms, b.max_timestamp_ms) for b in seen.buckets)


def footers_suffice(inputs: Inputs, seen: BatchIntake) -> bool:
    """Whether spans of time as coarse as those of footers make the batch read no more state than it has events."""
    step = step_of(inputs.definition, inputs.plan, inputs.watermark_in_ms, inputs.watermark_in_ms)
    kind, files = inputs.kind, inputs.tables.files("open_windows")
    return seen.rows >= sum(file.rows for file in files if kind.touches(file, seen.buckets, step))


def without_guard(of: Source, files: Sequence[SourceFile], judge: Admission) -> Admission:
    """The same without the bound of event times where the footers say that none is beyond it: it costs a join."""
    if of.is_text:
        return judge
    whole = in_files(of, judge)
    times = replace(whole, keys=())  # rows without a key do not matter here
    fits = footers.look(of.path, files, whole) or footers.look(of.path, files, times)
    return judge if fits is None else replace(judge, future_after_ms=None)


def in_files(of: Source, judge: Admission) -> Admission:
    """The same by what the files call their columns."""
    return replace(judge, keys=[*map(of.in_files, judge.keys)], timestamp=of.in_files(judge.timestamp))


def admission_of(inputs: Inputs) -> Admission:
    """What decides about a row of the batch."""
    definition, skew_ms = inputs.definition, inputs.definition.watermark.max_future_skew_ms
    return replace(
        intake.times_of(inputs.source, definition.spec.assigner),
        late_up_to_ms=inputs.plan.late_in_ms,
        by_event_time=definition.spec.time == "event",
        future_after_ms=min(inputs.plan.plan_time_ms + skew_ms, MAX_TIMESTAMP_MS),
        erased=erasures.erased(inputs.opened.root, inputs.plan.files),
    )
