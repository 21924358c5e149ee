"""Rows by hour equal a count in plain Python, for every type of number, and in every zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.pages.counts.row_counts import NumericOutput, OutputValue, by_day, by_hour, merged
from windowlib.pages.local_hours import hours_in

AUTUMN_MS = 1_792_890_000_000  # 2026-10-25 02:00 +01:00 in Berlin, an hour after 02:00 +02:00
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York", "Pacific/Chatham"])
TIMES_MS = st.integers(AUTUMN_MS - 30 * 3_600_000, AUTUMN_MS + 30 * 3_600_000)
NUMBERS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.decimal128(38, 2), st.decimals("-1e35", "1e35", places=2)),
    (pa.decimal128(9, 4), st.decimals(-99999, 99999, places=4)),
    (pa.float64(), st.integers(-(2**40), 2**40).map(float)),  # sums without rounding
]


def hour_ms(time_ms: int, zone: str) -> int:
    """Start of the hour of the local clock, by the fields of the clock."""
    local = (EPOCH + timedelta(milliseconds=time_ms)).astimezone(ZoneInfo(zone))
    return time_ms - 60_000 * local.minute - 1_000 * local.second - local.microsecond // 1_000


def expected(values: Sequence[Any]) -> OutputValue:
    known = [value for value in values if value is not None]
    with localcontext(prec=200):
        return OutputValue(len(known), sum(known), min(known), max(known)) if known else OutputValue()


@pytest.mark.parametrize(
    ("kind", "numbers"), NUMBERS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
@given(data=st.data(), zone=ZONES)
def test_rows_by_hour_equal_a_plain_count(
    kind: pa.DataType, numbers: st.SearchStrategy[Any], data: st.DataObject, zone: str
) -> None:
    files = data.draw(st.lists(st.lists(st.tuples(TIMES_MS, st.none() | numbers), max_size=8), max_size=3))
    outputs = [NumericOutput("n", "sum"), NumericOutput("younger", "sum")]
    counts = merged(
        by_hour(
            hours_in(zone),
            np.array([time_ms for time_ms, _ in rows], np.int64),
            pa.table({"n": pa.array([number for _, number in rows], kind)}),
            outputs,
        )
        for rows in files
    )
    rows = [row for file in files for row in file]
    hours = {hour_ms(time_ms, zone) for time_ms, _ in rows}
    assert counts.keys() == hours
    for hour in hours:
        values = [number for time_ms, number in rows if hour_ms(time_ms, zone) == hour]
        assert (counts[hour].rows, [*counts[hour].values]) == (len(values), [expected(values), OutputValue()])
    for day, count in by_day(counts, ZoneInfo(zone)).items():
        of_day = [
            number
            for time_ms, number in rows
            if (EPOCH + timedelta(milliseconds=time_ms)).astimezone(ZoneInfo(zone)).date() == day
        ]
        assert (count.rows, count.values[0]) == (len(of_day), expected(of_day))


def test_a_sum_of_decimals_keeps_all_digits() -> None:
    widest = Decimal("9" * 36 + ".99")
    rows = pa.table({"n": pa.array([widest, widest], pa.decimal128(38, 2))})
    [count] = by_hour(hours_in("UTC"), np.array([1, 2]), rows, [NumericOutput("n", "sum")]).values()
    assert count.values[0].sum == Decimal("1" + "9" * 36 + ".98")
