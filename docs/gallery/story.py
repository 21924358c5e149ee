"""The story that every picture shows: ten elements of one key, and what a window makes of them.

Two clocks run. An element *happens* at its event time and *arrives* later, at a minute of the clock of processing time;
the watermark follows the elements. All times are whole minutes after 09:00, and firings stand where the clock stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowlib.model.elements import Element, Firing, Input, ProcessingTime, Timing, Watermark
from windowlib.model.operator import step
from windowlib.model.state import OperatorState
from windowlib.model.watermark import MAX_WATERMARK, WatermarkPolicy
from windowlib.replay.scenarios import Json, replay, spec_of

MINUTE_MS = 60_000
START_MS = 1_772_442_000_000  # 2026-03-02 09:00 UTC
KEY = "ann"
OUT_OF_ORDERNESS = 3
END = 41
"""The minute at which the input ends, and with it time: the watermark goes to its maximum."""

Bounds = tuple[int, int] | None
"""Start and end of a window, in minutes; None for the global window."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One element of the story; ``gap`` is for the sessions to which each element brings its own."""

    id: str
    happens: int
    arrives: int
    value: int
    gap: int


STORY = (
    Arrival("a", 1, 3, 3, 6),
    Arrival("b", 3, 6, 5, 1),
    Arrival("c", 9, 9, 2, 2),
    Arrival("d", 7, 12, 8, 2),
    Arrival("e", 14, 15, 4, 1),
    Arrival("f", 16, 17, 6, 4),
    Arrival("g", 5, 19, 1, 2),
    Arrival("h", 19, 22, 9, 5),
    Arrival("i", 27, 29, 2, 8),
    Arrival("j", 35, 37, 12, 3),
)


def clock(minute: int) -> str:
    """
    >>> [clock(minute) for minute in (-5, 0, 61)]
    ['08:55', '09:00', '10:01']
    """
    return f"{9 + minute // 60:02}:{minute % 60:02}"


def _ms(minute: int) -> int:
    return START_MS + minute * MINUTE_MS


def _minute(time_ms: int) -> int:
    minute, rest = divmod(time_ms - START_MS, MINUTE_MS)
    assert rest == 0, time_ms
    return minute


def watermarks() -> list[int]:
    """After each element, the minute before which nothing more is expected: the watermark and one millisecond."""
    policy = WatermarkPolicy(OUT_OF_ORDERNESS * MINUTE_MS)
    newest = [max(one.happens for one in STORY[: number + 1]) for number in range(len(STORY))]
    return [_minute(policy.candidate_ms(_ms(minute)) + 1) for minute in newest]


def late_in_the_story() -> set[str]:
    """The elements that arrive when the watermark has passed them; what becomes of them is up to their windows."""
    before = [-END, *watermarks()[:-1]]
    return {one.id for one, watermark in zip(STORY, before, strict=True) if one.happens < watermark}


def _inputs() -> Iterator[tuple[int, Input]]:
    for minute in range(END + 1):
        yield minute, ProcessingTime(_ms(minute))
        for number, (one, watermark) in enumerate(zip(STORY, watermarks(), strict=True)):
            if one.arrives == minute:
                value = {"id": one.id, "value": one.value, "gap_ms": one.gap * MINUTE_MS}
                yield minute, Element(KEY, _ms(one.happens), value, number)
                yield minute, ProcessingTime(_ms(minute))  # a timer that was set in the past runs at once
                yield minute, Watermark(_ms(watermark) - 1)
    yield END, Watermark(MAX_WATERMARK)


INPUTS = tuple(_inputs())


def scenario_steps(ends: bool = True) -> list[Json]:
    """The story as the steps of a scenario of `windowlib.replay.scenarios`, or all of it but the end of the input."""
    return [_planned(one) for _, one in (INPUTS if ends else INPUTS[:-1])]


