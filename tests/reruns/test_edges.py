"""Boundaries at which one millisecond decides what is read: edges of files, source ranges and lateness."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType

from windowlib.definition.definition import load_definition
from windowlib.definition.sql.aggregates import read_aggregates
from windowlib.engines.choice import dialect_of
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Plan, SourceFile
from windowlib.model.assigners import Session
from windowlib.model.rerun import TimeRange
from windowlib.plans.admission import Admission
from windowlib.plans.reach import Bucket
from windowlib.plans.reruns import CHOSEN, chains, equal
from windowlib.plans.step import Step
from windowlib.reruns.source import KnownFile, reading
from windowlib.source.intake import Group, as_judged_by, summed_up

FILES = tuple(SourceFile(name, 1, 1, number) for number, name in enumerate("ab", 4))
GAP_MS, HOUR_MS = 10, 3_600_000
GAPS = """
name = "gaps"
[source]
format = "csv"
path = "incoming"
key = ["user"]
timestamp = "at"
schema = { user = "string", at = "timestamp", gap = "bigint" }
[watermark]
out_of_orderness = "0s"
[window]
type = "session"
gap_column = "gap"
[aggregates]
events = "count(*)"
"""


def judge(late_up_to_ms: int) -> Admission:
    """Admission for which windows are late if their last millisecond is not above `late_up_to_ms`."""
    return Admission(("k",), "t", "ms", Session(GAP_MS), late_up_to_ms)


@pytest.mark.parametrize(("late_up_to_ms", "expected"), [(108, False), (109, True), (110, True)])
def test_a_window_may_be_late_from_its_last_millisecond_on(late_up_to_ms: int, expected: bool) -> None:
    bucket = Bucket(100, 200, 200 + GAP_MS)  # the window of its first event is [100, 110)
    seen = summed_up([Group("a", 2, None, bucket, 100 + GAP_MS, newest_ms=200)], judge(late_up_to_ms))
    assert seen.may_be_late is expected
    assert as_judged_by(seen, judge(late_up_to_ms)).may_be_late is expected
    assert as_judged_by(seen, judge(-1)).may_be_late is False


@pytest.mark.parametrize(
    ("from_ms", "to_ms", "reach_ms", "expected"),
    [
        (0, 100, 0, False),
        (0, 101, 0, True),  # its first event is the last of the range
        (200, 300, 0, True),  # its last event is the first of the range
        (201, 300, 0, False),
        (205, 300, 5, True),
        (206, 300, 5, False),
    ],
)
def test_a_file_meets_a_range_by_its_first_and_its_last_event(
    from_ms: int, to_ms: int, reach_ms: int, expected: bool
) -> None:
    file = KnownFile(FILES[0], FILES[0], 2, 100, 200)
    assert file.events == TimeRange(100, 201)
    assert file.meets(TimeRange(from_ms, to_ms), reach_ms) is expected


def test_a_changed_file_has_the_events_that_it_had_and_those_that_it_has() -> None:
    changed = KnownFile(FILES[0], SourceFile("a", 2, 2, 4), 2, 100, 200, TimeRange(400, 501))
    assert changed.events == TimeRange(100, 501)
    assert [changed.meets(TimeRange(at, at + 1)) for at in (200, 201, 399, 400, 500, 501)] == [
        *(True, False, False, True, True, False)
    ]


@pytest.mark.parametrize("hour", [-100_000, 500_000])
def test_a_file_of_text_may_have_a_session_that_reaches_any_later_time(tmp_path: Path, hour: int) -> None:
    """Text files have no footer with the longest gap. The same holds before 1970."""
    (tmp_path / "gaps.toml").write_text(GAPS)
    definition = load_definition(tmp_path / "gaps.toml")
    at_ms, span = hour * HOUR_MS, TimeRange(hour * HOUR_MS + 2 * HOUR_MS, hour * HOUR_MS + 3 * HOUR_MS)
    before = KnownFile(FILES[0], FILES[0], 2, at_ms, at_ms + HOUR_MS)
    after = KnownFile(FILES[1], FILES[1], 2, at_ms + 3 * HOUR_MS, at_ms + 4 * HOUR_MS)
    assert reading(definition.source, definition.spec.assigner, [before, after], span) == [before]


def test_the_source_range_of_a_plan_ends_with_its_last_file() -> None:
    plan = Plan(1, 0, None, 3, FILES, "", "{}")
    assert (plan.to_sequence, FILES[-1].sequence) == (5, 5)


def test_reruns_are_the_same_by_preview_id_or_else_by_all_fields() -> None:
    asked = Rerun(0, 10, "a test", "ann")
    assert asked.is_same_as(Rerun(0, 10, "a test", "ann"))
    others = (None, Rerun(0, 11, "a test", "ann"), Rerun(0, 10, "a test", "ben"), asked.expecting("p1"))
    assert [asked.is_same_as(other) for other in others] == [False] * 4
    expecting = asked.expecting("p1")
    assert expecting.is_same_as(Rerun(0, 11, "for another reason", "ben", preview_id="p1"))
    assert [expecting.is_same_as(other) for other in (None, asked, asked.expecting("p2"))] == [False] * 3


@pytest.mark.spark
@pytest.mark.embedded
def test_a_chain_that_ends_where_a_range_begins_is_not_replaced(spark: SparkSession) -> None:
    """Chains and ranges are half-open. Intervals that touch are one chain."""
    of = [("a", 100, 150, False), ("a", 150, 200, False), ("b", 100, 201, False), ("c", 300, 400, False),
          ("d", 299, 400, False), ("e", 0, 50, True)]  # fmt: skip
    rows = spark.createDataFrame(of, f"key string, window_start_ms long, window_end_ms long, {CHOSEN} boolean")
    step = Step(Session(GAP_MS), ("key",), None, 0, 0, 0, 0, 1, 100, plan_time_ms=0, dialect=dialect_of(spark))

    def found(asked: TimeRange | None) -> list[tuple[str, int, int]]:
        return sorted(tuple(row) for row in chains([rows], asked, step).collect())

    assert found(TimeRange(200, 300)) == [("b", 100, 201), ("d", 299, 400)]
    assert found(TimeRange(199, 301)) == [("a", 100, 200), ("b", 100, 201), ("c", 300, 400), ("d", 299, 400)]
    assert found(None) == [("e", 0, 50)]


NAN, INF = math.nan, math.inf
SAME = [(None, None), (NAN, NAN), (INF, INF), (0.0, -0.0), (1.5, 1.5)]
NEAR = [(1e9, 1e9 + 1), (-1e-300, -1e-300 * (1 + 1e-10)), (1.0, math.nextafter(1.0, 2.0))]
APART = [(NAN, 5.0), (INF, 5.0), (-INF, INF), (NAN, INF), (INF, 1.7e308), (1.7e308, -1.7e308), (None, 0.0), (None, NAN),
         (0.0, 1e-300), (1.0, 1.00000001)]  # fmt: skip


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.parametrize("exact", [False, True])
def test_nearly_equal_doubles_are_equal_but_no_number_equals_nan_or_infinity(spark: SparkSession, exact: bool) -> None:
    pairs = [*SAME, *NEAR, *APART]
    rows = spark.createDataFrame([(n, *pair) for n, pair in enumerate(pairs)], "n int, one double, other double")
    found = rows.select("n", equal(rows["one"], rows["other"], DoubleType(), exact=exact).alias("same")).collect()
    turned = rows.select("n", equal(rows["other"], rows["one"], DoubleType(), exact=exact).alias("same")).collect()
    expected = [True] * len(SAME) + [not exact] * len(NEAR) + [False] * len(APART)
    assert [row["same"] for row in sorted(found)] == [row["same"] for row in sorted(turned)] == expected


def test_extremes_and_chosen_values_are_compared_exactly() -> None:
    formulas = {"most": "max(v)", "one": "first(v)", "at": "max_by(v, w)", "total": "sum(v)", "mean": "avg(v)",
                "mid": "median(v)", "span": "max(v) - min(v)", "n": "count(*)", "spread": "stddev(v)"}  # fmt: skip
    assert read_aggregates(formulas).exact == {"most", "one", "at", "n"}
