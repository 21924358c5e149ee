"""What users bring themselves: an assigner, a trigger, an evictor, an aggregate, a function with state. And what is
refused, and where we differ from Flink on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from windowlib.model.aggregates import Count, Max, Min, Reduce, Sum, Together
from windowlib.model.assigners import Assigner, DynamicSession, Global, Session, Tumbling
from windowlib.model.batch import advance
from windowlib.model.elements import Element, Firing, Input, Late, ProcessingTime, Timing, Watermark
from windowlib.model.errors import InvalidElement, InvalidSpec, StateMismatch, WatermarkRegression
from windowlib.model.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from windowlib.model.functions import ProcessContext
from windowlib.model.operator import run
from windowlib.model.spec import WindowSpec, sliding_count, tumbling_count
from windowlib.model.state import OperatorState, restore
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
    TriggerContext,
    TriggerResult,
    TriggerState,
)
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS, TimeWindow


def results(spec: WindowSpec, inputs: Iterable[Input]) -> list[Any]:
    return [output.result for output in run(spec, OperatorState(), inputs) if isinstance(output, Firing)]


def at(*times_ms: int) -> list[Input]:
    return [Element("a", timestamp_ms, timestamp_ms, i) for i, timestamp_ms in enumerate(times_ms)]


@dataclass(frozen=True)
class Decades:
    """Tumbling tens that know the key: b's begin at 5."""

    merges: ClassVar[bool] = False

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        return Tumbling(10, offset_ms=5 if key == "b" else 0).assign(timestamp_ms)


def test_an_assigner_of_ones_own_sees_the_key() -> None:
    state = OperatorState()
    run(WindowSpec(Decades(), Count()), state, [Element("a", 7), Element("b", 7)])
    assert state.in_flight == [("a", TimeWindow(0, 10)), ("b", TimeWindow(5, 15))]


@dataclass(frozen=True)
class EveryEvenSum:
    """Fires when the values since the window began sum to an even number, purges at 10 or more; merges sums."""

    merges: ClassVar[bool] = True
    window_kind: ClassVar[Any] = "any"

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        context.state["sum"] = context.state.get("sum", 0) + value
        if context.state["sum"] >= 10:
            return TriggerResult.PURGE
        return TriggerResult.FIRE if context.state["sum"] % 2 == 0 else TriggerResult.CONTINUE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        context.state["sum"] = sum(state["sum"] for state in merged)

    def clear(self, context: TriggerContext) -> None:
        context.state.clear()


def test_a_trigger_of_ones_own_answers_all_four_ways_and_merges_its_state() -> None:
    spec = WindowSpec(Session(10), Sum(), trigger=EveryEvenSum())
    given = [Element("a", 0, 1), Element("a", 20, 2), Element("a", 10, 3), Element("a", 12, 5), Element("a", 13, 1)]
    assert results(spec, given) == [2, 6]


@dataclass(frozen=True)
class OddOnesOut:
    """Hides odd values, and afterwards keeps only the greatest."""

    def evict_before(self, elements: Sequence[Element], window: TimeWindow) -> Sequence[Element]:
        return [element for element in elements if element.value % 2 == 0]

    def evict_after(self, elements: Sequence[Element], window: TimeWindow) -> Sequence[Element]:
        return sorted(elements, key=lambda element: element.value)[-1:]


def test_an_evictor_of_ones_own_works_before_and_after() -> None:
    spec = WindowSpec(Global(), Sum(), trigger=CountTrigger(2), evictor=OddOnesOut())
    assert results(spec, at(1, 2, 4, 8, 3, 5)) == [2, 14, 8]


@dataclass(frozen=True)
class YieldsAll:
    """Keeps everything, one after the other."""

    def evict_before(self, elements: Sequence[Element], window: TimeWindow) -> Iterator[Element]:
        yield from elements

    def evict_after(self, elements: Sequence[Element], window: TimeWindow) -> Iterator[Element]:
        yield from elements


