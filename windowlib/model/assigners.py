"""Assigners: rules that place an element into windows.

``assign`` gets a time, the element's value and its key. The time is event time, or processing time if the spec says
so. If ``merges`` is true, each element gets its own window, and the operator merges windows that touch. Windows are
in order of their start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol
from zlib import crc32

from windowlib.model.calendar import Calendar
from windowlib.model.errors import InvalidElement, InvalidSpec
from windowlib.model.windows import GLOBAL_WINDOW, MIN_TIME_MS, TimeWindow, window_start


class Assigner(Protocol):
    """Interface of an assigner; users may write their own."""

    @property
    def merges(self) -> bool:
        """True if windows that touch become one."""

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        """The windows of an element, in order of start; none if it falls in a hole between windows."""


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of ``size_ms`` that lie side by side, starting at ``offset_ms + k * size_ms``.

    >>> Tumbling(size_ms=5).assign(-1)
    [TimeWindow(start_ms=-5, end_ms=0)]
    """

    size_ms: int
    offset_ms: int = 0
    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.size_ms <= 0 or abs(self.offset_ms) >= self.size_ms:
            raise InvalidSpec(f"{self} is not valid: need size_ms > 0 and |offset_ms| < size_ms")

    @property
    def slide_ms(self) -> int:
        """The slide, which equals the size."""
        return self.size_ms

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        _require_timestamp(timestamp_ms)
        start_ms = window_start(timestamp_ms, self.size_ms, self.offset_ms)
        return [TimeWindow(start_ms, start_ms + self.size_ms)]


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows of ``size_ms`` that start every ``slide_ms``; if slide > size, there are holes between them.

    >>> Sliding(size_ms=10, slide_ms=5).assign(5)
    [TimeWindow(start_ms=0, end_ms=10), TimeWindow(start_ms=5, end_ms=15)]
    >>> Sliding(size_ms=3, slide_ms=5).assign(3)
    []
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0
    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.size_ms <= 0 or abs(self.offset_ms) >= self.slide_ms:
            raise InvalidSpec(f"{self} is not valid: need size_ms > 0 and |offset_ms| < slide_ms")

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        _require_timestamp(timestamp_ms)
        last_start_ms = window_start(timestamp_ms, self.slide_ms, self.offset_ms)
        starts = range(last_start_ms, timestamp_ms - self.size_ms, -self.slide_ms)
        return [TimeWindow(start_ms, start_ms + self.size_ms) for start_ms in reversed(starts)]


@dataclass(frozen=True, slots=True)
class Cumulating:
    """Windows that grow by ``step_ms`` up to ``max_size_ms``, then start again, at ``offset_ms + k * max_size_ms``.

    Each step is a window of its own, which holds all events since the start. Equals CUMULATE of Flink SQL.

    >>> Cumulating(max_size_ms=15, step_ms=5).assign(5)
    [TimeWindow(start_ms=0, end_ms=10), TimeWindow(start_ms=0, end_ms=15)]
    """

    max_size_ms: int
    step_ms: int
    offset_ms: int = 0
    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.step_ms <= 0 or self.max_size_ms <= 0 or self.max_size_ms % self.step_ms:
            raise InvalidSpec(f"{self} is not valid: need step_ms > 0 that divides max_size_ms > 0")
        if abs(self.offset_ms) >= self.max_size_ms:
            raise InvalidSpec(f"{self} is not valid: need |offset_ms| < max_size_ms")

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        _require_timestamp(timestamp_ms)
        start_ms = window_start(timestamp_ms, self.max_size_ms, self.offset_ms)
        first_end_ms = window_start(timestamp_ms, self.step_ms, self.offset_ms) + self.step_ms
        ends = range(first_end_ms, start_ms + self.max_size_ms + 1, self.step_ms)
        return [TimeWindow(start_ms, end_ms) for end_ms in ends]


@dataclass(frozen=True, slots=True)
class CalendarWindows:
    """Windows of consecutive intervals of a calendar: tumbling for one interval, sliding by one interval for more.

    >>> from windowlib import Calendar, CalendarLength
    >>> days = Calendar(CalendarLength(1, "day"), "Europe/Berlin")
    >>> [window] = CalendarWindows(days).assign(1_774_778_400_000)  # 2026-03-29 12:00
    >>> (window.end_ms - window.start_ms) // 3_600_000
    23
    """

    calendar: Calendar
    intervals: int = 1
    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.intervals < 1:
            raise InvalidSpec(f"{self} is not valid: need 1 or more intervals")

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        _require_timestamp(timestamp_ms)
        last = self.calendar.number(timestamp_ms)
        edges = [self.calendar.edge_ms(n) for n in range(last - self.intervals + 1, last + self.intervals + 1)]
        return [TimeWindow(*bounds) for bounds in zip(edges, edges[self.intervals :], strict=False)]


