"""A rerun as a batch: recomputed windows replace published windows and windows in flight.

`windowlib.reruns.findings` computes the windows and their difference. `windowlib.reruns.publish` rewrites the files
that hold changed or removed rows, and the files with windows in flight of the closure. It marks late events that are
now in a window.
"""

from __future__ import annotations

from windowlib.batches import figures
from windowlib.batches.inputs import ComputedBatch, Inputs
from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.reruns.expected import check_expected
from windowlib.reruns.findings import Findings, find_changes
from windowlib.reruns.publish import RerunPublication, publish
from windowlib.source.listing import check_unchanged


def compute(inputs: Inputs) -> ComputedBatch:
    """Runs the Spark jobs of a rerun and returns the changes to commit. Raises `RerunRefused`."""
    findings = find_changes(inputs)
    check_expected(inputs, findings)
    check_unchanged(inputs.source, [file.now for file in findings.read.files if file.now])
    published = publish(inputs, findings)
    return ComputedBatch(published.changes, inputs.watermark_in_ms, figures_of(inputs, findings, published))


def figures_of(inputs: Inputs, findings: Findings, published: RerunPublication) -> dict[str, int | None]:
    """Every figure of a rerun, by name."""
    changes, files = published.changes, findings.read.files
    return {
        "batch_id": inputs.plan.batch_id,
        "plan_time_ms": inputs.plan.plan_time_ms,
        "rerun_from_ms": inputs.rerun.from_ms,
        "rerun_to_ms": inputs.rerun.to_ms,
        "recomputed_from_ms": findings.closure.windows.from_ms,
        "recomputed_to_ms": findings.closure.windows.to_ms,
        "files_read": sum(file.now is not None for file in files),
        "files_changed": sum(file.changed for file in files),
        "files_missing": sum(file.now is None and not file.replaced for file in files),
        "files_replaced": len(inputs.plan.replaces),
        "bytes_read": findings.read.bytes_read,
        **{f"windows_{kind}": findings.differing.get(kind, 0) for kind in (ADDED, CHANGED, REMOVED)},
        **figures.window_figures(inputs, findings.step, changes),
        "windows_open_before": inputs.tables.count("open_windows"),
        "late_rows_before": inputs.tables.count("late_events"),
        "late_rows_after": figures.rows_after(inputs.tables, changes, "late_events"),
        "late_readmitted": published.late_readmitted,
        "late_gone": published.late_gone,
        "watermark_in_ms": inputs.watermark_in_ms,
        "watermark_out_ms": inputs.watermark_in_ms,
    }
