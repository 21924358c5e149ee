"""Request of a rerun as the ledger stores it, and the checks of its time range."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from windowlib.definition.instants import instant, time_of, zone_of
from windowlib.definition.plurals import counted
from windowlib.model.errors import WindowError
from windowlib.model.rerun import TimeRange
from windowlib.model.time_zones.zones import Zone, zone
from windowlib.plans.partitions import DAY_MS

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source

LONGEST_DAYS = 400


class RerunRefused(WindowError):
    """The requested rerun is impossible. Nothing was changed."""


class RerunAlreadyDone(WindowError):
    """A batch has already applied this preview."""

    def __init__(self, preview_id: str, batch_id: int) -> None:
        super().__init__(f"already done: batch {batch_id} has applied preview {preview_id}")
        self.batch_id = batch_id


@dataclass(frozen=True, slots=True)
class Rerun:
    """A rerun of the windows that overlap `[from_ms, to_ms)`.

    With `late_only` it readmits late events with an event time in the range, and recomputes the windows that they
    missed. `key` limits the readmission to the events of one key: one string per key column, empty if the key was
    erased later. With `accept_gap` the rerun leaves out missing source files. `preview_id` names a dry run; the rerun
    is refused if its outcome differs from that dry run.
    """

    from_ms: int
    to_ms: int
    reason: str
    who: str
    late_only: bool = False
    key: tuple[str, ...] | None = None
    accept_gap: bool = False
    preview_id: str | None = None

    @property
    def range(self) -> TimeRange:
        return TimeRange(self.from_ms, self.to_ms)

    @property
    def title(self) -> str:
        """The rerun in words."""
        return self.titled("" if self.key is None else ", ".join(self.key))

    def titled(self, key: str) -> str:
        """The rerun in words. If the rerun has a key, shows `key` in place of the key values."""
        what = "readmit late events of" if self.late_only else "rerun"
        whose = "" if self.key is None else f", key {key if self.key else 'erased since'}"
        return f"{what} {instant(self.from_ms)} to {instant(self.to_ms)}{whose}"

    def to_json(self) -> str:
        """Returns the JSON that the ledger stores."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Rerun:
        """Reads the JSON of `to_json`."""
        raw = json.loads(text)
        return cls(**{**raw, "key": None if raw["key"] is None else tuple(raw["key"])})

    def is_same_as(self, other: Rerun | None) -> bool:
        """Tests if two reruns are equal: by preview id if this rerun has a preview, else by all fields."""
        if other is not None and self.preview_id is not None:
            return self.preview_id == other.preview_id
        return self == other

    def expecting(self, preview_id: str) -> Rerun:
        """Copy of the rerun that is refused if its outcome differs from the dry run `preview_id`."""
        return replace(self, preview_id=preview_id)


def check_can_rerun(source: Source, never: str | None, rerun: Rerun) -> None:
    """Raises `RerunRefused` if the key of the rerun is wrong, or if `never` states why no window can be rerun."""
    if never:
        raise RerunRefused(
            f"{source.pipeline} cannot be rerun in part: {never}. Recompute all of it: run a copy of the definition"
            " under another name over the same source"
        )
    if rerun.key is not None and len(rerun.key) != len(source.key):
        values, columns = ", ".join(rerun.key), ", ".join(source.key)
        if not columns:
            raise RerunRefused(f"key {values!r}: this pipeline has no key. Leave the key out")
        raise RerunRefused(
            f"key {values!r} has {counted(len(rerun.key), 'value')}, but this pipeline's key has"
            f" {counted(len(source.key), 'column')}: {columns}. Give one value per column"
        )