def _planned(one: Input) -> Json:
    match one:
        case Element():
            return {"element": {"key": one.key, "ts": one.timestamp_ms, **one.value}}
        case Watermark(watermark_ms):
            return {"watermark": "MAX" if watermark_ms == MAX_WATERMARK else watermark_ms}
        case ProcessingTime(processing_time_ms):
            return {"processing_time": processing_time_ms}


@dataclass(frozen=True, slots=True)
class Fired:
    """One firing: when, which window, which elements it saw, and the sum of their values."""

    at: int
    window: Bounds
    ids: str
    value: int
    timing: Timing


@dataclass(slots=True)
class Track:
    """A window as it was in the end, with all its firings, and the minute at which it was let go.

    ``grew_from`` are the windows that merged into it; what they had fired before is among its firings.
    """

    window: Bounds
    until: int
    firings: list[Fired]
    grew_from: list[Bounds]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the story: the windows in order, and late elements as (minute, id); or the reason of a refusal."""

    tracks: list[Track]
    late: list[tuple[int, str]]
    refused: str = ""

    @property
    def firings(self) -> list[Fired]:
        """All firings in the order in which they happened (windows of one minute in the order of their start)."""
        return sorted((one for track in self.tracks for one in track.firings), key=lambda one: one.at)


def outcome_of(scenario: Mapping[str, Any]) -> Outcome:
    """What the reference operator says of a scenario of the story; the timing of its firings is the operator's."""
    outcome = replay(scenario)
    if "error" in outcome:
        return Outcome([], [], outcome["error"])
    inputs = INPUTS[: len(outcome["steps"])]
    steps = [
        (at, answer, timing)
        for (at, _), answer, timing in zip(inputs, outcome["steps"], _timings(scenario, inputs), strict=True)
    ]
    return Outcome(_tracks(steps), [(at, name) for at, answer, _ in steps for name in answer["late"]])


def _timings(scenario: Mapping[str, Any], inputs: Sequence[tuple[int, Input]]) -> list[list[Timing]]:
    spec, state = spec_of(scenario), OperatorState()
    outputs = (step(spec, state, one) for _, one in inputs)
    return [[output.timing for output in fired if isinstance(output, Firing)] for fired in outputs]


def _tracks(steps: list[tuple[int, Json, list[Timing]]]) -> list[Track]:
    known: dict[Bounds, Track] = {}
    before: set[Bounds] = set()
    for at, answer, timings in steps:
        now = {_bounds(start_ms, end_ms) for _, start_ms, end_ms in answer["in_flight"]}
        fired = [_fired(at, row, timing) for row, timing in zip(answer["emitted"], timings, strict=True)]
        for window in now | {one.window for one in fired}:
            known.setdefault(window, Track(window, at, [], []))
        for window in before - now:
            _let_go(known, window, now - before, at)
        for one in fired:
            known[one.window].firings.append(one)
            known[one.window].until = max(at, known[one.window].until)
        before = now
    for window in before:
        known[window].until = END
    return [known[window] for window in sorted(known, key=lambda window: window or (0, 0))]


def _let_go(known: dict[Bounds, Track], window: Bounds, new: set[Bounds], at: int) -> None:
    """A window is no longer in flight: it was cleaned up, or a new, larger one took its place and its firings."""
    grown = [other for other in new if other and window and other[0] <= window[0] and window[1] <= other[1]]
    if not grown:
        known[window].until = at
    else:
        heir, track = known[grown[0]], known.pop(window)
        heir.firings = sorted([*heir.firings, *track.firings], key=lambda one: one.at)
        heir.grew_from += [*track.grew_from, window]


def _fired(at: int, row: Json, timing: Timing) -> Fired:
    return Fired(at, _bounds(row["window_start"], row["window_end"]), "".join(row["ids"]), row["value"], timing)


def _bounds(start_ms: int | None, end_ms: int | None) -> Bounds:
    return None if start_ms is None or end_ms is None else (_minute(start_ms), _minute(end_ms))
