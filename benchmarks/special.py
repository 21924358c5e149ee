"""Workloads that ask one question each: small batches, late events, a large state, many windows, several pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.clickstream import BASE_MS, Clicks, Once
from benchmarks.query import HOUR_MS, MINUTE_MS, Query
from benchmarks.workload import Arrival, Case, Size, Workload
from windowlib.model.assigners import CalendarWindows, Session, Sliding, Tumbling
from windowlib.model.calendar import Calendar, CalendarLength

GAP_MS, SLIDE_MS, DAY_MS = 30 * MINUTE_MS, 5 * MINUTE_MS, 24 * HOUR_MS
SMALL = {"empty run": 0, "10 k": 10_000, "100 k": 100_000, "1 M": 1_000_000}
LATE_SHARE = 0.05
FEW_USERS = 2_000
LATE_BY_MS, ALLOWANCE_MS = (2 * HOUR_MS, 5 * HOUR_MS), 6 * HOUR_MS
RETAINED = {"none": 0, "1 M": 1_000_000, "5 M": 5_000_000, "20 M": 20_000_000}
RETAINED_BATCH, LARGEST_FILE, KEPT_MS = 200_000, 1_000_000, 30 * DAY_MS


def hourly(source: Clicks, size: Size, first: int = 0) -> Iterator[Arrival]:
    """A file for each hour, from hour `first` on; the first warms up."""
    for number in range(size.files):
        start_ms = BASE_MS + (first + number) * HOUR_MS
        yield Arrival("", source, size.events, start_ms, HOUR_MS, timed=number > 0)


def small(clicks: Clicks, size: Size) -> list[Case]:
    """Runs over nothing, and over ever larger batches up to `--events`, in one started session."""
    labels = {label: events for label, events in SMALL.items() if events <= size.events}
    arrivals = [Arrival("warm-up", clicks, size.events, BASE_MS, HOUR_MS, timed=False)]
    for _ in range(size.files - 1):
        for label, events in labels.items():
            start_ms = BASE_MS + len(arrivals) * HOUR_MS
            arrivals.append(Arrival(label, clicks, events, start_ms, HOUR_MS))
    return [Case("", (Query("small", Session(GAP_MS)),), arrivals)]


def late(clicks: Clicks, size: Size, late_share: float) -> list[Case]:
    """The same batches without late events, and with a share of them hours late, inside the allowance."""
    query = Query("late", Session(GAP_MS), allowed_lateness_ms=ALLOWANCE_MS)
    behind = replace(clicks, late_share=late_share, late_by_ms=LATE_BY_MS)
    return [
        Case("nothing late", (query,), list(hourly(clicks, size)), finish=True),
        Case(f"{late_share * 100:g} % late", (query,), list(hourly(behind, size)), finish=True),
    ]


def retained(clicks: Clicks, size: Size) -> list[Case]:
    """Batches of at most 200,000 clicks over so many sessions that have fired and are kept for late events."""
    events = min(RETAINED_BATCH, size.events)
    cases = []
    for name, sessions in RETAINED.items():
        kept = min(sessions, sessions * size.events // 1_000_000)  # smaller tries keep less
        query = Query("retained", Session(GAP_MS), allowed_lateness_ms=KEPT_MS)
        built = list(_state(kept))
        first = len(built) * DAY_MS // HOUR_MS
        arrivals = [*built, *hourly(clicks, Size(size.files, events), first)]
        cases.append(Case(f"{name} kept", (query,), arrivals, since_ms=BASE_MS + first * HOUR_MS))
    return cases


def _state(sessions: int) -> Iterator[Arrival]:
    """Files whose every click is a session, a day each."""
    made = 0
    while sessions:
        events = min(sessions, LARGEST_FILE)
        yield Arrival("state", Once(), events, BASE_MS + made * DAY_MS, DAY_MS - HOUR_MS, timed=False)
        sessions, made = sessions - events, made + 1


def overlap(clicks: Clicks, size: Size) -> list[Case]:
    """12 windows for each event next to 288, over so few users that their results barely count."""
    few = replace(clicks, users=400, hot_users=200)
    return [
        Case(f"{size_ms // SLIDE_MS} windows", (Query("overlap", Sliding(size_ms, SLIDE_MS)),), list(hourly(few, size)))
        for size_ms in (HOUR_MS, DAY_MS)
    ]


def five(clicks: Clicks, size: Size) -> list[Case]:
    """One pipeline over a file, and five of several kinds, in one run; by many users, and by few with few slices."""
    queries = (
        Query("sessions_30", Session(30 * MINUTE_MS)),
        Query("sessions_10", Session(10 * MINUTE_MS)),
        Query("tumbling_15", Tumbling(15 * MINUTE_MS)),
        Query("tumbling_60", Tumbling(HOUR_MS)),
        Query("sliding_30", Sliding(30 * MINUTE_MS, 15 * MINUTE_MS)),
    )
    return [
        Case(f"{number}, {source.users:,} users", asked, list(hourly(source, size)))
        for source in (clicks, replace(clicks, users=FEW_USERS))
        for number, asked in (("one pipeline", queries[:1]), ("five pipelines", queries))
    ]


def calendar_day(clicks: Clicks, size: Size) -> list[Case]:
    """Windows of a fixed day next to days in a time zone; a file is six hours, so that days end."""
    berlin = Calendar(CalendarLength(1, "day"), "Europe/Berlin")
    arrivals = [
        Arrival("", clicks, size.events, BASE_MS + number * DAY_MS // 4, DAY_MS // 4, timed=number > 0)
        for number in range(size.files)
    ]
    windows = {"fixed days": Tumbling(DAY_MS), "days in Berlin": CalendarWindows(berlin)}
    return [Case(name, (Query("days", window),), arrivals) for name, window in windows.items()]


def special(clicks: Clicks, late_share: float) -> list[Workload]:
    """All of them."""
    no_floor = {"floor": "a floor has no state and no late events"}
    own_only = dict.fromkeys(
        (
            *("streaming", "streaming-hdfs", "streaming-long", "streaming-long-hdfs", "streaming-cold"),
            *("floor", "duckdb", "polars", "flink", "flink-rocksdb"),
        ),
        "windows of a calendar are not written for it",
    )
    return [
        Workload(
            "small",
            "sessions over an empty run, 10 k, 100 k and 1 M clicks, in a started session",
            lambda size: small(clicks, size),
        ),
        Workload(
            "late",
            "5 % of each batch hours late, their sessions changed; next to the same without",
            lambda size: late(clicks, size, late_share),
            no_floor,
        ),
        Workload(
            "retained",
            "200 k clicks while 0, 1 M, 5 M, 20 M sessions that have fired are kept",
            lambda size: retained(clicks, size),
            no_floor,
        ),
        Workload(
            "overlap",
            "12 windows for each event next to 288, few results",
            lambda size: overlap(clicks, size),
        ),
        Workload(
            "calendar-day",
            "windows of a fixed day next to days in a time zone, by user",
            lambda size: calendar_day(clicks, size),
            own_only,
        ),
        Workload(
            "five",
            "one pipeline next to five over the same files, in one run",
            lambda size: five(clicks, size),
            {
                "floor": "a floor reads a file once",
                **dict.fromkeys(("flink", "flink-rocksdb"), "one job is one query here"),
            },
        ),
    ]
