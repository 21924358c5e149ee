"""What must hold of a rerun: tables and change feed agree with what changed, and nothing late is lost or told twice."""

from __future__ import annotations

from great_expectations.core import ExpectationSuite

from expectations.bounds import Figures, Known, nought
from expectations.terms import Terms


def is_rerun(figures: Figures) -> bool:
    """Whether the figures are those of a rerun."""
    return figures.get("rerun_from_ms") is not None


def columns(figures: Known) -> dict[str, float]:
    """The numbers that this suite judges."""
    differing = figures["windows_entered"] + figures["windows_changed"] + figures["windows_withdrawn"]
    return {
        "results_unaccounted": figures["results_rows_before"]
        + figures["windows_entered"]
        - figures["windows_withdrawn"]
        - figures["results_rows_after"],
        "changes_unaccounted": differing - figures["changes_rows_written"],
        "late_unaccounted": figures["late_rows_before"] - figures["late_gone"] - figures["late_rows_after"],
        "watermark_moved_ms": figures["watermark_out_ms"] - figures["watermark_in_ms"],
    }


def suite(terms: Terms) -> ExpectationSuite:
    """The suite `rerun`."""
    return ExpectationSuite(
        name="rerun",
        expectations=[
            nought(
                "results_unaccounted",
                "`results` has grown by the windows that entered less those withdrawn.",
                of=("results_rows_before", "windows_entered", "windows_withdrawn", "results_rows_after"),
            ),
            nought(
                "changes_unaccounted",
                "`result_changes` has one row for each window that entered, changed or was withdrawn.",
                of=("windows_entered", "windows_changed", "windows_withdrawn", "changes_rows_written"),
            ),
            nought(
                "late_unaccounted",
                "No late event was lost: those that are in a window now are still listed, and say so.",
                of=("late_rows_before", "late_gone", "late_rows_after", "late_readmitted"),
            ),
            nought("windows_touching", "Windows in flight of a key never touch."),
            nought("windows_past_cleanup", "No window in flight is past its cleanup time."),
            nought("watermark_moved_ms", "A rerun does not move the watermark.", of=("watermark_out_ms",)),
        ],
    )
