"""Source rows that a rerun counts: rows admitted before, chosen late rows, and rows of changed files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windowlib.batches import steps
from windowlib.batches.inputs import Inputs
from windowlib.batches.reading import admission_of
from windowlib.engines.choice import dialect_of
from windowlib.ledger.rerun_request import RerunRefused
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.plans import admission, names
from windowlib.plans.admission import Admission
from windowlib.plans.duplicates import id_of
from windowlib.plans.functions import F, quoted
from windowlib.plans.kinds.kind import RerunRules
from windowlib.plans.step import Step
from windowlib.reruns.rejudged_rows import REPEATED, RejudgedRows, are_judged_again, judge, judged, with_repeated
from windowlib.reruns.row_positions import PLACE, PLACE_IN_TABLES, of_files, placed, rows_of, with_mark
from windowlib.reruns.source import KnownFile, check_files
from windowlib.source import intake
from windowlib.source import rows as source
from windowlib.source.columns.check import check_readable
from windowlib.source.intake import BatchIntake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVENT_MS = "unix_millis(event_time)"
CHOSEN = names.internal("chosen")
BY_NUMBER = {"duplicate", "future"}  # reasons for which rows stay refused; tables identify these rows by number


@dataclass(frozen=True, slots=True)
class RerunEvents:
    """Files that a rerun reads, and the rows that count: events, or slices of events. `rows` is None if no row counts.

    `step` has the types of the rows. `judged` is None if no file has changed or is missing. `again` has the places
    (source_file, source_row) of late events that stay late, because another row holds the same event.
    """

    files: Sequence[KnownFile]
    step: Step
    rows: DataFrame | None = None
    judged: RejudgedRows | None = None
    again: DataFrame | None = None

    @property
    def bytes_read(self) -> int:
        return sum(file.now.size_bytes for file in self.files if file.now)

    def with_rows(self, rows: DataFrame) -> RerunEvents:
        """Copy with other `rows`."""
        return replace(self, rows=rows)


def with_times(inputs: Inputs, files: list[KnownFile]) -> list[KnownFile]:
    """Returns the files. A rewritten file gets the time range of its current events (`events_now`)."""
    rewritten = [file for file in files if file.rewritten]
    if not rewritten:
        return files
    spans = _spans(_intake_of(inputs, rewritten))
    return [replace(file, events_now=spans.get(file.path)) if file.rewritten else file for file in files]


def _with_reading_differences(inputs: Inputs, files: Sequence[KnownFile]) -> Sequence[KnownFile]:
    """Returns the files. A file that is now read differently gets the time range of its current events (`events_now`).

    Such files count as unchanged if only the columns to read differ, the number of malformed rows is the same, and no
    table identifies a row by its number. The reason: a row number depends on all columns that are read, because rows of
    text files with the same time are ordered by their columns.
    """
    differing = [file for file in files if file.otherwise and not file.rewritten and file.now]
    if not differing:
        return files
    current, paths = _intake_of(inputs, differing), {file.path for file in differing}
    if all(file.otherwise and file.otherwise.columns_alone for file in differing):
        refused, late = (of_files(inputs, table, sorted(paths)) for table in ("quarantine", "late_events"))
        kind = F.substring_index("reason", ":", 1)
        reasons = {} if refused is None else {row[0]: row[1] for row in refused.groupBy(kind).count().collect()}
        numbered = BY_NUMBER & reasons.keys() or (late is not None and late.count())
        if not numbered and current.reasons.get("malformed", 0) == reasons.get("malformed", 0):
            return [replace(file, otherwise=None) for file in files]
    spans = _spans(current)
    return [replace(file, events_now=spans.get(file.path)) if file.path in paths else file for file in files]


def _intake_of(inputs: Inputs, files: Sequence[KnownFile]) -> BatchIntake:
    """Figures of the current rows of files that are read again."""
    assert inputs.before is not None
    pinned = inputs.before.stored.get("source_types")
    now = [file.now for file in files if file.now]
    read = {file.path for file in now} - {file.path for file in inputs.plan.files}
    check_readable(inputs.source, inputs.definition.uses, now, pinned, read)
    raw = rows_of(inputs, files, pinned)
    judge = _judge(inputs)
    rows = admission.events(raw.frame, judge, dialect_of(inputs.spark))
    return intake.look(rows, judge, inputs.definition.storage.state_partition_ms, raw.paths)


def _spans(current: BatchIntake) -> dict[str, TimeRange]:
    """Time range from the first admitted event to the last, for each file with admitted events."""
    return {
        path: TimeRange(figures.min_timestamp_ms, figures.max_timestamp_ms + 1)
        for path, figures in current.files.items()
        if figures.min_timestamp_ms is not None and figures.max_timestamp_ms is not None
    }


def requested_range(inputs: Inputs) -> TimeRange:
    """Time range of the request. With `late_only`, the range from the first to the last event to readmit."""
    rerun = inputs.rerun
    if not rerun.late_only:
        return rerun.range
    rows = inputs.tables.rows("late_events", inputs.tables.files_in("late_events", rerun.range))
    bounds = None
    if rows is not None:
        chosen = rows.where("readmitted_by IS NULL").where(is_chosen(inputs, rerun.range))
        bounds = chosen.agg(F.expr(f"min({EVENT_MS})"), F.expr(f"max({EVENT_MS})")).first()
    if bounds is None or bounds[0] is None:
        raise RerunRefused(f"cannot {rerun.title}: there is no such late event, or all of them are already in a window")
    return TimeRange(bounds[0], bounds[1] + 1)


def read_events(inputs: Inputs, files: Sequence[KnownFile], covered: TimeRange) -> RerunEvents:
    """Reads the rows of the files, and returns the rows that count.

    Rows refused as too far in the future stay refused. Duplicates stay refused unless a file has changed or is missing.
    Late rows that the rerun does not choose stay late. With `late_only`, the column CHOSEN marks the chosen late rows.
    """
    files = _with_reading_differences(inputs, files)
    if inputs.rerun.late_only and (first := next((file for file in files if file.changed), None)):
        raise RerunRefused(f"{first.place} {first.how_changed}. Rerun its time range before you readmit late events")
    check_files(inputs.source, files, covered, inputs.rerun)
    step, judges_again = scratch(inputs), are_judged_again(inputs, files)
    if not any(file.now for file in files):
        return RerunEvents(
            files, steps.with_types(inputs, step, None), judged=RejudgedRows(covered) if judges_again else None
        )
    raw = rows_of(inputs, files, inputs.source_types)
    rows = admission.events(raw.frame, _judge(inputs), step.dialect)
    if inputs.definition.aggregates.needs_arrival or inputs.source.event_id:
        rows = rows.withColumn(names.ARRIVAL, raw.arrival())
    step = steps.with_types(inputs, step, rows)
    late = _late(inputs, [file.path for file in files if file.unchanged], covered)
    refused = "'future'" if judges_again else "'duplicate', 'future'"
    rows = _without_excluded(inputs, rows, files, raw, late, refused)
    if judges_again:
        rows = with_repeated(inputs, rows, files, raw, covered)
    again = None
    if late is not None and inputs.source.event_id:
        events = rows.where(~F.col(REPEATED)) if judges_again else rows
        again = _there_again(inputs, events, placed(inputs, late.where(CHOSEN), raw))
        rows = rows.join(again, PLACE, "left_anti")
        again = source.with_path(inputs.spark, again, raw.paths).withColumnRenamed(names.SOURCE_ROW, "source_row")
    rejudged = None
    if judges_again:
        rows = judge(inputs, rows, files, raw, covered)
        rejudged = judged(inputs, rows, files, raw, _judge(inputs), covered)
    return RerunEvents(files, step, rows.where(f"{names.REASON} IS NULL"), rejudged, again)


def rules_of(inputs: Inputs) -> RerunRules:
    """Rules to recompute the pipeline's windows."""
    rules = inputs.kind.rerun
    assert not isinstance(rules, str), "a pipeline that cannot be rerun is refused before"
    return rules