def test_what_an_evictor_yields_is_there_for_the_function_and_afterwards() -> None:
    spec = WindowSpec(Global(), Sum(), trigger=CountTrigger(1), evictor=YieldsAll())  # type: ignore[arg-type]
    assert results(spec, at(1, 2, 4)) == [1, 3, 7]


@pytest.mark.parametrize("answer", [None, True, "FIRE"])
def test_a_trigger_that_answers_otherwise_is_named(answer: Any) -> None:
    @dataclass(frozen=True)
    class Wrong(EventTimeTrigger):
        def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
            return answer  # type: ignore[no-any-return]

    with pytest.raises(InvalidSpec, match=rf"Wrong\(\) returned {answer!r}: need a TriggerResult"):
        results(WindowSpec(Tumbling(10), Sum(), trigger=Wrong()), at(1))


def test_a_trigger_clears_each_window_that_merges() -> None:
    cleared: list[TimeWindow] = []

    class Watched(CountTrigger):
        def clear(self, context: TriggerContext) -> None:
            cleared.append(context.window)
            super().clear(context)

    merging = WindowSpec(Session(5), Count(), trigger=Watched(9))
    run_through = run(merging, OperatorState(), [*at(0, 8, 4), Watermark(20)])
    assert [*run_through] == []
    assert cleared == [TimeWindow(0, 5), TimeWindow(8, 13), TimeWindow(0, 13)]


@pytest.mark.parametrize(
    ("evictor", "kept"),
    [
        (CountEvictor(2), [6, 9]),
        (CountEvictor(9), [1, 4, 6, 9]),
        (TimeEvictor(3), [9]),
        (TimeEvictor(4), [6, 9]),
        (DeltaEvictor(5, "value"), [6, 9]),
        (DeltaEvictor(6, "value"), [4, 6, 9]),
    ],
)
def test_what_an_evictor_keeps_at_its_edge(evictor: Evictor, kept: list[int]) -> None:
    spec = WindowSpec(Tumbling(10), process=Shown(), evictor=evictor)
    given = [Element("a", time_ms, {"value": time_ms}, time_ms) for time_ms in (1, 4, 6, 9)]
    assert results(spec, [*given, Watermark(9)]) == [kept]


def test_time_and_difference_count_from_the_newest_and_the_last() -> None:
    given = [Element("a", time_ms, {"value": time_ms}, i) for i, time_ms in enumerate((9, 1, 5))]
    newest = WindowSpec(Tumbling(10), process=Shown(), evictor=TimeEvictor(5))
    last = WindowSpec(Tumbling(10), process=Shown(), evictor=DeltaEvictor(3, "value", absolute=True))
    assert results(newest, [*given, Watermark(9)]) == [[9, 5]]
    assert results(last, [*given, Watermark(9)]) == [[5]]


class Shown:
    """The values of the column ``value``, in order."""

    def process(self, contents: Any, context: ProcessContext) -> Iterable[Any]:
        return [[value["value"] for value in contents]]

    def clear(self, context: ProcessContext) -> None:
        """Nothing to forget."""


class Concatenate:
    """An aggregate for which order matters; its accumulator is a list."""

    order_free: ClassVar[bool] = False

    def create_accumulator(self) -> list[str]:
        return []

    def add(self, accumulator: list[str], value: Any) -> list[str]:
        return [*accumulator, str(value)]

    def merge(self, a: list[str], b: list[str]) -> list[str]:
        return a + b

    def get_result(self, accumulator: list[str]) -> str:
        return "".join(accumulator)


def test_an_aggregate_of_ones_own_merges_the_earlier_state_window_first() -> None:
    spec = WindowSpec(Session(2), Concatenate())
    assert results(spec, [*at(4, 0, 2), Watermark(9)]) == ["042"]
    with pytest.raises(InvalidSpec, match="depend on the order of elements"):
        advance(spec, OperatorState(), [], 0)


