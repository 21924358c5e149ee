"""Time zones: periods of constant offset from UTC, read from the files of the pinned package `tzdata`.

The files of the system are never read, so that both engines and all machines agree. A file lists transitions, and ends
in a rule for all later years. Rules repeat every 400 years, the cycle of the Gregorian calendar.
"""

from __future__ import annotations

import re
from base64 import b85decode, b85encode
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import pairwise
from struct import Struct, calcsize, unpack_from
from zlib import compress, decompress

from windowlib.model.errors import InvalidSpec
from windowlib.model.windows import MIN_TIME_MS

DAY_MS = 86_400_000
CYCLE_MS = 146_097 * DAY_MS
"""Length of 400 years."""

_HEADER = Struct(">4s c 15x 6L")
_RULE = re.compile(r"(<[^>]+>|[A-Za-z]+)([^A-Za-z<,]+)(?:(<[^>]+>|[A-Za-z]+)([^,]*),(.+),(.+))?")
_LAST_FOLLOWED = 2099  # every list of transitions ends before, that of Casablanca in 2087


@dataclass(frozen=True, slots=True)
class Zone:
    """Offset of a zone from UTC, in ms: ``offsets[i]`` in the period from ``starts[i]`` to the next start.

    The first period has no start. Periods from year 2100 are listed for 400 years, and then repeat.

    >>> berlin = zone("Europe/Berlin")
    >>> [berlin.offset_ms(time_ms) // 3_600_000 for time_ms in (1_774_745_999_999, 1_774_746_000_000)]
    [1, 2]
    """

    name: str
    starts: tuple[int, ...]
    offsets: tuple[int, ...]

    def offset_ms(self, timestamp_ms: int) -> int:
        """Offset of the local clock from UTC at an instant."""
        return self.offsets[bisect_right(self.starts, timestamp_ms - cycles(timestamp_ms) * CYCLE_MS) - 1]

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that change with the transitions."""
        return sha256(repr((self.starts, self.offsets)).encode()).hexdigest()[:12]

    def instants(self, local_ms: int) -> list[int]:
        """Instants at which the local clock shows a time, given in ms since 1970-01-01 00:00 of the local clock.

        If the clock skips the time, returns the transition.

        >>> autumn_ms, spring_ms, hour_ms = 1_792_890_000_000, 1_774_746_000_000, 3_600_000  # transitions
        >>> [at_ms - autumn_ms for at_ms in zone("Europe/Berlin").instants(autumn_ms + hour_ms)]
        [-3600000, 0]
        >>> [at_ms - spring_ms for at_ms in zone("Europe/Berlin").instants(spring_ms + hour_ms + 1)]
        [0]
        """
        near = self.transitions(local_ms - 2 * DAY_MS, local_ms + 2 * DAY_MS)
        first_ms = self.offset_ms(local_ms - 2 * DAY_MS)
        offsets = {first_ms, *(offset_ms for _, offset_ms in near)}
        possible = sorted((local_ms - offset_ms, offset_ms) for offset_ms in offsets)
        shown = [at_ms for at_ms, offset_ms in possible if self.offset_ms(at_ms) == offset_ms]
        return shown or [start_ms for start_ms, offset_ms in near if start_ms + offset_ms > local_ms][:1]

    def transitions(self, from_ms: int, to_ms: int) -> list[tuple[int, int]]:
        """Instants in ``[from_ms, to_ms)`` at which the offset changes, each with the new offset in ms.

        >>> zone("Europe/Berlin").transitions(1_774_746_000_000, 1_774_746_000_001)
        [(1774746000000, 7200000)]
        """
        first, last = cycles(from_ms), cycles(to_ms)
        listed = list(zip(self.starts, self.offsets, strict=True))[1:]
        listed = [change for change in listed if change[0] < REPEATS_FROM_MS + CYCLE_MS]
        repeated = [change for change in listed if change[0] >= REPEATS_FROM_MS]
        changes = [(start_ms, offset_ms) for start_ms, offset_ms in listed if first == 0]
        for cycle in range(max(1, first), last + 1):
            changes += [(start_ms + cycle * CYCLE_MS, offset_ms) for start_ms, offset_ms in repeated]
        return [change for change in changes if from_ms <= change[0] < to_ms]


def days_of(year: int, month: int) -> int:
    """Days from 1970-01-01 to the first day of a month of the Gregorian calendar; months may be outside 1 to 12.

    >>> days_of(1970, 1), days_of(1970, 3), days_of(1969, 13), days_of(2000, 3) - days_of(2000, 2)
    (0, 59, 0, 29)
    """
    months = 12 * year + month - 3  # years from March, so that the leap day is the last
    years, month = divmod(months, 12)
    return 365 * years + years // 4 - years // 100 + years // 400 + (153 * month + 2) // 5 - 719_468


REPEATS_FROM_MS = days_of(_LAST_FOLLOWED + 1, 1) * DAY_MS


def cycles(time_ms: int) -> int:
    """Number of 400-year cycles by which a time is after the listed periods; 0 for times in them."""
    return max(0, (time_ms - REPEATS_FROM_MS) // CYCLE_MS)


@cache
def zone_names() -> frozenset[str]:
    """Names of all zones."""
    return frozenset(files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}


def zone_data(name: str) -> bytes:
    """Content of the file of a zone."""
    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


@cache
def zone(name: str) -> Zone:
    """Time zone with this name. Raises InvalidSpec for unknown names.

    >>> zone("UTC")
    Zone(name='UTC', starts=(-9223372036854775808,), offsets=(0,))
    """
    if name not in zone_names():
        raise InvalidSpec(f'the time zone "{name}" is unknown: need a name such as "Europe/Berlin" or "UTC"')
    return _zone(name, zone_data(name))


def packed_zone(name: str) -> str:
    """Content of the file of a zone as ASCII text, from which `unpacked_zone` makes the zone of this `tzdata` again."""
    return b85encode(compress(zone_data(name), 9)).decode()


def unpacked_zone(name: str, packed: str) -> Zone:
    """Time zone by a file that `packed_zone` has packed.

    >>> unpacked_zone("Asia/Tokyo", packed_zone("Asia/Tokyo")) == zone("Asia/Tokyo")
    True
    """
    return _zone(name, decompress(b85decode(packed)))


def _zone(name: str, data: bytes) -> Zone:
    changes = [(MIN_TIME_MS, 0)]
    for start_s, offset_s in _changes(data):
        start_ms = max(MIN_TIME_MS, start_s * 1_000)
        if start_ms == MIN_TIME_MS:
            changes = [(MIN_TIME_MS, offset_s * 1_000)]
        elif offset_s * 1_000 != changes[-1][1]:
            changes.append((start_ms, offset_s * 1_000))
    starts, offsets = zip(*changes, strict=True)
    return Zone(name, starts, offsets)


def _changes(data: bytes) -> Iterator[tuple[int, int]]:
    """Times and new offsets, in seconds, of a file (RFC 9636): the first offset, the list, then the rule's years."""
    _, _, *counts = _HEADER.unpack_from(data)
    at = _HEADER.size + _block_bytes(counts, 4)  # the second block has times of 64 bits
    _, _, *counts = _HEADER.unpack_from(data, at)
    at, (_, _, _, times, types, _) = at + _HEADER.size, counts
    instants = unpack_from(f">{times}q", data, at)
    indexes = unpack_from(f">{times}B", data, at + 8 * times)
    offsets = [unpack_from(">l", data, at + 9 * times + 6 * index)[0] for index in range(types)]
    rule = data[at + _block_bytes(counts, 8) :].decode().strip()
    yield -(2**62), offsets[0]
    yield from zip(instants, (offsets[index] for index in indexes), strict=True)
    newest_s = instants[-1] if instants else -(2**62)
    yield from (change for change in _ruled(rule, offsets[0]) if change[0] > newest_s)


