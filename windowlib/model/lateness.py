"""Formulas of lateness.

A window is kept until the watermark reaches its *cleanup time*, ``max_timestamp_ms + allowed_lateness_ms``. From then
on it is *late*. An element is late if all its windows are late. Times saturate at the greatest 64-bit integer, so an
unlimited allowed lateness means "never". The global window never ends and is never late.

A window that has been cleaned up stays late. After a change of the allowed lateness, windows up to a recorded time
(`late_up_to_ms` of a state or a batch) are late under any allowed lateness.
"""

from windowlib.model.windows import GLOBAL_WINDOW, MAX_TIME_MS, MIN_TIME_MS, TimeWindow


def cleanup_time_ms(window: TimeWindow, allowed_lateness_ms: int) -> int:
    """The first watermark at which the window is cleaned up.

    >>> cleanup_time_ms(TimeWindow(0, 10), allowed_lateness_ms=5)
    14
    >>> cleanup_time_ms(TimeWindow(0, 10), allowed_lateness_ms=2**63 - 1) == 2**63 - 1
    True
    """
    return min(window.max_timestamp_ms + allowed_lateness_ms, MAX_TIME_MS)


def is_late(window: TimeWindow, allowed_lateness_ms: int, watermark_ms: int) -> bool:
    """Tests if the watermark has reached the window's cleanup time.

    >>> [is_late(TimeWindow(0, 10), 5, watermark_ms) for watermark_ms in (13, 14)]
    [False, True]
    """
    return window != GLOBAL_WINDOW and cleanup_time_ms(window, allowed_lateness_ms) <= watermark_ms


def is_element_late(timestamp_ms: int, allowed_lateness_ms: int, watermark_ms: int) -> bool:
    """Tests if an element in no window (in a hole, where slide > size) counts as late.

    >>> [is_element_late(9, 5, watermark_ms) for watermark_ms in (13, 14)]
    [False, True]
    """
    return min(timestamp_ms + allowed_lateness_ms, MAX_TIME_MS) <= watermark_ms


def was_cleaned_up(window: TimeWindow, up_to_ms: int) -> bool:
    """Tests if the window is late by a recorded ``late_up_to_ms``. MIN_TIME_MS means none is recorded.

    >>> [was_cleaned_up(TimeWindow(0, 10), up_to_ms) for up_to_ms in (8, 9)]
    [False, True]
    """
    return window != GLOBAL_WINDOW and is_up_to(window.max_timestamp_ms, up_to_ms)


def is_up_to(timestamp_ms: int, up_to_ms: int) -> bool:
    """Tests if a time is at or below a recorded ``late_up_to_ms``. MIN_TIME_MS means none is recorded.

    The time is the last millisecond of a window, or the timestamp of an element in no window.
    """
    return up_to_ms > MIN_TIME_MS and timestamp_ms <= up_to_ms


def late_up_to_ms(allowed_lateness_ms: int, watermark_ms: int) -> int:
    """The greatest ``max_timestamp_ms`` of a late window: the inverse of `is_late`.

    >>> late_up_to_ms(5, watermark_ms=14)
    9
    >>> late_up_to_ms(2**63 - 1, watermark_ms=14) < -(2**62), late_up_to_ms(5, MAX_TIME_MS) == MAX_TIME_MS
    (True, True)
    """
    return watermark_ms if watermark_ms == MAX_TIME_MS else max(watermark_ms - allowed_lateness_ms, MIN_TIME_MS)