class Numbered:
    """Numbers the firings of each window and of each key."""

    def process(self, contents: Any, context: ProcessContext) -> Iterable[Any]:
        for state in (context.window_state, context.key_state):
            state["firings"] = state.get("firings", 0) + 1
        yield contents, context.window_state["firings"], context.key_state["firings"]

    def clear(self, context: ProcessContext) -> None:
        context.key_state["cleared"] = context.key_state.get("cleared", 0) + 1


def test_a_function_keeps_state_per_window_and_per_key_through_a_restart() -> None:
    spec = WindowSpec(Tumbling(10), Sum(), process=Numbered(), allowed_lateness_ms=5)
    state = OperatorState()
    first = run(spec, state, [*at(1, 11), Watermark(9)])
    resumed = restore(json.loads(json.dumps(state.rows())))
    second = run(spec, resumed, [Watermark(9), *at(2), Watermark(30)])
    assert [o.result for o in [*first, *second] if isinstance(o, Firing)] == [(1, 1, 1), (3, 2, 2), (11, 1, 3)]
    assert resumed.rows() == [{"format": 1, "key": "a", "key_state": {"firings": 3, "cleared": 2}}]


def test_windows_that_merge_have_no_state_per_window() -> None:
    with pytest.raises(InvalidSpec, match="use key_state"):
        results(WindowSpec(Session(10), process=Numbered()), [*at(1), Watermark(99)])


class Values:
    """All values of the window, as they are."""

    def process(self, contents: Any, context: ProcessContext) -> Iterable[Any]:
        return [(context.key, context.window.end_ms, context.watermark_ms, contents)]

    def clear(self, context: ProcessContext) -> None:
        """Nothing to forget."""


def test_a_function_alone_sees_all_values_in_arrival_order_whichever_session_they_came_by() -> None:
    spec = WindowSpec(Session(10), process=Values())
    assert results(spec, [*at(20, 0, 21, 10), Watermark(30)]) == [("a", 31, 30, [20, 0, 21, 10])]


def test_aggregate_then_process_with_an_evictor_folds_what_stays() -> None:
    spec = WindowSpec(Tumbling(10), Sum(), process=Values(), evictor=CountEvictor(2))
    assert results(spec, [*at(1, 2, 3), Watermark(9)]) == [("a", 10, 9, 5)]


def test_unkeyed_elements_share_the_key_none() -> None:
    spec = WindowSpec(Tumbling(10), Together((Min(), Max(), Reduce(lambda a, b: a + b))))
    assert results(spec, [Element(None, 1, 4), Element(None, 2, 6), Watermark(9)]) == [(4, 6, 10)]


def test_count_windows_are_built_from_global_windows() -> None:
    assert results(tumbling_count(3, Sum()), at(1, 2, 3, 4, 5, 6, 7)) == [6, 15]
    assert results(sliding_count(3, 2, Sum()), at(1, 2, 3, 4, 5, 6)) == [3, 9, 15]


def test_timing_distinguishes_early_on_time_and_late_firings() -> None:
    spec = WindowSpec(Tumbling(10), Count(), trigger=ContinuousEventTimeTrigger(4), allowed_lateness_ms=9)
    outputs = run(spec, OperatorState(), [*at(1), Watermark(9), *at(2)])
    timings = [output.timing for output in outputs if isinstance(output, Firing)]
    assert timings == [Timing.EARLY, Timing.EARLY, Timing.ON_TIME, Timing.LATE]
    assert {output.timestamp_ms for output in outputs if isinstance(output, Firing)} == {9}


@pytest.mark.parametrize(
    ("assigner", "trigger"),
    [
        (Session(5), DeltaTrigger(1, "value")),
        (Session(5), PurgingTrigger(DeltaTrigger(1, "value"))),
        (Session(5), NeverTrigger()),
        (DynamicSession("gap"), EndOfStreamTrigger()),
        (Session(5), ProcessingTimeoutTrigger(CountTrigger(2), 10)),
        (Tumbling(5), NeverTrigger()),
        (Tumbling(5), PurgingTrigger(EndOfStreamTrigger())),
        (Global(), EventTimeTrigger()),
        (Global(), PurgingTrigger(ProcessingTimeTrigger())),
    ],
)
def test_a_trigger_that_does_not_fit_the_windows_is_refused(assigner: Assigner, trigger: Trigger) -> None:
    with pytest.raises(InvalidSpec, match="need a trigger"):
        WindowSpec(assigner, Count(), trigger=trigger)


