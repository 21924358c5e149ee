"""Which rows of the source a rerun counts: those admitted before, late ones that it chooses, changed files anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jobs import intake, source
from jobs.engines import engine_of
from jobs.ledger import SourceFile
from jobs.reruns.correction import RerunRefused
from jobs.reruns.source import KnownFile, check_files
from windowlib.rerun import TimeRange
from windowlib.watermark import MIN_WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.reruns.batch import Findings, Rerun
    from windowlib.plans.admission import Admission


def with_times(batch: Rerun, known: list[KnownFile]) -> list[KnownFile]:
    """The files, changed ones with the span of their events as they are now."""
    from windowlib.plans import admission

    changed = [file.now for file in known if file.changed and file.now]
    if not changed:
        return known
    _check_types(batch, changed)
    raw = source.rows(batch.spark, batch.definition, changed, batch.fresh_folder("changed"))
    judge = replace(batch.admission(), watermark_in_ms=MIN_WATERMARK)
    rows = admission.events(raw.frame, judge, engine_of(batch.spark))
    seen = intake.look(rows, judge, batch.definition.storage.state_partition_ms, raw.paths)
    spans = {
        path: TimeRange(figures.min_timestamp_ms, figures.max_timestamp_ms + 1)
        for path, figures in seen.files.items()
        if figures.min_timestamp_ms is not None and figures.max_timestamp_ms is not None
    }
    return [replace(file, events_now=spans.get(file.path)) if file.changed else file for file in known]


def admitted_events(batch: Rerun, found: Findings, covered: TimeRange) -> DataFrame | None:
    """The events of the files that count; sets the step's types and, with changed files, what they hold now.

    Rows that were refused as duplicates or as too far in the future stay refused; late ones that the rerun does
    not choose stay late. With `late_only` the chosen ones are marked by _chosen.
    """
    from windowlib.plans import admission
    from windowlib.plans.aggregates import typed, typed_as_stored

    correction, definition = batch.correction, batch.definition
    if correction.late_only and any(file.changed for file in found.files):
        names = ", ".join(file.path for file in found.files if file.changed)
        raise RerunRefused(f"{names} changed since it was read: rerun its time range before readmitting late events")
    check_files(definition, found.files, covered, correction.accept_gap)
    present = [file.now for file in found.files if file.now]
    found.bytes_read = sum(file.size_bytes for file in present)
    if not present:
        stored = batch.table("open_windows")
        if stored is not None:
            found.step = replace(found.step, aggregates=typed_as_stored(found.step.aggregates, stored))
        return None
    raw = source.rows(batch.spark, definition, present, batch.fresh_folder("read"))
    judge = replace(batch.admission(), watermark_in_ms=MIN_WATERMARK)
    rows = admission.events(raw.frame, judge, found.step.engine)
    if definition.aggregates.needs_arrival or definition.source.event_id:
        rows = rows.withColumn("arrival", raw.arrival())
    found.step = replace(found.step, aggregates=typed(found.step.aggregates, rows))
    rows = _without_excluded(batch, rows, found, raw, covered)
    if any(file.changed for file in found.files):
        rows = _judge_changed(batch, rows, raw, judge, found)
    return rows.where("reason IS NULL")


def _check_types(batch: Rerun, changed: Sequence[SourceFile]) -> None:
    assert batch.before is not None
    pinned = json.loads(batch.before.definition).get("source_types")
    source.check_readable(batch.definition, changed, pinned)


def _without_excluded(
    batch: Rerun, rows: DataFrame, found: Findings, raw: source.Rows, covered: TimeRange
) -> DataFrame:
    """Rows without those that stay refused or late; with `late_only` also _chosen."""
    from pyspark.sql import functions as F

    unchanged = [file.path for file in found.files if file.now and not file.changed]
    rows_of = ["source_file", "source_row"]
    late = _late(batch, unchanged, covered)
    excluded = [] if late is None else [late.where("NOT chosen").select(*rows_of)]
    if (refused := _of_files(batch, "quarantine", unchanged)) is not None:
        excluded.append(refused.where("reason IN ('duplicate', 'future')").select(*rows_of))
    names = batch.spark.createDataFrame(list(raw.paths.items()), "_source_file string, source_file string")

    def placed(these: DataFrame) -> DataFrame:
        """Where rows stand, as `rows` names it."""
        return names.join(these, "source_file").select("_source_file", F.col("source_row").alias("_source_row"))

    place = ["_source_file", "_source_row"]
    if excluded:
        gone = placed(found.step.engine.union(excluded))
        rows = rows.join(gone, place, "left_anti")
    if batch.correction.late_only:
        if late is None:
            return rows.withColumn("_chosen", F.lit(False))
        chosen = placed(late.where("chosen")).distinct().withColumn("_is_chosen", F.lit(True))
        rows = rows.join(chosen, place, "left").withColumn("_chosen", F.coalesce("_is_chosen", F.lit(False)))
        rows = rows.drop("_is_chosen")
    return rows


def _judge_changed(batch: Rerun, rows: DataFrame, raw: source.Rows, judge: Admission, found: Findings) -> DataFrame:
    """Looks at the rows of changed files as a batch would: figures, refusals, duplicates."""
    from pyspark.sql import functions as F

    from windowlib.plans.duplicates import mark_duplicates

    definition = batch.definition
    if definition.source.event_id:
        folder = batch.fresh_folder("repeated")
        rows = mark_duplicates(
            rows, definition.source.event_id, None, lambda ids: batch.write_and_read(ids, folder.name)
        )
    paths = {file.path for file in found.files if file.changed}
    uris = [uri for uri, path in raw.paths.items() if path in paths]
    of_changed = rows.where(F.col("_source_file").isin(uris))
    bucket_ms = definition.storage.state_partition_ms
    found.changed = intake.look(of_changed, judge, bucket_ms, {uri: raw.paths[uri] for uri in uris})
    found.refused = source.with_path(batch.spark, _refused(batch, of_changed), raw.paths)
    found.changed_events = of_changed.where("reason IS NULL")
    return rows


def _refused(batch: Rerun, rows: DataFrame) -> DataFrame:
    from windowlib.plans.rejects import quarantined

    return quarantined(rows, batch.source_columns(rows), batch.plan.batch_id)


def _late(batch: Rerun, paths: Sequence[str], covered: TimeRange) -> DataFrame | None:
    """Late events that are in no window, of these files, with chosen (bool): whether the rerun takes them in."""
    from pyspark.sql import functions as F

    rows = _of_files(batch, "late_events", paths)
    if rows is None:
        return None
    return rows.where("readmitted_by IS NULL").withColumn("chosen", F.expr(is_chosen(batch, covered)))


def is_chosen(batch: Rerun, covered: TimeRange) -> str:
    """Whether a late event is taken in, as SQL."""
    time = "unix_millis(event_time)"
    if not batch.correction.late_only:
        return "true" if batch.merges else f"{time} >= {covered.from_ms} AND {time} < {covered.to_ms}"
    asked = batch.correction.range
    conditions = [f"{time} >= {asked.from_ms}", f"{time} < {asked.to_ms}"]
    for name, value in zip(batch.definition.source.key, batch.correction.key or (), strict=False):
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        conditions.append(f"cast(`{name.replace('`', '``')}` AS string) = '{text}'")
    return " AND ".join(conditions)


def chosen_times(batch: Rerun) -> TimeRange:
    """From the first to the last late event that is to be readmitted."""
    from pyspark.sql import functions as F

    rows = batch.table("late_events", batch.late_files(batch.correction.range))
    found = None
    if rows is not None:
        chosen = rows.where("readmitted_by IS NULL").where(is_chosen(batch, batch.correction.range))
        time = F.unix_millis("event_time")
        found = chosen.agg(F.min(time), F.max(time)).first()
    if found is None or found[0] is None:
        raise RerunRefused(f"nothing to {batch.correction.title}: no such late event is without a window")
    return TimeRange(found[0], found[1] + 1)


def _of_files(batch: Rerun, table: str, paths: Sequence[str]) -> DataFrame | None:
    """The rows of `late_events` or `quarantine` that came from these files of the source."""
    from pyspark.sql import functions as F

    rows = batch.table(table, batch.of_sources(table, paths))
    if rows is None:
        return None
    named = batch.spark.createDataFrame([(path,) for path in paths], "source_file string")
    return rows.join(F.broadcast(named), "source_file", "left_semi")
