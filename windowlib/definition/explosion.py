"""Limit on results per event, from sliding and cumulating windows and from triggers that fire at intervals.

Windows that slide or fire every millisecond would turn a small batch into a huge table. A definition that exceeds
`checks.max_windows_per_event` is refused. Above `MANY` results the plan shows a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windowlib.definition.mistakes import Mistake
from windowlib.definition.toml.calendars import parse_length
from windowlib.definition.toml.checks import MAX_WINDOWS_PER_EVENT
from windowlib.definition.toml.durations import parse_duration
from windowlib.definition.toml.windows import AnyWindow
from windowlib.model.calendar import Calendar

MANY = 1_000  # results per event, above which the plan shows a note
INTERVALS = ("continuous_event_time", "continuous_processing_time")


@dataclass(frozen=True, slots=True)
class Explosion:
    """Setting that multiplies results, by its TOML key.

    results: greatest number of results per event
    words:   half a sentence with this number
    instead: advice
    """

    key: str
    results: int
    words: str
    instead: str


def explosions(window: Mapping[str, Any], in_ms: Callable[[Any], int]) -> Iterator[Explosion]:
    """Yields the settings in `[window]` that multiply results. `in_ms` converts a duration to ms.

    >>> [found.words for found in explosions({"type": "sliding", "size": "1h", "slide": "1s"}, _written_ms)]
    ['an event would be in 3,600 windows, each of them a result of its key']
    """
    size = window.get("size", window.get("gap", window.get("max_size")))
    size_ms, slide_ms = in_ms(size), in_ms(window.get("slide"))
    if window.get("type") == "sliding" and size_ms and slide_ms:
        windows = -(-size_ms // slide_ms)
        yield _windows("window.slide", windows, "slide by more")
    most_ms, step_ms = in_ms(window.get("max_size")), in_ms(window.get("step"))
    if window.get("type") == "cumulating" and most_ms and step_ms:
        yield _windows("window.step", most_ms // step_ms, "use a longer step")
    if "time_zone" in window:
        yield from _of_calendar(window)
    trigger, key = window.get("trigger"), "window.trigger"
    while isinstance(trigger, Mapping):
        interval_ms = in_ms(trigger.get("interval"))
        if trigger.get("type") in INTERVALS and size_ms and interval_ms:
            firings = -(-size_ms // interval_ms)
            words = f"a window would fire {firings:,} times, each time a result of its key"
            yield Explosion(f"{key}.interval", firings, words, "let it fire less often")
        trigger, key = trigger.get("of"), f"{key}.of"


def _of_calendar(window: Mapping[str, Any]) -> Iterator[Explosion]:
    key, whole = ("step", "max_size") if "max_size" in window else ("every", "size")
    try:
        fine, coarse = (parse_length(window.get(name)) for name in (key, whole))
        of_steps = key == "step"
        windows = Calendar(coarse, "UTC").most_steps(Calendar(fine, "UTC")) if of_steps else coarse.times(fine) or 1
    except ValueError:  # pydantic reports it
        return
    yield _windows(f"window.{key}", windows, "use a longer one")


def _windows(key: str, windows: int, instead: str) -> Explosion:
    words = f"an event would be in {windows:,} windows, each of them a result of its key"
    return Explosion(key, windows, words, instead)


def too_many(window: Mapping[str, Any], checks: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yields a mistake for each setting with more results than `checks.max_windows_per_event`."""
    at_most = checks.get("max_windows_per_event", MAX_WINDOWS_PER_EVENT)
    for explosion in explosions(window, _written_ms) if isinstance(at_most, int) else ():
        if explosion.results > at_most:
            allow = f"checks.max_windows_per_event = {explosion.results}"
            problem = f"{explosion.words}; {explosion.instead}, or allow it: {allow} (now {at_most:,})"
            yield Mistake(explosion.key, problem)


def notes(window: AnyWindow) -> list[str]:
    """Notes on allowed windows with more than `MANY` results per event."""
    return [
        f"{explosion.words.replace(' would be', ' is').replace(' would fire', ' fires')} ({explosion.key})"
        for explosion in explosions(window.model_dump(by_alias=True), _read_ms)
        if explosion.results > MANY
    ]


def _written_ms(duration: Any) -> int:
    """Parses a duration string to ms; 0 for an invalid value, which pydantic reports."""
    try:
        return max(0, parse_duration(duration)) if isinstance(duration, str) else 0
    except ValueError:
        return 0


def _read_ms(duration: Any) -> int:
    """Milliseconds of a parsed duration; 0 if there is none."""
    return duration if isinstance(duration, int) else 0