def time_range(from_text: str, to_text: str, now_ms: int, ahead_ms: int = 0, time_zone: str | None = None) -> TimeRange:
    """Parses the start (inclusive) and the end (exclusive) of a time range. `time_zone` is that of times without one.

    Raises `RerunRefused` if a time has no zone, or if the range is inverted or longer than `LONGEST_DAYS`. The end may
    be at most `ahead_ms` in the future.

    >>> time_range("2026-03-03T00:00Z", "2026-03-04 01:00 +01:00", 1_800_000_000_000)
    TimeRange(from_ms=1772496000000, to_ms=1772582400000)
    """
    from_ms, to_ms = time_ms("from", from_text, time_zone), time_ms("to", to_text, time_zone)
    if from_ms >= to_ms:
        raise RerunRefused(
            f"from {instant(from_ms)} is not before to {instant(to_ms)}; the range is from (inclusive) to (exclusive)"
        )
    if to_ms > now_ms + ahead_ms:
        raise RerunRefused(f"to {instant(to_ms)} is in the future: it is {instant(now_ms)} now. Give an earlier time")
    span = TimeRange(from_ms, to_ms)
    if is_too_long(span):
        raise RerunRefused(
            f"{-((from_ms - to_ms) // DAY_MS):,} days exceed the {LONGEST_DAYS} days of one rerun. Rerun shorter"
            " ranges one after another, or recompute everything under another name"
        )
    return span


def is_too_long(span: TimeRange) -> bool:
    """Tests if a range is longer than an operator may rerun at once."""
    return span.to_ms - span.from_ms > LONGEST_DAYS * DAY_MS


_TEXT = re.compile(r"(?P<moment>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?)\s*(?P<zone>\S.*)?")


def time_ms(name: str, text: str, time_zone: str | None = None) -> int:
    """Parses a time with its zone to ms, rounded down. Raises `RerunRefused`.

    Accepts "2026-03-03T10:00Z", "2026-03-03 10:00 UTC", "… +01:00" and "… Europe/Berlin". A time without a zone is in
    `time_zone`, the zone of calendar windows: a date is the edge of its day, a skipped time is the transition.

    >>> [time_ms("from", day, "Europe/Berlin") // 3_600_000 for day in ("2026-10-25", "2026-10-26")]
    [498022, 498047]
    """
    example = 'such as "2026-03-03T00:00Z" or "2026-03-03 00:00 Europe/Berlin"'
    match = _TEXT.fullmatch(text.strip())
    if not match:
        raise RerunRefused(f'{name} = "{text}" is not a time: need date, time and zone {example}')
    if not match["zone"] and time_zone is not None:
        return _in_calendar(name, text, match["moment"], zone(time_zone))
    if not match["zone"]:
        raise RerunRefused(f'{name} = "{text}" has no time zone: add Z for UTC, an offset or a zone\'s name, {example}')
    try:
        moment = datetime.fromisoformat(match["moment"])
        zone_text = match["zone"].strip()
        if re.fullmatch(r"Z|UTC|[+-]\d\d:?[0-5]\d", zone_text):
            with_zone = datetime.fromisoformat(moment.isoformat() + zone_text.replace("UTC", "Z"))
        else:
            with_zone = _in_zone(name, text, moment, zone_of(zone_text.strip("[]")))
    except ValueError as error:
        raise RerunRefused(f'{name} = "{text}" is not a time: {error}; need date, time and zone {example}') from error
    return time_of(with_zone)


def _in_calendar(name: str, text: str, moment: str, periods: Zone) -> int:
    """Instant of a local time of calendar windows. Of a date, the first at which the clock is at 00:00 or past it.

    Raises `RerunRefused` for text that is not a time, and for a time of day that occurs twice.
    """
    try:
        local = datetime.fromisoformat(moment)
    except ValueError as error:
        raise RerunRefused(f'{name} = "{text}" is not a time: {error}; need date and time') from error
    first_ms, *others = periods.instants(time_of(local))
    if others and len(moment) > len("2026-10-25"):
        offset = timezone(timedelta(milliseconds=periods.offset_ms(first_ms)))
        raise RerunRefused(
            f'{name} = "{text}" occurs twice, because clocks change in {periods.name}: give the offset, as in'
            f" {local.replace(tzinfo=offset).isoformat()}"
        )
    return first_ms


def _in_zone(name: str, text: str, moment: datetime, zone: ZoneInfo) -> datetime:
    """Local time with its zone. Raises `RerunRefused` if a clock change makes the time occur twice or not at all."""
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise RerunRefused(
            f'{name} = "{text}" occurs twice or not at all, because clocks change in {zone.key}: give the offset, as'
            f" in {first.isoformat()}"
        )
    return first


def rerun_of(row: Mapping[str, Any]) -> Rerun | None:
    return Rerun.from_json(row["rerun"]) if row["rerun"] else None
