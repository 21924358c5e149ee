"""Conversions of points in time between TIMESTAMPs, integers of milliseconds, and text in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(time_ms: int | None) -> str:
    """Formats a time for people to read, in UTC.

    >>> instant(0), instant(-1), instant(None), instant(-(2**63))
    ('1970-01-01 00:00:00 UTC', '1969-12-31 23:59:59.999 UTC', 'none yet', 'none yet')
    """
    when = _datetime(time_ms)
    if when is None:
        return "the end of time" if time_ms is not None and time_ms > 0 else "none yet"
    return f"{_text(when, ' ')} UTC"


def in_words(bounds_ms: tuple[int, int]) -> str:
    """Formats the bounds of a window for people to read, in UTC.

    >>> in_words((0, 3_600_000))
    '1970-01-01 00:00:00 to 1970-01-01 01:00:00 UTC'
    """
    return f"{instant(bounds_ms[0]).removesuffix(' UTC')} to {instant(bounds_ms[1])}"


def iso_instant(time_ms: int | None) -> str | None:
    """Formats a time for machines: ISO 8601 with ``Z``; None outside Python's calendar.

    >>> iso_instant(1_500), iso_instant(2**63 - 1)
    ('1970-01-01T00:00:01.500Z', None)
    """
    when = _datetime(time_ms)
    return None if when is None else f"{_text(when, 'T')}Z"


def utc(time_ms: int) -> datetime:
    """Converts ms since the epoch to a TIMESTAMP. Raises OverflowError outside Python's calendar."""
    return _EPOCH + timedelta(milliseconds=time_ms)


def nearest_utc(time_ms: int) -> datetime:
    """Converts ms since the epoch to a TIMESTAMP. A time outside Python's calendar becomes its first or last TIMESTAMP.

    >>> nearest_utc(-(2**63)).year, nearest_utc(2**63).year
    (1, 9999)
    """
    return _datetime(time_ms) or (datetime.min if time_ms < 0 else datetime.max).replace(tzinfo=UTC)


def time_of(moment: datetime) -> int:
    """Converts a TIMESTAMP to ms since the epoch, floored. A TIMESTAMP without a zone is in UTC.

    >>> time_of(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), time_of(datetime(1969, 12, 31, 23, 59, 59, 999_999))
    (1000, -1)
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def zone_of(name: str) -> ZoneInfo:
    """Time zone with this name. Raises ValueError for unknown names, and for "localtime", the zone of this machine.

    >>> zone_of("Europe/Berlin").key
    'Europe/Berlin'
    """
    if name not in available_timezones() - {"localtime", "Factory"}:  # files of the database that name no zone
        raise ValueError('must be the name of a time zone, such as "Europe/Berlin" or "UTC"')
    return ZoneInfo(name)


def of_local(local_ms: int, zone: str | None) -> int:
    """Converts a local time of a zone to UTC, as Spark's to_utc_timestamp.

    `local_ms` counts the ms since 1970-01-01 00:00 in local time. If clocks show a time twice, the first time counts. A
    skipped local time counts with the offset before the gap. Without a zone, or outside Python's calendar, the result
    is `local_ms`.

    >>> night_ms = time_of(datetime(2026, 3, 29, 2, 30))
    >>> instant(of_local(night_ms, "Europe/Berlin")), instant(of_local(night_ms, None))
    ('2026-03-29 01:30:00 UTC', '2026-03-29 02:30:00 UTC')
    """
    moment = _datetime(local_ms)
    if zone is None or moment is None:
        return local_ms
    offset = moment.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    return local_ms - (offset or timedelta(0)) // timedelta(milliseconds=1)


def _datetime(time_ms: int | None) -> datetime | None:
    """TIMESTAMP of a time; None outside Python's calendar, such as for the watermark before the first event."""
    try:
        return None if time_ms is None else utc(time_ms)
    except OverflowError:
        return None


def _text(when: datetime, separator: str) -> str:
    timespec = "milliseconds" if when.microsecond else "seconds"
    return when.replace(tzinfo=None).isoformat(separator, timespec)
