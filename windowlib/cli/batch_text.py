"""Text of a batch's report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from windowlib.definition.instants import instant
from windowlib.quality.firings import windows_fired

if TYPE_CHECKING:
    from windowlib.runs.attempt import BatchReport


def batch_text(report: BatchReport) -> str:
    """Line about a batch, most important figures first, then a line for each failed check that did not stop it.

    >>> from windowlib.runs.attempt import BatchReport
    >>> figures = {"rows_read": 9, "rows_admitted": 7, "rows_late": 1, "quarantined_future": 2}
    >>> figures |= {"windows_fired_on_time": 5, "windows_open": 3}
    >>> batch_text(BatchReport(3, figures, 0, 1.25)).split("  ")  # doctest: +NORMALIZE_WHITESPACE
    ['batch 3', 'fired 5', 'late 1', 'watermark 1970-01-01 00:00:00 UTC',
     'read 9', 'admitted 7', 'quarantined 2 (future 2)', 'in flight 3', '1.2 s']
    """
    figures = {name: value or 0 for name, value in report.figures.items()}
    if "rerun_from_ms" in figures:
        return _rerun_line(report, figures)
    reasons = {
        name.removeprefix("quarantined_"): n for name, n in figures.items() if name.startswith("quarantined_") and n
    }
    quarantined = f"quarantined {sum(reasons.values()):,}"
    if reasons:
        quarantined += f" ({', '.join(f'{reason} {count:,}' for reason, count in reasons.items())})"
    late_firings = figures.get("windows_fired_late", 0)
    fired = f"fired {windows_fired(figures):,}" + (f" (late {late_firings:,})" if late_firings else "")
    parts = [
        f"batch {report.batch_id}",
        fired,
        f"late {figures['rows_late']:,}",
        f"watermark {instant(report.watermark_out_ms)}",
        f"read {figures['rows_read']:,}",
        f"admitted {figures['rows_admitted']:,}",
        quarantined,
        f"in flight {figures['windows_open']:,}",
        f"{report.seconds:.1f} s",
    ]
    return _with_checks(parts, report)


def _rerun_line(report: BatchReport, figures: Mapping[str, int]) -> str:
    parts = [
        f"batch {report.batch_id}",
        f"rerun {instant(figures['rerun_from_ms'])} to {instant(figures['rerun_to_ms'])}",
        f"added {figures['windows_added']:,}",
        f"removed {figures['windows_removed']:,}",
        f"changed {figures['windows_changed']:,}",
        f"readmitted {figures['late_readmitted']:,}",
        f"files {figures['files_read']:,}"
        + (f" ({missing:,} missing)" if (missing := figures["files_missing"]) else ""),
        f"{report.seconds:.1f} s",
    ]
    return _with_checks(parts, report)


def _with_checks(parts: Iterable[str], report: BatchReport) -> str:
    line = "  ".join([*([report.pipeline] if report.pipeline else []), *parts])
    failed = (failed_check(c.severity, c.sentence, c.observed) for c in report.checks if not c.success)
    return "\n".join([line, *(f"  {sentence}" for sentence in failed)])


def failed_check(severity: str, sentence: str, observed: str) -> str:
    """Sentence about a failed check."""
    return f"failed check ({severity}): {sentence} Observed {observed}."
