"""Comparing two tables: each kind of difference is counted where it belongs."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from windowlib.demo.compare import Comparison, compare_tables

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


def table(*rows: tuple[str, int | None, int | None]) -> pa.Table:
    """Rows of user, total, and another total that is not compared."""
    users, totals, others = zip(*rows, strict=True) if rows else ((), (), ())
    at = pa.array([MIDNIGHT] * len(users), pa.timestamp("us", tz="UTC"))
    columns = {"user": pa.array(users, pa.string()), "at": at, "total": pa.array(totals, pa.int64()), "other": others}
    return pa.table(columns)


def compare(expected: pa.Table, found: pa.Table) -> Comparison:
    return compare_tables("rows", expected, found, ["user", "at"], ["total"])


TRUTH = table(("a", 1, 0), ("b", None, 0))


@pytest.mark.parametrize(
    ("found", "missing", "extra", "different"),
    [
        (table(("b", None, 7), ("a", 1, 8)), 0, 0, 0),
        (table(("a", 1, 0)), 1, 0, 0),
        (table(), 2, 0, 0),
        (table(("a", 1, 0), ("b", None, 0), ("c", 1, 0)), 0, 1, 0),
        (table(("a", 1, 0), ("a", 1, 0), ("b", None, 0)), 0, 1, 0),
        (table(("a", 2, 0), ("b", None, 0)), 0, 0, 1),
        (table(("a", None, 0), ("b", None, 0)), 0, 0, 1),
        (table(("a", 1, 0), ("b", 0, 0)), 0, 0, 1),
        (table(("a", 2, 0), ("b", 3, 0)), 0, 0, 2),
    ],
)
def test_each_difference_is_counted_once(found: pa.Table, missing: int, extra: int, different: int) -> None:
    comparison = compare(TRUTH, found)
    assert comparison == Comparison("rows", 2, len(found), missing, extra, different)
    assert comparison.differences == missing + extra + different


def test_nothing_expected_and_nothing_found_is_equal() -> None:
    assert compare(table(), table()).differences == 0
