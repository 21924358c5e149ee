"""Merging window set of a key: the windows in flight, and the *state window* that holds the contents of each.

When windows merge, the earliest state window survives. The contents of the other state windows are merged into its
contents once. Extending a window changes only this map. Invariants: windows in flight never touch. Every state window
lies inside its window, so no two state windows are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from windowlib.model.errors import UnknownWindow
from windowlib.model.windows import TimeWindow, cover, touches


@dataclass(frozen=True, slots=True)
class Merge:
    """``merged`` windows became ``result``. Contents of ``merged_state_windows`` move to ``state_window``."""

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
        """The state window that holds the window's contents. Raises UnknownWindow."""
        self._require(window)
        return self.state_windows[window]

    def add(self, window: TimeWindow) -> tuple[TimeWindow, Merge | None]:
        """Merges a new window with the windows in flight that it touches.

        Returns the resulting window, and the `Merge` or None if no window in flight changed.
        """
        merged = tuple(existing for existing in self if touches(existing, window))
        if not merged:
            self.state_windows[window] = window
            return window, None
        result = _cover_all((window, *merged))
        if merged == (result,):
            return result, None
        state_window, *others = [self.state_windows.pop(existing) for existing in merged]
        self.state_windows[result] = state_window
        return result, Merge(result, merged, state_window, tuple(others))

    def retire(self, window: TimeWindow) -> None:
        """Removes the window. Raises UnknownWindow."""
        self._require(window)
        del self.state_windows[window]

    def _require(self, window: TimeWindow) -> None:
        if window not in self.state_windows:
            raise UnknownWindow(f"{window} is not in flight: need one of {list(self)}")


def _cover_all(windows: Iterable[TimeWindow]) -> TimeWindow:
    first, *others = windows
    for other in others:
        first = cover(first, other)
    return first
