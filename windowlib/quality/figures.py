"""Input of the suites: the figures of a batch, figures derived from them, and bounds that differ by batch.

Derived figures are differences, counts and shares. The suites see all figures as columns of a frame with one row. So a
single built-in expectation can judge any figure: the maximum of a column lies between two inclusive bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from windowlib.model.watermark import MIN_WATERMARK, WatermarkPolicy
from windowlib.quality import baselines
from windowlib.quality.firings import windows_fired
from windowlib.quality.terms import Terms

Figures: TypeAlias = Mapping[str, int | None]  # None for a missing number, such as the watermark before the first event
KnownFigures: TypeAlias = Mapping[str, int]  # the figures that are not None

BY_DESIGN = ("quarantined_duplicate", "quarantined_hole")  # figures of quarantined rows that do not count as unusable
MUST_BE_ZERO = ("firings_unfounded", "windows_miscounted", "windows_overdue", "late_rows_early", "ids_repeated")
ROWS_MUST_BE_ZERO = (
    "results_repeated",
    "results_off_window",
    "results_early",
    "results_after_cleanup",
    "results_mistimed",
)
"""Figures that are 0 in a correct batch. Some plans do not count them."""
RECENT = 20  # newest batches, which give the usual number of fired windows
ENOUGH_HISTORY = 5  # least number of earlier batches that give bounds


def is_rerun(figures: Figures) -> bool:
    """Tests if a rerun produced the figures."""
    return figures.get("rerun_from_ms") is not None


def judged_figures(terms: Terms, figures: Figures) -> dict[str, float | None]:
    """Returns the figures of a batch with its derived figures. Raises KeyError if a figure is missing."""
    known_figures = {name: value for name, value in figures.items() if value is not None}
    if is_rerun(figures):
        return {**figures, **_rerun_figures(known_figures)}
    return {
        **figures,
        **_event_figures(known_figures),
        **_state_figures(terms, known_figures),
        **_result_figures(known_figures),
    }


def parameters(terms: Terms, figures: Figures, history: Sequence[Figures]) -> dict[str, float | None]:
    """Bounds that a suite may name as `$PARAMETER`: bounds from the definition, and bounds that differ by batch.

    `history` contains the figures of the `RECENT` newest batches, and of earlier batches planned in the same hour of
    the week, oldest first.
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
    """Usual range of fired windows: from half the smallest number to twice the largest number of earlier batches.

    The bounds are 0 and None, which bound nothing, if there are too few earlier batches or no earlier batch fired.

    >>> usual([{"windows_fired_on_time": n, "windows_fired_late": 0} for n in (10, 12, 8, 30, 11)])
    {'windows_fired_low': 4.0, 'windows_fired_high': 60}
    >>> usual([])
    {'windows_fired_low': 0.0, 'windows_fired_high': None}
    """
    fired = [windows_fired(past) for past in history]
    has_history = len(fired) >= ENOUGH_HISTORY and any(fired)
    return {
        "windows_fired_low": min(fired) / 2 if has_history else 0.0,
        "windows_fired_high": 2 * max(fired) if has_history else None,
    }


def share(part: int, whole: int) -> float:
    """`part / whole`; 0 if `whole` is 0.

    >>> share(1, 4), share(0, 0)
    (0.25, 0.0)
    """
    return part / whole if whole else 0.0


def _event_figures(figures: KnownFigures) -> dict[str, float]:
    reasons = {name: rows for name, rows in figures.items() if name.startswith("quarantined_")}
    unusable = sum(rows for name, rows in reasons.items() if name not in BY_DESIGN)
    return {
        "rows_unread": _difference(figures, "rows_in_files", "rows_read"),
        "rows_unaccounted": figures["rows_read"] - figures["rows_admitted"] - figures["rows_quarantined"],
        "rows_without_reason": figures["rows_quarantined"] - sum(reasons.values()),
        "quarantine_rows_missing": figures["rows_quarantined"] - figures["quarantine_rows_written"],
        "late_rows_missing": figures["rows_late"] - figures["late_rows_written"],
        "late_share": share(figures["rows_late"], figures["rows_admitted"]),
        "unusable_share": share(unusable, figures["rows_read"]),
        "duplicate_share": share(figures.get("quarantined_duplicate", 0), figures["rows_read"]),
    }


