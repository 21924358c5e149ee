"""A definition's windows in words: what they are, when they fire, what an evaluation sees, what runs them."""

from __future__ import annotations

from jobs import definition_windows as windows
from jobs.durations import format_duration


def windows_in_words(window: windows.AnyWindow) -> str:
    """Which windows, in half a sentence.

    >>> windows_in_words(windows.TumblingCountWindow(type="tumbling_count", size=100))
    'every 100 events'
    """
    match window:
        case windows.TumblingWindow():
            text = f"tumbling, {format_duration(window.size_ms)} long{_shifted(window.stagger)}"
        case windows.SlidingWindow():
            every = f"every {format_duration(window.slide_ms)}{_shifted(window.stagger)}"
            text = f"sliding, {format_duration(window.size_ms)} long, {every}"
        case windows.SessionWindow(gap_ms=int(gap_ms)):
            text = f"sessions, ended by {format_duration(gap_ms)} of silence"
        case windows.SessionWindow():
            text = f"sessions, ended by a silence of `{window.gap_column}` milliseconds"
        case windows.GlobalWindow():
            text = "one window without end"
        case windows.TumblingCountWindow():
            return f"every {window.size:,} events"
        case windows.SlidingCountWindow():
            return f"the last {window.size:,} events, at every {window.slide:,} of them"
        case windows.OwnWindow():
            text = f"those of {window.assigner_class}"
    return text if window.time == "event" else f"{text}, in processing time"


def trigger_in_words(trigger: windows.AnyTrigger | None, window: windows.AnyWindow) -> str:
    """When a window fires, after "fires"."""
    match trigger:
        case None:
            if isinstance(window, windows.GlobalWindow):
                return "when the input is complete" if window.end_of_stream else "never"
            return "at its end" if window.time == "event" else "when a run finds its end passed"
        case windows.EventTime():
            return "when the watermark passes its end"
        case windows.ProcessingTime():
            return "when the plan time of a run passes its end"
        case windows.Count(n=n):
            return f"at every {n:,} events"
        case windows.ContinuousEventTime(interval_ms=interval_ms):
            return f"every {format_duration(interval_ms)} of event time, and at its end"
        case windows.ContinuousProcessingTime(interval_ms=interval_ms):
            return f"every {format_duration(interval_ms)} of processing time, and at its end"
        case windows.Delta(of=of, threshold=threshold):
            changed = "moved" if trigger.absolute else "risen"
            return f"when {of} has {changed} by more than {threshold:g} since it last fired"
        case windows.Purging(of=of):
            return f"{trigger_in_words(of, window)}, and then forgets its contents"
        case windows.ProcessingTimeout(of=of, timeout_ms=timeout_ms):
            since = "newest" if trigger.reset_on_element else "first"
            return f"{trigger_in_words(of, window)}, or {format_duration(timeout_ms)} after its {since} event"
        case windows.Never():
            return "never"
        case windows.EndOfStream():
            return "when the input is complete"
    return f"when {trigger.python_class} says so"


def evictor_in_words(evictor: windows.AnyEvictor) -> str:
    """What an evictor leaves, after "of its events"."""
    match evictor:
        case windows.CountEvictor(n=n):
            stays = f"the last {n:,} stay"
        case windows.TimeEvictor(keep_ms=keep_ms):
            stays = f"those of the last {format_duration(keep_ms)} stay"
        case windows.DeltaEvictor(of=of, threshold=threshold):
            last = "that differ from the last one" if evictor.absolute else "that the last one exceeds"
            stays = f"those stay {last} in {of} by less than {threshold:g}"
        case _:
            return f"those stay that {evictor.python_class} keeps"
    return f"{stays} {'after' if evictor.after else 'before'} each evaluation"


def why_element_by_element(window: windows.AnyWindow) -> list[str]:
    """What no native plan can do exactly, so that the operator must run for each key; empty where there is nothing.

    >>> why_element_by_element(windows.TumblingCountWindow(type="tumbling_count", size=100, function="own:Top"))
    ['own:Top is Python code']
    """
    reasons = [f"{window.function} is Python code"] if window.function else []
    if isinstance(window, windows.TumblingCountWindow | windows.SlidingCountWindow):
        return reasons
    trigger, evictor = window.own_trigger, window.own_evictor
    if trigger and not isinstance(trigger, windows.EventTime):
        reasons.append(f"the trigger {_name(trigger)} is asked at every element or timer")
    if evictor:
        reasons.append(f"the evictor {_name(evictor)} chooses among the elements of a window")
    if window.time == "processing":
        reasons.append("windows of processing time depend on when a run takes an event in")
    match window:
        case windows.GlobalWindow() | windows.OwnWindow():
            reasons.append(f"no slices can be told for {windows_in_words(window)}")
        case windows.TumblingWindow(stagger=True) | windows.SlidingWindow(stagger=True):
            reasons.append("each key's windows are shifted by a share of its own")
    return reasons


def _name(section: windows.AnyTrigger | windows.AnyEvictor) -> str:
    return str(getattr(section, "python_class", section.type))


def _shifted(stagger: bool) -> str:
    return ", shifted for each key" if stagger else ""
