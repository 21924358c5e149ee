"""What must hold of the results: the table and its change feed agree with what fired, and their number is no surprise.

A second suite, `results_rows`, looks at rows themselves: at most `SAMPLE_ROWS` of those the batch wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from great_expectations.core import ExpectationSuite
from great_expectations.expectations.core.expect_column_pair_values_a_to_be_greater_than_b import (
    ExpectColumnPairValuesAToBeGreaterThanB,
)
from great_expectations.expectations.core.expect_compound_columns_to_be_unique import ExpectCompoundColumnsToBeUnique
from great_expectations.expectations.expectation import Expectation

from expectations.bounds import CRITICAL, WARNING, Figures, Known, between, nought, parameter
from expectations.terms import Terms

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_ROWS = 1_000  # judging ten times as many takes a quarter of a second of every run
ENOUGH_HISTORY = 5  # fewer earlier batches say nothing about what is usual


def columns(figures: Known) -> dict[str, float]:
    """The numbers that this suite judges."""
    fired = figures["windows_fired_on_time"] + figures["windows_fired_late"]
    return {
        "results_unaccounted": figures["results_rows_before"]
        + figures["windows_entered"]
        - figures["windows_withdrawn"]
        - figures["results_rows_after"],
        "changes_unaccounted": fired + figures["windows_withdrawn"] - figures["changes_rows_written"],
        "windows_fired": fired,
    }


def usual(history: Sequence[Figures]) -> dict[str, float | None]:
    """How many windows a batch usually fires: from half the smallest to twice the largest number of earlier batches.

    None where there is no telling: too few batches, or none of them fired.

    >>> usual([{"windows_fired_on_time": n, "windows_fired_late": 0} for n in (10, 12, 8, 30, 11)])
    {'windows_fired_low': 4.0, 'windows_fired_high': 60}
    >>> usual([])
    {'windows_fired_low': 0.0, 'windows_fired_high': None}
    """
    fired = [(past["windows_fired_on_time"] or 0) + (past["windows_fired_late"] or 0) for past in history]
    known = len(fired) >= ENOUGH_HISTORY and any(fired)
    return {
        "windows_fired_low": min(fired) / 2 if known else 0.0,
        "windows_fired_high": 2 * max(fired) if known else None,
    }


def suite(terms: Terms) -> ExpectationSuite:
    """The suite `results`."""
    return ExpectationSuite(
        name="results",
        expectations=[
            nought(
                "results_unaccounted",
                "`results` has grown by the results that entered less those withdrawn.",
                of=("results_rows_before", "windows_entered", "windows_withdrawn", "results_rows_after"),
            ),
            nought(
                "changes_unaccounted",
                "`result_changes` has one row for each firing and for each result withdrawn.",
                of=("windows_fired_on_time", "windows_fired_late", "windows_withdrawn", "changes_rows_written"),
            ),
            between(
                "windows_fired",
                "About as many windows fired as in recent batches: from half of the fewest to twice the most.",
                parameter("windows_fired_low"),
                parameter("windows_fired_high"),
                severity=WARNING,
                of=("windows_fired_on_time", "windows_fired_late"),
            ),
        ],
    )


def rows_suite(terms: Terms) -> ExpectationSuite:
    """The suite `results_rows`, over the columns of `results` and the window's bounds in ms."""
    identity, said = [*terms.key, "window_start_ms", "window_end_ms"], "window"
    if terms.fires_often:
        identity, said = [*identity, "firing"], "firing of a window"
    if terms.by_function:
        identity.append("result_number")
    return ExpectationSuite(
        name="results_rows",
        expectations=[
            ExpectCompoundColumnsToBeUnique(
                column_list=identity,
                description=f"A key has one result per {said}.",
                severity=CRITICAL,
            ),
            ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="window_end_ms",
                column_B="window_start_ms",
                description="Every window ends after it starts.",
                severity=CRITICAL,
            ),
            *_not_early(terms),
        ],
    )


def _not_early(terms: Terms) -> list[Expectation]:
    """Where windows fire at their end only."""
    if not terms.fires_at_the_end:
        return []
    said = "No window fired before the watermark reached its last millisecond."
    return [between("window_end_ms", said, None, parameter("latest_window_end_ms"), severity=CRITICAL)]


def sample(files: Sequence[Path], rows: int = SAMPLE_ROWS) -> pd.DataFrame:
    """The first rows of some files of `results`, with `window_start_ms` and `window_end_ms`."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    table = ds.dataset([str(file) for file in files], format="parquet").head(rows)
    # The files of a run hold columns that are not of the table; readers do not see them, neither do the checks.
    table = table.drop_columns([name for name in ("window_start_ms", "window_end_ms") if name in table.column_names])
    for bound in ("window_start", "window_end"):
        milliseconds = table[bound].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
        table = table.append_column(f"{bound}_ms", milliseconds)
    frame: pd.DataFrame = table.to_pandas()
    return frame
