"""Changes that a preview counts and shows: ranked by numeric difference, with old and new sessions as one change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.engines.choice import dialect_of
from windowlib.plans import names
from windowlib.reruns.changes import LARGEST, OF_ALL, OF_SESSIONS, RerunChanges, changes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = "n bigint, price double, label string"
COLUMNS = f"part string, user string, window_start timestamp, window_end timestamp, {VALUES}"
Values = tuple[int | None, float | None, str | None]
OUTPUTS = ["n", "price", "label"]
START = datetime(2026, 3, 2, tzinfo=UTC)


def changes(
    spark: SparkSession, rows: Sequence[tuple[Any, ...]], *, additive: Sequence[str] = ("n",), sessions: bool = False
) -> RerunChanges:
    """The changes of rows (part, user, first and last hour, values before, values after)."""
    made = [
        (part, user, START + timedelta(hours=first), START + timedelta(hours=last), *(after or before or ()), before)
        for part, user, first, last, before, after in rows
    ]
    frame = spark.createDataFrame(made, f"{COLUMNS}, {names.BEFORE} struct<n: bigint, price: double, label: string>")
    return changes_of(frame, ["user"], OUTPUTS, additive, dialect_of(spark) if sessions else None)


def shown(spark: SparkSession, *rows: tuple[str, str, Values | None, Values | None], **more: Any) -> list[Any]:
    """Users of the shown windows, for rows (part, user, before, after)."""
    found = changes(spark, [(part, user, 0, 1, before, after) for part, user, before, after in rows], **more)
    return [row["user"] for row in found.largest]


def test_a_change_of_any_output_counts(spark: SparkSession) -> None:
    """The first output is equal everywhere. Ranked by it alone, the list was in key order."""
    small = [(CHANGED, f"a{i}", (5, 20.0, "x"), (5, 21.0, "x")) for i in range(LARGEST)]
    doubled = (CHANGED, "z", (5, 17.5, "x"), (5, 34.9, "y"))
    fewer = (CHANGED, "y", (5, 10.0, "x"), (3, 10.0, "x"))
    found = shown(spark, *small, doubled, fewer, additive=["n", "price"])
    assert found == ["y", "z", *(f"a{i}" for i in range(LARGEST - 2))]  # equal ones by key


def test_infinite_and_nan_differences_come_first(spark: SparkSession) -> None:
    rows = [
        (ADDED, "a", None, (100, 1.0, "x")),
        (REMOVED, "b", (50, 9e300, None), None),
        (CHANGED, "c", (1, math.nan, "x"), (1, 1.0, "x")),
        (CHANGED, "d", (1, None, "x"), (1, math.inf, "x")),
        (CHANGED, "e", (1, None, "x"), (1, None, "y")),
    ]
    assert shown(spark, *rows, additive=["n", "price"]) == ["c", "d", "a", "b", "e"]


def test_differences_of_counts_and_sums_rank_before_those_of_other_numbers(spark: SparkSession) -> None:
    rows = [
        (CHANGED, "a", (5, 1.0, "x"), (5, 900.0, "x")),
        (CHANGED, "b", (5000, 1.0, "x"), (5001, 1.0, "x")),
        (CHANGED, "c", (5, 1.0, "x"), (9, 1.0, "x")),
    ]
    assert shown(spark, *rows) == ["c", "b", "a"]


def test_a_session_that_grew_is_extended_and_ranks_by_its_difference(spark: SparkSession) -> None:
    """Its old bounds were once shown as removed and its new ones as added, both before every small window."""
    rows = [
        (REMOVED, "big", 0, 2, (1000, 1.0, "x"), None),
        (ADDED, "big", 0, 3, None, (1001, 1.0, "x")),
        (CHANGED, "small", 0, 1, (3, 1.0, "x"), (9, 1.0, "x")),
    ]
    found = changes(spark, rows, sessions=True)
    assert found.counts == dict.fromkeys((*OF_ALL, *OF_SESSIONS), 0) | {"extended": 1, "changed": 1}
    assert [(row["user"], row["change"]) for row in found.largest] == [("small", "changed"), ("big", "extended")]
    assert found.largest[1] == {
        "change": "extended",
        "user": "big",
        "windows_before": ["2026-03-02 00:00:00 to 2026-03-02 02:00:00"],
        "before": {"n": 1000, "price": 1.0, "label": "x"},
        "windows_after": ["2026-03-02 00:00:00 to 2026-03-02 03:00:00"],
        "after": {"n": 1001, "price": 1.0, "label": "x"},
    }


def test_sessions_that_replace_one_another_are_one_change(spark: SparkSession) -> None:
    one, two = (1, 1.0, "x"), (2, 5.0, "y")
    rows = [
        (REMOVED, "cut", 0, 3, two, None),
        (ADDED, "cut", 1, 2, None, one),
        (REMOVED, "joined", 0, 1, one, None),
        (REMOVED, "joined", 2, 3, two, None),
        (ADDED, "joined", 0, 3, None, (4, 5.0, "y")),
        (ADDED, "later", 1, 3, None, one),
        (REMOVED, "later", 0, 2, one, None),
        (REMOVED, "parted", 0, 9, (5, 5.0, "y"), None),
        (ADDED, "parted", 0, 2, None, two),
        (ADDED, "parted", 7, 9, None, one),
        (ADDED, "new", 0, 1, None, one),
        (REMOVED, "touching", 0, 1, one, None),  # no overlap: another session
        (ADDED, "touching", 1, 2, None, one),
    ]
    found = changes(spark, rows, sessions=True)
    counted = {"added": 2, "removed": 1, "shortened": 1, "moved": 1, "merged": 1, "split": 1}
    assert {kind: number for kind, number in found.counts.items() if number} == counted
    by_user = {row["user"]: row for row in found.largest if row["user"] != "touching"}
    assert {user: row["change"] for user, row in by_user.items()} == {
        "cut": "shortened",
        "joined": "merged",
        "later": "moved",
        "parted": "split",
        "new": "added",
    }
    joined, parted = by_user["joined"], by_user["parted"]
    assert (len(joined["windows_before"]), joined["before"], joined["after"]["n"]) == (2, {"n": 3}, 4)
    assert (parted["before"]["n"], parted["after"], len(parted["windows_after"])) == (5, {"n": 3}, 2)
    assert found.largest[0] == parted
