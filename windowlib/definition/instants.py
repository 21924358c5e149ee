"""Points in time: as TIMESTAMPs and whole milliseconds, and as text, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(time_ms: int | None) -> str:
    """A time for people to read.

    >>> instant(0), instant(-1), instant(None), instant(-(2**63))
    ('1970-01-01 00:00:00 UTC', '1969-12-31 23:59:59.999 UTC', 'none yet', 'none yet')
    """
    when = _datetime(time_ms)
    if when is None:
        return "the end of time" if time_ms is not None and time_ms > 0 else "none yet"
    return f"{_text(when, ' ')} UTC"


def in_words(bounds_ms: tuple[int, int]) -> str:
    """The bounds of a window for people.

    >>> in_words((0, 3_600_000))
    '1970-01-01 00:00:00 to 1970-01-01 01:00:00 UTC'
    """
    return f"{instant(bounds_ms[0]).removesuffix(' UTC')} to {instant(bounds_ms[1])}"


def iso_instant(time_ms: int | None) -> str | None:
    """A time for machines: ISO 8601 with ``Z``, or None if no calendar has it.

    >>> iso_instant(1_500), iso_instant(2**63 - 1)
    ('1970-01-01T00:00:01.500Z', None)
    """
    when = _datetime(time_ms)
    return None if when is None else f"{_text(when, 'T')}Z"


def utc(time_ms: int) -> datetime:
    """A TIMESTAMP of whole milliseconds."""
    return _EPOCH + timedelta(milliseconds=time_ms)


def nearest_utc(time_ms: int) -> datetime:
    """A TIMESTAMP of whole milliseconds; the first or last one for a time outside the calendar.

    >>> nearest_utc(-(2**63)).year, nearest_utc(2**63).year
    (1, 9999)
    """
    return _datetime(time_ms) or (datetime.min if time_ms < 0 else datetime.max).replace(tzinfo=UTC)


def time_of(moment: datetime) -> int:
    """A TIMESTAMP in ms, floored; one without a zone is in UTC.

    >>> time_of(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), time_of(datetime(1969, 12, 31, 23, 59, 59, 999_999))
    (1000, -1)
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name; raises ValueError for other names, also for "localtime" of this machine.

    >>> zone_of("Europe/Berlin").key
    'Europe/Berlin'
    """
    if name not in available_timezones() - {"localtime", "Factory"}:  # files, but not names of a zone
        raise ValueError('must be the name of a time zone, such as "Europe/Berlin" or "UTC"')
    return ZoneInfo(name)


def of_local(local_ms: int, zone: str | None) -> int:
    """The time at which clocks of a zone show `local_ms` (ms since they showed 1970), as Spark's to_utc_timestamp.

    If clocks show it twice, the first time counts. A skipped local time counts with the offset before the gap. Without
    a zone, or outside Python's calendar, the result is `local_ms`.

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
    """The TIMESTAMP of a time; None outside Python's calendar, as for the watermark before the first event."""
    try:
        return None if time_ms is None else utc(time_ms)
    except OverflowError:
        return None


def _text(when: datetime, separator: str) -> str:
    timespec = "milliseconds" if when.microsecond else "seconds"
    return when.replace(tzinfo=None).isoformat(separator, timespec)
