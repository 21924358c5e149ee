"""Values that the user's code may return: they are stored unchanged, or refused with a message."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windowlib import TimeWindow
from windowlib.plans.general.returned_values import FunctionFailed, as_json, failed, output_row, returned_rows, typed
from windowlib.plans.general.stream import bounds_of

WHOLE, INSTANT = pa.int64(), pa.timestamp("us", tz="UTC")
PLACE = pa.struct([("x", pa.int32()), ("name", pa.string())])


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (WHOLE, 3, 3),
        (WHOLE, None, None),
        (WHOLE, 3.0, 3),
        (WHOLE, np.int64(3), 3),
        (pa.float64(), 3, 3.0),
        (pa.float32(), math.inf, math.inf),
        (pa.decimal128(10, 2), Decimal("3.7"), Decimal("3.70")),
        (INSTANT, datetime(2026, 3, 2, 9, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 3, 2, 7, tzinfo=UTC)),
        (INSTANT, datetime(2026, 3, 2, 9), datetime(2026, 3, 2, 9, tzinfo=UTC)),
        (pa.date32(), date(2026, 3, 2), date(2026, 3, 2)),
        (PLACE, {"x": 1}, {"x": 1, "name": None}),
        (PLACE, (1, "a"), {"x": 1, "name": "a"}),
        (pa.list_(pa.int32()), range(2), [0, 1]),
        (pa.map_(pa.string(), pa.int32()), {"a": 1}, [("a", 1)]),
    ],
)
def test_values_that_fit_are_stored(kind: pa.DataType, value: Any, kept: Any) -> None:
    assert typed(pa.field("_o_x", kind), [value]).to_pylist() == [kept]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (WHOLE, 3.7),
        (WHOLE, -0.5),
        (WHOLE, Decimal("1.005")),
        (WHOLE, np.float64(3.7)),
        (WHOLE, math.nan),
        (WHOLE, 2**63),
        (WHOLE, "3"),
        (pa.float32(), 1e300),
        (INSTANT, 1772442000000),
        (INSTANT, math.nan),
        (INSTANT, date(2026, 3, 2)),
        (pa.date32(), datetime(2026, 3, 2, 9)),
        (pa.date32(), 3),
        (pa.string(), "\ud800"),
        (PLACE, {"x": 1.5}),
        (PLACE, {"x": 1, "nmae": "a"}),
        (PLACE, (1.5, "a")),
        (pa.list_(pa.int32()), [1, 1.5]),
        (pa.map_(pa.string(), pa.int32()), {"a": 1.5}),
        (pa.bool_(), "yes"),
        (pa.float64(), datetime(2026, 3, 2)),
    ],
)
def test_values_that_would_change_are_refused(kind: pa.DataType, value: Any) -> None:
    with pytest.raises(FunctionFailed, match=r"^a value of x does not fit its type "):
        typed(pa.field("_o_x", kind), [None, value])


@pytest.mark.parametrize("given", [None, 3, {"x": 1}, "abc", b"abc"])
def test_results_that_are_no_collection_of_rows_are_refused(given: Any) -> None:
    with pytest.raises(FunctionFailed, match=r"^the function.s process returned .*; return a list of rows"):
        returned_rows(given)


@pytest.mark.parametrize("row", [(1,), (1, 2, 3), []])
def test_rows_with_the_wrong_number_of_values_are_refused(row: Any) -> None:
    with pytest.raises(FunctionFailed, match=rf"^the function returned {len(row)} values, .* has a, b"):
        output_row(row, ["a", "b"])


def test_rows_with_unknown_columns_are_refused() -> None:
    with pytest.raises(FunctionFailed, match=r"the function returned the column 'c'; \[window.output\] has a, b"):
        output_row({"a": 1, "c": 2, 5: 3}, ["a", "b"])


@pytest.mark.parametrize(
    ("state", "what"),
    [
        ({"own": {5: 1}}, "the accumulator"),
        ({"own": [[{None: 1}]]}, "the accumulator"),
        ({"own": 1, "trigger": {"seen": {True: 1}}}, "the trigger's state"),
        ({"window": {"seen": {1}}}, "context.window_state"),
        ({"key_state": {"at": datetime(2026, 3, 2)}}, "context.key_state"),
        ({"own": 1, "event_timers": [[np.int64(9), [0, 10]]]}, "the bounds of windows and the times of timers"),
    ],
)
def test_state_that_json_would_change_is_refused(state: Any, what: str) -> None:
    with pytest.raises(FunctionFailed, match=rf"^{what} of key 'ann' must be JSON "):
        as_json(state, "ann")


def test_state_that_contains_itself_is_refused() -> None:
    state: dict[str, Any] = {"a": 1}
    state["own"] = state
    with pytest.raises(FunctionFailed, match="Circular"):
        as_json(state, "ann")


def test_errors_name_a_remedy() -> None:
    def rows() -> Iterator[Any]:
        yield next(iter(()))

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    with pytest.raises(RuntimeError) as raised:
        list(rows())
    assert str(failed("ann", raised.value)).startswith(
        f"code for the windows of key 'ann' failed: StopIteration: next() found no value ({__file__}, line "
    )
    assert str(failed("ann", Silent())).endswith("failed: Silent: (its text cannot be shown)")
    assert str(failed("ann", ModuleNotFoundError("No module named 'helper'"))).endswith(
        "No module named 'helper'. Import it at the top of the module, so that Spark's workers get it"
    )


@pytest.mark.parametrize("window", [TimeWindow(10, 0), TimeWindow(5, 5)])
def test_a_window_that_does_not_end_after_its_start_is_refused(window: TimeWindow) -> None:
    with pytest.raises(FunctionFailed, match=r"the assigner returned TimeWindow\(.*\); need windows that end after"):
        bounds_of(window)
