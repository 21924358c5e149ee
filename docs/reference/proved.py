"""The page of what is proved: the matrix of aggregates, types and hostile values that the tests run on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docs.reference.markdown import table
from tests.support.matrix.aggregates import AGGREGATES
from tests.support.matrix.columns import TOO_LARGE, WINDOWS, Column, columns, unproved
from tests.support.matrix.outcomes import kept
from tests.support.matrix.values import BATCHES, TYPES

CHECKED = BATCHES - 1  # once the windows have fired, and after the late events
INTRO = """# What is proved

Each cell of this matrix is an aggregate, of a column of one type, over hostile values, through whole pipelines before
1970: {windows}. There are three batches, the last of them late where windows are of time. What is published after the
second and the third, and after a rerun, is compared with exact arithmetic in Python, never with another engine.

What an engine computes in doubles may differ by 1e-9 of its value: sums, averages, products, variances, deviations,
covariances, correlations, medians and percentiles of floats and doubles, and of whole numbers and decimals those that
are doubles themselves (averages of whole numbers, quotients, products, variances and what follows them). Everything
else must be equal: sums of whole numbers and of decimals, with `try_sum` too, averages of decimals, extremes, counts,
sets. NaN is greater than every other number, and zeros are equal whatever their sign.

There are {cells:,} cells for each kind of window on Spark, {on_sail:,} of them on Sail. What Sail does not compute
exactly it refuses by type, when a batch is planned and before anything is read. {often}

{outcomes}

No definition reaches the cells of Sail with an evictor: windows that the operator computes are
[refused there](../guides/cluster.md#without-java). Tests alone let them pass.

This page is made from the matrix (`tests/support/matrix/columns.py`), and from what the last run of all cells came to
(`make matrix`)."""
KINDS = {
    "tumbling": "tumbling windows",
    "session": "sessions",
    "count": "windows of a number of events",
    "evictor": "tumbling windows with an evictor, for which the operator itself runs",
}
OFTEN = "`make test` runs some columns of each, in turn; `make test-all` every one. When all were run last:"


def page() -> str:
    """The page, in Markdown."""
    every = list(columns())
    trusted = [one for one in every if unproved(one) is None]
    windows = "; ".join(KINDS[name] for name in WINDOWS)
    intro = INTRO.format(
        windows=windows, cells=_cells(every), on_sail=_cells(trusted), often=OFTEN, outcomes=_outcomes()
    )
    parts = [
        intro,
        "## Aggregates",
        table(("SQL, of the column `x`", "On both engines", "On Spark alone"), _aggregates()),
    ]
    parts += ["## Values", table(("Type", "Cases"), _values())]
    parts += ["## What does not fit", TOO_LARGE_TEXT, table(("What", "SQL", "On Sail"), _too_large())]
    refused = {why.partition(" in ")[0]: one for one in every if (why := unproved(one))}
    parts += ["## What Sail refuses", table(("It says", "For"), [(why, _sql(one)) for why, one in refused.items()])]
    return "\n\n".join(parts) + "\n"


TOO_LARGE_TEXT = (
    "A number that its type cannot hold is an error: the run stops, names the expression, and publishes nothing."
)


def _cells(found: Sequence[Column]) -> int:
    return sum(len(one.type.cases) for one in found) * CHECKED


def _outcomes() -> str:
    """What the last run of all cells came to, as it was written down."""
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
