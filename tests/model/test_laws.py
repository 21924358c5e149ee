"""Laws of the core that hold for every spec and every history; and an oracle that shares no code with it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support import window_oracle as oracle
from tests.support.reference_engines import OperatorEngine, SetEngine, restart
from tests.support.strategies import (
    History,
    examples,
    histories,
    order_free_specs,
    sessions,
    slidings,
    specs,
    tumblings,
)
from windowlib.model.aggregates import Count
from windowlib.model.assigners import (
    CalendarCumulating,
    CalendarWindows,
    DynamicSession,
    Global,
    Session,
    Sliding,
    Tumbling,
)
from windowlib.model.batch import advance
from windowlib.model.elements import Element, Firing, Input, Late, Output, ProcessingTime, Timing, Watermark
from windowlib.model.operator import run
from windowlib.model.spec import WindowSpec
from windowlib.model.state import OperatorState, restore
from windowlib.model.windows import MAX_TIME_MS

FAR_MS = 1000
COUNTS = Count()


def inputs(history: History) -> list[Input]:
    """A history with both clocks: processing time follows the watermark."""
    history_inputs: list[Input] = []
    for batch, watermark_ms in history:
        history_inputs += [*batch, ProcessingTime(watermark_ms), Watermark(watermark_ms)]
    return history_inputs


def last_firings(outputs: list[Output]) -> dict[tuple[Any, Any], Any]:
    return {(o.key, o.window): o.result for o in outputs if isinstance(o, Firing)}


def late_arrivals(outputs: list[Output]) -> list[int]:
    return sorted(o.element.arrival for o in outputs if isinstance(o, Late))


def left(engine: OperatorEngine) -> list[dict[str, Any]]:
    """The state, but for the names of state windows, which depend on the order of arrival."""
    return [{**row, "state_window": None} for row in engine.rows()]


CHANGING = st.lists(st.sampled_from([0, 0, 3, 8, 40]), min_size=5, max_size=5)  # of the batches, one after the other
WITHOUT_HOLES = slidings().filter(lambda assigner: assigner.slide_ms <= assigner.size_ms)


@st.composite
def advancing(draw: st.DrawFn) -> list[list[Element]]:
    """Batches whose times move on, so that most of what is in flight has only just fired."""
    drawn, arrival = list[list[Element]](), 0
    for number in range(5):
        times = st.integers(8 * number - 12, 8 * number)
        found = draw(st.lists(st.tuples(st.sampled_from("abc"), times), max_size=4))
        drawn.append([Element(key, time, None, arrival + i) for i, (key, time) in enumerate(found)])
        arrival += len(found)
    return drawn


@examples(80, 4_000)
@given(sessions() | tumblings() | WITHOUT_HOLES, advancing(), CHANGING)
def test_another_lateness_is_as_plain_python_has_it(
    assigner: Session | Tumbling | Sliding, history: list[list[Element]], latenesses_ms: list[int]
) -> None:
    """What has gone stays late; what is past a shorter one goes before the batch, and merges with nothing."""
    state, published, late = OperatorState(), dict[tuple[Any, ...], int](), list[str]()
    batches, watermark_ms = list[list[oracle.Event]](), oracle.MIN_WATERMARK
    for elements, lateness_ms in zip(history, latenesses_ms, strict=True):
        batches.append([oracle.Event(str(e.arrival), e.key, e.timestamp_ms or 0, 1) for e in elements])
        watermark_ms = max([watermark_ms, *(event.timestamp_ms - 1 for event in batches[-1])])
        spec = WindowSpec(assigner, COUNTS, allowed_lateness_ms=lateness_ms)
        firings, missed = advance(spec, state, elements, watermark_ms)
        published |= {(firing.key, *firing.window): firing.result for firing in firings}
        late += [str(one.element.arrival) for one in missed]
    if isinstance(assigner, Session):
        assign = oracle.session(assigner.gap_ms)
    else:
        assign = lambda timestamp_ms: [(w.start_ms, w.end_ms) for w in assigner.assign(timestamp_ms)]  # noqa: E731
    right = oracle.run(batches, assign, assigner.merges, 0, latenesses_ms)
    assert {(key, *window) for key, window in state.in_flight} == right.in_flight
    assert {*late} == right.late
    assert {window: published[window] for window in right.results} == {w: n for w, (n, _) in right.results.items()}


@examples(20, 200)
@given(specs(), histories(), st.integers(0, 70))
def test_resume_the_operator_goes_on_from_saved_state_as_if_nothing_had_happened(
    spec: WindowSpec, history: History, cut: int
) -> None:
    history_inputs, whole, state = inputs(history), OperatorState(), OperatorState()
    expected = run(spec, whole, history_inputs)
    before = run(spec, state, history_inputs[:cut])
    resumed = restore(json.loads(json.dumps(state.rows())))
    resumed.watermark_ms, resumed.processing_time_ms = state.watermark_ms, state.processing_time_ms
    assert before + run(spec, resumed, history_inputs[cut:]) == expected
    assert resumed.rows() == whole.rows()


@examples(20, 200)
@given(order_free_specs(), histories())
def test_resume_the_batch_rule_goes_on_from_saved_state(spec: WindowSpec, history: History) -> None:
    whole, cut = SetEngine(spec), SetEngine(spec)
    for batch, watermark_ms in history:
        cut = restart(cut)
        assert cut.advance(batch, watermark_ms) == whole.advance(batch, watermark_ms)
        assert cut.rows() == whole.rows()


@examples(20, 200)
@given(order_free_specs(), histories(), st.randoms(use_true_random=False))
def test_order_inside_a_batch_changes_nothing(spec: WindowSpec, history: History, random: Any) -> None:
    ordered, shuffled = SetEngine(spec), SetEngine(spec)
    for batch, watermark_ms in history:
        mixed = random.sample(batch, len(batch))
        assert shuffled.advance(mixed, watermark_ms) == ordered.advance(batch, watermark_ms)
        assert shuffled.rows() == ordered.rows()


@examples(20, 200)
@given(order_free_specs(), histories())
def test_the_batch_rule_is_the_operator_fed_in_descending_order_of_window_ends(
    spec: WindowSpec, history: History
) -> None:
    together, one_by_one = SetEngine(spec), OperatorEngine(spec)

    def last_end_ms(element: Element) -> int:
        windows = spec.assigner.assign(element.timestamp_ms or 0, element.value, element.key)
        return max((window.end_ms for window in windows), default=0)

    for batch, watermark_ms in history:
        ours = together.advance(batch, watermark_ms)
        flink = one_by_one.advance(sorted(batch, key=last_end_ms, reverse=True), watermark_ms)
        in_between = last_firings(flink).keys() - last_firings(ours).keys()
        assert last_firings(ours).items() <= last_firings(flink).items()
        assert all(any(covers(k, window, *w) for w in last_firings(ours)) for k, window in in_between)
        assert late_arrivals(ours) == late_arrivals(flink)
        assert together.in_flight() == one_by_one.in_flight()
        assert left(together) == left(one_by_one)


def covers(key: Any, window: Any, other_key: Any, other: Any) -> bool:
    return key == other_key and other.start_ms <= window.start_ms and window.end_ms <= other.end_ms


@examples(20, 200)
@given(order_free_specs(), histories(max_batches=1, max_size=20), st.integers(0, 20))
def test_split_a_batch_cut_in_two_without_a_watermark_in_between_is_the_same(
    spec: WindowSpec, history: History, cut: int
) -> None:
    (batch, watermark_ms), whole, halves = history[0], SetEngine(spec), SetEngine(spec)
    expected = whole.advance(batch, watermark_ms)
    first = halves.advance(batch[:cut], halves.state.watermark_ms)
    assert first == []
    assert halves.advance(batch[cut:], watermark_ms) == expected
    assert left(halves) == left(whole)


def sessions_from_scratch(batch: list[Element], gap_ms: int | None) -> list[tuple[Any, int, int, int]]:
    """(key, start, end, count) of every session: the connected components of 'my end reaches your start'."""
    reach = [(e.key, e.timestamp_ms or 0, (e.timestamp_ms or 0) + (gap_ms or e.value["gap_ms"])) for e in batch]
    component = list(range(len(reach)))
    for i, (key, start, end) in enumerate(reach):
        for j, (other_key, other_start, other_end) in enumerate(reach):
            if key == other_key and max(start, other_start) <= min(end, other_end):
                component = [component[i] if c == component[j] else c for c in component]
    members: dict[int, list[tuple[Any, int, int]]] = defaultdict(list)
    for index, one in zip(component, reach, strict=True):
        members[index].append(one)
    return sorted((m[0][0], min(o[1] for o in m), max(o[2] for o in m), len(m)) for m in members.values())


@examples(20, 200)
@given(st.one_of(sessions(), st.just(DynamicSession("gap_ms"))), histories(max_batches=4))
def test_sessions_in_flight_are_the_sessions_computed_from_scratch(
    assigner: Session | DynamicSession, history: History
) -> None:
    spec = WindowSpec(assigner, COUNTS, allowed_lateness_ms=MAX_TIME_MS)
    gap_ms = assigner.gap_ms if isinstance(assigner, Session) else None
    for engine in (OperatorEngine(spec), SetEngine(spec)):
        seen: list[Element] = []
        for batch, watermark_ms in history:
            seen += batch
            engine.advance(batch, watermark_ms)
            in_flight = [(row["key"], *row["window"], row["accumulator"]) for row in engine.rows()]
            assert in_flight == sessions_from_scratch(seen, gap_ms)


@examples(20, 200)
@given(specs(), histories())
def test_end_when_all_time_has_passed_nothing_is_left_of_windows_that_end(spec: WindowSpec, history: History) -> None:
    state = OperatorState()
    run(spec, state, [*inputs(history), ProcessingTime(FAR_MS), Watermark(FAR_MS)])
    passed = {
        (key, window) for key, window in state.in_flight if (spec.cleanup_time_ms(window) or FAR_MS + 1) <= FAR_MS
    }
    assert passed == set()
    ends_later = Global | CalendarWindows | CalendarCumulating
    never_ends = spec.allowed_lateness_ms > FAR_MS or isinstance(spec.assigner, ends_later)
    assert never_ends or state.rows() == []


@examples(20, 200)
@given(order_free_specs().filter(lambda spec: spec.allowed_lateness_ms < FAR_MS), histories())
def test_end_the_batch_rule_leaves_nothing(spec: WindowSpec, history: History) -> None:
    engine = SetEngine(spec)
    for batch, watermark_ms in [*history, ([], 2**50)]:  # after the years of a calendar
        engine.advance(batch, watermark_ms)
    assert engine.state.keys == {}


@examples(20, 200)
@given(tumblings(), st.sampled_from([0, 5, 20]), histories())
def test_conservation_every_element_is_counted_once_or_late(assigner: Any, lateness_ms: int, history: History) -> None:
    spec = WindowSpec(assigner, COUNTS, allowed_lateness_ms=lateness_ms)
    for engine in (OperatorEngine(spec), SetEngine(spec)):
        outputs = [o for batch, wm in [*history, ([], FAR_MS)] for o in engine.advance(batch, wm)]
        counted = sum(last_firings(outputs).values())
        assert counted + len(late_arrivals(outputs)) == sum(len(batch) for batch, _ in history)


@examples(20, 200)
@given(tumblings(), histories())
def test_tumbling_counts_equal_counts_by_division(assigner: Any, history: History) -> None:
    spec = WindowSpec(assigner, COUNTS, allowed_lateness_ms=MAX_TIME_MS)
    engine, outputs = SetEngine(spec), []
    for batch, watermark_ms in [*history, ([], FAR_MS)]:
        outputs += engine.advance(batch, watermark_ms)
    size, offset = assigner.size_ms, assigner.offset_ms
    expected = Counter((e.key, (e.timestamp_ms - offset) // size) for batch, _ in history for e in batch)
    got = {(key, (w.start_ms - offset) // size): count for (key, w), count in last_firings(outputs).items()}
    assert got == dict(expected)


@examples(20, 200)
@given(order_free_specs(), histories())
def test_a_window_fires_on_time_at_most_once_and_late_only_afterwards(spec: WindowSpec, history: History) -> None:
    engine, on_time = SetEngine(spec), set()
    for batch, watermark_ms in history:
        before_ms = engine.state.watermark_ms
        for output in engine.advance(batch, watermark_ms):
            if isinstance(output, Firing):
                is_late = output.window.max_timestamp_ms <= before_ms
                assert output.timing is (Timing.LATE if is_late else Timing.ON_TIME)
                assert is_late or (output.key, output.window) not in on_time
                on_time |= set() if is_late else {(output.key, output.window)}
