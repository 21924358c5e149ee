"""Triggers: rules for the firing and purging of a window.

The operator asks the trigger at every element and at every timer of the window. The trigger answers with a
``TriggerResult``. The trigger's state of a window is ``context.state``, a dictionary of JSON values that is saved,
merged and dropped with the window. The trigger object itself is frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Literal, Protocol

from windowlib.model.errors import InvalidSpec
from windowlib.model.windows import TimeWindow

TriggerState = dict[str, Any]
Timers = set[tuple[int, TimeWindow]]
WindowKind = Literal["any", "time", "global"]


class TriggerResult(Enum):
    """Answer of a trigger: evaluate the window (fire), drop its contents (purge), both, or nothing."""

    CONTINUE = (False, False)
    FIRE = (True, False)
    PURGE = (False, True)
    FIRE_AND_PURGE = (True, True)

    @property
    def fires(self) -> bool:
        return self.value[0]

    @property
    def purges(self) -> bool:
        return self.value[1]


CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


@dataclass(frozen=True, slots=True)
class TriggerContext:
    """Input of a trigger for a window of a key, and the timers that it may set and delete."""

    window: TimeWindow
    watermark_ms: int
    processing_time_ms: int
    state: TriggerState
    event_timers: Timers
    processing_timers: Timers

    def set_event_timer(self, time_ms: int) -> None:
        self.event_timers.add((time_ms, self.window))

    def delete_event_timer(self, time_ms: int) -> None:
        self.event_timers.discard((time_ms, self.window))

    def set_processing_timer(self, time_ms: int) -> None:
        self.processing_timers.add((time_ms, self.window))

    def delete_processing_timer(self, time_ms: int) -> None:
        self.processing_timers.discard((time_ms, self.window))


class Trigger(Protocol):
    """Interface of a trigger; users may write their own.

    The defaults never fire, keep no state, and refuse windows that merge. A subclass overrides only the differences.
    """

    @property
    def merges(self) -> bool:
        """True if the trigger supports windows that merge."""

    @property
    def window_kind(self) -> WindowKind:
        """Supported windows: "time" (with an end), "global" (without an end), or "any"."""

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        """Answers after an element was added to the window."""
        return CONTINUE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Answers when the watermark reaches a timer of the window: a timer of the trigger, or the cleanup timer."""
        return CONTINUE

    def on_processing_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Answers when processing time reaches a timer of the window."""
        return CONTINUE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        """Sets up the merged window. ``merged``: trigger states of the replaced windows, which are cleared next."""
        raise InvalidSpec(f"{self} cannot merge: need a trigger that can merge")

    def clear(self, context: TriggerContext) -> None:
        """Deletes the timers and state of a window before it is retired."""
        context.state.clear()


@dataclass(frozen=True, slots=True)
class EventTimeTrigger(Trigger):
    """Fires when the watermark reaches the window's end, and at once for every later element."""

    merges: ClassVar[bool] = True
    window_kind: ClassVar[WindowKind] = "time"

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        if context.window.max_timestamp_ms <= context.watermark_ms:
            return FIRE
        context.set_event_timer(context.window.max_timestamp_ms)
        return CONTINUE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return FIRE if time_ms == context.window.max_timestamp_ms else CONTINUE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        if context.window.max_timestamp_ms > context.watermark_ms:
            context.set_event_timer(context.window.max_timestamp_ms)

    def clear(self, context: TriggerContext) -> None:
        context.delete_event_timer(context.window.max_timestamp_ms)


@dataclass(frozen=True, slots=True)
class ProcessingTimeTrigger(Trigger):
    """Fires when processing time reaches the window's end, and again for every later element."""

    merges: ClassVar[bool] = True
    window_kind: ClassVar[WindowKind] = "time"

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        context.set_processing_timer(context.window.max_timestamp_ms)
        return CONTINUE

    def on_processing_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return FIRE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        if context.window.max_timestamp_ms > context.processing_time_ms:
            context.set_processing_timer(context.window.max_timestamp_ms)

    def clear(self, context: TriggerContext) -> None:
        context.delete_processing_timer(context.window.max_timestamp_ms)


@dataclass(frozen=True, slots=True)
class CountTrigger(Trigger):
    """Fires at every ``n``-th element since its last firing. Windows that merge add up their counts.

    Remaining elements do not fire when the window is retired.
    """

    n: int
    merges: ClassVar[bool] = True
    window_kind: ClassVar[WindowKind] = "any"

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        count = context.state.get("count", 0) + 1
        if count >= self.n:
            context.state.pop("count", None)
            return FIRE
        context.state["count"] = count
        return CONTINUE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        if count := sum(state.get("count", 0) for state in merged):
            context.state["count"] = count


@dataclass(frozen=True, slots=True)
class DeltaTrigger(Trigger):
    """Fires when column ``of`` exceeds its value at the last firing by more than ``threshold``.

    With ``absolute`` a difference in either direction counts. The first value of a window does not fire: the next
    values are compared with it. Nulls are ignored.
    """

    threshold: float
    of: str
    absolute: bool = False
    merges: ClassVar[bool] = False
    window_kind: ClassVar[WindowKind] = "any"

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        current = value[self.of]
        if current is None:
            return CONTINUE
        is_first = "value" not in context.state
        delta = current - context.state.setdefault("value", current)
        if is_first or not (abs(delta) if self.absolute else delta) > self.threshold:  # NaN exceeds nothing
            return CONTINUE
        context.state["value"] = current
        return FIRE


@dataclass(frozen=True, slots=True)
class PurgingTrigger(Trigger):
    """Fires when ``of`` fires, and purges the contents at every firing."""

    of: Trigger

    @property
    def merges(self) -> bool:
        return self.of.merges

    @property
    def window_kind(self) -> WindowKind:
        return self.of.window_kind

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        return _purging(self.of.on_element(value, timestamp_ms, context))

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return _purging(self.of.on_event_time(time_ms, context))

    def on_processing_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return _purging(self.of.on_processing_time(time_ms, context))

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        self.of.on_merge(merged, context)

    def clear(self, context: TriggerContext) -> None:
        self.of.clear(context)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.fires else result


@dataclass(frozen=True, slots=True)
class NeverTrigger(Trigger):
    """Never fires; the default of the global window."""

    merges: ClassVar[bool] = False
    window_kind: ClassVar[WindowKind] = "global"


@dataclass(frozen=True, slots=True)
class EndOfStreamTrigger(Trigger):
    """Fires once, when the input is complete and the watermark reaches its maximum."""

    merges: ClassVar[bool] = False
    window_kind: ClassVar[WindowKind] = "global"

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        context.set_event_timer(context.window.max_timestamp_ms)
        return CONTINUE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return FIRE if time_ms == context.window.max_timestamp_ms else CONTINUE

    def clear(self, context: TriggerContext) -> None:
        context.delete_event_timer(context.window.max_timestamp_ms)
