"""Changes of each table by a rerun: results, windows in flight, late events, and records of source files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from windowlib.batches.inputs import Inputs
from windowlib.contract.change import ADDED, CHANGED, Change
from windowlib.contract.tables import SOURCE_FILES
from windowlib.definition.terms import read_as
from windowlib.delta import data_files
from windowlib.delta.statistics import of_sources
from windowlib.ledger.rows import SourceFile
from windowlib.model.rerun import TimeRange
from windowlib.plans.functions import F, quoted
from windowlib.plans.names import FILE
from windowlib.plans.partitions import PARTITION, RESULT_DAY
from windowlib.plans.partitions import day as day_of
from windowlib.publication import publish as files
from windowlib.publication.publish import StagedChanges, joined
from windowlib.reruns.events import rules_of
from windowlib.reruns.findings import DIFFERENCE, Findings, opened
from windowlib.reruns.ids import seen_ids
from windowlib.reruns.row_positions import PLACE_IN_TABLES
from windowlib.source import event_spans
from windowlib.source.contents import checksum
from windowlib.source.intake import FileFigures

CAUSE = "rerun"


@dataclass(frozen=True, slots=True)
class LateChanges:
    """Change of `late_events`. `readmitted` counts events that are now in a window, `gone` counts removed events."""

    changes: StagedChanges
    readmitted: int = 0
    gone: int = 0


@dataclass(frozen=True, slots=True)
class RerunPublication:
    """Changes by table that a rerun commits, and the numbers of readmitted and removed late events."""

    changes: Mapping[str, StagedChanges]
    late_readmitted: int
    late_gone: int


def publish(inputs: Inputs, findings: Findings) -> RerunPublication:
    """Copies the files of the findings to tables. Returns the changes to commit."""
    results, in_flight, late = dict[str, StagedChanges](), StagedChanges(), LateChanges(StagedChanges())
    if not findings.closure.is_empty:
        results = _results(inputs, findings)
    if not findings.closure.is_empty or findings.step.lateness_changed:
        in_flight = _in_flight(inputs, findings)
    sources = {}
    if findings.read.judged or inputs.plan.replaces:
        sources = _changed_files(inputs, findings)
    if sources or not findings.closure.is_empty:
        late = _late_events(inputs, findings)
    changes = joined([results, {"open_windows": in_flight, "late_events": late.changes}, sources])
    return RerunPublication(changes, late.readmitted, late.gone)


def _results(inputs: Inputs, findings: Findings) -> dict[str, StagedChanges]:
    """Rewrites the `results` files that hold changed or removed rows, and adds changed and new rows."""
    staged = inputs.staged.written(DIFFERENCE)
    if not staged:
        return {}
    gone = [inputs.staged.url(file.path) for file, partition in staged if partition["part"] != ADDED]
    touched = _without(inputs, gone) if gone else []
    if findings.columns:
        schema = files.table_schema(findings.columns, findings.step.result_names, {"window_day": "date"})
    else:
        schema = inputs.tables.schema("results")
    changes = joined([{"results": StagedChanges(remove=touched)}, *_published(inputs)])
    return files.with_schema(changes, schema)


def _without(inputs: Inputs, gone: list[str]) -> list[data_files.DataFile]:
    """Writes the remaining rows of the `results` files that hold rows to remove. Returns these files."""
    replaced = inputs.spark.read.parquet(*gone)
    names = {row[FILE].rpartition("/")[2] for row in replaced.select(FILE).distinct().collect()}
    touched = [file for file in inputs.tables.files("results") if file.path.rpartition("/")[2] in names]
    rows = inputs.tables.rows("results", touched)
    assert rows is not None, "a published window is in `results`"
    identity = [*inputs.source.key, "window_start", "window_end"]
    kept = rows.join(replaced.select(*map(quoted, identity)), identity, "left_anti")
    day = F.expr(RESULT_DAY).alias(PARTITION)
    inputs.staged.write(kept.select(*map(quoted, rows.columns), day), "kept", PARTITION)
    return touched


def _published(inputs: Inputs) -> Iterator[dict[str, StagedChanges]]:
    """Copies the remaining rows and the difference to tables."""
    staged = inputs.staged
    for file, partition in staged.written("kept"):
        yield staged.result(file, day_of(partition[PARTITION]), None, None)
    for file, partition in staged.written(DIFFERENCE):
        day = day_of(partition[PARTITION])
        match partition["part"]:
            case Change.CHANGED:
                yield staged.result(file, day, CHANGED, CAUSE)
            case Change.ADDED:
                yield staged.result(file, day, ADDED, CAUSE)
            case _:
                yield staged.removed(file, day, CAUSE)


def _in_flight(inputs: Inputs, findings: Findings) -> StagedChanges:
    """Replaces the closure's windows or slices in flight by recomputed windows that stay in flight.

    If the allowed lateness has changed, also removes windows that are late by the new value.
    """
    staged, step, new = inputs.staged, findings.step, opened(inputs)
    touched = [] if findings.closure.is_empty else findings.closure.state_files(inputs.tables)
    if step.lateness_changed or step.rewrites_state:
        touched = inputs.tables.files("open_windows")
    rows = inputs.tables.rows("open_windows", touched)
    if rows is not None:
        step = event_spans.with_state(step, touched)
        kept = rows if findings.closure.is_empty else findings.closure.others(rows, step)
        staged.write(rules_of(inputs).remaining(kept, step), "kept_open", PARTITION)
    copied = [
        staged.copy(file, "open_windows", {PARTITION: int(partition[PARTITION])})
        for file, partition in [*new, *staged.written("kept_open")]
    ]
    schema = None
    if new and findings.columns is not None:
        columns = inputs.kind.state_columns(step)
        schema = files.table_schema(findings.columns, columns, {PARTITION: "long"})
    return StagedChanges([file for file in copied if file.rows], touched, schema=schema)


def _late_events(inputs: Inputs, findings: Findings) -> LateChanges:
    """Marks late events that are now in a window. Removes late events of changed and replaced files, because the rows
    are no longer in the source.
    """
    windows, requested = findings.closure.windows, inputs.rerun.range
    # Late events of a changed file may lie outside of all windows, but always in the requested range.
    span = TimeRange(min(windows.from_ms, requested.from_ms), max(windows.to_ms, requested.to_ms))
    looked = inputs.tables.files_in("late_events", span)
    rows = inputs.tables.rows_with_file("late_events", looked)
    present = [(file.path, file.changed or file.replaced) for file in findings.read.files if file.now or file.replaced]
    if rows is None or not present:
        return LateChanges(StagedChanges())
    named = F.broadcast(inputs.spark.createDataFrame(present, "source_file string, _changed boolean"))
    with_files = rows.join(named, "source_file", "left")
    waiting = with_files.where("readmitted_by IS NULL AND NOT _changed")
    readmitted = findings.readmitted(inputs, waiting).select(*PLACE_IN_TABLES, F.lit(True).alias("_readmitted"))
    marked = with_files.join(readmitted, PLACE_IN_TABLES, "left")
    concerned = marked.where("_readmitted OR _changed").select(FILE).distinct().collect()
    names = {row[FILE].rpartition("/")[2] for row in concerned}
    touched = [file for file in looked if file.path.rpartition("/")[2] in names]
    if not touched:
        return LateChanges(StagedChanges())
    counters = findings.step.dialect.counters()
    counted = counters.over(
        marked.where(F.regexp_extract(FILE, r"[^/]+$", 0).isin(names)),
        {"readmitted": "if(_readmitted, 1, 0)", "gone": "if(_changed, 1, 0)"},
    )
    by = F.when(F.col("_readmitted"), F.lit(inputs.plan.batch_id).cast("long")).otherwise(F.col("readmitted_by"))
    again = counted.where("_changed IS NULL OR NOT _changed").withColumn("readmitted_by", by)
    columns = [quoted(name) for name in rows.columns if name != FILE]
    added = inputs.staged.append(again.select(*columns), "late_events")
    return LateChanges(StagedChanges(added, touched), **counters.values())


def _changed_files(inputs: Inputs, findings: Findings) -> dict[str, StagedChanges]:
    """Updates the records about changed files: their size and times, their refused rows, and their event ids.

    Removes the records of replaced files. Rows of other files that are no longer duplicates become events.
    """
    spans = findings.read.judged.spans_released() if findings.read.judged else {}
    return {
        "source_files": _source_files(inputs, findings, spans),
        "quarantine": _quarantine(inputs, findings, [*spans]),
        "seen_ids": seen_ids(inputs, findings.read.judged, findings.step),
    }


def _source_files(inputs: Inputs, findings: Findings, released: Mapping[str, TimeRange]) -> StagedChanges:
    table, record_files = inputs.opened[SOURCE_FILES.name], inputs.tables.files(SOURCE_FILES.name)
    now = {file.path: file.now for file in findings.read.files if file.changed}
    if not (now or released or inputs.plan.replaces):
        return StagedChanges()
    rows, gone = [], {*inputs.plan.replaces}
    added_files = (
        {name: getattr(file, name) for name in ("path", "sequence", "partition_values")}
        | {"batch_id": inputs.plan.batch_id}
        for file in inputs.plan.files
    )
    for row in (*table.rows(record_files, SOURCE_FILES.columns), *added_files):
        if (file := now.get(row["path"])) and findings.read.judged:
            figures = findings.read.judged.intake.files.get(row["path"], FileFigures())
            row |= {"size_bytes": file.size_bytes, "modified_ns": file.modified_ns, "rows": figures.rows}
            row |= {"sha256": _checksum(inputs, file)}
            row |= {"min_timestamp_ms": figures.min_timestamp_ms, "max_timestamp_ms": figures.max_timestamp_ms}
            row |= {"read_as": read_as(inputs.source)}
        elif span := released.get(row["path"]):
            first_ms, last_ms = row["min_timestamp_ms"], row["max_timestamp_ms"]
            row["min_timestamp_ms"] = span.from_ms if first_ms is None else min(first_ms, span.from_ms)
            row["max_timestamp_ms"] = span.to_ms - 1 if last_ms is None else max(last_ms, span.to_ms - 1)
        if row["path"] not in gone:
            rows.append(row)
    added = [data_files.write(table.store, pa.Table.from_pylist(rows, schema=SOURCE_FILES.columns))] if rows else []
    return StagedChanges(added, record_files)


def _checksum(inputs: Inputs, file: SourceFile) -> str | None:
    source = inputs.source
    return None if source.format == "delta" else checksum(source.store, file.path, file.size_bytes)


def _quarantine(inputs: Inputs, findings: Findings, released: Sequence[str]) -> StagedChanges:
    """Change of `quarantine`. Removes the rows of changed and replaced files, and rows of other files (`released`) that
    count now. Adds the rows of changed files that are refused now.
    """
    judged, paths = findings.read.judged, [file.path for file in findings.read.files if file.changed or file.replaced]
    touched = of_sources(inputs.tables.files("quarantine"), [*paths, *released])
    stays = inputs.tables.rows("quarantine", touched)
    refused = judged.refused if judged and any(judged.intake.reasons.values()) else None
    if stays is not None:
        named = inputs.spark.createDataFrame([(path,) for path in paths], "source_file string")
        others = stays.join(F.broadcast(named), "source_file", "left_anti")
        if judged and judged.released is not None:
            others = others.join(judged.released, PLACE_IN_TABLES, "left_anti")
        refused = others if refused is None else others.unionByName(refused)
    return StagedChanges([] if refused is None else inputs.staged.append(refused, "quarantine"), touched)
