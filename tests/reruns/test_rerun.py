"""A rerun gives the outcome of its rule after any history: random data, batches, ranges and reruns."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support import rerun_oracle as oracle
from tests.support.calendar_windows import CalendarCase
from tests.support.disks import folder_of
from tests.support.drawn_pipelines import Drawn, Played, calendar_pipelines, clock, numbered, pipelines, to_ms
from tests.support.rerun_oracle import Asked, Pipeline, Standing
from tests.support.strategies import examples
from tests.support.zones import assert_local_times
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.assigners import Assigner, DynamicSession, Session
from windowlib.model.geometry import geometry_of
from windowlib.publication.readers import read_table
from windowlib.replay.batches import Event
from windowlib.reruns.previews import Preview
from windowlib.reruns.totals import Total

pytestmark = [pytest.mark.spark, pytest.mark.embedded]


def check_rerun(played: Played, asked: Asked) -> None:
    """Makes a dry run and the rerun, and checks the outcome of both."""
    pipeline = Pipeline(played.engine.assigner, played.engine.allowed_lateness_ms, played.watermark_ms)
    before = played.standing()
    before.late &= {row.place for row in played.rows()}
    expected = oracle.rerun(pipeline, before, played.rows(), asked)
    key = None if asked.key is None else (asked.key,)
    rerun = Rerun(asked.from_ms, asked.to_ms, "a test", "me", late_only=asked.late_only, key=key)
    said = played.preview(rerun)
    report = played.correct(rerun.expecting(said.preview_id))
    after = played.standing()
    assert after.results == expected.results
    assert after.in_flight == expected.in_flight
    assert after.late == expected.late
    assert [check for check in report.checks if not check.success] == []
    changes = played.changes(report.batch_id)
    assert {(c[0], *c[1:4]) for c in changes} == _different(before, expected)
    assert _said(played, said) == changes
    rows = said.summary.rows_to_write["results"] - said.summary.windows["changed"]
    assert rows == sum(c[0] == "added" for c in changes)
    if changes:
        differences = [total.difference for total in _totals(said)]
        assert differences == [new - old for new, old in zip(_sums(after), _sums(before), strict=True)]
    assert said.summary.late_readmitted == report.figures["late_readmitted"]
    if not asked.late_only:
        again = played.preview(Rerun(asked.from_ms, asked.to_ms, "again", "me"))
        assert not any(again.summary.windows.values())


def _totals(said: Preview) -> list[Total]:
    assert said.summary.results is not None
    return [said.summary.results, *(said.summary.totals[name] for name in ("events", "total"))]


def _sums(standing: Standing) -> list[int]:
    """Number of results, and the sums of their events and totals."""
    rows = [(1, *values) for values in standing.results.values()]
    return [sum(row[i] or 0 for row in rows) for i in range(3)]


def _different(before: Standing, after: Standing) -> set[tuple[Any, ...]]:
    """The changes that lead from one state to the other, and no others."""
    found = {("added", *bounds) for bounds in after.results.keys() - before.results.keys()}
    found |= {("removed", *bounds) for bounds in before.results.keys() - after.results.keys()}
    both = before.results.keys() & after.results.keys()
    return found | {("changed", *bounds) for bounds in both if before.results[bounds] != after.results[bounds]}


def _said(played: Played, said: Preview) -> set[tuple[Any, ...]]:
    """Rows of a preview, in the form of the feed."""
    folder = folder_of(played.definition) / "_previews" / said.preview_id / "difference"
    rows = set()
    for path in folder.rglob("*.parquet"):
        part = next(p.split("=")[1] for p in path.parts if p.startswith("part="))
        for r in pq.ParquetFile(path).read().to_pylist():
            bounds = to_ms(r["window_start"]), to_ms(r["window_end"])
            rows.add((part, r["key"], *bounds, r["events"], r["total"]))
    return rows


@examples(2, 25)  # of many keys, each a history of its own
@given(drawn=pipelines(), data=st.data())
def test_a_rerun_of_a_range(spark: Any, drawn: Drawn, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        played = drawn.play(Path(folder), spark)
        for _ in range(2):
            from_ms = data.draw(st.integers(-90, 70))
            check_rerun(played, Asked(from_ms, from_ms + data.draw(st.integers(1, 60))))


@pytest.mark.both
@examples(2, 25)
@given(drawn=calendar_pipelines(), data=st.data())
def test_a_rerun_of_windows_of_a_calendar(spark: Any, drawn: tuple[CalendarCase, Drawn], data: st.DataObject) -> None:
    """Late events come in again, across changes of the clock; `verify` finds no difference before and after."""
    case, pipeline = drawn
    calendar = geometry_of(case.assigner).calendar
    assert calendar is not None
    with tempfile.TemporaryDirectory() as folder:
        played = pipeline.play(Path(folder), spark)
        assert verify(played.definition, VerifyRequest(), spark, clock).differences == []
        for _ in range(2):
            from_units = data.draw(st.integers(-90, 70))
            to_units = from_units + data.draw(st.integers(1, 60))
            check_rerun(played, Asked(case.time_ms(from_units), case.time_ms(to_units, data.draw(st.integers(-1, 1)))))
        assert verify(played.definition, VerifyRequest(), spark, clock).differences == []
        if rows := read_table(played.definition, "results").to_pylist():
            assert_local_times(rows, calendar.time_zone)


@pytest.mark.long("test_rerun_cases rewrites a file in make test, and random pipelines do")
@examples(3, 25)  # of many keys, each a history of its own
@given(drawn=pipelines(), data=st.data())
def test_a_corrected_file(spark: Any, drawn: Drawn, data: st.DataObject) -> None:
    """Events are added, removed and changed."""
    with tempfile.TemporaryDirectory() as folder:
        played = drawn.play(Path(folder), spark)
        number = data.draw(st.integers(1, len(drawn.batches)))
        old = drawn.batches[number - 1]
        kept = [event for event in old if data.draw(st.booleans())]
        times = st.integers(-70 + 25 * number, -35 + 25 * number)
        event = st.tuples(st.integers(0, 11), times, st.integers(-9, 9), st.integers(1, 12))
        new = kept + numbered(number + 10, data.draw(st.lists(event, max_size=20)))
        at = [event.timestamp_ms for event in (*old, *new)]
        asked = Asked(min(at) - data.draw(st.integers(0, 9)), max(at) + 1 + data.draw(st.integers(0, 9)))
        played.write(f"{number}.parquet", new, 100 + number)
        check_rerun(played, asked)


@pytest.mark.long("random pipelines readmit late events too, in make test")
@examples(3, 25)  # of many keys, each a history of its own
@given(drawn=pipelines((0, 1, 7, 30)), data=st.data())
def test_late_events_readmitted(spark: Any, drawn: Drawn, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        played = replace(drawn, batches=drawn.batches[::-1]).play(Path(folder), spark)  # later and later
        late = played.standing().late
        windows = played.engine.assigner.assign
        places = [row for row in played.rows() if row.place in late and windows(row.time_ms, {"gap_ms": 1})]
        assume(places)
        one = data.draw(st.sampled_from(places))
        key = data.draw(st.sampled_from([None, one.key]))
        check_rerun(played, Asked(one.time_ms - data.draw(st.integers(0, 20)), one.time_ms + 9, True, key))


@pytest.mark.parametrize(
    "assigner",
    [
        pytest.param(Session(10), marks=pytest.mark.long("gaps of each event's own, in make test, are such gaps too")),
        DynamicSession("gap_ms"),
    ],
)
def test_an_event_that_only_touches_what_was_read_is_found(spark: Any, tmp_path: Path, assigner: Assigner) -> None:
    """It lies in a separate file, just before a session that begins at the edge of the first range that is read."""
    chain = [Event("a", at, 1, f"c{at}", 10) for at in range(21, 62, 8)]
    files = [[*chain, Event("b", 240, 1, "b", 10)], [Event("a", 15, 100, "late", 10)]]
    played = Drawn(assigner, 0, 0, 5, files).play(tmp_path, spark)
    assert played.standing().late == {("2.parquet", 0)}
    check_rerun(played, Asked(60, 90))
    assert played.standing().results["a", 15, 71] == (7, 106)
