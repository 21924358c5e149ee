"""How many results an event becomes: sliding windows that hold it, and firings of a window by intervals.

Windows that slide by a millisecond, or fire at every one, make a table of a batch before anyone has seen it: a
definition is refused where it would exceed `checks.max_windows_per_event`, and from `MANY` on said in the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windowlib.definition.mistakes import Mistake
from windowlib.definition.toml.durations import parse_duration
from windowlib.definition.toml.file import MAX_WINDOWS_PER_EVENT
from windowlib.definition.toml.windows import AnyWindow

MANY = 1_000  # results of an event: more are worth a note
INTERVALS = ("continuous_event_time", "continuous_processing_time")


@dataclass(frozen=True, slots=True)
class Explosion:
    """What makes an event into many results: the key to change, how many they are at most, in words."""

    key: str
    results: int
    words: str
    instead: str


def explosions(window: Mapping[str, Any], in_ms: Callable[[Any], int]) -> Iterator[Explosion]:
    """Of `[window]`, whose durations are read by `in_ms`: of sliding windows, and of a trigger that fires by intervals.

    >>> [one.words for one in explosions({"type": "sliding", "size": "1h", "slide": "1s"}, _written_ms)]
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
    for one in explosions(window, _written_ms) if isinstance(at_most, int) else ():
        if one.results > at_most:
            allow = f"checks.max_windows_per_event = {one.results}"
            yield Mistake(one.key, f"{one.words}; {one.instead}, or allow it: {allow} (now {at_most:,})")


def notes(window: AnyWindow) -> list[str]:
    """What is worth a note of windows that are allowed."""
    found = explosions(window.model_dump(by_alias=True), _read_ms)
    return [
        f"{one.words.replace(' would be', ' is').replace(' would fire', ' fires')} ({one.key})"
        for one in found
        if one.results > MANY
    ]


def _written_ms(duration: Any) -> int:
    """Of a duration as it was written; 0 for what is none, as a number without a unit, which is reported already."""
    try:
        return max(0, parse_duration(duration)) if isinstance(duration, str) else 0
    except ValueError:
        return 0


def _read_ms(duration: Any) -> int:
    """Of a duration as it was read; 0 where there is none."""
    return duration if isinstance(duration, int) else 0
