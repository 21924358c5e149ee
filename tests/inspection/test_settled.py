"""The rule by which `windowlib verify` settles sessions is the one written down for tests: dictionaries, no Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests import window_oracle as oracle
from tests.strategies import examples
from tests.window_oracle import MIN_WATERMARK, Event
from windowlib.inspection.verify.settled import Part, Past, PastRerun, settle
from windowlib.model.rerun import TimeRange
from windowlib.model.windows import TimeWindow, islands

GAP_MS = 5
BATCHES = st.lists(st.lists(st.integers(-30, 60), max_size=6), min_size=1, max_size=5)


def parts_of(batches: list[list[int]]) -> list[Part]:
    """Each batch's events that touch, as one part."""
    return [
        Part(number, 0, *window)
        for number, times in enumerate(batches, 1)
        for window in islands(TimeWindow(time, time + GAP_MS) for time in times)
    ]


def watermarks(batches: list[list[int]], out_of_orderness_ms: int) -> list[int]:
    """Before each batch, and after the last."""
    found = [MIN_WATERMARK]
    for times in batches:
        found.append(max([found[-1], *(time - out_of_orderness_ms - 1 for time in times)]))
    return found


@examples(200, 2_000)
@given(batches=BATCHES, lateness_ms=st.sampled_from([0, 1, 7, 30]), out_of_orderness_ms=st.integers(0, 12))
def test_sessions_are_settled_as_batch_after_batch_leaves_them(
    batches: list[list[int]], lateness_ms: int, out_of_orderness_ms: int
) -> None:
    given_events = [[Event(f"{n}-{i}", "k", t, 1) for i, t in enumerate(times)] for n, times in enumerate(batches)]
    right = oracle.run(given_events, oracle.session(GAP_MS), True, out_of_orderness_ms, lateness_ms)
    *before, last = watermarks(batches, out_of_orderness_ms)
    parts = parts_of(batches)
    found = settle(parts, Past(dict(enumerate(before, 1)), last, lateness_ms))

    def events_in(numbers: frozenset[int]) -> int:
        held = [parts[number] for number in numbers]
        return sum(p.start_ms <= t < p.end_ms for p in held for t in batches[p.batch_id - 1])

    assert {("k", *window): events_in(of) for window, of in found.results.items()} == {
        bounds: count for bounds, (count, _) in right.results.items()
    }
    assert {("k", *window) for window in found.in_flight} == right.in_flight
    assert events_in(frozenset(found.late)) == len(right.late)


@examples(200, 2_000)
@given(batches=BATCHES, lateness_ms=st.sampled_from([0, 7, 30]))
def test_a_rerun_of_everything_leaves_what_all_events_at_once_give(batches: list[list[int]], lateness_ms: int) -> None:
    *before, last = watermarks(batches, 3)
    parts, number = parts_of(batches), len(batches) + 1
    rerun = PastRerun(number, TimeRange(-1_000, 1_000))
    found = settle(parts, Past({**dict(enumerate(before, 1)), number: last}, last, lateness_ms, [rerun]))
    whole = islands(part.window for part in parts)
    assert set(found.results) == {window for window in whole if window.max_timestamp_ms <= last}
    assert set(found.in_flight) == {window for window in whole if window.max_timestamp_ms + lateness_ms > last}
    assert not found.late
