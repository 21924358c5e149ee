"""Phrases that explain each figure of a batch, and each difference and share that the suites judge."""

from __future__ import annotations

from windowlib.definition.toml.column_tests import DISTINCT, MOST_VALUES, distinct_figure
from windowlib.plans.admission import REASONS

COLUMN_TEST = "columns.COLUMN.TEST"  # stands for the figures of all tests of result columns
COLUMN_DISTINCT = distinct_figure("COLUMN")  # stands for the distinct values of all visible result columns

FIGURES = {
    "batch_id": "the batch",
    "plan_time_ms": "time at which the batch was planned",
    "rows_in_files": "rows in the files of the batch by their footers; missing for text files",
    "rows_read": "rows in the files that the batch read",
    "rows_admitted": "rows that became events",
    "rows_quarantined": "rows that were refused, each with a reason",
    **{f"quarantined_{reason}": f"rows refused as `{reason}`" for reason in REASONS},
    "quarantine_rows_written": "rows added to `quarantine`",
    "rows_late": "events that came too late for every window",
    "late_rows_written": "rows added to `late_events`",
    "late_rows_early": "of these, rows not past the cleanup time of their window (their own if in none); must be 0",
    "late_by_p50_ms": "median lateness of late events, in ms past the cleanup time; missing without late events",
    "late_by_p95_ms": "95th percentile of this lateness",
    "late_by_max_ms": "largest lateness",
    "ids_repeated": "admitted event ids that were admitted before, among the newest million; must be 0",
    "events_in_state_before": "before the batch: events in the windows in flight that it works on; others are unread",
    "events_in_state_after": "after the batch: events in the windows in flight that it worked on",
    "events_retired": "events of retired windows",
    "events_in_state_read": "events in the files of `open_windows` that the batch read",
    "events_in_state_written": "events in the files that it wrote, and in files that it read and left unchanged",
    "events_due": "native plans of time windows: events of windows that must fire; only new ones if fired before",
    "events_fired": "the same, for windows that fired",
    "firings_unfounded": "windows that fired again without a new event; must be 0",
    "windows_miscounted": "windows, or slices, with a `count(*)` that differs from their number of events; must be 0",
    "windows_left_open": "rows for `open_windows`, counted by the plan",
    "windows_overdue": "files of `open_windows` left unchanged although a window was due or touched; must be 0",
    "windows_fired_early": "windows that a trigger fired before their end; each firing counts",
    "windows_fired_on_time": "windows fired when the watermark reached their end",
    "windows_fired_late": "windows fired again by a late event",
    "windows_added": "rows added to `results`",
    "windows_changed": "reruns: rows of `results` with new values",
    "windows_removed": "rows removed from `results`: merged sessions, and windows that no longer exist after a rerun",
    "windows_written_open": "rows written to `open_windows`",
    "windows_open": "rows of `open_windows` after the batch",
    "windows_retired": "windows, or slices, that were dropped after their cleanup time, read or unread",
    "windows_touching": "windows, fired or in flight, that touch the next window of their key; must be 0",
    "windows_past_cleanup": "files of `open_windows` with a row past its cleanup time; must be 0",
    "row_count": "rows of `results` that the batch adds or changes",
    COLUMN_TEST: "of these, rows that fail a test of `[checks.columns]`, such as `columns.revenue.min`",
    COLUMN_DISTINCT: "of these, distinct values of a visible column without nulls; missing for nested values, and if"
    f" rows times columns exceed {MOST_VALUES // 1_000_000} million",
    "results_rows_before": "rows of `results` before the batch",
    "results_rows_after": "rows of `results` after the batch",
    "results_rows_written": "rows written to `results`, including unchanged rows of rewritten files",
    "changes_rows_written": "rows added to `result_changes`",
    "results_repeated": "rows in the written partitions that repeat the key and window of another row; must be 0",
    "results_off_window": "new rows whose bounds are no window, or do not contain their newest event; must be 0",
    "results_early": "new rows of windows that the watermark has not reached; must be 0",
    "results_after_cleanup": "new rows of windows that were past their cleanup time before the batch; must be 0",
    "results_gone_null": "aggregates that are null in most new rows but were almost never null before",
    "results_mistimed": "new rows with the wrong timing, `on_time` or `late`; must be 0",
    "newest_event_ms": "greatest event time of the batch, if event times move the watermark",
    "watermark_in_ms": "the watermark before the batch",
    "watermark_candidate_ms": "the watermark that follows from the newest event of the batch",
    "watermark_out_ms": "the watermark after the batch",
    "rerun_from_ms": "reruns: start of the range, inclusive",
    "rerun_to_ms": "reruns: end of the range, exclusive",
    "recomputed_from_ms": "reruns: start of the times whose windows were recomputed, inclusive",
    "recomputed_to_ms": "reruns: end of these times, exclusive",
    "files_read": "reruns: source files read",
    "files_changed": "reruns: files that have changed since they were first read",
    "files_missing": "reruns: files that no longer exist",
    "files_replaced": "reruns: files of a Delta source that were read and later replaced by other files",
    "bytes_read": "reruns: bytes of the source read",
    "windows_open_before": "reruns: rows of `open_windows` before the rerun",
    "late_rows_before": "reruns: rows of `late_events` before the rerun",
    "late_rows_after": "reruns: rows of `late_events` after the rerun",
    "late_readmitted": "reruns: late events that are in a window now",
    "late_gone": "reruns: rows of `late_events` from changed files; all rows of such files are judged again",
}
"""Figures that are counted for each batch."""

