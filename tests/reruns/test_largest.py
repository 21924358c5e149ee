"""Which windows a preview shows as the largest changes: those of any numeric output, each by its own measure."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from windowlib.plans import names
from windowlib.plans.reruns import ADDED, CHANGED, REMOVED
from windowlib.reruns.summary import LARGEST, _largest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = "n bigint, price double, label string"
COLUMNS = f"part string, user string, window_start timestamp, window_end timestamp, {VALUES}"
Values = tuple[int | None, float | None, str | None]


def shown(spark: SparkSession, *rows: tuple[str, str, Values | None, Values | None]) -> list[Any]:
    """The users of the windows that are shown, of rows (what became of it, user, before, after)."""
    at = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 2, 1, tzinfo=UTC)
    made = [(part, user, *at, *(after or before or ()), before) for part, user, before, after in rows]
    before = "n: bigint, price: double, label: string"
    frame = spark.createDataFrame(made, f"{COLUMNS}, {names.BEFORE} struct<{before}>")
    return [row["user"] for row in _largest(frame, ["user"], ["n", "price", "label"])]


def test_a_change_of_any_output_counts(spark: SparkSession) -> None:
    """Of the first output alone, which is the same everywhere, the list was in the order of keys."""
    small = [(CHANGED, f"a{i}", (5, 20.0, "x"), (5, 21.0, "x")) for i in range(LARGEST)]
    doubled = (CHANGED, "z", (5, 17.5, "x"), (5, 34.9, "y"))
    fewer = (CHANGED, "y", (5, 10.0, "x"), (3, 10.0, "x"))
    found = shown(spark, *small, doubled, fewer)
    assert found == ["y", "z", *(f"a{i}" for i in range(LARGEST - 2))]  # equal ones by key


def test_what_is_infinite_or_nan_comes_first(spark: SparkSession) -> None:
    rows = [
        (ADDED, "a", None, (100, 1.0, "x")),
        (REMOVED, "b", (50, 9e300, None), None),
        (CHANGED, "c", (1, math.nan, "x"), (1, 1.0, "x")),
        (CHANGED, "d", (1, None, "x"), (1, math.inf, "x")),
        (CHANGED, "e", (1, None, "x"), (1, None, "y")),
    ]
    assert shown(spark, *rows) == ["c", "d", "a", "b", "e"]
