"""Process functions: what a firing makes of a window, with its bounds, its key and state of their own.

State is a dictionary of JSON values. That of a window goes with the window; windows that merge have none, since
it could belong to any of them. That of a key stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from windowlib.model.errors import InvalidSpec
from windowlib.model.windows import TimeWindow


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """What a process function sees in addition to the contents."""

    key: Any
    window: TimeWindow
    watermark_ms: int
    processing_time_ms: int
    key_state: dict[str, Any]
    own_window_state: dict[str, Any] | None

    @property
    def window_state(self) -> dict[str, Any]:
        """State of this window of this key; raises InvalidSpec where windows merge."""
        if self.own_window_state is None:
            raise InvalidSpec("need windows that do not merge for state per window; use key_state")
        return self.own_window_state


class ProcessFunction(Protocol):
    """Whatever turns the contents of a window into results; users may bring their own."""

    def process(self, contents: Any, context: ProcessContext) -> Iterable[Any]:
        """The results of one firing. ``contents`` is the aggregate's result, or all values where there is none."""

    def clear(self, context: ProcessContext) -> None:
        """The window is going; its state is dropped afterwards in any case."""