DERIVED = {
    "rows_unread": "rows of the files by their footers, minus rows read",
    "rows_unaccounted": "rows read, minus rows admitted and rows quarantined",
    "rows_without_reason": "rows quarantined, minus rows counted by reason",
    "quarantine_rows_missing": "rows quarantined, minus rows written to `quarantine`",
    "late_rows_missing": "late events, minus rows written to `late_events`",
    "late_share": "late events, as a share of admitted events",
    "unusable_share": "quarantined rows, as a share of rows read; without duplicates and rows between two windows",
    "duplicate_share": "duplicates, as a share of rows read",
    "events_unaccounted": "events in state before, plus admitted, minus late, in state after, and retired",
    "state_unread": "events in the state files that the batch read, minus events that its plan counted",
    "state_unwritten": "events that stay in state, minus events in the files",
    "windows_unwritten": "rows of the plan for `open_windows`, minus rows in the files",
    "events_unfired": "events of windows that must fire, minus events of windows that fired",
    "watermark_behind_by_ms": "distance of the watermark behind the position that the newest event allows, in ms",
    "watermark_fell_by_ms": "distance by which the watermark fell, in ms",
    "watermark_ahead_by_ms": "distance of the watermark ahead of the position that events or a silence allow, in ms",
    "results_unaccounted": "rows of `results` before, plus added, minus removed, minus rows after",
    "changes_unaccounted": "firings and removals (reruns: differences), minus rows written to `result_changes`",
    "windows_fired": "windows fired: early, on time and by late events",
    "late_unaccounted": "late events before, minus events of changed files and events still listed",
    "watermark_moved_ms": "distance by which a rerun moved the watermark, in ms",
}
"""Figures that `windowlib.quality.figures` derives from them for the suites."""


def meaning_of(figure: str) -> str | None:
    """Phrase for a figure; None for an unknown figure.

    >>> meaning_of("late_share"), meaning_of("columns.revenue.min")[:32]
    ('late events, as a share of admitted events', 'of these, rows that fail a test ')
    """
    named = figure
    if figure.startswith("columns."):
        named = COLUMN_DISTINCT if figure.endswith(DISTINCT) else COLUMN_TEST
    return DERIVED.get(named) or FIGURES.get(named)
