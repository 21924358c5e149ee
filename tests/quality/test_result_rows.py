"""A results suite judges the numbers that are stored, by any expectation of Great Expectations that takes a frame."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.check_samples import FIGURES, HISTORY, check, definition, results_file
from windowlib.definition.definition import load_definition
from windowlib.erasure.texts import Mention
from windowlib.pages.history import outcomes_of
from windowlib.publication.key import Key
from windowlib.quality.check import CheckResult, explain, without_examples
from windowlib.quality.validations import stored_outcome
from windowlib.storage.disk import Disk

LARGE = 2**53


def outcome(folder: Path, kind: str, arguments: dict[str, Any], **columns: pa.Array) -> CheckResult:
    """Outcome of a suite with one expectation on results with these columns."""
    count = len(next(iter(columns.values())))
    table = pq.read_table(results_file(folder, [(f"u{row}", 0, 60_000) for row in range(count)]))
    for name, values in columns.items():
        table = table.append_column(name, values)
    pq.write_table(table, folder / "results.parquet")
    (folder / "rows.json").write_text(json.dumps({"expectations": [{"type": kind, "kwargs": arguments}]}))
    clicks = definition(folder, checks='results_suite = "rows.json"')
    [found] = (
        one
        for one in check(clicks, FIGURES, HISTORY, [folder / "results.parquet"])
        if one.suite == "own_results"
    )  # fmt: skip
    return found


def test_large_whole_numbers_with_a_null_among_them_are_not_rounded(tmp_path: Path) -> None:
    total = pa.array([LARGE, LARGE + 1, None])
    assert outcome(tmp_path, "expect_column_values_to_be_unique", {"column": "total"}, total=total).success
    above = {"column": "total", "max_value": LARGE}
    found = outcome(tmp_path, "expect_column_values_to_be_between", above, total=total)
    assert (found.success, found.observed) == (False, f"1 unexpected among 3, such as {LARGE + 1}")
    known = {"column": "total", "value_set": [LARGE]}
    assert not outcome(tmp_path, "expect_column_values_to_be_in_set", known, total=total).success


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("expect_column_values_to_be_between", {"column": "price", "max_value": 0.7}),
        ("expect_column_values_to_be_in_set", {"column": "price", "value_set": [0.1, 0.7]}),
        ("expect_column_max_to_be_between", {"column": "price", "min_value": 0.7, "max_value": 0.7}),
    ],
)
def test_decimals_are_compared_as_they_are_written(tmp_path: Path, kind: str, arguments: dict[str, Any]) -> None:
    price = pa.array([Decimal("0.10"), Decimal("0.70"), None], pa.decimal128(12, 2))
    assert outcome(tmp_path, kind, arguments, price=price).success


def test_decimals_with_more_digits_than_a_double_stay_apart(tmp_path: Path) -> None:
    price = pa.array([Decimal(LARGE) + Decimal("0.1"), Decimal(LARGE) + Decimal("0.2")], pa.decimal128(38, 2))
    assert outcome(tmp_path, "expect_column_values_to_be_unique", {"column": "price"}, price=price).success


def test_an_outcome_with_truth_values_of_numpy_is_kept(tmp_path: Path) -> None:
    ranges = {"quantiles": [0.5], "value_ranges": [[0, 1]]}
    arguments = {"column": "total", "quantile_ranges": ranges}
    found = outcome(tmp_path, "expect_column_quantile_values_to_be_between", arguments, total=pa.array([4, 5, 6]))
    assert (found.success, found.observed) == (False, 'a value, such as {"quantiles": [0.5], "values": [5]}')
    assert (tmp_path / "warehouse" / "clicks" / "checks" / "7.json").is_file()


OBSERVING = [
    ("expect_column_values_to_be_in_set", {"column": "page", "value_set": []}, "2 unexpected among 2"),
    ("expect_column_distinct_values_to_be_in_set", {"column": "page", "value_set": ["a"]}, "1 unexpected"),
    ("expect_column_most_common_value_to_be_in_set", {"column": "page", "value_set": ["a"]}, "a value"),
    ("expect_column_max_to_be_between", {"column": "secret", "max_value": 1}, "a value"),
    ("expect_column_mean_to_be_between", {"column": "page", "max_value": 1}, "an error"),
    ("expect_compound_columns_to_be_unique", {"column_list": ["page", "window_start_ms"]}, None),
    ("expect_table_row_count_to_equal", {"value": 1}, "2"),
]
PAGE = "two\nlines"


@pytest.mark.parametrize(("kind", "arguments", "said"), OBSERVING)
def test_values_in_check_outcomes_are_hidden_and_erased(
    tmp_path: Path, kind: str, arguments: dict[str, Any], said: str | None
) -> None:
    columns = {"page": pa.array([PAGE, PAGE]), "secret": pa.array([4711, 4711])}
    found = outcome(tmp_path, kind, arguments, **columns)
    assert not found.success
    brief = without_examples(found.observed)
    assert brief == (said or brief)
    assert not [value for value in ("two", "4711") if value in brief]
    for column, value in (("page", PAGE), ("secret", "4711")):
        mention = Mention.of(Key((column,), (value,), (columns[column].type,)))
        left = mention.without_examples(explain([found]))
        assert not mention.is_in(left), left
    file = tmp_path / "clicks.toml"
    file.write_text(file.read_text(encoding="utf-8") + '[pages]\nhide = ["page", "secret"]\n', encoding="utf-8")
    hiding, kept = load_definition(file), stored_outcome(Disk(tmp_path / "warehouse" / "clicks"), 7)
    assert kept is not None
    shown = repr(outcomes_of(hiding, kept))
    assert not [value for value in ("two", "4711") if value in shown]
