"""Lateness: the formulas, written once.

A window is kept until the watermark reaches its *cleanup time*, ``max_timestamp_ms + allowed_lateness_ms``. From then
on it is *late*: an element that belongs to late windows only is late too. Times saturate at the greatest 64-bit
integer, so that an allowance without end means "never". The global window never ends and is never late.

What has been cleaned up stays late: where the allowance changes, windows up to a recorded time (`late_up_to_ms` of a
state, of a batch) are late whatever is allowed now.
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
    """Whether the watermark has reached the window's cleanup time.

    >>> [is_late(TimeWindow(0, 10), 5, watermark_ms) for watermark_ms in (13, 14)]
    [False, True]
    """
    return window != GLOBAL_WINDOW and cleanup_time_ms(window, allowed_lateness_ms) <= watermark_ms


def is_element_late(timestamp_ms: int, allowed_lateness_ms: int, watermark_ms: int) -> bool:
    """Whether an element that is in no window (a hole, where slide > size) counts as late.

    >>> [is_element_late(9, 5, watermark_ms) for watermark_ms in (13, 14)]
    [False, True]
    """
    return min(timestamp_ms + allowed_lateness_ms, MAX_TIME_MS) <= watermark_ms


def was_cleaned_up(window: TimeWindow, up_to_ms: int) -> bool:
    """Whether the window is late by a recorded ``late_up_to_ms``; MIN_TIME_MS stands for none.

    >>> [was_cleaned_up(TimeWindow(0, 10), up_to_ms) for up_to_ms in (8, 9)]
    [False, True]
    """
    return window != GLOBAL_WINDOW and is_up_to(window.max_timestamp_ms, up_to_ms)


def is_up_to(timestamp_ms: int, up_to_ms: int) -> bool:
    """The same of a last millisecond, or of an element that is in no window."""
    return up_to_ms > MIN_TIME_MS and timestamp_ms <= up_to_ms


def late_up_to_ms(allowed_lateness_ms: int, watermark_ms: int) -> int:
    """The greatest ``max_timestamp_ms`` that is late: `is_late` turned round, for a comparison with many windows.

    >>> late_up_to_ms(5, watermark_ms=14)
    9
    >>> late_up_to_ms(2**63 - 1, watermark_ms=14) < -(2**62), late_up_to_ms(5, MAX_TIME_MS) == MAX_TIME_MS
    (True, True)
    """
    return watermark_ms if watermark_ms == MAX_TIME_MS else max(watermark_ms - allowed_lateness_ms, MIN_TIME_MS)
