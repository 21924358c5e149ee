"""Statistics of a file agree with plain Python, or are left out."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.delta.footers import LONGEST_TEXT, bounds_of, log_statistics

BY_GROUPS_OF_TWO = 2


def footer(path: Path, columns: dict[str, pa.Array], **options: Any) -> pq.FileMetaData:
    pq.write_table(pa.table(columns), path, row_group_size=BY_GROUPS_OF_TWO, **options)
    return pq.read_metadata(path)


@given(st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=7))
def test_bounds_and_nulls_are_those_of_all_row_groups(
    tmp_path_factory: pytest.TempPathFactory, values: list[int | None]
) -> None:
    path = tmp_path_factory.mktemp("files") / "a.parquet"
    low, high, nulls = bounds_of(footer(path, {"a": pa.array(values, pa.int64())}))
    there = [value for value in values if value is not None]
    assert (low, high) == (({"a": min(there)}, {"a": max(there)}) if there else ({}, {}))
    assert nulls == {"a": len(values) - len(there)}


def test_a_column_without_statistics_has_none_and_the_next_one_has_its_own(tmp_path: Path) -> None:
    columns = {"bare": pa.array([1, 2, 3]), "point": pa.array([{"x": 1}] * 3), "a": pa.array([5, 4, 6])}
    assert bounds_of(footer(tmp_path / "a.parquet", columns, write_statistics=["point.x", "a"])) == (
        {"a": 4},
        {"a": 6},
        {"a": 0},
    )


def test_a_row_group_without_bounds_leaves_the_whole_column_without(tmp_path: Path) -> None:
    values = pa.array([1.0, 2.0, float("nan"), float("nan")])  # whose footer has no bounds for NaN alone
    found = footer(tmp_path / "a.parquet", {"a": values})
    assert [found.row_group(n).column(0).statistics.has_min_max for n in range(2)] == [True, False]
    assert bounds_of(found) == ({}, {}, {"a": 0})


YEAR_10000_S = 253_402_300_800


@pytest.mark.parametrize(
    "late",
    [pa.array([YEAR_10000_S * 1_000_000], pa.timestamp("us", "UTC")), pa.array([2_932_897], pa.date32())],
    ids=str,
)
def test_a_time_beyond_the_year_9999_leaves_its_column_without(tmp_path: Path, late: pa.Array) -> None:
    now = pa.array([0], pa.int32()).cast(late.type) if pa.types.is_date(late.type) else pa.array([0], late.type)
    columns = {"late": pa.concat_arrays([now, now, late]), "a": pa.array([5, 4, 6])}
    assert bounds_of(footer(tmp_path / "a.parquet", columns)) == ({"a": 4}, {"a": 6}, {"late": 0, "a": 0})


MOMENT = datetime(2026, 3, 2, 1, 2, 3, 4_005, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (3, 3, 3),
        (True, None, None),
        (1.5, None, None),
        (b"x", None, None),
        (date(2026, 3, 2), "2026-03-02", "2026-03-02"),
        ("x" * LONGEST_TEXT, "x" * LONGEST_TEXT, "x" * LONGEST_TEXT),
        ("x" * (LONGEST_TEXT + 1), "x" * LONGEST_TEXT, "x" * (LONGEST_TEXT - 1) + "y"),
        (
            "x\U0010ffff" * LONGEST_TEXT,
            "x\U0010ffff" * (LONGEST_TEXT // 2),
            "x\U0010ffff" * (LONGEST_TEXT // 2 - 1) + "y",
        ),
        ("\U0010ffff" * (LONGEST_TEXT + 1), "\U0010ffff" * LONGEST_TEXT, None),
        (MOMENT, "2026-03-02T01:02:03.004Z", "2026-03-02T01:02:03.005Z"),
        (datetime.max.replace(tzinfo=UTC), "9999-12-31T23:59:59.999Z", None),
        (MOMENT - timedelta(microseconds=5), "2026-03-02T01:02:03.004Z", "2026-03-02T01:02:03.004Z"),
    ],
)
def test_the_log_never_says_a_tighter_bound_than_the_file(value: Any, low: Any, high: Any) -> None:
    said = json.loads(log_statistics(7, {"a": value}, {"a": value}, {"a": 2}))
    assert said == {
        "numRecords": 7,
        "minValues": {} if low is None else {"a": low},
        "maxValues": {} if high is None else {"a": high},
        "nullCount": {"a": 2},
    }


@given(st.text(min_size=LONGEST_TEXT + 1))
def test_the_upper_bound_of_a_long_text_is_short_in_bytes_and_utf_16(value: str) -> None:
    high = json.loads(log_statistics(1, {}, {"a": value}, {}))["maxValues"].get("a")
    if high is None:
        assert min(value[:LONGEST_TEXT]) >= "\ud7ff"
    else:
        assert len(high) <= LONGEST_TEXT
        assert all(high.encode(order) > value.encode(order) for order in ("utf-8", "utf-16-be"))


def test_texts_are_cut_like_other_writers_do() -> None:
    said = json.loads(log_statistics(1, {"a": "x" * 40}, {"a": "x" * 32}, {}))
    assert (said["minValues"], said["maxValues"]) == ({"a": "x" * 32}, {"a": "x" * 32})


def of_another_writer(*groups: dict[str, Any]) -> Any:
    """A footer with a column `a` whose row groups have different statistics; pyarrow cannot write it."""
    columns = [
        SimpleNamespace(path_in_schema="a", num_values=2, statistics=Known(**known) if known else None)
        for known in groups
    ]
    rows = [SimpleNamespace(num_columns=1, column=lambda _, column=column: column) for column in columns]
    return SimpleNamespace(num_row_groups=len(rows), row_group=rows.__getitem__)


class Known(SimpleNamespace):
    """Known statistics of a row group: nulls, least and greatest value."""

    null_count, min, max = None, None, None

    @property
    def has_null_count(self) -> bool:
        return self.null_count is not None

    @property
    def has_min_max(self) -> bool:
        return self.max is not None


COUNTED = {"null_count": 1, "min": 3, "max": 3}


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ([COUNTED, {"null_count": 0, "min": 4, "max": 5}], ({"a": 3}, {"a": 5}, {"a": 1})),
        ([COUNTED, {"min": 4, "max": 5}], ({"a": 3}, {"a": 5}, {})),
        ([{"min": 4, "max": 5}, COUNTED], ({"a": 3}, {"a": 5}, {})),
        ([COUNTED, {}], ({}, {}, {})),
        ([COUNTED, {"null_count": 2}], ({"a": 3}, {"a": 3}, {"a": 3})),
        ([COUNTED, {"null_count": 1}], ({}, {}, {"a": 2})),
    ],
)
def test_a_bound_unknown_in_a_row_group_is_unknown_for_the_file(groups: list[dict[str, Any]], found: Any) -> None:
    assert bounds_of(of_another_writer(*groups)) == found
