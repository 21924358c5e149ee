"""`figures.md`: what is counted of each batch, and what must hold of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.reference.markdown import table
from windowlib.plans.admission import REASONS

EXPECTATIONS = Path(__file__).parents[2] / "expectations"
HEAD = Path(__file__).with_name("figures-head.txt").read_text(encoding="utf-8")
SENTENCES = {
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


CHECKS = """
## Checks

A *critical* check that fails stops the batch before anything is committed; a *warning* is printed and kept. Each suite
is a JSON file in Great Expectations' own format: [how to read, change and add one](suites.md).
"""


def page() -> str:
    found = table(("figure", "is"), ((f"`{name}`", text) for name, text in SENTENCES.items()))
    suites = [_suite(file.stem, json.loads(file.read_text())) for file in sorted(EXPECTATIONS.glob("*.json"))]
    return "\n".join([HEAD, found, CHECKS, *suites]) + "\n"


def _suite(name: str, suite: Mapping[str, Any]) -> str:
    """A suite: what it judges, and its sentences with the figures they look at."""
    head = ("severity", "what must hold", "figures")
    rows = ((one["severity"], one["description"], _figures(one)) for one in suite["expectations"])
    return f"\n### {name}\n\nJudges {suite['meta']['windowlib']['judges']}.\n\n{table(head, rows)}"


def _figures(expectation: Mapping[str, Any]) -> str:
    ours = expectation.get("meta", {}).get("windowlib", {})
    return ", ".join(f"`{name}`" for name in ours.get("figures", ()))
