"""The general plan equals the operator for every spec and every division into batches, state included."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plans.visits import Visits
from tests.support.general_engines import Fired, PlanEngine, WorkerEngine, remembered_by_operator, stored_bounds
from tests.support.strategies import AGGREGATE, ALL, examples, sessions, specs, tumblings
from windowlib.model import counting, operator
from windowlib.model.aggregates import Sum
from windowlib.model.assigners import Assigner, DynamicSession, Global, Session, Sliding, Staggered, Tumbling
from windowlib.model.elements import Element, Firing, Late, Output, ProcessingTime, Watermark
from windowlib.model.errors import InvalidSpec
from windowlib.model.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from windowlib.model.keyed import Instant, KeyRun, Result
from windowlib.model.spec import WindowSpec
from windowlib.model.state import KeyState, OperatorState, Row
from windowlib.model.timed_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    ProcessingTimeoutTrigger,
)
from windowlib.model.triggers import (
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.model.windows import TimeWindow
from windowlib.plans.general import stream, worker

Batch = tuple[list[Element], int, int, bool, int | None]
"""Elements, watermark after them, plan time, flag for compacting contents, new allowed lateness or None."""


OTHER_LATENESS = st.sampled_from([None, None, None, 0, 3, 12, 2**63 - 1])


@st.composite
def histories(draw: st.DrawFn, keys: int = 3, max_size: int = 25) -> list[Batch]:
    """Batches roughly in order of time. The last may complete the input."""
    batches: list[Batch] = []
    arrival, watermark_ms, plan_time_ms = 0, MIN_WATERMARK, -10
    for number in range(draw(st.integers(1, 5))):
        times = st.integers(-40 + 15 * number, -5 + 15 * number)
        values = st.fixed_dictionaries({"value": st.integers(-9, 9), "gap_ms": st.integers(1, 12)})
        drawn = draw(st.lists(st.tuples(st.integers(1, keys), times, values), max_size=max_size))
        elements = [Element(f"k{key}", time, value, arrival + i) for i, (key, time, value) in enumerate(drawn)]
        arrival += len(elements)
        newest_ms = max((e.timestamp_ms or 0 for e in elements), default=-40)
        watermark_ms = max(watermark_ms, newest_ms - draw(st.integers(0, 15)))
        plan_time_ms += draw(st.integers(0, 12))
        batches.append((elements, watermark_ms, plan_time_ms, draw(st.booleans()), draw(OTHER_LATENESS)))
    if draw(st.booleans()):
        batches.append(([], MAX_WATERMARK, plan_time_ms + 1, False, None))
    return batches


ASSIGNERS: Sequence[Assigner] = (
    Tumbling(10, 3), Sliding(10, 4, -1), Sliding(3, 7), Staggered(Tumbling(9)), Staggered(Sliding(4, 6)), Session(6),
    DynamicSession("gap_ms"), Global(), Global(end_of_stream=True),
)  # fmt: skip
PLAIN: Sequence[Trigger] = (
    EventTimeTrigger(), ProcessingTimeTrigger(), CountTrigger(2), ContinuousEventTimeTrigger(4),
    ContinuousProcessingTimeTrigger(5), DeltaTrigger(3, "value"), NeverTrigger(), EndOfStreamTrigger(),
)  # fmt: skip
TRIGGERS: Sequence[Trigger | None] = (
    None,
    *PLAIN,
    *map(PurgingTrigger, PLAIN),
    *(ProcessingTimeoutTrigger(of, 7) for of in PLAIN[:4]),
    ProcessingTimeoutTrigger(CountTrigger(3), 4, reset_on_element=True, clear_on_timeout=False),
)
EVICTORS: Sequence[Evictor | None] = (
    None, CountEvictor(2), CountEvictor(1, after=True), TimeEvictor(4, after=True), DeltaEvictor(4, "value"),
)  # fmt: skip
LATENESSES = (0, 7)


def allowed() -> list[WindowSpec]:
    """All combinations that a spec does not refuse."""
    found = []
    for assigner, trigger, evictor, lateness_ms in product(ASSIGNERS, TRIGGERS, EVICTORS, LATENESSES):
        for time in ("event", "processing"):
            if time == "processing" and lateness_ms:
                continue  # it has no meaning there
            try:
                found.append(WindowSpec(assigner, AGGREGATE, trigger, evictor, lateness_ms, time=time))  # type: ignore[arg-type]
            except InvalidSpec:
                continue
    return found


ALLOWED = allowed()


def compare(engine: WorkerEngine, spec: WindowSpec, batches: Sequence[Batch]) -> None:
    """Runs operator and engine. Results, late elements, holes and state must be equal after every batch."""
    reference = OperatorState()
    published: set[tuple[str, int, int]] = set()
    numbers: dict[tuple[str, int, int], int] = {}
    for elements, watermark_ms, plan_time_ms, compact, lateness_ms in batches:
        watermark_in_ms, other = reference.watermark_ms, None
        if lateness_ms is not None and spec.time == "event":
            before, spec = spec, replace(spec, allowed_lateness_ms=lateness_ms)
            operator.resume(spec, reference, before)
            other = spec
        up_to_ms = reference.late_up_to_ms
        inputs = [ProcessingTime(plan_time_ms), *elements, Watermark(watermark_ms)]
        holes = [e.arrival for e in elements if _in_hole(spec, e, plan_time_ms, watermark_in_ms, up_to_ms)]
        emitted = operator.run(spec, reference, inputs)
        times = watermark_in_ms, watermark_ms, plan_time_ms
        got = engine.advance(elements, *times, compact=compact, late_up_to_ms=up_to_ms, spec=other)
        expected = _results(spec, emitted)
        assert Counter(got.fired) == Counter(expected)
        assert sorted(got.late) == sorted(one.element.arrival for one in emitted if isinstance(one, Late))
        assert sorted(got.holes) == sorted(holes)
        assert engine.state() == remembered_by_operator(reference.rows())
        assert got.counters["n_taken"] == len(elements)
        assert got.replaced <= published
        for key, start_ms, end_ms, number in sorted(got.numbers, key=lambda firing: firing[-1]):
            window = (key, start_ms, end_ms)
            if not spec.updates_results:
                assert number > numbers.get(window, 0)
                assert spec.assigner.merges or number == numbers.get(window, 0) + 1
            numbers[window] = number
        if spec.updates_results:
            _nothing_stays_inside(spec, published - got.replaced, got.fired, watermark_in_ms, up_to_ms)
            published = (published - got.replaced) | {(f.key, f.start_ms, f.end_ms) for f in got.fired}
            assert len({(f.key, f.start_ms, f.end_ms) for f in got.fired}) == len(got.fired)
        else:
            assert not got.replaced


def _results(spec: WindowSpec, emitted: Sequence[Output]) -> list[Fired]:
    """Firings in the form of the general plan. Of several versions of a result only the last one counts."""
    fired: list[Fired] = []
    for one in emitted:
        if not isinstance(one, Firing):
            continue
        start_ms, end_ms = stored_bounds((one.window.start_ms, one.window.end_ms))
        new = Fired(one.key, start_ms, end_ms, one.result, str(one.timing))
        if spec.updates_results:
            fired = [f for f in fired if not _replaces(spec, new, f)]
        fired.append(new)
    return fired


def _replaces(spec: WindowSpec, new: Fired, old: Fired) -> bool:
    if not spec.assigner.merges:
        return new[:3] == old[:3]
    return new.key == old.key and new.start_ms <= old.start_ms and old.end_ms <= new.end_ms


def _nothing_stays_inside(spec: WindowSpec, kept: set[tuple[str, int, int]], fired: Sequence[Fired], *now: int) -> None:
    """Asserts that firing windows replace the published results inside them, unless those windows were gone."""
    for new, (key, start_ms, end_ms) in product(fired, kept):
        old = Fired(key, start_ms, end_ms, (), "")
        gone = spec.time == "processing" or spec.is_late(TimeWindow(start_ms, end_ms), *now)
        assert gone or not _replaces(spec, new, old)


def _in_hole(spec: WindowSpec, element: Element, plan_time_ms: int, *now: int) -> bool:
    assert element.timestamp_ms is not None
    time_ms = element.timestamp_ms if spec.time == "event" else plan_time_ms
    has_window = bool(spec.assigner.assign(time_ms, element.value, element.key))
    return not has_window and not spec.is_element_late(element.timestamp_ms, *now)


@examples(30, 2000)
@given(spec=st.one_of(st.sampled_from(ALLOWED), specs()), batches=histories(), rows_in=st.integers(1, 9))
def test_the_worker_equals_the_operator(spec: WindowSpec, batches: list[Batch], rows_in: int) -> None:
    compare(WorkerEngine(spec, rows_in=rows_in), spec, batches)


@examples(50, 2000)
@given(
    assigner=st.one_of(sessions(), st.just(DynamicSession("gap_ms")), tumblings(), st.just(Global())),
    trigger=st.one_of(st.builds(CountTrigger, st.integers(1, 4)), st.just(PurgingTrigger(CountTrigger(2)))),
    lateness_ms=st.sampled_from([0, 7]),
    time=st.sampled_from(["event", "event", "processing"]),
    batches=histories(keys=1, max_size=6),
)
def test_the_counting_twin_equals_the_operator(
    assigner: Assigner, trigger: Trigger, lateness_ms: int, time: Any, batches: list[Batch]
) -> None:
    """Batches have few elements of one key, so the next batch meets most windows again, touching or not."""
    spec = WindowSpec(assigner, AGGREGATE, trigger, allowed_lateness_ms=lateness_ms, time=time)
    assert counting.fits(spec)
    reference, rows = OperatorState(), list[Row]()
    for elements, watermark_ms, plan_time_ms, _, other_ms in batches:
        resumes = other_ms is not None and time == "event"
        if resumes:
            before, spec = spec, replace(spec, allowed_lateness_ms=other_ms)
            operator.resume(spec, reference, before)
        times = reference.watermark_ms, watermark_ms, plan_time_ms, reference.late_up_to_ms
        run = KeyRun(spec, "k1", Instant.of_run(*times, resumes=resumes))
        for row in json.loads(json.dumps(rows)):
            run.restore(row)
        got = list(run.advance(elements))
        emitted = operator.run(spec, reference, [ProcessingTime(plan_time_ms), *elements, Watermark(watermark_ms)])
        assert [(one.window, one.value, one.timing) for one in got if isinstance(one, Result)] == [
            (one.window, one.result, one.timing) for one in emitted if isinstance(one, Firing)
        ]
        assert [one for one in got if isinstance(one, Late)] == [one for one in emitted if isinstance(one, Late)]
        rows = run.rows()
        known = [{name: value for name, value in row.items() if name != "fired"} for row in rows]
        assert [row for row in known if row != KeyState().row("k1", TimeWindow(*row["window"]))] == reference.rows()


@pytest.mark.parametrize("purges", [False, True])
@pytest.mark.parametrize("time", ["event", "processing"])
def test_a_window_without_timers_after_a_timeout_is_retired_without_a_new_element(
    purges: bool, time: Literal["event", "processing"]
) -> None:
    of = EventTimeTrigger() if time == "event" else ProcessingTimeTrigger()
    trigger: Trigger = ProcessingTimeoutTrigger(of, 3)
    spec = WindowSpec(Tumbling(10), AGGREGATE, PurgingTrigger(trigger) if purges else trigger, time=time)
    engine, value = WorkerEngine(spec), {"value": 1, "gap_ms": 1}
    first: list[Batch] = [([Element("a", 1, value, 0)], 0, 1, False, None), ([], 0, 5, False, None)]
    second = [Element("b", 12, value, 1)]
    compare(engine, spec, [*first, (second, 8, 8, False, None), ([], 9, 9, False, None)])
    assert [row["key"] for row in engine.rows] == (["b"] if time == "event" else [])


def test_every_pair_of_choices_is_compared() -> None:
    """Every value of assigner, trigger, evictor, lateness and time meets every value of the others."""
    history = _long_history(30 if ALL else 12)
    pairs = [(spec, _pairs(spec)) for spec in ALLOWED]
    missing = set().union(*(of for _, of in pairs))
    while missing:
        spec, found = max(pairs, key=lambda one: len(missing & one[1]))  # the greedy choice needs few specs
        assert missing & found
        compare(WorkerEngine(spec, rows_in=20), spec, history)
        missing -= found


@pytest.mark.long("2160 specifications, 100 s; make check compares every pair of choices")
def test_every_allowed_spec_is_compared() -> None:
    """Every allowed combination runs once over a long history."""
    history = _long_history()
    for spec in ALLOWED:
        compare(WorkerEngine(spec), spec, history)


def _pairs(spec: WindowSpec) -> set[tuple[str, str]]:
    choices = (spec.assigner, spec.trigger, spec.evictor, spec.allowed_lateness_ms, spec.time)
    return set(combinations([f"{number} {choice!r}" for number, choice in enumerate(choices)], 2))


def test_an_accumulator_of_zero_is_stored() -> None:
    """0 is a valid accumulator of a user's aggregate, stored as JSON."""
    engine = WorkerEngine(WindowSpec(Tumbling(10), Sum("value")))
    for value, watermark_ms in ((0, 0), (3, 20)):
        elements = [Element("a", 5, {"value": value, "gap_ms": 1}, value)]
        outcome = engine.advance(elements, 0, watermark_ms, 0, compact=False)
    assert [fired.result[0] for fired in outcome.fired] == [3]


