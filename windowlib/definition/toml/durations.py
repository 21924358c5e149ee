"""Durations as strings: ``500ms``, ``10s``, ``1h 30m``; units in descending order, with ``-`` in front if negative.

In memory and in tables a duration is an integer number of milliseconds, with the unit in its name.
"""

from __future__ import annotations

import re

UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
LONGEST_MS = 36_500 * UNITS["d"]  # a century: far below the limit of 64-bit milliseconds
ALLOWED = 'a duration such as "500ms", "10s", "5m", "1h 30m", "1d"'

_PATTERN = re.compile(r"\s*(?P<sign>-?)" + "".join(rf"\s*(?:(?P<{unit}>[0-9]+)\s*{unit})?" for unit in UNITS) + r"\s*")
_CALENDAR = re.compile(r"[0-9]+ (?:minute|hour|day|week|month|quarter|year)s?")
_UNQUOTED = re.compile(r"([\w.-]+)\s*=\s*(-?\d+\s*(?:ms|[dhms])(?:\s*\d+\s*(?:ms|[dhms]))*)\s*(?:[,}#]|$)")


def parse_duration(text: object) -> int:
    """Parses a duration to ms. Raises ValueError for other values, such as numbers without a unit.

    >>> parse_duration("1h 30m"), parse_duration("500ms"), parse_duration("-5m")
    (5400000, 500, -300000)
    """
    match = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    parts = {unit: match[unit] for unit in UNITS if match[unit]} if match else {}
    if not match or not parts:
        of_calendar = isinstance(text, str) and _CALENDAR.fullmatch(text)
        raise ValueError(
            "not a duration but a calendar length, which needs time_zone" if of_calendar else "not a duration"
        )
    duration_ms = sum(int(count) * UNITS[unit] for unit, count in parts.items())
    if duration_ms > LONGEST_MS:
        raise ValueError(f"longer than {format_duration(LONGEST_MS)}")
    return -duration_ms if match["sign"] else duration_ms


def unquoted(toml: str, line: int) -> str:
    """Hint if an invalid line of TOML has a duration without quotes; empty for other lines.

    >>> unquoted('[window]\\ngap = 45m # or so', 2), unquoted('[window]\\ngap = "45m', 2)
    ('; durations are strings: gap = "45m"', '')
    """
    [written] = toml.splitlines()[line - 1 : line] or [""]
    match = _UNQUOTED.search(written)
    return f'; durations are strings: {match[1]} = "{match[2]}"' if match else ""


def format_duration(duration_ms: int) -> str:
    """Formats a duration as the shortest string that ``parse_duration`` converts back to ``duration_ms``.

    >>> format_duration(5_400_000), format_duration(0), format_duration(-1)
    ('1h 30m', '0ms', '-1ms')
    """
    rest, parts = abs(duration_ms), []
    for unit, unit_ms in UNITS.items():
        count, rest = divmod(rest, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if duration_ms < 0 else "") + (" ".join(parts) or "0ms")
