"""Facts about an explained window in words, for the terminal and for pages."""

from __future__ import annotations

from windowlib.definition.instants import in_words, instant
from windowlib.definition.plurals import counted
from windowlib.inspection.lineage.explain_window import ExplainedWindow
from windowlib.inspection.lineage.key_windows import UNBOUNDED
from windowlib.plans.kinds.kind import Bounds

PLACES = {"holds": "", "before": "the nearest before", "after": "the nearest after", "held": "removed since"}
"""Places of a window relative to the requested time."""


def bounds_words(bounds_ms: Bounds) -> str:
    """Bounds of a window."""
    return "one window without bounds" if bounds_ms == UNBOUNDED else in_words(bounds_ms)


def in_flight_words(window: ExplainedWindow) -> str:
    """States if a window is in flight, and the batch that cleaned it up if it is not."""
    until = instant(window.cleanup_time_ms)
    if window.in_flight:
        kept = "" if window.cleanup_time_ms is None else f", until the watermark reaches {until}"
        return f"yes, {counted(window.in_flight.elements, 'event')}{kept}"
    if window.cleaned_up_by is not None and window.cleanup_time_ms is None:
        return f"no: batch {window.cleaned_up_by} cleaned it up, under another allowed_lateness"
    if window.cleaned_up_by is not None:
        return f"no: batch {window.cleaned_up_by} moved the watermark to its cleanup time {until} or past it"
    return "no"
