"""Spark plans give the same as Flink (recordings) and as the reference (Hypothesis), in every batch, state included.

Everything runs through real pipelines: files in, ledger, checks, commits, tables read back.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import window_oracle as oracle
from tests.support.calendar_windows import CalendarCase, calendar_cases
from tests.support.strategies import ALL, cumulatings, examples, sessions, slidings, tumblings
from tests.support.zones import assert_local_times
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.definition.toml.durations import LONGEST_MS
from windowlib.model.assigners import Assigner, DynamicSession, Session
from windowlib.model.geometry import geometry_of
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.model.windows import MIN_TIME_MS
from windowlib.plans import aligned
from windowlib.publication.readers import read_table
from windowlib.replay.batches import Event, ReferenceEngine, replay_batches
from windowlib.replay.scenarios import assigner_of
from windowlib.replay.spark_batches import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
RECORDINGS = sorted((Path(__file__).parents[1] / "conformance" / "microbatch").glob("*.json"))
OF_FLINK_SQL = {
    recording["name"]: recording
    for recording in json.loads((RECORDINGS[0].parents[1] / "flink_sql" / "cumulate.json").read_text())
}
IN_MAKE_TEST = "dynamic_session-lateness20-40keys"  # includes sessions with a fixed gap
BEGINNING = 3  # of nine batches: windows fire, stay open and are met again; some events are late
ALL_DO = pytest.mark.long("sessions, and random windows of each kind next to the reference, are in make test")


def marks(recording: str) -> list[pytest.MarkDecorator]:
    return [] if recording == IN_MAKE_TEST else [ALL_DO]


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, id=file.stem, marks=marks(file.stem)) for file in RECORDINGS],
)
def test_the_spark_engine_gives_the_same_as_flink(file: Path, spark: Any, tmp_path: Path) -> None:
    recording = json.loads(file.read_text())
    if not ALL:
        recording["batches"] = recording["batches"][:BEGINNING]

    def engine(assigner: Assigner, allowed_lateness_ms: int) -> SparkEngine:
        ooo_ms = recording["out_of_orderness_ms"]
        return SparkEngine(tmp_path, lambda: spark, assigner, allowed_lateness_ms, ooo_ms, state_partition_ms=30)

    ours = replay_batches(recording, engine)["batches"]
    for batch, got in zip(recording["batches"], ours, strict=True):
        assert got == {part: sorted(batch[part]) for part in ("results", "late", "in_flight")}


@pytest.mark.both
@pytest.mark.parametrize(
    "name", ["offset", *(pytest.param(name, marks=ALL_DO) for name in OF_FLINK_SQL if name != "offset")]
)
def test_cumulating_windows_are_those_of_flink_sql(name: str, spark: Any, tmp_path: Path) -> None:
    """Every window fires once, as no event is late; the end of the input fires the last ones."""
    recording = OF_FLINK_SQL[name]
    assigner, ooo_ms = assigner_of(recording["assigner"]), recording["out_of_orderness_ms"]
    engine = SparkEngine(tmp_path, lambda: spark, assigner, 0, ooo_ms, state_partition_ms=20_000)
    rows, watermark_ms = [], MIN_TIME_MS
    for number, batch in enumerate(recording["batches"]):
        events = [Event(*event, f"{number}-{row}") for row, event in enumerate(batch)]
        watermark_ms = max(watermark_ms, max(event.timestamp_ms for event in events) - ooo_ms - 1)
        rows += engine.advance(events, watermark_ms).results
    rows += engine.advance([], MAX_WATERMARK).results
    assert sorted(map(list, rows)) == recording["results"]


@st.composite
def batches(draw: st.DrawFn) -> list[list[Event]]:
    """Batches roughly in order of time, with enough keys for one Spark job to try many histories.

    Some keys have many events. Most have few, so that windows end between them.
    """
    drawn, keys = [], st.integers(0, 3) | st.integers(4, 60)
    for number in range(draw(st.integers(2, 4))):
        times = st.integers(-60 + 25 * number, -10 + 25 * number)
        event = st.tuples(keys, times, st.integers(-9, 9), st.integers(1, 12))
        drawn.append(draw(st.lists(event, min_size=20, max_size=60)))
    return [
        [Event(f"k{key}", time, value, f"e{number}-{row}", gap) for row, (key, time, value, gap) in enumerate(batch)]
        for number, batch in enumerate(drawn)
    ]


@dataclass(frozen=True)
class History:
    """A specification and its batches."""

    assigner: Assigner
    latenesses_ms: Sequence[int]  # one for each batch
    out_of_orderness_ms: int
    state_partition_ms: int
    batches: Sequence[Sequence[Event]]


def histories(assigners: st.SearchStrategy[Assigner]) -> st.SearchStrategy[History]:
    return st.builds(
        History,
        assigner=assigners,
        latenesses_ms=st.lists(st.sampled_from([0, 1, 7, 30, 10**12]), min_size=4, max_size=4),
        out_of_orderness_ms=st.integers(0, 12),
        state_partition_ms=st.sampled_from([5, 20, 3_600_000]),
        batches=batches(),
    )


@pytest.mark.both
@examples(2, 60)
@given(histories(st.one_of(sessions(), st.just(DynamicSession("gap_ms")), tumblings(), slidings(), cumulatings())))
def test_a_plan_equals_the_reference_state_included(spark: Any, history: History) -> None:
    assert_as_the_reference(spark, history)


def in_calendar(case: CalendarCase, history: History, beside_ms: Sequence[int]) -> History:
    """The history with windows of a calendar: its times are units around a change of the clock, and 1 ms beside."""
    units = case.unit_ms
    beside = cycle(beside_ms)
    return replace(
        history,
        assigner=case.assigner,
        latenesses_ms=[min(units * lateness_ms, LONGEST_MS) for lateness_ms in history.latenesses_ms],
        out_of_orderness_ms=units * history.out_of_orderness_ms,
        state_partition_ms=units * min(history.state_partition_ms, 20),
        batches=[
            [replace(event, timestamp_ms=case.time_ms(event.timestamp_ms, next(beside))) for event in batch]
            for batch in history.batches
        ],
    )


def calendar_histories() -> st.SearchStrategy[History]:
    beside_ms = st.lists(st.sampled_from([-1, 0, 0, 1]), min_size=1, max_size=7)
    return st.builds(in_calendar, calendar_cases(), histories(st.just(Session(1))), beside_ms)


@pytest.mark.both
@examples(3, 60)
@given(calendar_histories())
def test_windows_of_a_calendar_equal_the_reference(spark: Any, history: History) -> None:
    assert_as_the_reference(spark, history)


@examples(2, 30)
@given(histories(slidings() | cumulatings()) | calendar_histories())
def test_slices_combined_first_give_the_same_windows(spark: Any, history: History) -> None:
    """Forces the combination, which otherwise pays only for windows much longer than a batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligned, "pays_to_combine", lambda grid, fired: grid.overlap)
        assert_as_the_reference(spark, history)