def scratch(inputs: Inputs) -> Step:
    """Step of a rerun: computes all events in one batch, at the watermark of the newest batch."""
    return steps.scratch(inputs, inputs.watermark_in_ms)


def _judge(inputs: Inputs) -> Admission:
    return replace(admission_of(inputs), late_up_to_ms=MIN_WATERMARK)


def _without_excluded(
    inputs: Inputs,
    rows: DataFrame,
    files: Sequence[KnownFile],
    raw: source.SourceRows,
    late: DataFrame | None,
    refused: str,
) -> DataFrame:
    """Removes rows that stay late, or stay refused for the reasons `refused` (SQL). With `late_only`, adds CHOSEN."""
    unchanged = [file.path for file in files if file.unchanged]
    excluded = [] if late is None else [late.where(f"NOT {CHOSEN}").select(*PLACE_IN_TABLES)]
    if (quarantined := of_files(inputs, "quarantine", unchanged)) is not None:
        excluded.append(quarantined.where(f"reason IN ({refused})").select(*PLACE_IN_TABLES))
    if excluded:
        rows = rows.join(placed(inputs, dialect_of(inputs.spark).union(excluded), raw), PLACE, "left_anti")
    if not inputs.rerun.late_only:
        return rows
    if late is None:
        return rows.withColumn(CHOSEN, F.lit(False))
    return with_mark(rows, placed(inputs, late.where(CHOSEN), raw).distinct(), CHOSEN)


