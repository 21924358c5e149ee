"""Summary of a rerun's changes: counts of changes, totals before and after, the largest changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.contract.change import ADDED, CHANGED
from windowlib.model.errors import WindowError
from windowlib.reruns.changes import OF_ALL, OF_SESSIONS, changes_of
from windowlib.reruns.findings import DIFFERENCE, Findings, opened, published
from windowlib.reruns.previews import Summary
from windowlib.reruns.row_positions import of_files
from windowlib.reruns.totals import range_totals, with_totals
from windowlib.source.listing import waiting_files
from windowlib.storage.at_once import at_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.reruns.changes import RerunChanges
    from windowlib.reruns.totals import RangeTotals


def summary_of(inputs: Inputs, findings: Findings) -> Summary:
    """Summary of the changes that a rerun would make."""
    added, changed = (findings.differing.get(kind, 0) for kind in (ADDED, CHANGED))
    rows = difference_rows(inputs)
    changes = None if rows is None else _changes(inputs, findings, rows)
    totals = None if rows is None else _totals(inputs, findings, rows)
    after = windows_opened(inputs)
    before, late = (0, 0) if findings.closure.is_empty else (_in_flight(inputs, findings), _late(inputs, findings))
    return Summary(
        windows=changes.counts if changes else dict.fromkeys(_kinds(findings), 0),
        totals=totals.totals if totals else {},
        in_flight=[before, after],
        late_readmitted=late,
        rows_to_write={
            "results": added + changed,
            "result_changes": sum(findings.differing.values()),
            "open_windows": after,
        },
        reaches_ms=[findings.closure.windows.from_ms, findings.closure.windows.to_ms],
        files_read=sum(file.now is not None for file in findings.read.files),
        bytes_read=findings.read.bytes_read,
        files_missing=[file.path for file in findings.read.files if file.now is None and not file.replaced],
        files_changed=sum(file.changed or file.replaced for file in findings.read.files),
        files_waiting=_waiting(inputs),
        largest=changes.largest if changes else [],
        results=totals.results if totals else None,
        days=totals.days if totals else [],
    )


def _kinds(findings: Findings) -> tuple[str, ...]:
    return (*OF_ALL, *OF_SESSIONS) if findings.closure.by_chains else OF_ALL


def _changes(inputs: Inputs, findings: Findings, rows: DataFrame) -> RerunChanges:
    merging = findings.step.dialect if findings.closure.by_chains else None
    additive = inputs.definition.aggregates.additive
    return changes_of(rows, inputs.source.key, findings.step.output_names, additive, merging)


def _totals(inputs: Inputs, findings: Findings, rows: DataFrame) -> RangeTotals:
    columns = with_totals(rows.schema, inputs.definition.aggregates.additive)
    return range_totals(published(inputs, findings.closure, findings.step), rows, columns)


def difference_rows(inputs: Inputs) -> DataFrame | None:
    """Rows of the staged difference, with the column `part`; None if there are none."""
    if not inputs.staged.written(DIFFERENCE):
        return None
    return inputs.spark.read.parquet(inputs.staged.url(DIFFERENCE))


def windows_opened(inputs: Inputs) -> int:
    """Number of windows (aligned: slices) that the rerun leaves in flight."""
    return sum(at_once(inputs.staged.count, [path for path, _ in opened(inputs)]))


def _waiting(inputs: Inputs) -> int | None:
    """Number of new files that no run has read; None if the source cannot be listed."""
    try:
        return len(waiting_files(inputs.source, inputs.definition.uses, inputs.opened, inputs.before, check=False))
    except WindowError:
        return None


def _in_flight(inputs: Inputs, findings: Findings) -> int:
    """Number of windows of the closure that are in flight before the rerun."""
    rows = inputs.tables.rows("open_windows", findings.closure.state_files(inputs.tables))
    return 0 if rows is None else rows.count() - findings.closure.others(rows, findings.step).count()


def _late(inputs: Inputs, findings: Findings) -> int:
    """Number of late events that the rerun would put into a window."""
    rows = of_files(inputs, "late_events", [file.path for file in findings.read.files if file.unchanged])
    return 0 if rows is None else findings.readmitted(inputs, rows.where("readmitted_by IS NULL")).count()