@pytest.mark.parametrize(
    "given",
    [{"aggregate": None}, {"aggregate": Count(), "allowed_lateness_ms": -1}, {"aggregate": Count(), "time": "wall"}],
)
def test_a_spec_that_contradicts_itself_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match=r": need "):
        WindowSpec(Tumbling(5), **given)


@pytest.mark.parametrize("trigger", [ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger])
def test_an_interval_must_be_positive(trigger: Any) -> None:
    with pytest.raises(InvalidSpec, match="need interval_ms > 0"):
        trigger(0)


def test_a_key_of_several_parts_survives_a_restart() -> None:
    state, spec = OperatorState(), WindowSpec(Tumbling(10), Count())
    run(spec, state, [Element(("a", 1), 5), Element(("a", 2), 5)])
    resumed = restore(json.loads(json.dumps(state.rows())))
    assert resumed.in_flight == state.in_flight == [(("a", 1), TimeWindow(0, 10)), (("a", 2), TimeWindow(0, 10))]


def test_state_of_another_format_is_refused() -> None:
    with pytest.raises(StateMismatch, match="the state has format 2, need 1"):
        restore([{"format": 2, "key": "a", "key_state": {}}])


def test_a_run_does_not_move_time_backwards_but_the_operator_does_as_flink_does() -> None:
    state = OperatorState(watermark_ms=20)
    with pytest.raises(WatermarkRegression, match="the watermark would fall to 19: need 20 or later"):
        advance(WindowSpec(Tumbling(10), Count()), state, [], 19)
    [late] = run(WindowSpec(Tumbling(10), Count()), state, at(5))
    assert isinstance(late, Late)
    assert run(WindowSpec(Tumbling(10), Count()), state, [Watermark(5), *at(5)]) == []


def test_without_a_timestamp_aligned_windows_refuse_and_processing_time_does_not_care() -> None:
    untimed = Element("a", None, 1)
    with pytest.raises(InvalidElement, match="the element has no timestamp"):
        results(WindowSpec(Tumbling(10), Sum()), [untimed])
    spec = WindowSpec(Tumbling(10), Sum(), time="processing")
    assert results(spec, [ProcessingTime(3), untimed, ProcessingTime(9)]) == [1]
    assert results(WindowSpec(Global(), Sum(), trigger=CountTrigger(1)), [untimed]) == [1]


def test_an_allowance_without_end_keeps_windows_for_ever_and_sets_no_timer() -> None:
    state = OperatorState()
    spec = WindowSpec(Session(10), Count(), allowed_lateness_ms=MAX_TIME_MS)
    fired = run(spec, state, [*at(0), Watermark(10**15), *at(9)])
    assert [(f.window.end_ms, f.result, f.timing.value) for f in fired if isinstance(f, Firing)] == [
        (10, 1, "on_time"),
        (19, 2, "late"),
    ]
    assert state.in_flight == [("a", TimeWindow(0, 19))]
    assert state.rows()[0]["event_timers"] == []


def test_the_ends_of_time() -> None:
    spec = WindowSpec(Tumbling(10), Count())
    assert run(spec, OperatorState(), [Watermark(MIN_TIME_MS), *at(MIN_TIME_MS + 100)]) == []
    [fired, late] = run(spec, OperatorState(), [*at(5), Watermark(MAX_TIME_MS), *at(2000)])
    assert isinstance(fired, Firing)
    assert isinstance(late, Late)


