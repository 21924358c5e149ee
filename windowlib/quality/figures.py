"""The numbers that the suites judge: the figures of a batch, what follows from them, and bounds that differ by batch.

What follows is differences, counts and shares, so that one built-in expectation (the greatest value of a column lies
between two bounds, both inclusive) judges each of them in a frame of one row, and reports what it saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from windowlib.model.watermark import MIN_WATERMARK, WatermarkPolicy
from windowlib.quality import baselines
from windowlib.quality.firings import windows_fired
from windowlib.quality.terms import Terms

Figures: TypeAlias = Mapping[str, int | None]  # None where there is no such number, as of a watermark at first
Known: TypeAlias = Mapping[str, int]  # the figures that are not None

BY_DESIGN = ("quarantined_duplicate", "quarantined_hole")  # quarantined, but nothing is wrong with these rows
MUST_BE_ZERO = ("firings_unfounded", "windows_miscounted", "windows_overdue", "late_rows_early", "ids_repeated")
ROWS_MUST_BE_ZERO = (
    "results_repeated",
    "results_off_window",
    "results_early",
    "results_after_cleanup",
    "results_mistimed",
)
"""Figures that are 0 in a batch in which all is right; some plans do not count them."""
RECENT = 20  # batches that show how many windows fire lately
ENOUGH_HISTORY = 5  # fewer earlier batches do not show what is usual


def is_rerun(figures: Figures) -> bool:
    """Whether the figures are those of a rerun."""
    return figures.get("rerun_from_ms") is not None


def judged_figures(terms: Terms, figures: Figures) -> dict[str, float | None]:
    """The figures, and the differences and shares that the suites judge. Raises KeyError where a figure is missing."""
    known = {name: value for name, value in figures.items() if value is not None}
    if is_rerun(figures):
        return {**figures, **_of_rerun(known)}
    return {**figures, **_of_events(known), **_of_state(terms, known), **_of_results(known)}


def parameters(terms: Terms, figures: Figures, history: Sequence[Figures]) -> dict[str, float | None]:
    """What a suite may name as `$PARAMETER`: bounds of the definition, and bounds that differ by batch.

    `history` holds, oldest first, the figures of the `RECENT` newest batches, and of those before them that were
    planned at the same hour of the week.
    """
    watermark_ms = figures["watermark_out_ms"]
    return {
        "max_late_share": terms.max_late_share,
        "max_unusable_share": terms.max_unusable_share,
        "max_duplicate_share": terms.max_duplicate_share,
        "latest_window_end_ms": None if watermark_ms is None else watermark_ms + 1,
        **usual(history[-RECENT:]),
        **baselines.bounds(figures, history),
    }


def usual(history: Sequence[Figures]) -> dict[str, float | None]:
    """How many windows a batch usually fires: from half the smallest to twice the largest number of earlier batches.

    None, which bounds nothing, where earlier batches are too few or fired nothing.

    >>> usual([{"windows_fired_on_time": n, "windows_fired_late": 0} for n in (10, 12, 8, 30, 11)])
    {'windows_fired_low': 4.0, 'windows_fired_high': 60}
    >>> usual([])
    {'windows_fired_low': 0.0, 'windows_fired_high': None}
    """
    fired = [windows_fired(past) for past in history]
    known = len(fired) >= ENOUGH_HISTORY and any(fired)
    return {
        "windows_fired_low": min(fired) / 2 if known else 0.0,
        "windows_fired_high": 2 * max(fired) if known else None,
    }


def share(part: int, whole: int) -> float:
    """`part / whole`, 0 of nothing.

    >>> share(1, 4), share(0, 0)
    (0.25, 0.0)
    """
    return part / whole if whole else 0.0


def _of_events(figures: Known) -> dict[str, float]:
    reasons = {name: rows for name, rows in figures.items() if name.startswith("quarantined_")}
    unusable = sum(rows for name, rows in reasons.items() if name not in BY_DESIGN)
    return {
        "rows_unread": _less(figures, "rows_in_files", "rows_read"),
        "rows_unaccounted": figures["rows_read"] - figures["rows_admitted"] - figures["rows_quarantined"],
        "rows_without_reason": figures["rows_quarantined"] - sum(reasons.values()),
        "quarantine_rows_missing": figures["rows_quarantined"] - figures["quarantine_rows_written"],
        "late_rows_missing": figures["rows_late"] - figures["late_rows_written"],
        "late_share": share(figures["rows_late"], figures["rows_admitted"]),
        "unusable_share": share(unusable, figures["rows_read"]),
        "duplicate_share": share(figures.get("quarantined_duplicate", 0), figures["rows_read"]),
    }


def _of_state(terms: Terms, figures: Known) -> dict[str, float]:
    """A watermark that is not known is that of before the first event."""
    before = figures.get("watermark_in_ms", MIN_WATERMARK)
    after = figures.get("watermark_out_ms", MIN_WATERMARK)
    return {
        "events_unaccounted": figures["events_in_state_before"]
        + figures["rows_admitted"]
        - figures["rows_late"]
        - figures["events_in_state_after"]
        - figures["events_retired"],
        "state_unread": _less(figures, "events_in_state_read", "events_in_state_before"),
        "state_unwritten": _less(figures, "events_in_state_after", "events_in_state_written"),
        "windows_unwritten": _less(figures, "windows_left_open", "windows_written_open"),
        "events_unfired": _less(figures, "events_due", "events_fired"),
        **{name: figures.get(name, 0) for name in MUST_BE_ZERO},
        "windows_touching": figures["windows_touching"],
        "windows_past_cleanup": figures["windows_past_cleanup"],
        "watermark_fell_by_ms": max(0, before - after),
        "watermark_ahead_by_ms": max(0, after - max(before, _allowed(terms, figures))),
        "watermark_behind_by_ms": max(0, figures.get("watermark_candidate_ms", MIN_WATERMARK) - after),
    }


def _allowed(terms: Terms, figures: Known) -> int:
    """How far this batch may move the watermark: a silence counts only where the batch admitted no event."""
    if "newest_event_ms" in figures:
        return figures["newest_event_ms"] - terms.out_of_orderness_ms - 1
    if "watermark_candidate_ms" in figures or terms.idle_timeout_ms is None:
        return figures.get("watermark_candidate_ms", MIN_WATERMARK)
    return WatermarkPolicy(terms.out_of_orderness_ms, terms.idle_timeout_ms).idle_candidate_ms(figures["plan_time_ms"])


def _less(figures: Known, one: str, other: str) -> int:
    """The difference of two figures; 0 where a plan, or a format, counts one of them not."""
    return figures[one] - figures[other] if one in figures and other in figures else 0


def _of_results(figures: Known) -> dict[str, float]:
    fired = windows_fired(figures)
    return {
        "results_unaccounted": _results_unaccounted(figures),
        "changes_unaccounted": fired + figures["windows_removed"] - figures["changes_rows_written"],
        **{name: figures.get(name, 0) for name in ROWS_MUST_BE_ZERO},
        "results_gone_null": figures.get("results_gone_null", 0),
        "windows_fired": fired,
    }


def _of_rerun(figures: Known) -> dict[str, float]:
    differing = figures["windows_added"] + figures["windows_changed"] + figures["windows_removed"]
    return {
        "results_unaccounted": _results_unaccounted(figures),
        "changes_unaccounted": differing - figures["changes_rows_written"],
        **{name: figures.get(name, 0) for name in ROWS_MUST_BE_ZERO},
        "late_unaccounted": figures["late_rows_before"] - figures["late_gone"] - figures["late_rows_after"],
        "watermark_moved_ms": figures["watermark_out_ms"] - figures["watermark_in_ms"],
    }


def _results_unaccounted(figures: Known) -> int:
    grown = figures["windows_added"] - figures["windows_removed"]
    return figures["results_rows_before"] + grown - figures["results_rows_after"]
