"""`[checks.columns]` and `[checks.row_count]`: tests of results in the definition, and mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowlib.definition.define import define
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition
from windowlib.definition.toml.column_tests import ColumnTest, RowCountTest
from windowlib.model.assigners import Session

SALES = """
name = "sales"
[source]
format = "csv"
path = "incoming"
key = ["shop"]
timestamp = "at"
[source.schema]
shop = "string"
at = "timestamp"
price = "decimal(9,2)"
[watermark]
out_of_orderness = "5m"
[window]
type = "session"
gap = "30m"
[aggregates]
sales = "count(*)"
revenue = "sum(price)"
prices = "collect_list(price)"
"""


def sales(folder: Path, checks: str) -> Definition:
    (folder / "sales.toml").write_text(f"{SALES}[checks]\n{checks}")
    return load_definition(folder / "sales.toml")


def test_each_test_has_a_severity(tmp_path: Path) -> None:
    checks = """
        row_count = { min = 1, severity = "warning" }
        [checks.columns]
        revenue = { min = 0, max = 1_000.5, not_null = true, severity = { max = "info" } }
        shop = { in = ["a", "b"], matches = "[ab]", unique = false, severity = "warning" }
        """
    found = sales(tmp_path, checks).checks
    assert found.row_count_test == RowCountTest(1, None, "warning")
    assert found.column_tests == (
        ColumnTest("revenue", "min", 0, "critical"),
        ColumnTest("revenue", "max", 1000.5, "info"),
        ColumnTest("revenue", "not_null", True, "critical"),
        ColumnTest("shop", "in", ["a", "b"], "warning"),
        ColumnTest("shop", "matches", "[ab]", "warning"),
    )


def test_tests_can_be_defined_in_python() -> None:
    visits = define(
        "visits",
        source={"format": "parquet", "path": "incoming", "key": ["user"], "timestamp": "at"},
        watermark={"out_of_orderness": "5m"},
        assigner=Session(gap_ms=60_000),
        aggregates={"events": "count(*)"},
        checks={"row_count": {"min": 1}, "columns": {"events": {"min": 1, "in": (1, 2)}}},
    )
    assert visits.checks.column_tests == (
        ColumnTest("events", "min", 1, "critical"),
        ColumnTest("events", "in", [1, 2], "critical"),
    )


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("columns.revenu", "{ min = 0 }", 'there is no result column "revenu"; did you mean revenue?; columns: shop, '),
        ("columns.revenue.min", '"0"', 'must be a finite number, given "0"'),
        ("columns.revenue.max", "nan", "must be a finite number, given nan"),
        ("columns.revenue.max", "true", "must be a finite number, given true"),
        ("columns.revenue", "{ min = 3, max = 2 }", "has a min above its max, which no value meets; need min <= max"),
        (
            "columns.revenue",
            '{ severity = "info" }',
            "has no test; need one of min, max, not_null, unique, in, matches",
        ),
        ("columns.shop.severity", '"high"', 'must be "critical", "warning" or "info", or one of them by test'),
        ("columns.shop", '{ unique = true, severity = { in = "info" } }', "has a severity for in, but no test in; add"),
        ("columns.shop.in", "[]", "must be a list of strings, of numbers, or of booleans, and not be empty, given []"),
        ("columns.shop.in", '["a", 1]', "must be a list of strings, of numbers, or of booleans, and not be empty"),
        ("columns.shop.in", "[1]", "given [1], but the column is string; need values of that type"),
        ("columns.shop.min", "0", "given 0, but the column is string; need a number"),
        ("columns.revenue.matches", '"a"', 'given "a", but the column is decimal(9, 2); need a string'),
        (
            "columns.shop.matches",
            r"'\d'",
            "must be a pattern of characters, ., classes such as [A-Z0-9_], groups (a|b)",
        ),
        ("columns.shop.nullable", "true", "unknown key, given true; allowed: min, max, not_null, unique, in, matches,"),
        ("columns.shop", "true", "must be a table, given true"),
        ("row_count", "{ min = 2, max = 1 }", "has a min above its max, which no number meets; need min <= max"),
        ("row_count", '{ severity = "info" }', "has no bound; need min, max, or both"),
        ("row_count.min", "-1", "must be at least 0, given -1"),
    ],
)
def test_a_mistake_in_a_test_is_one_sentence(tmp_path: Path, key: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        sales(tmp_path, f"{key} = {value}")
    [line] = str(raised.value).splitlines()
    assert line.startswith(f"{tmp_path / 'sales.toml'}: checks.{key}: {sentence}")
