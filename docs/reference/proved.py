"""`proved.md`: the matrix of aggregates, types and hostile values that the tests run on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docs.reference.markdown import table
from tests.support.matrix.aggregates import AGGREGATES
from tests.support.matrix.columns import TOO_LARGE, WINDOWS, Column, columns, unproved
from tests.support.matrix.outcomes import kept
from tests.support.matrix.values import BATCHES, TYPES

CHECKED = BATCHES - 1  # once the windows have fired, and after the late events
INTRO = """# What is proved

Each cell of this matrix computes an aggregate of a column of one type over hostile values. It runs a whole pipeline of
three batches with times before 1970. The third batch is late in time windows. The test compares the results after the
second batch, after the third, and after a rerun with exact arithmetic in Python, never with another engine. The
windows are: {windows}.

Numbers that an engine computes as doubles may differ by 1e-9 of their value:

* sums, averages, products, variances, deviations, covariances, correlations, medians and percentiles of floats and
  doubles;
* for whole numbers and decimals, results of type double, such as averages, quotients, products and variances.

Everything else must be equal: sums of whole numbers and decimals (`try_sum` too), averages of decimals, extremes,
counts and sets. NaN is greater than every other number. Zeros of both signs are equal.

There are {cells:,} cells for each kind of window on Spark, and {on_sail:,} of them on Sail. Sail refuses the others by
type, when a batch is planned and before anything is read.

{often}

{outcomes}

Definitions cannot use the Sail cells with an evictor. The operator computes such windows, and Sail
[refuses them](../guides/cluster.md#without-java). Only tests let them pass.

This page is generated from the matrix (`tests/support/matrix/columns.py`) and from the last run of all cells
(`make matrix`)."""
KINDS = {
    "tumbling": "tumbling windows",
    "session": "sessions",
    "count": "count windows",
    "evictor": "tumbling windows with an evictor, which the operator computes",
}
OFTEN = "`make test` runs a rotating part of the columns, `make test-all` runs all. The last full runs:"


def page() -> str:
    """Page in Markdown."""
    every = list(columns())
    trusted = [one for one in every if unproved(one) is None]
    windows = "; ".join(KINDS[name] for name in WINDOWS)
    intro = INTRO.format(
        windows=windows, cells=_cells(every), on_sail=_cells(trusted), often=OFTEN, outcomes=_outcomes()
    )
    parts = [
        intro,
        "## Aggregates",
        table(("SQL of the column `x`", "On both engines", "On Spark only"), _aggregates()),
    ]
    parts += ["## Values", table(("Type", "Cases"), _values())]
    parts += ["## What does not fit", TOO_LARGE_TEXT, table(("Case", "SQL", "On Sail"), _too_large())]
    refused = {why.partition(" in ")[0]: one for one in every if (why := unproved(one))}
    parts += [
        "## What Sail refuses",
        table(("Reason", "Aggregate"), [(why, _sql(one)) for why, one in refused.items()]),
    ]
    return "\n\n".join(parts) + "\n"


TOO_LARGE_TEXT = "A number that its type cannot hold stops the run. The run names the expression and publishes nothing."


def _cells(found: Sequence[Column]) -> int:
    return sum(len(one.type.cases) for one in found) * CHECKED


def _outcomes() -> str:
    """Table of the last run of all cells."""
    rows, known = [], kept()
    for engine in ("spark", "sail"):
        for window, words in KINDS.items():
            one = known.get(f"{engine}, {window}")
            outcome = (one.date, one.commit, f"{one.cells:,}", str(one.wrong)) if one else ("not yet", "", "", "")
            rows.append((engine.capitalize(), words, *outcome))
    return table(("Engine", "Windows", "Day", "Commit", "Cells compared", "Wrong"), rows)


def _aggregates() -> Iterator[tuple[str, str, str]]:
    every = list(columns())
    for aggregate in AGGREGATES:
        of = [one for one in every if one.aggregate is aggregate]
        both = [one.type.shown for one in of if unproved(one) is None]
        alone = [one.type.shown for one in of if unproved(one) is not None]
        yield f"`{aggregate.sql.format(c='x')}`", ", ".join(both), ", ".join(alone)


def _values() -> Iterator[tuple[str, str]]:
    for one in TYPES:
        yield one.shown, ", ".join(case.name for case in one.cases)


def _too_large() -> Iterator[tuple[str, str, str]]:
    for what, (sql, column, _) in TOO_LARGE.items():
        yield what, f"`{sql}`", "refused by type" if column == "wide" else "the same error"


def _sql(one: Column) -> str:
    return f"`{one.aggregate.sql.format(c='x')}` of {one.type.shown}"
