"""Rows of the general plan's stream, cut into segments."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windowlib.plans.general.returned_values import FunctionFailed
from windowlib.plans.general.stream import ELEMENT, in_value, of_stream, segments_of


def test_an_element_has_the_columns_that_belong_neither_to_key_nor_stream() -> None:
    batch = pa.record_batch(
        {
            "user": ["ann", "ann", "bob"],
            "_kind": [ELEMENT] * 3,
            "_order": [1, 2, 1],
            "page": ["a", "b", "c"],
        }
    )
    found = {segment.key: list(segment.rows()) for segment in segments_of([batch], ["user"])}
    page = in_value(of_stream("page"))
    assert found == {"ann": [{page: "a"}, {page: "b"}], "bob": [{page: "c"}]}


@pytest.mark.parametrize(
    ("column", "named"), [("_r_until", "column until is"), ("_argument_0", "an argument of an aggregate is")]
)
def test_a_time_outside_python_s_range_is_named(column: str, named: str) -> None:
    late = pa.array([253_402_300_800_000_000]).cast(pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"user": ["ann"], "_kind": [ELEMENT], column: late})
    with pytest.raises(FunctionFailed, match=f"{named} a time before the year 1 or after 9999"):
        [list(segment.rows()) for segment in segments_of([batch], ["user"])]
