"""What must hold of the rows a batch read: each is admitted or quarantined with a reason, each late one is kept."""

from __future__ import annotations

from great_expectations.core import ExpectationSuite

from expectations.bounds import WARNING, Known, between, nought, share
from expectations.terms import Terms

BY_DESIGN = ("quarantined_duplicate", "quarantined_hole")  # quarantined, but nothing is wrong with these rows


def columns(figures: Known) -> dict[str, float]:
    """The numbers that this suite judges."""
    reasons = {name: rows for name, rows in figures.items() if name.startswith("quarantined_")}
    unusable = sum(rows for name, rows in reasons.items() if name not in BY_DESIGN)
    return {
        "rows_unaccounted": figures["rows_read"] - figures["rows_admitted"] - figures["rows_quarantined"],
        "rows_without_reason": figures["rows_quarantined"] - sum(reasons.values()),
        "quarantine_rows_missing": figures["rows_quarantined"] - figures["quarantine_rows_written"],
        "late_rows_missing": figures["rows_late"] - figures["late_rows_written"],
        "late_share": share(figures["rows_late"], figures["rows_admitted"]),
        "unusable_share": share(unusable, figures["rows_read"]),
    }


def suite(terms: Terms) -> ExpectationSuite:
    """The suite `events`."""
    late, unusable = terms.max_late_share, terms.max_unusable_share
    return ExpectationSuite(
        name="events",
        expectations=[
            nought(
                "rows_unaccounted",
                "Every row read was either admitted or quarantined.",
                of=("rows_read", "rows_admitted", "rows_quarantined"),
            ),
            nought("rows_without_reason", "Every quarantined row has one reason.", of=("rows_quarantined",)),
            nought(
                "quarantine_rows_missing",
                "Every quarantined row was written to `quarantine`.",
                of=("rows_quarantined", "quarantine_rows_written"),
            ),
            nought(
                "late_rows_missing",
                "Every late event was written to `late_events`.",
                of=("rows_late", "late_rows_written"),
            ),
            between(
                "late_share",
                f"At most {late:.4g} of the admitted events were late (max_late_share).",
                0,
                late,
                severity=WARNING,
                of=("rows_late", "rows_admitted"),
            ),
            between(
                "unusable_share",
                f"At most {unusable:.4g} of the rows were unusable: malformed, without key or time, from the future,"
                " with a bad gap (max_unusable_share).",
                0,
                unusable,
                severity=WARNING,
                of=("rows_quarantined", "rows_read"),
            ),
        ],
    )