def test_a_continuous_trigger_by_processing_time_stops_at_the_end_of_an_event_time_window() -> None:
    spec = WindowSpec(Tumbling(10), Count(), trigger=ContinuousProcessingTimeTrigger(4))
    assert results(spec, [*at(1), ProcessingTime(100), ProcessingTime(200)]) == [1, 1, 1]


def test_unlike_flink_an_element_whose_window_equals_a_grown_session_joins_it() -> None:
    """Flink 2.3 maps the session to itself again and forgets what lay under its older state window."""
    spec = WindowSpec(DynamicSession(lambda gap_ms: gap_ms), Count())
    given = [Element("a", 0, 4), Element("a", 3, 7), Element("a", 0, 10), Watermark(9)]
    assert results(spec, given) == [3]


def test_unlike_flink_the_earliest_state_window_survives_and_contents_are_in_arrival_order() -> None:
    state = OperatorState()
    run(WindowSpec(Session(10), process=Values()), state, at(20, 0, 10))
    [row] = state.rows()
    assert (row["window"], row["state_window"]) == ([0, 30], [0, 10])
    assert [value for _, value, _ in row["elements"]] == [20, 0, 10]


def test_unlike_flink_firings_on_one_watermark_are_in_order_of_time_and_key() -> None:
    given: list[Input] = [Element(key, timestamp_ms) for key in "cab" for timestamp_ms in (11, 1)]
    fired = run(WindowSpec(Tumbling(10), Count()), OperatorState(), [*given, Watermark(99)])
    assert [(o.window.end_ms, o.key) for o in fired if isinstance(o, Firing)] == [
        (10, "a"),
        (10, "b"),
        (10, "c"),
        (20, "a"),
        (20, "b"),
        (20, "c"),
    ]


def test_unlike_flink_a_window_without_end_fires_twice_more_by_intervals_when_the_input_is_complete() -> None:
    """Flink fires it for every interval up to the end of 64-bit time, which takes longer than anyone can wait."""
    spec = WindowSpec(Global(), Count(), trigger=ContinuousEventTimeTrigger(10))
    assert results(spec, [*at(1), Watermark(25), Watermark(MAX_TIME_MS)]) == [1, 1, 1, 1]


def test_unlike_flink_a_window_goes_although_a_timeout_has_deleted_its_cleanup_timer() -> None:
    """The timeout clears the trigger, whose timer at the window's end is the cleanup timer; Flink keeps the window."""
    for time in ("event", "processing"):
        of = EventTimeTrigger() if time == "event" else ProcessingTimeTrigger()
        spec = WindowSpec(Tumbling(10), Count(), trigger=ProcessingTimeoutTrigger(of, 3), time=time)  # type: ignore[arg-type]
        state = OperatorState()
        fired = run(spec, state, [ProcessingTime(1), *at(1), ProcessingTime(5)])
        assert [firing.result for firing in fired if isinstance(firing, Firing)] == [1]
        assert state.in_flight
        assert run(spec, state, [ProcessingTime(50), Watermark(50)]) == []
        assert state.rows() == []


def test_a_purged_window_without_a_cleanup_timer_goes_with_what_a_function_keeps_of_it() -> None:
    """The timeout fires, purges and clears: only the state of the window is left."""
    trigger = PurgingTrigger(ProcessingTimeoutTrigger(EventTimeTrigger(), 3))
    spec, state = WindowSpec(Tumbling(10), process=Remembers(), trigger=trigger), OperatorState()
    run(spec, state, [ProcessingTime(1), *at(1), ProcessingTime(5)])
    assert not state.in_flight
    assert [row["window_state"] for row in state.rows()] == [{"firings": 1}]
    run(spec, state, [Watermark(8)])
    assert state.rows()
    run(spec, state, [Watermark(9)])
    assert state.rows() == []


class Remembers:
    def process(self, contents: Any, context: ProcessContext) -> list[int]:
        context.window_state["firings"] = context.window_state.get("firings", 0) + 1
        return [context.window_state["firings"]]

    def clear(self, context: ProcessContext) -> None:
        pass