def _there_again(inputs: Inputs, rows: DataFrame, late: DataFrame) -> DataFrame:
    """Places of late events that repeat another row: a row that counts, or an earlier late row.

    Both rows have the same id and time. Neither was refused as a duplicate, because the id was already forgotten.
    """
    is_late, first, identifier = map(names.internal, ("is_late", "first", "id"))
    time = names.TIMESTAMP_MS
    marked = (
        rows.where(f"{names.REASON} IS NULL")
        .select(id_of(inputs.source.event_id or "").alias(identifier), time, names.ARRIVAL, *PLACE)
        .where(f"{identifier} IS NOT NULL")
        .join(late.distinct().withColumn(is_late, F.lit(True)), PLACE, "left")
    )
    counted = f"min(if({is_late} IS NULL, {names.ARRIVAL}, null))"
    kept = marked.groupBy(identifier, time).agg(F.expr(f"coalesce({counted}, min({names.ARRIVAL}))").alias(first))
    again = marked.join(kept, [identifier, time]).where(f"{is_late} AND {names.ARRIVAL} <> {first}").select(*PLACE)
    return inputs.staged.write_and_read(again, inputs.staged.unused("again"))


def _late(inputs: Inputs, paths: Sequence[str], covered: TimeRange) -> DataFrame | None:
    """Late events of the files that are in no window. CHOSEN (bool) is true if the rerun readmits the event."""
    rows = of_files(inputs, "late_events", paths)
    if rows is None:
        return None
    return rows.where("readmitted_by IS NULL").withColumn(CHOSEN, F.expr(is_chosen(inputs, covered)))


def is_chosen(inputs: Inputs, covered: TimeRange) -> str:
    """SQL condition: true if the rerun puts a late event into a window."""
    if not inputs.rerun.late_only:
        return (
            "true"
            if rules_of(inputs).by_chains
            else f"{EVENT_MS} >= {covered.from_ms} AND {EVENT_MS} < {covered.to_ms}"
        )
    requested = inputs.rerun.range
    conditions = [f"{EVENT_MS} >= {requested.from_ms}", f"{EVENT_MS} < {requested.to_ms}"]
    for name, value in zip(inputs.source.key, inputs.rerun.key or (), strict=False):
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        conditions.append(f"cast({quoted(name)} AS string) = '{text}'")
    return " AND ".join(conditions)
