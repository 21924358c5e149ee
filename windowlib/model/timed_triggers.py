"""Triggers that fire by time while a window is still open: at intervals, or after a timeout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from windowlib.model.errors import InvalidSpec
from windowlib.model.triggers import (
    CONTINUE,
    FIRE,
    Timers,
    Trigger,
    TriggerContext,
    TriggerResult,
    TriggerState,
    WindowKind,
)
from windowlib.model.windows import MAX_TIME_MS


@dataclass(frozen=True, slots=True)
class ContinuousEventTimeTrigger(Trigger):
    """Fires at every multiple of ``interval_ms`` of event time inside the window, and at its end.

    Windows that merge keep the earliest next firing. When the input is complete, a window without end fires twice
    more: now and at its end. This is our decision: Flink would fire it for every remaining interval of 64-bit time.
    """

    interval_ms: int
    merges: ClassVar[bool] = True
    window_kind: ClassVar[WindowKind] = "any"

    def __post_init__(self) -> None:
        _require_interval(self.interval_ms, self)

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        end_ms = context.window.max_timestamp_ms
        if end_ms <= context.watermark_ms:
            return FIRE
        context.set_event_timer(end_ms)
        if "next_ms" not in context.state:
            _set_next(_multiple_after(timestamp_ms, self.interval_ms), context, context.event_timers)
        return CONTINUE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        if time_ms == context.window.max_timestamp_ms:
            return FIRE
        if time_ms != context.state.get("next_ms"):
            return CONTINUE
        is_last = context.watermark_ms == context.window.max_timestamp_ms == MAX_TIME_MS
        _set_next(MAX_TIME_MS if is_last else time_ms + self.interval_ms, context, context.event_timers)
        return FIRE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        _keep_earliest(merged, context, context.event_timers)

    def clear(self, context: TriggerContext) -> None:
        _forget_next(context, context.event_timers)


@dataclass(frozen=True, slots=True)
class ContinuousProcessingTimeTrigger(Trigger):
    """Fires at every multiple of ``interval_ms`` of processing time while the window lasts, and at its end."""

    interval_ms: int
    merges: ClassVar[bool] = True
    window_kind: ClassVar[WindowKind] = "any"

    def __post_init__(self) -> None:
        _require_interval(self.interval_ms, self)

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        if "next_ms" not in context.state:
            _set_next(_multiple_after(context.processing_time_ms, self.interval_ms), context, context.processing_timers)
        return CONTINUE

    def on_processing_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        if time_ms != context.state.get("next_ms"):
            return CONTINUE
        if time_ms < context.window.max_timestamp_ms:  # otherwise an event-time window would fire for ever at its end
            _set_next(time_ms + self.interval_ms, context, context.processing_timers)
        return FIRE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        _keep_earliest(merged, context, context.processing_timers)

    def clear(self, context: TriggerContext) -> None:
        _forget_next(context, context.processing_timers)


@dataclass(frozen=True, slots=True)
class ProcessingTimeoutTrigger(Trigger):
    """Fires when ``of`` fires, otherwise ``timeout_ms`` of processing time after the first element.

    With ``reset_on_element`` the timeout starts again at every element. With ``clear_on_timeout`` a timeout clears the
    state of ``of``. Every timer of the window counts as a timeout, also its cleanup timer, as in Flink.
    """

    of: Trigger
    timeout_ms: int
    reset_on_element: bool = False
    clear_on_timeout: bool = True
    merges: ClassVar[bool] = False

    @property
    def window_kind(self) -> WindowKind:
        return self.of.window_kind

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        result = self.of.on_element(value, timestamp_ms, context)
        if result.fires:
            self.clear(context)
            return result
        if self.reset_on_element:
            self._delete_timeout(context)
        if "timeout_ms" not in context.state:
            context.state["timeout_ms"] = context.processing_time_ms + self.timeout_ms
            context.set_processing_timer(context.state["timeout_ms"])
        return result

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return self._on_timer(self.of.on_event_time(time_ms, context), context)

    def on_processing_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return self._on_timer(self.of.on_processing_time(time_ms, context), context)

    def clear(self, context: TriggerContext) -> None:
        self._delete_timeout(context)
        self.of.clear(context)

    def _on_timer(self, result: TriggerResult, context: TriggerContext) -> TriggerResult:
        if self.clear_on_timeout:
            self.clear(context)
        return TriggerResult.FIRE_AND_PURGE if result.purges else FIRE

    def _delete_timeout(self, context: TriggerContext) -> None:
        if (timeout_ms := context.state.pop("timeout_ms", None)) is not None:
            context.delete_processing_timer(timeout_ms)


def _multiple_after(time_ms: int, interval_ms: int) -> int:
    """The next multiple of the interval. Skips a multiple below zero, because Flink rounds towards zero.

    >>> [_multiple_after(time_ms, 10) for time_ms in (0, 9, 10, -1, -10, -11)]
    [10, 10, 20, 10, 0, 0]
    """
    towards_zero = abs(time_ms) // interval_ms * interval_ms
    return (towards_zero if time_ms >= 0 else -towards_zero) + interval_ms


def _set_next(time_ms: int, context: TriggerContext, timers: Timers) -> None:
    next_ms = context.state["next_ms"] = min(time_ms, context.window.max_timestamp_ms)
    timers.add((next_ms, context.window))


def _forget_next(context: TriggerContext, timers: Timers) -> None:
    timers.discard((context.state.pop("next_ms", None), context.window))


def _keep_earliest(merged: Sequence[TriggerState], context: TriggerContext, timers: Timers) -> None:
    if next_times_ms := [state["next_ms"] for state in merged if "next_ms" in state]:
        _set_next(min(next_times_ms), context, timers)


def _require_interval(interval_ms: int, trigger: object) -> None:
    if interval_ms <= 0:
        raise InvalidSpec(f"{trigger} is not valid: need interval_ms > 0")
