"""Expected tables after each batch, by the rules alone: lists and dictionaries, no code of windowlib.

A *place* is a file and a row of it. A window, or a slice of aligned windows, holds the events of its key; what is
published of it is worked out from them. Rules of a batch:

* the time of a batch never falls behind that of the one before
* rows are refused in the order of `refusal`; an id is a duplicate where an admitted row had it before
* windows of the batch's events and those in flight are joined where they touch (sessions); a window that ends by
  ``watermark - lateness`` of the batch's start is late: its events are, unless another window takes them
* then the watermark moves to the newest event less ``delay + 1``; windows that it has reached are published if they
  are new or have new events, and those past their cleanup go
* after a file was rewritten or lost its rows, and those of others in the range that were duplicates, are judged again:
  an event of another file stays one; of the others the first to arrive that has an id
* another lateness comes into force before the events: what is past it goes, and what has gone stays late
* count windows are bounded by the numbers of their events, in order of arrival; nothing is late for them
* a column that was added comes with the next batch that reads files; a window has it where all of its events have
  come, or were counted again by a rerun, since the batch that brought the aggregates it is made of
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any, NamedTuple

from tests.support.aligned_windows import slice_at, windows_at
from tests.support.comparison import same_values

BEGINNING, END = -(2**63), 2**63 - 1
Place = tuple[str, int]
Bounds = tuple[str, int, int]  # key, start, end


class Row(NamedTuple):
    """A row of the source, and where it stands."""

    place: Place
    order: tuple[int, int]  # of arrival: the number of the file, the row
    id: str | None
    user: str | None
    at_ms: int | None
    value: int | None
    gap_ms: int | None
    ahead: bool = False  # its time may be later than that of the batch


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of a pipeline: sessions of `gap_ms` (None: the gap of each row), aligned windows of a size, or the last
    `size` events at every `slide` of them.
    """

    gap_ms: int | None = None
    size_ms: int | None = None
    slide_ms: int = 0
    offset_ms: int = 0
    counts: tuple[int, int] | None = None  # size and slide, in events

    @property
    def merge(self) -> bool:
        return self.size_ms is None and self.counts is None

    def of(self, row: Row) -> list[tuple[int, int]]:
        """The windows that an event alone would have, the earliest first."""
        assert row.at_ms is not None
        if self.counts:
            return [(BEGINNING, END)]
        if self.size_ms is None:
            gap_ms = row.gap_ms if self.gap_ms is None else self.gap_ms
            assert gap_ms is not None
            return [(row.at_ms, row.at_ms + gap_ms)]
        return self.aligned(row.at_ms)

    def aligned(self, at_ms: int) -> list[tuple[int, int]]:
        """The aligned windows over a time."""
        assert self.size_ms is not None
        return windows_at(at_ms, self.size_ms, self.slide_ms, self.offset_ms)

    def slice(self, at_ms: int) -> tuple[int, int]:
        """The slice that holds a time."""
        assert self.size_ms is not None
        return slice_at(at_ms, self.size_ms, self.slide_ms, self.offset_ms)


@dataclass(frozen=True, slots=True)
class Correction:
    """A rerun of the windows that meet a range, or of those that its late events missed (of a key alone); perhaps after
    a file was rewritten, with other values and times in the range, or was lost."""

    from_ms: int
    to_ms: int
    late_only: bool = False
    key: str | None = None
    repaired: tuple[Row, ...] = ()
    lost: str | None = None
    gap: bool = False  # a file has been lost, now or before

    def chooses(self, row: Row) -> bool:
        """Tests if it counts a late event."""
        return row.at_ms in range(self.from_ms, self.to_ms) and self.key in (None, row.user)


@dataclass(frozen=True, slots=True)
class Rules:
    """A pipeline's settings, in milliseconds."""

    windows: Windows
    delay_ms: int
    lateness_ms: int
    skew_ms: int
    with_ids: bool
    idle_ms: int | None = None


