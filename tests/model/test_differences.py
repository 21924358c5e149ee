"""What the operator does otherwise than Flink, on purpose, where few will look; the list is in its own definition."""

from __future__ import annotations

from docs.gallery.page import differences
from windowlib.model.aggregates import Count
from windowlib.model.assigners import Session, Sliding, Tumbling
from windowlib.model.elements import Element, Firing, ProcessingTime, Watermark
from windowlib.model.evictors import DeltaEvictor, TimeEvictor
from windowlib.model.lateness import is_element_late
from windowlib.model.operator import run
from windowlib.model.spec import WindowSpec
from windowlib.model.state import OperatorState
from windowlib.model.triggers import DeltaTrigger, ProcessingTimeTrigger
from windowlib.model.windows import MAX_TIME_MS, MIN_TIME_MS, TimeWindow
from windowlib.replay.scenarios import replay


def test_unlike_flink_windows_near_the_ends_of_time_do_not_wrap_round() -> None:
    [first] = Tumbling(10).assign(MIN_TIME_MS + 1)
    [last] = Session(gap_ms=10).assign(MAX_TIME_MS - 1)
    assert first.start_ms < MIN_TIME_MS < first.end_ms
    assert last == TimeWindow(MAX_TIME_MS - 1, MAX_TIME_MS + 9)
    state = OperatorState()
    assert run(WindowSpec(Session(gap_ms=10), Count()), state, [Element("a", MAX_TIME_MS - 1), Watermark(0)]) == []
    assert state.in_flight == [("a", last)]


def test_unlike_flink_an_allowed_lateness_beyond_64_bits_makes_no_element_late() -> None:
    """One between two windows, whose own time decides; as one that is in a window is not late either."""
    assert not is_element_late(7, allowed_lateness_ms=MAX_TIME_MS, watermark_ms=100)
    spec, state = WindowSpec(Sliding(size_ms=5, slide_ms=10), Count(), allowed_lateness_ms=MAX_TIME_MS), OperatorState()
    assert run(spec, state, [Watermark(100), Element("a", 7)]) == []
    assert len(run(spec, state, [Element("a", 3)])) == 1


def test_unlike_flink_the_time_evictor_takes_an_element_without_a_time_for_the_oldest() -> None:
    kept = TimeEvictor(keep_ms=5).kept([Element("a", 7), Element("a", None), Element("a", 3), Element("a", 2)])
    assert [element.timestamp_ms for element in kept] == [7, 3]
    untimed = [Element("a", None), Element("a", 7), Element("a", 1)]
    assert TimeEvictor(keep_ms=5).kept(untimed) == untimed


def test_unlike_flink_a_watermark_that_a_restore_has_forgotten_is_not_sent_again() -> None:
    steps = [{"watermark": 9}, {"snapshot_restore": True}, {"snapshot_restore": True, "resend_watermark": True}]
    element = {"element": {"key": "a", "ts": 2, "value": 1, "id": "e"}}
    window = {"assigner": {"type": "tumbling", "size_ms": 10}, "function": "count"}
    late = [
        replay({**window, "steps": [*given, element]})["steps"][-1]["late"] for given in (steps, steps[:1] + steps[2:])
    ]
    assert late == [[], ["e"]]


def test_unlike_flink_a_timer_of_the_past_waits_for_the_clock_to_move() -> None:
    spec, state = WindowSpec(Tumbling(10), Count(), ProcessingTimeTrigger(), allowed_lateness_ms=50), OperatorState()
    assert run(spec, state, [ProcessingTime(100), Element("a", 3), Watermark(20)]) == []
    assert [one.result for one in run(spec, state, [ProcessingTime(101)]) if isinstance(one, Firing)] == [1]
    assert run(spec, state, [Element("a", 3), Watermark(60), ProcessingTime(102)]) == []


def test_unlike_flink_a_null_exceeds_nothing() -> None:
    trigger = DeltaTrigger(3, "x")
    spec, state = WindowSpec(Tumbling(10), Count(), trigger, DeltaEvictor(5, "x", absolute=True)), OperatorState()
    values = (None, 1, None, 4, 5, None, 9)  # 1 is the first; 5 and 9 are more than 3 above; 9 drops 1 and 4
    fired = run(spec, state, [Element("a", 1, {"x": value}, number) for number, value in enumerate(values)])
    assert [one.result for one in fired if isinstance(one, Firing)] == [5, 5]


def test_every_difference_is_listed_to_its_end() -> None:
    bullets = differences().split("\n- ")
    assert len(bullets) == 11
    assert all(one.endswith((".", ")")) for one in bullets), bullets
