"""Columns about windows equal the answers of the model, for every kind of window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.strategies import examples, time_assigners
from windowlib.model.assigners import Assigner, DynamicSession, Global
from windowlib.model.geometry import geometry_of
from windowlib.plans import geometry, names
from windowlib.plans.functions import F

TIMES = range(-60, 61)
GAP_MS = 7  # of every row


def answers(assigner: Assigner, timestamp_ms: int) -> tuple[int | None, bool, int | None]:
    """Latest end, whether the time is in a hole, and start of the slice, by the model."""
    of = geometry_of(assigner)
    by_assign = assigner.assign(timestamp_ms, {"gap_ms": GAP_MS}, "a")
    end_ms = by_assign[-1].end_ms if isinstance(assigner, DynamicSession) else of.latest_end_ms(timestamp_ms)
    slice_ms = None if of.slice_ms is None else timestamp_ms - (timestamp_ms - of.offset_ms) % of.slice_ms
    return end_ms, of.has_holes is True and not by_assign, slice_ms


@pytest.mark.spark
@pytest.mark.embedded
@examples(4, 40)
@given(st.lists(time_assigners(), min_size=20, max_size=40))
def test_the_columns_equal_the_answers(spark: SparkSession, assigners: list[Assigner]) -> None:
    rows = spark.createDataFrame([(t, GAP_MS) for t in TIMES], f"`{names.TIMESTAMP_MS}` bigint, gap_ms bigint")
    columns = []
    for number, assigner in enumerate(assigners):
        latest = geometry.latest_end(assigner)
        assert latest is not None
        no_slice = geometry_of(assigner).slice_ms is None
        start = F.lit(None).cast("bigint") if no_slice else geometry.slice_start(assigner)
        asked = {"end": latest, "hole": geometry.in_hole(assigner), "slice": start}
        columns += [column.alias(f"{name}{number}") for name, column in asked.items()]
    for row in rows.select(names.TIMESTAMP_MS, *columns).collect():
        for number, assigner in enumerate(assigners):
            given_by_column = tuple(row[f"{name}{number}"] for name in ("end", "hole", "slice"))
            assert given_by_column == answers(assigner, row[names.TIMESTAMP_MS]), assigner


def test_no_column_holds_the_end_of_windows_that_never_end_or_are_unknown() -> None:
    class Unknown:
        merges = False

        def assign(self, timestamp_ms: int, value: object = None, key: object = None) -> list[object]:
            return []

    assert geometry.latest_end(Global()) is geometry.latest_end(Unknown()) is None  # type: ignore[arg-type]
