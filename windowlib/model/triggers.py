"""Triggers: when a window is evaluated, and when it forgets.

A trigger is asked at every element and at every timer it has set, and answers with a ``TriggerResult``. What it has
to remember about a window lies in ``context.state``, a dictionary of JSON values that is saved, merged and dropped
with the window; a trigger itself is a frozen value.
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
    """What is to happen to a window now: evaluate it (fire), forget its contents (purge), both, or nothing."""

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
    """What a trigger sees of one window of one key, and the timers that it may set and delete."""

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
    """Whatever decides when a window fires; users may bring their own.

    A class that inherits from it has only to say what differs: by itself it never fires, remembers nothing, and cannot
    follow windows that merge.
    """

    @property
    def merges(self) -> bool:
        """Whether it can follow windows that merge."""

    @property
    def window_kind(self) -> WindowKind:
        """Which windows it can watch: those that end ("time"), the one that does not ("global"), or "any"."""

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        """An element has been added to the window."""
        return CONTINUE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """The watermark has reached a timer of the window: one of the trigger's, or its cleanup time."""
        return CONTINUE

    def on_processing_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        """Processing time has reached a timer of the window."""
        return CONTINUE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        """The window is new and replaces windows whose trigger states were ``merged``; those are cleared next."""
        raise InvalidSpec(f"need a trigger that can merge, got {self}")

    def clear(self, context: TriggerContext) -> None:
        """The window is going: delete its timers and forget its state."""
        context.state.clear()


@dataclass(frozen=True, slots=True)
class EventTimeTrigger(Trigger):
    """Fires when the watermark reaches the window's end, and at once for every element that comes after."""

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
    """Fires when processing time reaches the window's end, and again for every element that the window gets later."""

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
    """Fires at every ``n``-th element since it last fired. Windows that merge add their counts up.

    What is left when the window goes is not reported.
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

    With ``absolute`` a difference in either direction counts. The first value of a window is only remembered. A null
    exceeds nothing, and is not remembered.
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
    """Does what ``of`` does, and forgets the contents at every firing."""

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
