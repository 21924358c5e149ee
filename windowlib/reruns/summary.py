"""What a rerun would change, summed up: counts of changes, totals before and after, the largest changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.batches.inputs import Inputs
from windowlib.contract.change import ADDED, CHANGED
from windowlib.model.errors import WindowError
from windowlib.reruns.changes import OF_ALL, OF_SESSIONS, changes_of
from windowlib.reruns.findings import DIFFERENCE, Findings, opened, published, rows_of
from windowlib.reruns.previews import Summary
from windowlib.reruns.row_positions import of_files
from windowlib.reruns.totals import range_totals, with_totals
from windowlib.source.listing import waiting_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.reruns.changes import RerunChanges
    from windowlib.reruns.totals import RangeTotals


def summary_of(inputs: Inputs, found: Findings) -> Summary:
    """What a rerun would change, summed up."""
    added, changed = (found.differing.get(kind, 0) for kind in (ADDED, CHANGED))
    rows = difference_rows(inputs)
    changes = None if rows is None else _changes(inputs, found, rows)
    totals = None if rows is None else _totals(inputs, found, rows)
    after = windows_opened(inputs)
    before, late = (0, 0) if found.closure.is_empty else (_in_flight(inputs, found), _late(inputs, found))
    return Summary(
        windows=changes.counts if changes else dict.fromkeys(_kinds(found), 0),
        totals=totals.totals if totals else {},
        in_flight=[before, after],
        late_readmitted=late,
        rows_to_write={
            "results": added + changed,
            "result_changes": sum(found.differing.values()),
            "open_windows": after,
        },
        reaches_ms=[found.closure.windows.from_ms, found.closure.windows.to_ms],
        files_read=sum(file.now is not None for file in found.read.files),
        bytes_read=found.read.bytes_read,
        files_missing=[file.path for file in found.read.files if file.now is None and not file.replaced],
        files_changed=sum(file.changed or file.replaced for file in found.read.files),
        files_waiting=_waiting(inputs),
        largest=changes.largest if changes else [],
        results=totals.results if totals else None,
        days=totals.days if totals else [],
    )


def _kinds(found: Findings) -> tuple[str, ...]:
    return (*OF_ALL, *OF_SESSIONS) if found.closure.by_chains else OF_ALL


def _changes(inputs: Inputs, found: Findings, rows: DataFrame) -> RerunChanges:
    merging = found.step.dialect if found.closure.by_chains else None
    additive = inputs.definition.aggregates.additive
    return changes_of(rows, inputs.source.key, found.step.output_names, additive, merging)


def _totals(inputs: Inputs, found: Findings, rows: DataFrame) -> RangeTotals:
    columns = with_totals(rows.schema, inputs.definition.aggregates.additive)
    return range_totals(published(inputs, found.closure, found.step), rows, columns)


def difference_rows(inputs: Inputs) -> DataFrame | None:
    """The staged difference, with part; None without a row."""
    if not inputs.staged.written(DIFFERENCE):
        return None
    return inputs.spark.read.parquet(str(inputs.staging / DIFFERENCE))


def windows_opened(inputs: Inputs) -> int:
    """How many windows (aligned: slices) the rerun leaves in flight."""
    return sum(rows_of(path) for path, _ in opened(inputs))


def _waiting(inputs: Inputs) -> int | None:
    """How many new files no run has read; None where the source cannot be listed."""
    try:
        return len(waiting_files(inputs.source, inputs.definition.uses, inputs.opened, inputs.before, check=False))
    except WindowError:
        return None


def _in_flight(inputs: Inputs, found: Findings) -> int:
    """How many windows in flight the closure has now."""
    rows = inputs.tables.rows("open_windows", found.closure.state_files(inputs.tables))
    return 0 if rows is None else rows.count() - found.closure.others(rows, found.step).count()


def _late(inputs: Inputs, found: Findings) -> int:
    """How many late events would be in a window."""
    rows = of_files(inputs, "late_events", [file.path for file in found.read.files if file.unchanged])
    return 0 if rows is None else found.readmitted(inputs, rows.where("readmitted_by IS NULL")).count()
