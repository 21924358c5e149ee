"""Windows computed in plain Python: dictionaries, one batch after another, no code of windowlib.

The rule of a batch: windows of its events and those in flight are joined where they touch; what is then late against
the watermark of the batch's start (``end - 1 + lateness <= watermark``) is dropped whole; then the watermark moves to
the largest event time so far less ``out_of_orderness + 1``, windows that it has reached are published, and those past
their clean-up go. Where the lateness is another than before, what has gone stays late, and what is past the new one
goes before the batch.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.aligned_windows import windows_at


class Event(NamedTuple):
    event_id: str
    key: str
    timestamp_ms: int
    value: int | None


@dataclass
class Window:
    start: int
    end: int
    events: list[Event]
    published: set[tuple[int, int]] = field(default_factory=set)
    changed: bool = True


Results = dict[tuple[str, int, int], tuple[int, int | None]]


@dataclass
class Outcome:
    """``results``: (key, start, end) → (events, total); ``late``: event ids; ``in_flight``: (key, start, end)."""

    results: Results
    late: set[str]
    in_flight: set[tuple[str, int, int]]
    watermark_ms: int


MIN_WATERMARK = -(2**63)
Assign = Callable[[int], list[tuple[int, int]]]


def session(gap: int) -> Assign:
    return lambda t: [(t, t + gap)]


def sliding(size: int, slide: int) -> Assign:
    return lambda t: windows_at(t, size, slide)


def run(
    batches: Iterable[list[Event]], assign: Assign, merges: bool, out_of_orderness: int, lateness: int | Sequence[int]
) -> Outcome:
    """Outcome of the batches; `lateness` of all, or of each."""
    outcome = Outcome({}, set(), set(), MIN_WATERMARK)
    flying: dict[str, list[Window]] = defaultdict(list)
    late = 2 * MIN_WATERMARK  # windows whose last ms is not above it
    for number, batch in enumerate(batches):
        allowed = lateness if isinstance(lateness, int) else lateness[number]
        late = max(late, outcome.watermark_ms - allowed)
        for key, windows in flying.items():
            flying[key] = [window for window in windows if window.end - 1 > late]
        for key, events in _by_key(batch).items():
            new = [Window(start, end, [event]) for event in events for start, end in assign(event.timestamp_ms)]
            joined = _join(flying[key] + new, merges)
            flying[key] = [window for window in joined if window.end - 1 > late]
            dropped = [window for window in joined if window.end - 1 <= late]
            outcome.late |= _ids(dropped) - (_ids(flying[key]) if dropped else set())
        largest = max((event.timestamp_ms for event in batch), default=MIN_WATERMARK)
        outcome.watermark_ms = max(outcome.watermark_ms, largest - out_of_orderness - 1)
        _publish(flying, outcome)
        late = max(late, outcome.watermark_ms - allowed)
        for key, windows in flying.items():
            flying[key] = [window for window in windows if window.end - 1 > late]
    outcome.in_flight = {(key, window.start, window.end) for key, windows in flying.items() for window in windows}
    return outcome


def _by_key(batch: list[Event]) -> dict[str, list[Event]]:
    events: dict[str, list[Event]] = defaultdict(list)
    for event in batch:
        events[event.key].append(event)
    return events


def _ids(windows: list[Window]) -> set[str]:
    return {event.event_id for window in windows for event in window.events}


def _join(windows: list[Window], merges: bool) -> list[Window]:
    joined: list[Window] = []
    for window in sorted(windows, key=lambda w: (w.start, w.end)):
        last = joined[-1] if joined else None
        if last and (window.start <= last.end if merges else (window.start, window.end) == (last.start, last.end)):
            last.end = max(last.end, window.end)
            last.events += window.events
            last.published |= window.published
            last.changed |= window.changed
        else:
            joined.append(window)
    return joined


def _publish(flying: dict[str, list[Window]], outcome: Outcome) -> None:
    for key, windows in flying.items():
        for window in windows:
            if window.changed and window.end - 1 <= outcome.watermark_ms:
                for bounds in window.published:
                    del outcome.results[key, *bounds]
                values = [event.value for event in window.events if event.value is not None]
                outcome.results[key, window.start, window.end] = (len(window.events), sum(values) if values else None)
                window.published, window.changed = {(window.start, window.end)}, False