@pytest.mark.parametrize("turned", [False, True])
def test_the_longer_of_two_states_of_a_key_counts(turned: bool) -> None:
    """A table may hold two states of a key. After the next batch it holds one."""
    engine = WorkerEngine(WindowSpec(Tumbling(10), process=Visits()))
    element = Element("a", 5, {"value": 1, "gap_ms": 1}, 0)
    engine.advance([element], 0, 20, 0, compact=False)
    [row] = engine.rows
    engine.rows = [{**row, "state": json.dumps({"key_state": {"visits": visits}})} for visits in (10, 9)]
    if turned:
        engine.rows.reverse()
    outcome = engine.advance([element._replace(timestamp_ms=25)], 20, 40, 0, compact=False)
    assert [fired.result[0] for fired in outcome.fired] == [11]
    assert engine.state() == {("a",): {"visits": 11}}


class Positive:
    """A function that returns no row if the sum is below 0."""

    def process(self, contents: Any, context: Any) -> Any:
        total = sum(value["value"] for value in contents)
        if total >= 0:
            yield {"n": total}

    def clear(self, context: Any) -> None:
        pass


def test_a_firing_without_a_row_leaves_nothing_to_replace() -> None:
    """A firing without a row removes the published row once. The next firing counts as the first."""
    engine = WorkerEngine(WindowSpec(Tumbling(10), process=Positive(), allowed_lateness_ms=100))
    seen = []
    for number, value in enumerate((-1, 6, -9, 5)):
        element = Element("a", 1, {"value": value, "gap_ms": 1}, number)
        engine.advance([element], 20, 20, 0, compact=False)
        [row] = engine.rows
        seen.append([(one["window_start_ms"], one["firing"]) for one in row["fired"]])
    assert seen == [[], [(0, 1)], [], [(0, 1)]]


