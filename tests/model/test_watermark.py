"""How the watermark moves: per source, over several, through silence, and never back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.model.errors import InvalidSpec
from windowlib.model.watermark import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    SourceState,
    SourceWatermark,
    WatermarkPolicy,
    combine,
    observe,
)

POLICY = WatermarkPolicy(out_of_orderness_ms=5, idle_timeout_ms=60)
IDLE, FINISHED = SourceState.IDLE, SourceState.FINISHED


def test_before_the_first_event_nothing_is_late() -> None:
    source = observe(SourceWatermark(), None, plan_time_ms=1000, policy=POLICY)
    assert source == SourceWatermark(MIN_WATERMARK, SourceState.ACTIVE, heard_ms=1000)
    assert combine(MIN_WATERMARK, [source], 1000, POLICY) == MIN_WATERMARK


def test_a_source_never_heard_of_becomes_idle_after_the_timeout() -> None:
    source = observe(SourceWatermark(), None, plan_time_ms=1000, policy=POLICY)
    assert observe(source, None, plan_time_ms=1059, policy=POLICY).state is SourceState.ACTIVE
    assert observe(source, None, plan_time_ms=1060, policy=POLICY).state is IDLE


def test_an_event_wakes_an_idle_source_which_then_stalls_the_watermark_but_never_turns_it_back() -> None:
    woken = observe(SourceWatermark(50, IDLE, heard_ms=0), 40, plan_time_ms=2000, policy=POLICY)
    assert woken == SourceWatermark(50, SourceState.ACTIVE, heard_ms=2000)
    assert combine(900, [woken], 2000, POLICY) == 900


def test_without_an_idle_timeout_silence_stops_time() -> None:
    patient = WatermarkPolicy(out_of_orderness_ms=5)
    silent = observe(SourceWatermark(50, heard_ms=0), None, plan_time_ms=10**12, policy=patient)
    assert combine(50, [silent], 10**12, patient) == 50
    with pytest.raises(InvalidSpec, match="idle_timeout_ms is None: need a timeout"):
        patient.idle_candidate_ms(1000)


def test_finished_sources_hold_nothing_back() -> None:
    finished = SourceWatermark(3, FINISHED)
    assert combine(0, [finished, SourceWatermark(20)], 1000, POLICY) == 20
    assert combine(0, [finished, SourceWatermark(3, IDLE)], 1000, POLICY) == 934
    assert combine(0, [finished], 1000, POLICY) == MAX_WATERMARK
    assert combine(7, [], 1000, POLICY) == 7


@given(st.lists(st.tuples(st.none() | st.integers(-200, 200), st.integers(0, 50)), max_size=20))
def test_the_watermark_never_goes_back(runs: list[tuple[int | None, int]]) -> None:
    source, watermark_ms, plan_time_ms = SourceWatermark(), MIN_WATERMARK, 0
    for max_timestamp_ms, waited_ms in runs:
        plan_time_ms += waited_ms
        source = observe(source, max_timestamp_ms, plan_time_ms, POLICY)
        moved_ms = combine(watermark_ms, [source], plan_time_ms, POLICY)
        assert moved_ms >= watermark_ms
        assert max_timestamp_ms is None or moved_ms >= max_timestamp_ms - 6
        watermark_ms = moved_ms


@pytest.mark.parametrize("policy", [{"out_of_orderness_ms": -1}, {"out_of_orderness_ms": 0, "idle_timeout_ms": 0}])
def test_a_policy_that_cannot_be_is_refused(policy: dict[str, int]) -> None:
    with pytest.raises(InvalidSpec, match="need out_of_orderness_ms >= 0"):
        WatermarkPolicy(**policy)


def test_the_shortest_idle_timeout_is_a_millisecond() -> None:
    assert WatermarkPolicy(out_of_orderness_ms=0, idle_timeout_ms=1).is_idle(5, 6)
    with pytest.raises(InvalidSpec, match="idle_timeout_ms > 0"):
        WatermarkPolicy(out_of_orderness_ms=0, idle_timeout_ms=0)
