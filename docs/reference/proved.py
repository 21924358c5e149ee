"""The page of what is proved: the matrix of aggregates, types and hostile values that the tests run on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docs.reference.markdown import table
from tests.engines.matrix import TOO_LARGE, Column, columns, unproved
from tests.engines.matrix_aggregates import AGGREGATES
from tests.engines.matrix_values import BATCHES, TYPES
from tests.engines.test_matrix import WINDOWS

CHECKED = BATCHES - 1  # once the windows have fired, and after the late events
INTRO = """# What is proved

Each cell of this matrix is an aggregate, of a column of one type, over hostile values, through whole pipelines:
{windows} windows before 1970, three batches, the last of them late. What is published after the second and the third
is compared with exact arithmetic in Python, never with another engine. Sums and averages of floats and doubles may
differ by 1e-9 of their value; everything else must be equal. NaN is greater than every other number, and zeros are
equal whatever their sign.

{cells:,} cells are right on Spark, {on_sail:,} of them on Sail. What Sail does not compute exactly it refuses by type,
when a batch is planned and before anything is read.

This page is made from the matrix (`tests/engines/matrix.py`)."""


def page() -> str:
    """The page, in Markdown."""
    every = list(columns())
    trusted = [one for one in every if unproved(one) is None]
    intro = INTRO.format(windows=" and ".join(WINDOWS), cells=_cells(every), on_sail=_cells(trusted))
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
    return sum(len(one.type.cases) for one in found) * len(WINDOWS) * CHECKED


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
