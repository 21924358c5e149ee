"""Triggers and assigners exactly at their boundaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from windowlib.model.aggregates import Count
from windowlib.model.assigners import Session, Sliding, Tumbling
from windowlib.model.elements import Element, ProcessingTime, Watermark
from windowlib.model.errors import InvalidSpec
from windowlib.model.evictors import DeltaEvictor
from windowlib.model.operator import run
from windowlib.model.spec import WindowSpec
from windowlib.model.state import OperatorState
from windowlib.model.timed_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    ProcessingTimeoutTrigger,
)
from windowlib.model.triggers import (
    DeltaTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    TriggerContext,
    TriggerResult,
)
from windowlib.model.windows import TimeWindow


@pytest.mark.parametrize(
    ("of", "least"),
    [
        (Tumbling, 1),
        (lambda ms: Sliding(ms, 1), 1),
        (lambda ms: Sliding(1, ms), 1),
        (Session, 1),
        (ContinuousEventTimeTrigger, 1),
        (ContinuousProcessingTimeTrigger, 1),
    ],
    ids=["tumbling", "size", "slide", "gap", "event", "processing"],
)
def test_what_lasts_no_time_is_refused(of: Callable[[int], object], least: int) -> None:
    assert of(least)
    for too_short in (least - 1, least - 2):
        with pytest.raises(InvalidSpec):
            of(too_short)


@pytest.mark.parametrize("offset_ms", [-10, 10])
def test_an_offset_of_a_whole_size_is_refused(offset_ms: int) -> None:
    assert Tumbling(10, offset_ms + (1 if offset_ms < 0 else -1))
    with pytest.raises(InvalidSpec):
        Tumbling(10, offset_ms)


WINDOW = TimeWindow(0, 10)


def context(processing_time_ms: int = 0, **state: Any) -> TriggerContext:
    return TriggerContext(WINDOW, 0, processing_time_ms, dict(state), set(), set())


@pytest.mark.parametrize(("now_ms", "timers"), [(8, {(9, WINDOW)}), (9, set())])
def test_windows_that_merge_wait_for_an_end_that_is_still_to_come(now_ms: int, timers: set[Any]) -> None:
    of = context(now_ms)
    ProcessingTimeTrigger().on_merge([], of)
    assert of.processing_timers == timers


def test_an_interval_that_is_cleared_is_not_waited_for() -> None:
    for trigger in (ContinuousEventTimeTrigger(4), ContinuousProcessingTimeTrigger(4)):
        of = context()
        trigger.on_element(None, 1, of)
        assert of.state == {"next_ms": 4}
        assert (4, WINDOW) in of.event_timers | of.processing_timers
        trigger.clear(of)
        assert of.state == {}
        assert (4, WINDOW) not in of.event_timers | of.processing_timers


@pytest.mark.parametrize(
    ("value", "rising", "either"), [(13, False, False), (14, True, True), (7, False, False), (6, False, True)]
)
def test_a_delta_counts_upwards_unless_either_direction_is_asked_for(value: int, rising: bool, either: bool) -> None:
    for trigger, fires in ((DeltaTrigger(3, "x"), rising), (DeltaTrigger(3, "x", absolute=True), either)):
        of = context(value=10)
        assert (trigger.on_element({"x": value}, 1, of) == TriggerResult.FIRE) == fires
        assert of.state == {"value": value if fires else 10}


@pytest.mark.parametrize("absolute", [False, True])
def test_a_difference_that_is_nan_exceeds_nothing(absolute: bool) -> None:
    """As in Flink, which asks whether it is greater."""
    for remembered, value in ((1.0, math.nan), (math.nan, 1.0), (math.inf, math.inf)):
        of = context(value=remembered)
        assert DeltaTrigger(1, "x", absolute=absolute).on_element({"x": value}, 1, of) == TriggerResult.CONTINUE
    rows = [Element("a", at_ms, {"x": value}, at_ms) for at_ms, value in enumerate((1.0, 500.0, math.nan))]
    assert DeltaEvictor(100, "x", absolute=absolute).kept(rows) == rows
    assert DeltaEvictor(100, "x", absolute=absolute).kept([]) == []


@pytest.mark.parametrize(("watermark_ms", "is_left"), [(8, True), (9, False)])
def test_a_window_without_a_timer_goes_when_time_reaches_its_cleanup(watermark_ms: int, is_left: bool) -> None:
    """A timeout has deleted the timer of its end."""
    state, trigger = OperatorState(), ProcessingTimeoutTrigger(EventTimeTrigger(), timeout_ms=5)
    spec = WindowSpec(Tumbling(10), Count(), trigger=trigger)
    [firing] = run(spec, state, [Element("a", 1), ProcessingTime(5)])
    assert firing.window == WINDOW  # type: ignore[union-attr]
    assert run(spec, state, [Watermark(watermark_ms)]) == []
    assert bool(state.keys) == is_left
