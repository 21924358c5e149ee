"""The session rule of `windowlib verify` equals an independent reference with dictionaries, without Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support import window_oracle as oracle
from tests.support.strategies import examples
from tests.support.window_oracle import MIN_WATERMARK, Event
from windowlib.inspection.verify.settled import LatenessBound, Past, PastRerun, SessionPart, settle
from windowlib.model.rerun import TimeRange
from windowlib.model.windows import TimeWindow, islands

GAP_MS = 5
BATCHES = st.lists(st.lists(st.integers(-30, 60), max_size=6), min_size=1, max_size=5)
LATENESSES = st.lists(st.sampled_from([0, 1, 7, 30]), min_size=5, max_size=5)  # of the batches, one after the other


def parts_of(batches: list[list[int]]) -> list[SessionPart]:
    """Parts: touching events of each batch."""
    return [
        SessionPart(number, 0, *window)
        for number, times in enumerate(batches, 1)
        for window in islands(TimeWindow(time, time + GAP_MS) for time in times)
    ]


def times(watermarks_ms: list[int], latenesses_ms: list[int]) -> list[LatenessBound]:
    """Lateness bounds before each batch and after the last, each with its own lateness."""
    found, late_ms = list[LatenessBound](), 2 * MIN_WATERMARK
    *before, last = watermarks_ms
    for watermark_ms, after_ms, lateness_ms in zip(before, [*before[1:], last], latenesses_ms, strict=False):
        late_ms = max(late_ms, watermark_ms - lateness_ms)
        found.append(LatenessBound(watermark_ms, late_ms))
        late_ms = max(late_ms, after_ms - lateness_ms)
    return [*found, LatenessBound(last, late_ms)]


def watermarks(batches: list[list[int]], out_of_orderness_ms: int) -> list[int]:
    """Watermarks before each batch and after the last."""
    found = [MIN_WATERMARK]
    for times in batches:
        found.append(max([found[-1], *(time - out_of_orderness_ms - 1 for time in times)]))
    return found


@examples(200, 2_000)
@given(batches=BATCHES, latenesses_ms=LATENESSES, out_of_orderness_ms=st.integers(0, 12))
def test_settle_equals_the_reference_batch_by_batch(
    batches: list[list[int]], latenesses_ms: list[int], out_of_orderness_ms: int
) -> None:
    given_events = [[Event(f"{n}-{i}", "k", t, 1) for i, t in enumerate(times)] for n, times in enumerate(batches)]
    right = oracle.run(given_events, oracle.session(GAP_MS), True, out_of_orderness_ms, latenesses_ms)
    *before, last = times(watermarks(batches, out_of_orderness_ms), latenesses_ms)
    parts = parts_of(batches)
    found = settle(parts, Past(dict(enumerate(before, 1)), last))

    def events_in(numbers: frozenset[int]) -> int:
        held = [parts[number] for number in numbers]
        return sum(p.start_ms <= t < p.end_ms for p in held for t in batches[p.batch_id - 1])

    assert {("k", *window): events_in(of) for window, of in found.results.items()} == {
        bounds: count for bounds, (count, _) in right.results.items()
    }
    assert {("k", *window) for window in found.in_flight} == right.in_flight
    assert events_in(frozenset(found.late)) == len(right.late)


@examples(200, 2_000)
@given(batches=BATCHES, latenesses_ms=LATENESSES)
def test_a_rerun_of_everything_equals_one_batch_of_all_events(
    batches: list[list[int]], latenesses_ms: list[int]
) -> None:
    *before, last = times(watermarks(batches, 3), latenesses_ms)
    parts, number = parts_of(batches), len(batches) + 1
    rerun = PastRerun(number, TimeRange(-1_000, 1_000))
    found = settle(parts, Past({**dict(enumerate(before, 1)), number: last}, last, [rerun]))
    whole = islands(part.window for part in parts)
    assert set(found.results) == {window for window in whole if window.max_timestamp_ms <= last.watermark_ms}
    assert set(found.in_flight) == {window for window in whole if window.max_timestamp_ms > last.late_up_to_ms}
    assert not found.late