def test_the_last_version_in_a_run_replaces_all_that_earlier_versions_would_replace() -> None:
    """Two late elements extend a published session twice in one run. One result replaces the published one."""
    engine = WorkerEngine(WindowSpec(Session(10), AGGREGATE, allowed_lateness_ms=100))
    value = {"value": 1, "gap_ms": 1}
    engine.advance([Element("a", 0, value, 0)], -50, 20, 0, compact=False)
    grown = engine.advance([Element("a", 5, value, 1), Element("a", -3, value, 2)], 20, 20, 0, compact=False)
    assert [(fired.start_ms, fired.end_ms, fired.result[0]) for fired in grown.fired] == [(-3, 15, 3)]
    assert grown.replaced == {("a", 0, 10)}


def _long_history(in_a_batch: int = 30) -> list[Batch]:
    batches: list[Batch] = []
    arrival = 0
    for number in range(4):
        elements = []
        for i in range(in_a_batch):
            mixed = (number * 30 + i) * 7919 % 101
            value = {"value": mixed % 19 - 9, "gap_ms": 1 + mixed % 11}
            elements.append(Element(f"k{mixed % 3}", -30 + 12 * number + mixed * 13 % 37, value, arrival))
            arrival += 1
        batches.append((elements, -20 + 12 * number, -15 + 9 * number, number == 2, {1: 15, 3: 2}.get(number)))
    return [*batches, ([], 60, 40, False, None), ([], MAX_WATERMARK, 100, False, None)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers the limits, so that few elements fill several rows of contents and several record batches."""
    monkeypatch.setattr(worker, "CHUNK", 3)
    monkeypatch.setattr(stream, "ROWS_OUT", 5)


@pytest.mark.spark
@examples(2, 60)
@given(spec=st.sampled_from(ALLOWED), batches=histories(keys=20, max_size=120))
def test_the_plan_in_spark_equals_the_operator(spark: Any, spec: WindowSpec, batches: list[Batch]) -> None:
    compare(PlanEngine(spec, spark), spec, batches)
