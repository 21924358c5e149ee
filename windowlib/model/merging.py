"""The merging window set of one key: which windows are in flight, and under which *state window* each is kept.

When windows merge, the earliest state window keeps the contents and the others are folded into it, once; extending
a window changes this map and moves no contents. Invariants: windows in flight never touch; every state window lies
inside its window, so no two are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from windowlib.model.errors import UnknownWindow
from windowlib.model.windows import TimeWindow, cover, touches


@dataclass(frozen=True, slots=True)
class Merge:
    """``merged`` windows became ``result``; what ``merged_state_windows`` hold belongs under ``state_window`` now."""

    result: TimeWindow
    merged: tuple[TimeWindow, ...]
    state_window: TimeWindow
    merged_state_windows: tuple[TimeWindow, ...]


@dataclass(slots=True)
class MergingWindowSet:
    """The map from window in flight to state window.

    >>> windows = MergingWindowSet()
    >>> windows.add(TimeWindow(0, 5))
    (TimeWindow(start_ms=0, end_ms=5), None)
    >>> window, merge = windows.add(TimeWindow(5, 8))
    >>> window, windows.state_window(window)
    (TimeWindow(start_ms=0, end_ms=8), TimeWindow(start_ms=0, end_ms=5))
    """

    state_windows: dict[TimeWindow, TimeWindow] = field(default_factory=dict)

    def __contains__(self, window: TimeWindow) -> bool:
        return window in self.state_windows

    def __iter__(self) -> Iterator[TimeWindow]:
        return iter(sorted(self.state_windows))

    def state_window(self, window: TimeWindow) -> TimeWindow:
        """Where the window's contents lie; raises UnknownWindow."""
        self._require(window)
        return self.state_windows[window]

    def add(self, window: TimeWindow) -> tuple[TimeWindow, Merge | None]:
        """Joins a new window with those it touches; returns the window it ended up in, and the merge if one changed."""
        merged = tuple(known for known in self if touches(known, window))
        if not merged:
            self.state_windows[window] = window
            return window, None
        result = _cover_all((window, *merged))
        if merged == (result,):
            return result, None
        state_window, *others = [self.state_windows.pop(known) for known in merged]
        self.state_windows[result] = state_window
        return result, Merge(result, merged, state_window, tuple(others))

    def retire(self, window: TimeWindow) -> None:
        """Takes the window out of flight; raises UnknownWindow."""
        self._require(window)
        del self.state_windows[window]

    def _require(self, window: TimeWindow) -> None:
        if window not in self.state_windows:
            raise UnknownWindow(f"need a window in flight, one of {list(self)}, got {window}")


def _cover_all(windows: Iterable[TimeWindow]) -> TimeWindow:
    first, *others = windows
    for other in others:
        first = cover(first, other)
    return first