@dataclass(slots=True)
class Published:
    """A row of `results`."""

    values: tuple[Any, ...]
    firing: int
    timing: str
    batch: int


JUDGED = ("duplicate", "hole")  # what a row may be once, and not when it is judged again
Change = tuple[int, str, str, Bounds, tuple[Any, ...]]  # batch, change, cause, window, values


@dataclass(slots=True)
class Truth:
    """Expected state. In flight: sessions by their bounds, and slices of aligned windows."""

    rules: Rules
    watermark_ms: int = BEGINNING
    late_ms: int = 2 * BEGINNING  # windows whose last millisecond is not above it
    heard_ms: int | None = None
    planned_ms: int = BEGINNING
    batch: int = 0
    results: dict[Bounds, Published] = field(default_factory=dict)
    in_flight: dict[Bounds, list[Row]] = field(default_factory=dict)
    replaces: dict[Bounds, set[Bounds]] = field(default_factory=dict)
    late: dict[Place, int | None] = field(default_factory=dict)  # and the rerun since which it is in a window
    refused: dict[Place, str] = field(default_factory=dict)
    repeated: list[Row] = field(default_factory=list)  # refused as duplicates
    feed: list[Change] = field(default_factory=list)
    admitted: list[Row] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    columns: tuple[str, ...] = ()  # of results, in order; () stands for all
    added: dict[str, int] = field(default_factory=dict)  # those that came later, and the batch that fills each, or 0
    wanted: tuple[str, ...] = ()  # those that come with the next files
    stored: dict[str, int] = field(default_factory=dict)  # aggregates, and the batch that brought them, or 0
    counted: dict[Place, int] = field(default_factory=dict)  # the batch since which an event is counted

    def __post_init__(self) -> None:
        self.columns = self.columns or tuple(AGGREGATES)
        self.stored = {one: 0 for name in self.columns for one in MADE_OF.get(name, (name,))}

    def is_late(self, end_ms: int) -> bool:
        """Tests if a window that ends then is or was past its cleanup."""
        return end_ms - 1 <= self._late_ms()

    def _late_ms(self) -> int:
        now_ms = END if self.watermark_ms == END else self.watermark_ms - self.rules.lateness_ms
        return max(self.late_ms, now_ms)

    # -- a batch ------------------------------------------------------------------------------------------------------

    def read(self, rows: Sequence[Row], now_ms: int, *, finish: bool = False) -> None:
        """A batch of these rows, planned then."""
        self.batch += 1
        now_ms = self.planned_ms = max(now_ms, self.planned_ms)
        self._clean_up()
        if rows:
            self._add_columns()
        events, newest_ms = self._admit(rows, now_ms)
        self.admitted += events
        self.counted |= {row.place: self.batch for row in events}
        if self.rules.windows.counts:
            self._count(events, *self.rules.windows.counts)
            self._move(newest_ms, now_ms, finish, reads=bool(rows))
            return
        touched = self._sessions(events) if self.rules.windows.merge else self._slices(events)
        before_ms = self.watermark_ms
        self._move(newest_ms, now_ms, finish, reads=bool(rows))
        self._publish(touched, before_ms)
        self._clean_up()

    def _add_columns(self) -> None:
        for name in self.wanted:
            made_of = MADE_OF.get(name, (name,))
            self.stored |= {one: self.batch for one in made_of if one not in self.stored}
            self.added[name] = max(self.stored[one] for one in made_of)
        self.columns, self.wanted = (*self.columns, *self.wanted), ()

    def values(self, rows: Sequence[Row], *, whole: bool = False) -> tuple[Any, ...]:
        """Published values of the events of a window, for the columns that are filled."""
        since = max([0, *self.added.values()]) if whole else min(self.counted[row.place] for row in rows)
        has = {name: name in self.columns and self.added.get(name, 0) <= since for name in AGGREGATES}
        *values, time = values_of(rows)
        filled = ", ".join(name for name in self.columns if name in self.added and has[name])
        return *(value if has[name] else None for name, value in zip(has, values, strict=True)), time, filled or None

    def due(self, now_ms: int) -> bool:
        """Tests if silence up to then lets a window fire or retire."""
        quiet_ms = self._quiet_ms(max(now_ms, self.planned_ms))
        to_ms = max(self.watermark_ms, quiet_ms)
        ends = [] if self.rules.windows.counts else [self._end(bounds) for bounds in self.in_flight]
        return (quiet_ms > BEGINNING and any(map(self.is_late, ends))) or any(
            self.watermark_ms < at_ms <= to_ms for end in ends for at_ms in (end - 1, end - 1 + self.rules.lateness_ms)
        )

    def _admit(self, rows: Sequence[Row], now_ms: int) -> tuple[list[Row], int | None]:
        events, times = [], []
        for row in rows:
            why = self._refusal(row, now_ms)
            hole = why is None and not self.rules.windows.of(row)
            if hole:
                assert row.at_ms is not None
                times.append(row.at_ms)
                if row.at_ms > self._late_ms():
                    why = "hole"
            if why is None and self.rules.with_ids and row.id is not None:
                why = "duplicate" if row.id in self.ids else None
                self.ids.add(row.id)
            if why:
                self.refused[row.place] = why
                self.repeated += [row] if why == "duplicate" else []
            else:
                assert row.at_ms is not None
                events.append(row)
                times.append(row.at_ms)
        return events, max(times, default=None)

    def _refusal(self, row: Row, now_ms: int) -> str | None:
        if row.at_ms is None:
            return "null_timestamp"
        if row.user is None:
            return "null_key"
        if row.at_ms > now_ms + self.rules.skew_ms:
            return "future"
        if self.rules.windows.merge and self.rules.windows.gap_ms is None and not (row.gap_ms and row.gap_ms > 0):
            return "bad_gap"
        return None

    def _sessions(self, events: Sequence[Row]) -> set[Bounds]:
        """Joins sessions that touch; returns the windows with new events, without late ones."""
        touched = set()
        for key in {str(row.user) for row in events}:
            own = [bounds for bounds in self.in_flight if bounds[0] == key]
            parts = [(start, end, self.in_flight.pop((key, start, end)), False) for _, start, end in own]
            parts += [(*self.rules.windows.of(row)[0], [row], True) for row in events if row.user == key]
            replaced = {bounds: self.replaces.pop(bounds, set()) for bounds in own}
            for start, end, group in _touching(parts):
                rows = [row for part in group for row in part[2]]
                new = any(part[3] for part in group)
                if self.is_late(end):
                    assert new
                    self.late |= {row.place: None for row in rows}
                    continue
                made = key, start, end
                self.in_flight[made] = rows
                self.replaces[made] = set().union(*(replaced.get((key, *part[:2]), set()) for part in group))
                if new:
                    touched.add(made)
        return touched

    def _slices(self, events: Sequence[Row]) -> set[Bounds]:
        touched = set()
        for row in events:
            assert row.at_ms is not None
            taken = [bounds for bounds in self.rules.windows.of(row) if not self.is_late(bounds[1])]
            if not taken:
                self.late[row.place] = None
                continue
            self.in_flight.setdefault((str(row.user), *self.rules.windows.slice(row.at_ms)), []).append(row)
            touched |= {(str(row.user), *bounds) for bounds in taken}
        return touched

    def _count(self, events: Sequence[Row], size: int, slide: int) -> None:
        """Publishes the last `size` events of a key after every `slide` events. In flight: slices of later windows."""
        width = gcd(size, slide)
        for key in {str(row.user) for row in events}:
            own = sorted((row for row in self.admitted if row.user == key), key=lambda row: row.order)
            before = len(own) - sum(row.user == key for row in events)
            for end in range((before // slide + 1) * slide, len(own) + 1, slide):
                bounds = key, end - size, end
                values = self.values(own[max(end - size, 0) : end])
                self.results[bounds] = Published(values, end // slide, "early", self.batch)
                self._add_change("added", "firing", bounds, values)
            kept_from = min((len(own) // slide + 1) * slide - size, len(own) - 1)
            self.in_flight = {bounds: rows for bounds, rows in self.in_flight.items() if bounds[0] != key}
            for start in range(max(kept_from, 0) // width * width, len(own), width):
                self.in_flight[key, start, start + width] = own[start : start + width]

    def _quiet_ms(self, now_ms: int) -> int:
        idle_ms = self.rules.idle_ms
        if idle_ms is None or self.heard_ms is None or now_ms - self.heard_ms < idle_ms:
            return BEGINNING
        return now_ms - idle_ms - self.rules.delay_ms - 1

    def _move(self, newest_ms: int | None, now_ms: int, finish: bool, reads: bool) -> None:
        if finish:
            self.watermark_ms = END
        elif newest_ms is not None:
            self.watermark_ms = max(self.watermark_ms, newest_ms - self.rules.delay_ms - 1)
            self.heard_ms = now_ms
        else:
            self.heard_ms = now_ms if self.heard_ms is None else self.heard_ms
            self.watermark_ms = self.watermark_ms if reads else max(self.watermark_ms, self._quiet_ms(now_ms))

    def _publish(self, touched: set[Bounds], before_ms: int) -> None:
        for bounds, rows in list(self._windows().items()):
            passed = bounds[2] - 1 <= before_ms
            if bounds[2] - 1 > self.watermark_ms or (passed and bounds not in touched):
                continue
            old = self.replaces.get(bounds, set()) if self.rules.windows.merge else {bounds} & self.results.keys()
            firing = max((self.results[one].firing for one in old), default=0) + 1
            new = Published(self.values(rows), firing, "late" if passed else "on_time", self.batch)
            for one in old - {bounds}:
                self._add_change("removed", "merge", one, self.results.pop(one).values)
            if bounds in old:
                self._add_change("changed", "late", bounds, new.values)
            else:
                first = "merge" if old else "late" if passed else "firing"
                self._add_change("added", first, bounds, new.values)
            self.results[bounds] = new
            if self.rules.windows.merge:
                self.replaces[bounds] = {bounds}

    def _add_change(self, change: str, cause: str, bounds: Bounds, values: tuple[Any, ...]) -> None:
        self.feed.append((self.batch, change, cause, bounds, values))

    def _windows(self) -> dict[Bounds, list[Row]]:
        """Windows over the state that are not late, with their events."""
        if self.rules.windows.merge:
            return self.in_flight
        found: dict[Bounds, list[Row]] = {}
        for (key, start, _), rows in self.in_flight.items():
            for bounds in self.rules.windows.aligned(start):
                found.setdefault((key, *bounds), []).extend(rows)
        return found

    def _end(self, bounds: Bounds) -> int:
        """Until when something is in flight: the end of the window, or of the last one over a slice."""
        return bounds[2] if self.rules.windows.merge else self.rules.windows.aligned(bounds[1])[-1][1]

    def _clean_up(self) -> None:
        self.late_ms = self._late_ms()
        if self.rules.windows.counts:
            return
        for bounds in [one for one in self.in_flight if self.is_late(self._end(one))]:
            del self.in_flight[bounds]
            self.replaces.pop(bounds, None)

    # -- a rerun ------------------------------------------------------------------------------------------------------

    def rerun(self, wanted: Correction) -> None:
        """Recomputes the windows in the range from all events, or the windows that its late events join."""
        self.batch += 1
        self._replace(wanted)
        self._clean_up()
        before = dict(self.results)
        asked = range(wanted.from_ms, wanted.to_ms)
        chosen = self.readmitted(wanted)
        if self.rules.windows.merge:
            self._rerun_sessions(asked, chosen, wanted.late_only)
        else:
            self._rerun_aligned(asked, chosen, wanted.late_only)
        for bounds in before.keys() | self.results.keys():
            old, new = before.get(bounds), self.results.get(bounds)
            if old and new and same_values(old.values, new.values):
                self.results[bounds] = old
            elif new:
                new.firing = old.firing + 1 if old else 1
                self._add_change("changed" if old else "added", "rerun", bounds, new.values)
            elif old:
                self._add_change("removed", "rerun", bounds, old.values)

    def _replace(self, wanted: Correction) -> None:
        """Reads a rewritten file anew: none of its rows is a late event any more."""
        if not wanted.repaired and not wanted.lost:
            return
        files = {wanted.lost, *(row.place[0] for row in wanted.repaired)}
        new = [row for row in wanted.repaired if self._refusal(row, self.planned_ms) is None]
        holes = {row.place for row in new if not self.rules.windows.of(row)}
        again = [row for row in new if row.place not in holes]
        again += [row for row in self.repeated if row.place[0] not in files and self._covers(wanted, row)]
        judged = {row.place for row in again} | {row.place for row in wanted.repaired}
        self.refused = {place: why for place, why in self.refused.items() if place not in judged or why not in JUDGED}
        self.refused |= dict.fromkeys(holes, "hole")
        self.late = {place: batch for place, batch in self.late.items() if place not in judged}
        self.admitted = [row for row in self.admitted if row.place[0] not in files]
        self.repeated = [row for row in self.repeated if row.place not in judged]
        self.ids = {row.id for row in self.admitted if row.id is not None}
        for row in sorted(again, key=lambda row: row.order):
            if self.rules.with_ids and row.id in self.ids:
                self.refused[row.place] = "duplicate"
                self.repeated.append(row)
                continue
            self.ids |= {row.id} - {None}
            self.admitted.append(row)

    def _covers(self, wanted: Correction, row: Row) -> bool:
        """Tests if a rerun computes all windows of a row again."""
        windows = self.rules.windows.of(row)
        if self.rules.windows.merge or self.rules.windows.slide_ms < (self.rules.windows.size_ms or 0):
            return row.at_ms in range(wanted.from_ms, wanted.to_ms)
        return any(start < wanted.to_ms and wanted.from_ms < end for start, end in windows)

    def readmitted(self, wanted: Correction) -> set[Place]:
        """The late events in no window that a rerun counts."""
        return {row.place for row in self.admitted if self._waits(row.place) and wanted.chooses(row)}

    def _waits(self, place: Place) -> bool:
        return place in self.late and self.late[place] is None

    def _counted(self, rows: Sequence[Row]) -> Published:
        return Published(self.values(rows, whole=True), 1, "late", self.batch)

    def _rerun_sessions(self, asked: range, chosen: set[Place], late_only: bool) -> None:
        taken: set[Place] = set()
        for key in {str(row.user) for row in self.admitted} | {one[0] for one in (*self.results, *self.in_flight)}:
            own = [row for row in self.admitted if row.user == key]
            if late_only:
                own = [row for row in own if not self._waits(row.place) or row.place in chosen]
            known = [one for one in (*self.results, *self.in_flight) if one[0] == key]
            parts = [(start, end, [], False) for _, start, end in known]
            parts += [(*self.rules.windows.of(row)[0], [row], True) for row in own]
            for start, end, group in _touching(parts):
                rows = [row for part in group for row in part[2]]
                if late_only and not {row.place for row in rows} & chosen:
                    continue
                if not late_only and not (start < asked.stop and asked.start < end):
                    continue
                for one in known:
                    if start <= one[1] and one[2] <= end:
                        self.results.pop(one, None)
                        self.in_flight.pop(one, None)
                        self.replaces.pop(one, None)
                for first, last, made in _touching([(*self.rules.windows.of(row)[0], [row], True) for row in rows]):
                    bounds, inside = (key, first, last), [row for part in made for row in part[2]]
                    fired = last - 1 <= self.watermark_ms
                    if fired:
                        self.results[bounds] = self._counted(inside)
                    if not self.is_late(last):
                        self.in_flight[bounds], self.replaces[bounds] = inside, {bounds} if fired else set()
                taken |= {row.place for row in rows}
                self.counted |= {row.place: self.batch for row in rows}
        self.late |= {place: self.batch for place in taken if self._waits(place)}

    def _rerun_aligned(self, asked: range, chosen: set[Place], late_only: bool) -> None:
        windows = self.rules.windows
        if late_only:
            times = [row.at_ms for row in self.admitted if row.place in chosen and row.at_ms is not None]
            asked = range(min(times), max(times) + 1)
        elif windows.slide_ms >= (windows.size_ms or 0):  # a window's events are in no other: all of them count
            chosen = {
                row.place
                for row in self.admitted
                if any(start < asked.stop and asked.start < end for start, end in windows.of(row))
            }
        chosen = {row.place for row in self.admitted if row.place in chosen and windows.of(row)}
        counted = [row for row in self.admitted if not self._waits(row.place) or row.place in chosen]
        again: dict[Bounds, list[Row]] = {}
        again_by_slice = lambda bounds: bounds[0] < asked.stop and asked.start < bounds[1]  # noqa: E731
        self.in_flight = {}
        for row in counted:
            assert row.at_ms is not None
            for start, end in windows.of(row):
                if start < asked.stop and asked.start < end and end - 1 <= self.watermark_ms:
                    again.setdefault((str(row.user), start, end), []).append(row)
            over = windows.of(row)
            if over and not self.is_late(over[-1][1]):
                bounds = windows.slice(row.at_ms)
                self.in_flight.setdefault((str(row.user), *bounds), []).append(row)
                if again_by_slice(bounds) if windows.slide_ms < (windows.size_ms or 0) else row.place in chosen:
                    self.counted[row.place] = self.batch
        kept = {one: row for one, row in self.results.items() if not (one[1] < asked.stop and asked.start < one[2])}
        self.results = kept | {bounds: self._counted(rows) for bounds, rows in again.items()}
        self.late |= {place: self.batch for place in chosen if self._waits(place)}


Part = tuple[int, int, list[Row], bool]  # start, end, events, whether it is new


def _touching(parts: Iterable[Part]) -> list[tuple[int, int, list[Part]]]:
    """The parts joined where one begins by the end of another."""
    joined: list[tuple[int, int, list[Part]]] = []
    for part in sorted(parts, key=lambda part: part[:2]):
        if joined and part[0] <= joined[-1][1]:
            start, end, group = joined[-1]
            joined[-1] = start, max(end, part[1]), [*group, part]
        else:
            joined.append((part[0], part[1], [part]))
    return joined


AGGREGATES: Mapping[str, str] = {
    "events": "count(*)",
    "total": "sum(value)",
    "most": "max(value)",
    "least": "min(value) filter (where value > 300)",
    "mean": "avg(value)",
    "opens": "first(value)",
    "closes": "last(value)",
    "kinds": "count(distinct value)",
    "reach": "max(value) - min(value) filter (where value > 300)",
}
MADE_OF: Mapping[str, tuple[str, ...]] = {"reach": ("most", "least")}  # of which others' aggregates


def values_of(rows: Sequence[Row]) -> tuple[Any, ...]:
    """The aggregates of some events, in the order of `AGGREGATES`, and the newest time."""
    in_time = sorted(rows, key=lambda row: (row.at_ms, row.order))
    known = [row.value for row in in_time if row.value is not None]
    least = min((value for value in known if value > 300), default=None)
    return (
        len(rows),
        sum(known) if known else None,
        max(known, default=None),
        least,
        sum(known) / len(known) if known else None,
        in_time[0].value,
        in_time[-1].value,
        len(set(known)),
        None if least is None else max(known) - least,
        in_time[-1].at_ms,
    )
