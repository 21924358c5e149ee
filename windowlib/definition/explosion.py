"""Bound on the results per event: its sliding windows, and firings of a window by intervals.

Windows that slide or fire every millisecond would turn a small batch into a huge table. A definition that exceeds
`checks.max_windows_per_event` is refused. Above `MANY` results the plan shows a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windowlib.definition.mistakes import Mistake
from windowlib.definition.toml.durations import parse_duration
from windowlib.definition.toml.file import MAX_WINDOWS_PER_EVENT
from windowlib.definition.toml.windows import AnyWindow

MANY = 1_000  # results of an event; the plan notes higher numbers
INTERVALS = ("continuous_event_time", "continuous_processing_time")


@dataclass(frozen=True, slots=True)
class Explosion:
    """A setting that multiplies results: its key, the greatest number of results of an event, and texts.

    words:   half a sentence with the number
    instead: advice
    """

    key: str
    results: int
    words: str
    instead: str


def explosions(window: Mapping[str, Any], in_ms: Callable[[Any], int]) -> Iterator[Explosion]:
    """Explosions by sliding windows and by triggers with intervals in `[window]`; `in_ms` reads a duration.

    >>> [found.words for found in explosions({"type": "sliding", "size": "1h", "slide": "1s"}, _written_ms)]
    ['an event would be in 3,600 windows, each of them a result of its key']
    """
    size_ms, slide_ms = in_ms(window.get("size", window.get("gap"))), in_ms(window.get("slide"))
    if window.get("type") == "sliding" and size_ms and slide_ms:
        windows = -(-size_ms // slide_ms)
        words = f"an event would be in {windows:,} windows, each of them a result of its key"
        yield Explosion("window.slide", windows, words, "slide by more")
    trigger, key = window.get("trigger"), "window.trigger"
    while isinstance(trigger, Mapping):
        interval_ms = in_ms(trigger.get("interval"))
        if trigger.get("type") in INTERVALS and size_ms and interval_ms:
            firings = -(-size_ms // interval_ms)
            words = f"a window would fire {firings:,} times, each time a result of its key"
            yield Explosion(f"{key}.interval", firings, words, "let it fire less often")
        trigger, key = trigger.get("of"), f"{key}.of"


def too_many(window: Mapping[str, Any], checks: Mapping[str, Any]) -> Iterator[Mistake]:
    """The mistakes of a definition that exceeds its bound."""
    at_most = checks.get("max_windows_per_event", MAX_WINDOWS_PER_EVENT)
    for explosion in explosions(window, _written_ms) if isinstance(at_most, int) else ():
        if explosion.results > at_most:
            allow = f"checks.max_windows_per_event = {explosion.results}"
            problem = f"{explosion.words}; {explosion.instead}, or allow it: {allow} (now {at_most:,})"
            yield Mistake(explosion.key, problem)


def notes(window: AnyWindow) -> list[str]:
    """Notes on allowed windows with many results per event."""
    return [
        f"{explosion.words.replace(' would be', ' is').replace(' would fire', ' fires')} ({explosion.key})"
        for explosion in explosions(window.model_dump(by_alias=True), _read_ms)
        if explosion.results > MANY
    ]


def _written_ms(duration: Any) -> int:
    """Milliseconds of a duration in text form; 0 for an invalid value, which is reported elsewhere."""
    try:
        return max(0, parse_duration(duration)) if isinstance(duration, str) else 0
    except ValueError:
        return 0


def _read_ms(duration: Any) -> int:
    """Milliseconds of a parsed duration; 0 if there is none."""
    return duration if isinstance(duration, int) else 0
