"""State of the operator, for one key and for all keys, and its form as plain rows.

A row holds the state of a key and a window as JSON values. A process function's state by key is a separate row
without a window. Keys are JSON values too; a key of several parts is a tuple. Saving and restoring changes nothing,
except that rows do not contain time: the source sends the watermark again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from windowlib.model.elements import Element
from windowlib.model.errors import StateMismatch
from windowlib.model.merging import MergingWindowSet
from windowlib.model.triggers import Timers, TriggerState
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.model.windows import MIN_TIME_MS, TimeWindow

FORMAT = 1
Row = dict[str, Any]


@dataclass(slots=True)
class KeyState:
    """State of a key. ``windows`` is for assigners that merge; other windows are their own state windows."""

    windows: MergingWindowSet = field(default_factory=MergingWindowSet)
    contents: dict[TimeWindow, Any] = field(default_factory=dict)
    trigger_states: dict[TimeWindow, TriggerState] = field(default_factory=dict)
    window_states: dict[TimeWindow, dict[str, Any]] = field(default_factory=dict)
    key_state: dict[str, Any] = field(default_factory=dict)
    event_timers: Timers = field(default_factory=set)
    processing_timers: Timers = field(default_factory=set)

    @property
    def in_flight(self) -> list[TimeWindow]:
        """The windows that have contents or can still merge, in order."""
        merging = self.windows.state_windows
        return sorted({*merging, *(self.contents.keys() - merging.values())})

    @property
    def is_empty(self) -> bool:
        return not (self.remembered_windows or self.key_state)

    def retire(self, window: TimeWindow) -> None:
        """Drops a window with its contents, state and timers."""
        if window in self.windows:
            self.contents.pop(self.windows.state_window(window), None)
            self.windows.retire(window)
        self.contents.pop(window, None)
        self.forget(window)

    def forget(self, window: TimeWindow) -> None:
        """Drops the trigger state, function state and timers of a window."""
        self.trigger_states.pop(window, None)
        self.window_states.pop(window, None)
        for timers in (self.event_timers, self.processing_timers):
            timers.difference_update([timer for timer in timers if timer[1] == window])

    def rows(self, key: Any) -> list[Row]:
        """This state as plain rows, in the order of the windows."""
        rows = [self.row(key, window) for window in sorted(self.remembered_windows)]
        return rows + ([{"format": FORMAT, "key": key, "key_state": self.key_state}] if self.key_state else [])

    def restore(self, row: Mapping[str, Any]) -> None:
        """Restores a row; raises StateMismatch if the row has another format."""
        if row["format"] != FORMAT:
            raise StateMismatch(f"the state has format {row['format']}, need {FORMAT}: use the version that wrote it")
        if "window" not in row:
            self.key_state = row["key_state"]
            return
        window = TimeWindow(*row["window"])
        state_window = window
        if row["state_window"] is not None:
            state_window = self.windows.state_windows[window] = TimeWindow(*row["state_window"])
        if "accumulator" in row:
            self.contents[state_window] = row["accumulator"]
        if "elements" in row:
            self.contents[state_window] = [Element(row["key"], *element) for element in row["elements"]]
        if row["trigger_state"]:
            self.trigger_states[window] = row["trigger_state"]
        if row["window_state"]:
            self.window_states[window] = row["window_state"]
        self.event_timers |= {(time_ms, window) for time_ms in row["event_timers"]}
        self.processing_timers |= {(time_ms, window) for time_ms in row["processing_timers"]}

    @property
    def remembered_windows(self) -> set[TimeWindow]:
        """The windows in flight, and windows that have only timers or state."""
        timed = {window for _, window in self.event_timers | self.processing_timers}
        remembered = {w for states in (self.trigger_states, self.window_states) for w, state in states.items() if state}
        return {*self.in_flight, *timed, *remembered}

    def row(self, key: Any, window: TimeWindow) -> Row:
        """The row of a window; fields are empty if the window has no state."""
        state_window = self.windows.state_windows.get(window)
        return {
            "format": FORMAT,
            "key": key,
            "window": [window.start_ms, window.end_ms],
            "state_window": state_window and [state_window.start_ms, state_window.end_ms],
            **self._contents_row(state_window or window),
            "trigger_state": self.trigger_states.get(window, {}),
            "window_state": self.window_states.get(window, {}),
            "event_timers": sorted(time_ms for time_ms, timed in self.event_timers if timed == window),
            "processing_timers": sorted(time_ms for time_ms, timed in self.processing_timers if timed == window),
        }

    def _contents_row(self, state_window: TimeWindow) -> Row:
        if state_window not in self.contents:
            return {}
        contents = self.contents[state_window]
        if isinstance(contents, list) and all(isinstance(element, Element) for element in contents):
            return {"elements": [[element.timestamp_ms, element.value, element.arrival] for element in contents]}
        return {"accumulator": contents}


@dataclass(slots=True)
class OperatorState:
    """State of all keys, and the times they share.

    Windows with max_timestamp_ms <= ``late_up_to_ms`` are late under any allowed lateness.
    """

    keys: dict[Any, KeyState] = field(default_factory=dict)
    watermark_ms: int = MIN_WATERMARK
    processing_time_ms: int = 0
    late_up_to_ms: int = MIN_TIME_MS

    @property
    def in_flight(self) -> list[tuple[Any, TimeWindow]]:
        """Every (key, window) in flight, in order."""
        return [(key, window) for key in sorted(self.keys) for window in self.keys[key].in_flight]

    def forget_empty(self) -> None:
        """Drops the keys without state."""
        self.keys = {key: state for key, state in self.keys.items() if not state.is_empty}

    def rows(self) -> list[Row]:
        """The state of all keys as plain rows, in order."""
        return [row for key in sorted(self.keys) for row in self.keys[key].rows(key)]


def restore(rows: Iterable[Mapping[str, Any]]) -> OperatorState:
    """The operator state from its rows, in any order."""
    state = OperatorState()
    for row in rows:
        key = tuple(row["key"]) if isinstance(row["key"], list) else row["key"]
        state.keys.setdefault(key, KeyState()).restore({**row, "key": key})
    return state
