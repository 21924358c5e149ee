"""Rows of the general plan's stream, cut into segments."""

from __future__ import annotations

import pyarrow as pa

from windowlib.plans.stream import ELEMENT, in_value, of_stream, segments_of


def test_an_element_has_the_columns_that_are_neither_its_key_nor_the_stream_s() -> None:
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
