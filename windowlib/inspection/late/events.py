"""Late events, each with its reason and delay. `late_by_ms` is the distance by which the watermark had passed the
cleanup time of the window that the event missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median_low
from typing import Any

from windowlib.definition.commands import OPEN, from_here, to_paste
from windowlib.definition.instants import instant, iso_instant, time_of
from windowlib.definition.toml.durations import LONGEST_MS, UNITS, format_duration
from windowlib.delta.statistics import overlapping
from windowlib.inspection.lineage.cuts import EVER, Cut, within
from windowlib.ledger.rerun_request import LONGEST_DAYS
from windowlib.model.rerun import TimeRange
from windowlib.plans.partitions import DAY_MS
from windowlib.publication.key import Key

PAST_CLEANUP, NO_WINDOW = "past cleanup", "no window"
REASONS = {
    PAST_CLEANUP: "its window was past its cleanup time",
    NO_WINDOW: "it fell between two windows, and was late by its own time",
}


@dataclass(frozen=True, slots=True)
class LateGroup:
    """Figures of a group of late events.

    `common` holds the values that the events share. It is empty if all late events are in one group.
    """

    common: Mapping[str, Any]
    events: int
    readmitted: int
    least_late_ms: int
    median_late_ms: int
    most_late_ms: int
    first_event_ms: int
    last_event_ms: int

    def json_fields(self) -> dict[str, Any]:
        """Fields of the group's JSON. Entries of `common` are fields at the top level, and times are ISO 8601."""
        fields = asdict(self)
        times = {name: iso_instant(fields.pop(f"{name}_ms")) for name in ("first_event", "last_event")}
        return {**fields.pop("common"), **fields, **times}


@dataclass(frozen=True, slots=True)
class LateEventList:
    """Late events of a pipeline, newest arrival first. `groups` is None if no grouping was requested.

    With `with_readmitted`, `rows` include events that a rerun has readmitted since. `hint` is advice on readmission.
    """

    key: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    groups: Sequence[LateGroup] | None
    with_readmitted: bool
    in_a_range: bool
    hint: str | None

    def json_lines(self) -> Sequence[LateGroup | Mapping[str, Any]]:
        """JSON objects: one per group if grouped, else one per event."""
        return self.rows if self.groups is None else self.groups


def late_events(cut: Cut, span: TimeRange, by: str | None, *, with_readmitted: bool) -> LateEventList:
    """Lists the late events with an event time in the span, and groups them `by` reason, key or hour."""
    rows, key = late_rows(cut, span, readmitted=with_readmitted), cut.definition.source.key
    counted = groups(rows, by, key) if by else None
    hint = readmit_hint(cut, rows)
    return LateEventList(key, newest_first(rows), counted, with_readmitted, span != EVER, hint)


def late_rows(
    cut: Cut,
    span: TimeRange = EVER,
    *,
    readmitted: bool = False,
    columns: Sequence[str] | None = None,
    key: Key | None = None,
) -> list[dict[str, Any]]:
    """Late events with an event time in the span, for one `key` if given.

    With `readmitted`, includes events that a rerun has readmitted since.
    """
    files = overlapping(cut.files("late_events"), "event_time", "event_time", span)
    chosen = within("event_time", span)
    rows = []
    for row in cut.rows("late_events", files, columns=columns, key=key, where=chosen):
        if readmitted or row.get("readmitted_by") is None:
            rows.append(row)
    return rows


def newest_first(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sorts late events by arrival, newest first."""
    return sorted(rows, key=lambda row: (-row["batch_id"], -time_of(row["event_time"]), row["source_file"]))


def groups(rows: Sequence[Mapping[str, Any]], by: str | None, key: Sequence[str]) -> list[LateGroup]:
    """Groups late events by reason or key, largest group first, or by hour, in order of time.

    If `by` is None, all late events form one group.
    """
    members: dict[tuple[tuple[str, Any], ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        members.setdefault(_common(row, by, key), []).append(row)
    by_common = [_group(dict(common), group) for common, group in members.items()]
    if by == "hour":
        return sorted(by_common, key=lambda group: group.common["hour"])
    return sorted(by_common, key=lambda group: (-group.events, str(group.common)))


def _common(row: Mapping[str, Any], by: str | None, key: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """The values that a late event shares with its group."""
    match by:
        case None:
            return ()
        case "reason":
            return (("reason", reason(row)),)
        case "key":
            return tuple((name, row[name]) for name in key)
        case "hour":
            return (("hour", row["event_time"].replace(minute=0, second=0, microsecond=0)),)
    raise AssertionError(f"no group {by}")


def reason(row: Mapping[str, Any]) -> str:
    """Reason for the lateness of an event: a key of `REASONS`."""
    return NO_WINDOW if row["window_start"] is None else PAST_CLEANUP


def _group(common: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> LateGroup:
    late_ms = sorted(row["late_by_ms"] for row in rows)
    times = [time_of(row["event_time"]) for row in rows]
    return LateGroup(
        common=common,
        events=len(rows),
        readmitted=sum(row["readmitted_by"] is not None for row in rows),
        least_late_ms=late_ms[0],
        median_late_ms=median_low(late_ms),
        most_late_ms=late_ms[-1],
        first_event_ms=min(times),
        last_event_ms=max(times),
    )


def how_late(late_by_ms: int) -> str:
    """Delay of an event in words, rounded down to seconds from one minute on.

    >>> how_late(0), how_late(3_723_004), how_late(1_500), how_late(2**62)
    ('0ms', '1h 2m 3s', '1s 500ms', 'more than any allowance')
    """
    if late_by_ms > LONGEST_MS:
        return "more than any allowance"  # after the end that `--finish` declared
    return format_duration(late_by_ms if late_by_ms < UNITS["m"] else late_by_ms // 1000 * 1000)


def readmit_hint(cut: Cut, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Advice on readmitting late events into their windows; None if there is no such event."""
    definition = cut.definition
    waiting = [row for row in rows if row["readmitted_by"] is None and row["window_start"] is not None]
    if not waiting:
        return None
    if isinstance(definition.plan.rerun, str):
        return "late events cannot be readmitted, because this pipeline's windows cannot be rerun in part"
    [whole] = groups(waiting, None, ())
    file, first_ms, after_ms = from_here(definition.file), whole.first_event_ms, whole.last_event_ms + 1
    if after_ms - first_ms > LONGEST_DAYS * DAY_MS:
        command = to_paste("late readmit", file, "--from", OPEN, "--to", OPEN, "--dry-run")
        return f"to readmit some, at most {LONGEST_DAYS} days at a time: {command}"
    bounds = "--from", str(iso_instant(first_ms)), "--to", str(iso_instant(after_ms))
    return f"to readmit them: {to_paste('late readmit', file, *bounds, '--dry-run')}"


def spread(group: LateGroup) -> list[str]:
    """Least, median and greatest delay of a group, then its first and last event time, as text."""
    late = [how_late(ms) for ms in (group.least_late_ms, group.median_late_ms, group.most_late_ms)]
    return [*late, *(instant(ms).removesuffix(" UTC") for ms in (group.first_event_ms, group.last_event_ms))]