def assert_as_the_reference(spark: Any, history: History) -> None:
    """Compares results, late events and windows in flight of each batch, and all tables in the end."""
    assigner, first_ms = history.assigner, history.latenesses_ms[0]
    out_of_orderness_ms = history.out_of_orderness_ms
    reference = ReferenceEngine(assigner, first_ms)
    with tempfile.TemporaryDirectory() as folder:
        plan = SparkEngine(
            Path(folder), lambda: spark, assigner, first_ms, out_of_orderness_ms, history.state_partition_ms
        )
        watermark_ms = -(2**63)
        for batch, lateness_ms in zip(history.batches, history.latenesses_ms, strict=False):
            plan.trial.definition = allowing(plan.trial.definition, lateness_ms)
            reference.spec = replace(reference.spec, allowed_lateness_ms=lateness_ms)
            newest_ms = max((e.timestamp_ms for e in batch), default=None)  # in a hole or not
            if newest_ms is not None:
                watermark_ms = max(watermark_ms, newest_ms - out_of_orderness_ms - 1)
            ours, theirs = plan.advance(batch, watermark_ms), reference.advance(batch, watermark_ms)
            assert sorted(ours.results) == sorted(theirs.results)
            assert sorted(ours.late) == sorted(theirs.late)
            assert sorted(ours.in_flight) == sorted(theirs.in_flight)
            assert _contents(plan) == _reference_contents(reference)
        if not isinstance(assigner, DynamicSession):
            assert_as_plain_python(plan, history)


def assert_as_plain_python(plan: SparkEngine, history: History) -> None:
    """Published results in the end: none twice, and none that was replaced."""
    events = [[oracle.Event(e.id, e.key, e.timestamp_ms, e.value) for e in batch] for batch in history.batches]
    assign = _session(history.assigner) if isinstance(history.assigner, Session) else _windows(history.assigner)
    merges, latenesses_ms = history.assigner.merges, history.latenesses_ms
    right = oracle.run(events, assign, merges, history.out_of_orderness_ms, latenesses_ms)
    rows = read_table(plan.trial.definition, "results").to_pylist()
    if rows and (calendar := geometry_of(history.assigner).calendar) is not None:
        assert_local_times(rows, calendar.time_zone)
    got = {(r["key"], *map(time_of, (r["window_start"], r["window_end"]))): (r["events"], r["total"]) for r in rows}
    assert len(got) == len(rows)
    assert got == right.results


def _session(assigner: Any) -> oracle.Assign:
    return oracle.session(assigner.gap_ms)


def _windows(assigner: Any) -> oracle.Assign:
    return lambda timestamp_ms: [tuple(window) for window in assigner.assign(timestamp_ms)]


def allowing(definition: Definition, lateness_ms: int) -> Definition:
    """The definition with another allowed lateness."""
    fields = {name: getattr(definition, name) for name in Definition.model_fields}
    window = definition.window.model_copy(update={"allowed_lateness_ms": lateness_ms})
    return Definition.model_construct(**{**fields, "window": window})


Contents = dict[tuple[str, int, int], tuple[Any, ...]]


def _contents(plan: SparkEngine) -> Contents:
    """(key, window) → (state window of a session, count, sum), from `open_windows`."""
    rows = plan.trial.state()
    if plan.assigner.merges:
        return {
            (r["key"], r["window_start_ms"], r["window_end_ms"]): (
                (r["state_window_start_ms"], r["state_window_end_ms"]),
                r["p0_count"],
                r["p1_sum"],
            )
            for r in rows
        }
    return _of_slices(plan, rows)


def _of_slices(plan: SparkEngine, rows: Iterable[Mapping[str, Any]]) -> Contents:
    commit = ledger_of(plan.trial.definition).state().commit
    assert commit is not None
    found: dict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        for window in plan.assigner.assign(row["state_window_start_ms"]):
            if window.max_timestamp_ms > commit.late_out_ms:
                held = found[row["key"], window.start_ms, window.end_ms]
                held[0] += row["p0_count"]
                held[1] += row["p1_sum"]
    return {window: (None, *held) for window, held in found.items()}


def _reference_contents(reference: ReferenceEngine) -> Contents:
    merges = reference.spec.assigner.merges
    return {
        (row["key"], *row["window"]): (tuple(row["state_window"]) if merges else None, *row["accumulator"])
        for row in reference.state.rows()
    }
