"""What must hold of the windows in flight and of time: no event is lost, no window overstays, time never goes back."""

from __future__ import annotations

from great_expectations.core import ExpectationSuite

from expectations.bounds import Known, nought
from expectations.terms import Terms
from windowlib.watermark import MIN_WATERMARK, WatermarkPolicy


def columns(terms: Terms, figures: Known) -> dict[str, float]:
    """The numbers that this suite judges. A watermark that is not known is that of before the first event."""
    before = figures.get("watermark_in_ms", MIN_WATERMARK)
    after = figures.get("watermark_out_ms", MIN_WATERMARK)
    return {
        "events_unaccounted": figures["events_in_state_before"]
        + figures["rows_admitted"]
        - figures["rows_late"]
        - figures["events_in_state_after"]
        - figures["events_retired"],
        "windows_touching": figures["windows_touching"],
        "windows_past_cleanup": figures["windows_past_cleanup"],
        "watermark_fell_by_ms": max(0, before - after),
        "watermark_ahead_by_ms": max(0, after - max(before, _allowed(terms, figures))),
    }


def suite(terms: Terms) -> ExpectationSuite:
    """The suite `state`."""
    watermarks = ("watermark_in_ms", "watermark_candidate_ms", "watermark_out_ms")
    idle = "" if terms.idle_timeout_ms is None else " or, after a silence, `idle_timeout`"
    return ExpectationSuite(
        name="state",
        expectations=[
            nought(
                "events_unaccounted",
                "Every event that was in state or was admitted is in state, was late, or left with its window.",
                of=(
                    "events_in_state_before",
                    "rows_admitted",
                    "rows_late",
                    "events_in_state_after",
                    "events_retired",
                ),
            ),
            nought("windows_touching", "Windows in flight of a key never touch."),
            nought("windows_past_cleanup", "No window in flight is past its cleanup time."),
            nought("watermark_fell_by_ms", "The watermark never falls.", of=watermarks),
            nought(
                "watermark_ahead_by_ms",
                f"The watermark moves no further than the newest event{idle} allows.",
                of=(*watermarks, "plan_time_ms"),
            ),
        ],
    )


def _allowed(terms: Terms, figures: Known) -> int:
    """How far this batch may move time: a silence counts only where the batch admitted no event."""
    if "watermark_candidate_ms" in figures or terms.idle_timeout_ms is None:
        return figures.get("watermark_candidate_ms", MIN_WATERMARK)
    return WatermarkPolicy(terms.out_of_orderness_ms, terms.idle_timeout_ms).idle_candidate_ms(figures["plan_time_ms"])