def _state_figures(terms: Terms, figures: KnownFigures) -> dict[str, float]:
    """Derived figures of state and watermark. A missing watermark counts as `MIN_WATERMARK`."""
    before = figures.get("watermark_in_ms", MIN_WATERMARK)
    after = figures.get("watermark_out_ms", MIN_WATERMARK)
    return {
        "events_unaccounted": figures["events_in_state_before"]
        + figures["rows_admitted"]
        - figures["rows_late"]
        - figures["events_in_state_after"]
        - figures["events_retired"],
        "state_unread": _difference(figures, "events_in_state_read", "events_in_state_before"),
        "state_unwritten": _difference(figures, "events_in_state_after", "events_in_state_written"),
        "windows_unwritten": _difference(figures, "windows_left_open", "windows_written_open"),
        "events_unfired": _difference(figures, "events_due", "events_fired"),
        **{name: figures.get(name, 0) for name in MUST_BE_ZERO},
        "windows_touching": figures["windows_touching"],
        "windows_past_cleanup": figures["windows_past_cleanup"],
        "watermark_fell_by_ms": max(0, before - after),
        "watermark_ahead_by_ms": max(0, after - max(before, _allowed_watermark_ms(terms, figures))),
        "watermark_behind_by_ms": max(0, figures.get("watermark_candidate_ms", MIN_WATERMARK) - after),
    }


def _allowed_watermark_ms(terms: Terms, figures: KnownFigures) -> int:
    """Highest allowed watermark after this batch. The idle timeout counts only if the batch admitted no event."""
    if "newest_event_ms" in figures:
        return figures["newest_event_ms"] - terms.out_of_orderness_ms - 1
    if "watermark_candidate_ms" in figures or terms.idle_timeout_ms is None:
        return figures.get("watermark_candidate_ms", MIN_WATERMARK)
    return WatermarkPolicy(terms.out_of_orderness_ms, terms.idle_timeout_ms).idle_candidate_ms(figures["plan_time_ms"])


def _difference(figures: KnownFigures, name: str, other: str) -> int:
    """Difference of two figures; 0 if a figure is missing, because the plan or source format does not count it."""
    return figures[name] - figures[other] if name in figures and other in figures else 0


def _result_figures(figures: KnownFigures) -> dict[str, float]:
    fired = windows_fired(figures)
    return {
        "results_unaccounted": _results_unaccounted(figures),
        "changes_unaccounted": fired + figures["windows_removed"] - figures["changes_rows_written"],
        **{name: figures.get(name, 0) for name in ROWS_MUST_BE_ZERO},
        "results_gone_null": figures.get("results_gone_null", 0),
        "windows_fired": fired,
    }


def _rerun_figures(figures: KnownFigures) -> dict[str, float]:
    differing = figures["windows_added"] + figures["windows_changed"] + figures["windows_removed"]
    return {
        "results_unaccounted": _results_unaccounted(figures),
        "changes_unaccounted": differing - figures["changes_rows_written"],
        **{name: figures.get(name, 0) for name in ROWS_MUST_BE_ZERO},
        "late_unaccounted": figures["late_rows_before"] - figures["late_gone"] - figures["late_rows_after"],
        "watermark_moved_ms": figures["watermark_out_ms"] - figures["watermark_in_ms"],
    }


def _results_unaccounted(figures: KnownFigures) -> int:
    grown = figures["windows_added"] - figures["windows_removed"]
    return figures["results_rows_before"] + grown - figures["results_rows_after"]
