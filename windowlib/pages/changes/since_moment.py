"""Changes of results since a moment: by day, with sums before and after, and by cause, with the operators' reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import isclose
from zoneinfo import ZoneInfo

from windowlib.definition.definition import Definition
from windowlib.definition.toml.durations import UNITS
from windowlib.delta.tables import Tables
from windowlib.ledger.rerun_request import time_ms
from windowlib.pages.changes.by_batch import BatchChange, DayCause, changes_by_batch
from windowlib.pages.counts.row_counts import NumericOutput, day_of, start_ms, total
from windowlib.pages.days import Days, days
from windowlib.pages.newest_rows import RecentRun, Tail
from windowlib.pages.overview import final_up_to
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.publication.key import CannotLook
from windowlib.reruns.totals import Number

DAYS_BACK = 7
CAUSES_OF_OPERATORS = ("rerun", "migrate", "rollback", "adopt", "forget")


@dataclass(frozen=True, slots=True)
class Because:
    """A batch on request of an operator, with the reason."""

    batch_id: int
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChangedDay:
    """Changes of a day, or the part of them that has one `cause`. `day` is None if windows belong to no day.

    * `windows` counts changes by kind: added, changed, extended, removed.
    * `sums` has the change of each additive output, `before` and `after` its sum in the day; None if unknown.
    """

    day: date | None
    windows: Mapping[str, int]
    sums: Sequence[Number | None]
    before: Sequence[Number | None] = ()
    after: Sequence[Number | None] = ()
    cause: str = ""
    because: Sequence[Because] = ()
    causes: Sequence[ChangedDay] = ()


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """Changes after a moment, newest day first. `is_known`: the changes of all batches after the moment are known."""

    title: str
    since_ms: int
    outputs: Sequence[str]
    batches: int
    days: Sequence[ChangedDay]
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that a reader can choose."""

    title: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class KnownChanges:
    """Changes of the newest batches. `runs` are newest first; the changes of the batches in `by_batch` are known."""

    outputs: Sequence[NumericOutput]
    by_batch: Mapping[int, BatchChange]
    runs: Sequence[RecentRun]
    days: Days
    is_whole: bool

    def since(self, moment: Moment) -> ChangesSince:
        """Changes of the batches that were committed after a moment."""
        later = [run for run in self.runs if run.at_ms > moment.since_ms]
        known_runs = [run for run in later if run.batch_id in self.by_batch]
        parts = [(run, part) for run in known_runs for part in self.by_batch[run.batch_id]]
        by_day: dict[date | None, list[tuple[RecentRun, DayCause]]] = {}
        for run, part in parts:
            by_day.setdefault(part.day, []).append((run, part))
        newest_first = sorted(by_day, key=lambda day: day or date.min, reverse=True)
        is_known = len(known_runs) == len(later) and (len(later) < len(self.runs) or self.is_whole)
        names = [output.name for output in self.outputs]
        changed = [self._day(day, by_day[day], is_known=is_known) for day in newest_first]
        return ChangesSince(moment.title, moment.since_ms, names, len(known_runs), changed, is_known)

    def moments(self, now_ms: int) -> Iterator[Moment]:
        """Moments to choose from: the newest batch, a day ago, and the starts of the last days."""
        if len(self.runs) > 1:
            yield Moment(f"batch {self.runs[1].batch_id}", self.runs[1].at_ms)
        yield Moment("a day ago", now_ms - UNITS["d"])
        zone = ZoneInfo(self.days.zone)
        today = day_of(now_ms, zone)
        for back in range(DAYS_BACK):
            day = today - timedelta(days=back)
            yield Moment("today" if back == 0 else f"{day:%A}", start_ms(day, zone))
        yield Moment("two weeks ago", now_ms - 14 * UNITS["d"])

    def _day(self, day: date | None, parts: Sequence[tuple[RecentRun, DayCause]], *, is_known: bool) -> ChangedDay:
        by_cause: dict[str, list[tuple[RecentRun, DayCause]]] = {}
        for run, part in parts:
            by_cause.setdefault(part.cause, []).append((run, part))
        causes = [_of_cause(day, of_cause, cause) for cause, of_cause in sorted(by_cause.items())]
        whole = together(day, [part for _, part in parts])
        now = next((shown_day for shown_day in self.days.days if shown_day.day == day), None)
        places = [self.days.headline.index(output) for output in self.outputs] if now else []
        after = [now.values[place] for place in places] if now else [None] * len(self.outputs)
        before = [_before(value, change) if is_known else None for value, change in zip(after, whole.sums, strict=True)]
        return ChangedDay(day, whole.windows, whole.sums, before, after, causes=causes)


def known_changes(
    definition: Definition, tables: Tables, tail: Tail, days: Days, *, keep: bool = False
) -> KnownChanges:
    """Changes of the newest batches. `days` has their current values. With `keep`, stores the changes."""
    outputs = [output for output in days.headline if output.combine == "sum"]
    by_batch = changes_by_batch(definition, tables, tail.runs, outputs, is_whole=tail.is_whole, keep=keep)
    return KnownChanges(outputs, by_batch, tail.runs, days, tail.is_whole)


def changes_since(definition: Definition, now_ms: int, since: str) -> ChangesSince:
    """Changes since a time or a batch, by default since a day ago. Raises `CannotLook`."""
    observed = observe_pipeline(definition, now_ms)
    commit, tables = observed.ledger.commit, observed.tables
    moment = moment_of(observed.tail, since) if since else Moment("a day ago", now_ms - UNITS["d"])
    by_day = days(observed.definition, tables, observed.tail, final_up_to(commit), moment.since_ms)
    return known_changes(observed.definition, tables, observed.tail, by_day).since(moment)


def moment_of(tail: Tail, since: str) -> Moment:
    """Moment that a reader typed: a time, or a batch. Raises `CannotLook`."""
    if not since.isdecimal():
        return Moment(since, time_ms("since", since))
    for run in tail.runs:
        if run.batch_id == int(since):
            return Moment(f"batch {since}", run.at_ms)
    raise CannotLook(f"batch {since} is not among the newest batches. Give a newer batch, or a time")


def _of_cause(day: date | None, parts: Sequence[tuple[RecentRun, DayCause]], cause: str) -> ChangedDay:
    """Sum of the changes with one cause, with the requests of operators behind them."""
    requests = {run.batch_id: run.rerun or run.decision for run, _ in parts if cause in CAUSES_OF_OPERATORS}
    because = [Because(batch, request.who, request.reason) for batch, request in requests.items() if request]
    return replace(together(day, [part for _, part in parts], cause), because=because)


def together(day: date | None, parts: Sequence[DayCause], cause: str = "") -> ChangedDay:
    """Sum of changes of a day. `sums` are unknown if one of them is."""
    windows = sum((Counter(part.windows) for part in parts), Counter[str]())
    sums = [None if None in values else total(values) for values in zip(*(part.sums for part in parts), strict=True)]
    return ChangedDay(day, windows, sums, cause=cause)


def _before(after: Number | None, change: Number | None) -> Number | None:
    """Value before a change. A sum without values counts as 0. Rounding of floats does not leave a tiny rest.

    >>> _before(5, 2), _before(None, -3), _before(5, None), _before(0.1 + 0.2, 0.3)
    (3, 3, None, 0.0)
    """
    if change is None:
        return None
    if isinstance(change, float):
        now = float(after or 0)
        return 0.0 if isclose(now, change) else now - change
    return total([after or 0, -change])