def _block_bytes(counts: list[int], time_bytes: int) -> int:
    in_utc, standard, leaps, times, types, letters = counts
    return times * (time_bytes + 1) + types * calcsize(">lBB") + letters + leaps * (time_bytes + 4) + standard + in_utc


def _ruled(rule: str, before_s: int) -> Iterator[tuple[int, int]]:
    """Changes by a rule, such as ``CET-1CEST,M3.5.0,M10.5.0/3``, until the listed periods end."""
    match = _RULE.fullmatch(rule)
    if match is None or match[5] is None:
        return
    standard_s = -_seconds(match[2])
    summer_s = -_seconds(match[4]) if match[4] else standard_s + 3_600
    for year in range(1970, _LAST_FOLLOWED + 402):
        summer = _day_of_rule(match[5], year) - standard_s, summer_s
        winter = _day_of_rule(match[6], year) - summer_s, standard_s
        yield from sorted((summer, winter))


def _day_of_rule(text: str, year: int) -> int:
    """Local time, in seconds since 1970, of a change in a year: ``Mmonth.week.weekday/time``, by default at 02:00."""
    day, _, time = text.partition("/")
    month, week, weekday = map(int, day.removeprefix("M").split("."))
    first = days_of(year, month)
    days = first + (weekday - first - 4) % 7 + 7 * (week - 1)  # 1970-01-01 was a Thursday
    days -= 7 if days >= days_of(year, month + 1) else 0
    return 86_400 * days + _seconds(time or "2")


def _seconds(text: str) -> int:
    """Seconds of ``[+-]h[:mm[:ss]]``."""
    sign = -1 if text.startswith("-") else 1
    parts = [*map(int, text.lstrip("+-").split(":")), 0, 0]
    return sign * (3_600 * parts[0] + 60 * parts[1] + parts[2])


def greatest_drop_ms(periods: Zone, within_ms: int) -> int:
    """Greatest loss of local time between two instants at most this far apart. A skipped date makes up for no loss."""
    steps = [
        (after - before) % DAY_MS if after - before >= DAY_MS else after - before
        for before, after in pairwise(periods.offsets)
    ]
    greatest_ms = 0
    for first, start_ms in enumerate(periods.starts[1:]):
        gained_ms = 0
        for later in range(first, len(steps)):
            if periods.starts[later + 1] > start_ms + within_ms:
                break
            gained_ms += steps[later]
            greatest_ms = max(greatest_ms, -gained_ms)
    return greatest_ms


def most_transitions(periods: Zone, within_ms: int) -> int:
    """Greatest number of transitions that are at most this far apart."""
    starts = periods.starts[1:]
    return max((bisect_right(starts, start_ms + within_ms) - at for at, start_ms in enumerate(starts)), default=0)
