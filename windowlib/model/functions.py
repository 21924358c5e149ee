"""Process functions: user code that turns a window into results. The code gets the window's bounds, key and state.

State is a dictionary of JSON values. The state of a key outlives its windows. The state of a window is dropped with the
window. Windows that merge have no window state, because the state could belong to any of the merged windows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from windowlib.model.errors import InvalidSpec
from windowlib.model.windows import TimeWindow


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """Input of a process function in addition to the contents."""

    key: Any
    window: TimeWindow
    watermark_ms: int
    processing_time_ms: int
    key_state: dict[str, Any]
    own_window_state: dict[str, Any] | None

    @property
    def window_state(self) -> dict[str, Any]:
        """State of this window of this key; raises InvalidSpec if windows merge."""
        if self.own_window_state is None:
            raise InvalidSpec("windows that merge have no state per window: use key_state")
        return self.own_window_state


class ProcessFunction(Protocol):
    """Interface of a process function; users write their own."""

    def process(self, contents: Any, context: ProcessContext) -> Iterable[Any]:
        """The results of a firing. ``contents`` is the aggregate's result, or all values without an aggregate."""

    def clear(self, context: ProcessContext) -> None:
        """Runs before the window is retired. The operator then drops the window's state in any case."""
