"""What the figures of a batch are, and what the suites' differences and shares are made of: a phrase for each."""

from __future__ import annotations

from windowlib.plans.admission import REASONS

FIGURES = {
    "batch_id": "the batch",
    "plan_time_ms": "when the batch was planned",
    "rows_read": "rows in the files that the batch read",
    "rows_admitted": "rows that became events",
    "rows_quarantined": "rows that did not, with the reason",
    **{f"quarantined_{reason}": f"rows refused as `{reason}`" for reason in REASONS},
    "quarantine_rows_written": "rows added to `quarantine`",
    "rows_late": "events that came too late for every window",
    "late_rows_written": "rows added to `late_events`",
    "events_in_state_before": "events in windows in flight before the batch",
    "events_in_state_after": "the same after it",
    "events_retired": "events that left with their windows",
    "windows_fired_on_time": "windows fired when the watermark reached their end",
    "windows_fired_late": "windows fired again, by a late event",
    "windows_entered": "rows added to `results`",
    "windows_changed": "reruns: rows of `results` with new values",
    "windows_withdrawn": "rows removed from `results`: sessions that were merged, windows that a rerun has no more",
    "windows_written_open": "rows written to `open_windows`",
    "windows_open": "rows of `open_windows` after the batch",
    "windows_retired": "windows past their cleanup time, dropped",
    "windows_touching": "windows in flight that touch the next one of their key; must be 0",
    "windows_past_cleanup": "files of `open_windows` with a row past its cleanup time; must be 0",
    "results_rows_before": "rows of `results` before the batch",
    "results_rows_after": "the same after it",
    "results_rows_written": "rows written to `results`, those rewritten with their file included",
    "changes_rows_written": "rows added to `result_changes`",
    "watermark_in_ms": "the watermark before the batch",
    "watermark_candidate_ms": "what the batch's newest event makes of it",
    "watermark_out_ms": "the watermark after the batch",
    "rerun_from_ms": "reruns: start of the range, inclusive",
    "rerun_to_ms": "reruns: end of the range, exclusive",
    "files_read": "reruns: source files read",
    "files_changed": "reruns: those that have changed since they were first read",
    "files_missing": "reruns: files that are gone",
    "files_replaced": "reruns: files of a Delta source that were read, and have others in their place",
    "bytes_read": "reruns: bytes of the source read",
    "windows_open_before": "reruns: rows of `open_windows` before",
    "late_rows_before": "reruns: rows of `late_events` before",
    "late_rows_after": "reruns: the same after",
    "late_readmitted": "reruns: late events that are in a window now",
    "late_gone": "reruns: rows of `late_events` whose event a changed file no longer has",
}
"""What is counted of each batch."""

DERIVED = {
    "rows_unaccounted": "rows read, less those admitted and those quarantined",
    "rows_without_reason": "rows quarantined, less those counted by a reason",
    "quarantine_rows_missing": "rows quarantined, less those written to `quarantine`",
    "late_rows_missing": "late events, less those written to `late_events`",
    "late_share": "late events of those admitted",
    "unusable_share": "rows quarantined of those read, without duplicates and those in a hole between windows",
    "events_unaccounted": "events in state before and admitted, less those late, in state after, and retired",
    "watermark_fell_by_ms": "how far the watermark fell, in ms",
    "watermark_ahead_by_ms": "how far the watermark is ahead of what the events, or a silence, allow, in ms",
    "results_unaccounted": "`results` before, with what was added and without what was removed, less `results` after",
    "changes_unaccounted": "firings and removals (of a rerun: differences), less the rows of `result_changes` written",
    "windows_fired": "windows fired, on time and by late events",
    "late_unaccounted": "late events before, less those gone with their file and those still listed",
    "watermark_moved_ms": "how far a rerun moved the watermark, in ms",
}
"""What `windowlib.quality.figures` computes from them, for the suites."""