@dataclass(frozen=True, slots=True)
class CalendarCumulating:
    """Windows that grow by intervals of ``step`` in each interval of ``whole``, a coarser calendar of the same zone.

    >>> from windowlib import Calendar, CalendarLength
    >>> hours, days = (Calendar(CalendarLength(1, unit), "Europe/Berlin") for unit in ("hour", "day"))
    >>> len(CalendarCumulating(days, hours).assign(1_774_738_800_000))  # 2026-03-29 00:00
    23
    """

    whole: Calendar
    step: Calendar
    merges: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.step.holds_edges_of(self.whole):
            raise InvalidSpec(
                f"{self} is not valid: need edges of {self.whole.every} that are edges of {self.step.every}"
            )

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        _require_timestamp(timestamp_ms)
        start_ms, last = self.whole.start_ms(timestamp_ms), self.step.number(self.whole.next_ms(timestamp_ms))
        ends = map(self.step.edge_ms, range(self.step.number(timestamp_ms) + 1, last + 1))
        return [TimeWindow(start_ms, end_ms) for end_ms in ends]


@dataclass(frozen=True, slots=True)
class Staggered:
    """The windows of ``of``, shifted by a different time for each key, so that they do not all fire in one run.

    The shift is ``crc32(str(key)) % size_ms``: the same in every run and on every machine.

    >>> [Staggered(Tumbling(size_ms=10)).assign(0, key=key) for key in "ab"]
    [[TimeWindow(start_ms=-3, end_ms=7)], [TimeWindow(start_ms=-9, end_ms=1)]]
    """

    of: Tumbling | Sliding
    merges: ClassVar[bool] = False

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        _require_timestamp(timestamp_ms)
        shift_ms = crc32(str(key).encode()) % self.of.size_ms
        windows = self.of.assign(timestamp_ms - shift_ms)
        return [TimeWindow(window.start_ms + shift_ms, window.end_ms + shift_ms) for window in windows]


@dataclass(frozen=True, slots=True)
class Session:
    """One window ``[t, t + gap_ms)`` per element; windows that touch merge.

    >>> Session(gap_ms=3).assign(5)
    [TimeWindow(start_ms=5, end_ms=8)]
    """

    gap_ms: int
    merges: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.gap_ms <= 0:
            raise InvalidSpec(f"{self} is not valid: need gap_ms > 0")

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        return [TimeWindow(timestamp_ms, timestamp_ms + self.gap_ms)]


@dataclass(frozen=True, slots=True)
class DynamicSession:
    """Sessions with a gap per element: a column of the value (by name), or a function of the value.

    >>> DynamicSession("gap_ms").assign(5, {"gap_ms": 2})
    [TimeWindow(start_ms=5, end_ms=7)]
    """

    gap: str | Callable[[Any], int]
    merges: ClassVar[bool] = True

    @property
    def gap_column(self) -> str:
        """The column that holds the gap; raises InvalidSpec if the gap is a function."""
        if not isinstance(self.gap, str):
            raise InvalidSpec(f"the gap of {self} is a function: need the name of a column with the gap")
        return self.gap

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        gap_ms = _column(value, self.gap) if isinstance(self.gap, str) else self.gap(value)
        if gap_ms <= 0:
            raise InvalidElement(f"the gap of element {value!r} is {gap_ms} ms: need a gap > 0 ms")
        return [TimeWindow(timestamp_ms, timestamp_ms + gap_ms)]


def _require_timestamp(timestamp_ms: int) -> None:
    """Raises InvalidElement if the element has no timestamp (MIN_TIME_MS), as Flink's aligned windows do."""
    if timestamp_ms <= MIN_TIME_MS:
        raise InvalidElement(f"the element has no timestamp ({timestamp_ms}), but event time needs one: quarantine it")


def _column(value: Any, name: str) -> int:
    if not isinstance(value, Mapping) or not isinstance(value.get(name), int):
        raise InvalidElement(f"element {value!r} has no integer in {name!r}: need the gap in ms")
    gap_ms: int = value[name]
    return gap_ms


@dataclass(frozen=True, slots=True)
class Global:
    """A single window for all elements. It never ends, so it fires only by its trigger.

    Without a trigger it never fires. With ``end_of_stream`` it fires once, when the watermark reaches its maximum.

    >>> Global().assign(5) == [GLOBAL_WINDOW]
    True
    """

    end_of_stream: bool = False
    merges: ClassVar[bool] = False

    def assign(self, timestamp_ms: int, value: Any = None, key: Any = None) -> list[TimeWindow]:
        return [GLOBAL_WINDOW]
