"""Strategies of Hypothesis: specs over the whole cross product, and histories of batches with watermarks.

Times lie close together and on both sides of zero, so that windows touch, bridge and end exactly on a watermark.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from windowlib.model.aggregates import Count, Max, Min, Sum, Together
from windowlib.model.assigners import (
    Assigner,
    CalendarCumulating,
    CalendarWindows,
    Cumulating,
    DynamicSession,
    Global,
    Session,
    Sliding,
    Staggered,
    Tumbling,
)
from windowlib.model.calendar import MONTHS, WEEKDAYS, Calendar, CalendarLength
from windowlib.model.elements import Element
from windowlib.model.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from windowlib.model.spec import WindowSpec
from windowlib.model.timed_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    ProcessingTimeoutTrigger,
)
from windowlib.model.triggers import (
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)

ALL = bool(os.environ.get("WINDOWLIB_TEST_ALL"))
"""Whether this is `make test-all`, which tries each law with many more examples, and every case where `make test` takes
some: all would take it past its twenty minutes. Each law sees random histories in `make test` too."""


def examples(few: int, many: int) -> settings:
    """Number of examples of a law: few in `make test`, many in `make test-all`."""
    return settings(max_examples=many if ALL else few, deadline=None, suppress_health_check=list(HealthCheck))


History = list[tuple[list[Element], int]]
"""Batches, each with the watermark that follows it."""

TIMESTAMPS = st.integers(-40, 40)
KEYS = st.sampled_from("ab")
LATENESSES = st.sampled_from([0, 0, 1, 5, 20, 2**63 - 1])
AT_EPOCH = st.sampled_from(["UTC", "Europe/London", "Etc/GMT+12"])
"""Zones with an edge of hours, and one with an edge of days, in the middle of `TIMESTAMPS`."""
AGGREGATE = Together((Count(), Sum("value"), Min("value"), Max("value")))


@st.composite
def tumblings(draw: st.DrawFn) -> Tumbling:
    size_ms = draw(st.integers(1, 12))
    return Tumbling(size_ms, draw(st.integers(1 - size_ms, size_ms - 1)))


@st.composite
def slidings(draw: st.DrawFn) -> Sliding:
    slide_ms = draw(st.integers(1, 12))
    return Sliding(draw(st.integers(1, 12)), slide_ms, draw(st.integers(1 - slide_ms, slide_ms - 1)))


@st.composite
def cumulatings(draw: st.DrawFn) -> Cumulating:
    step_ms = draw(st.integers(1, 6))
    max_size_ms = step_ms * draw(st.integers(1, 5))
    return Cumulating(max_size_ms, step_ms, draw(st.integers(1 - max_size_ms, max_size_ms - 1)))


def calendars(zones: st.SearchStrategy[str]) -> st.SearchStrategy[Calendar]:
    """Any calendar of these zones."""
    minutes = st.sampled_from([1, 15, 60, 120, 720, 1440]).map(lambda count: CalendarLength(count, "minute"))
    dates = st.builds(CalendarLength, st.integers(1, 7), st.sampled_from(["day", "week", "month", "quarter", "year"]))
    starts_at = st.sampled_from([0, 1, 9_000_000, 14_400_000, 86_399_999])
    of_dates = st.builds(Calendar, dates, zones, starts_at, st.sampled_from(WEEKDAYS), st.sampled_from(MONTHS))
    return st.one_of(st.builds(Calendar, minutes, zones), of_dates)


def calendar_windows(zones: st.SearchStrategy[str]) -> st.SearchStrategy[Assigner]:
    """Windows of any calendar: tumbling, sliding and cumulating."""
    steps = [
        ((1, "day"), (6, "hour")),
        ((1, "hour"), (15, "minute")),
        ((1, "year"), (1, "quarter")),
        ((1, "week"), (1, "day")),
    ]
    pairs = st.sampled_from([tuple(CalendarLength(*length) for length in pair) for pair in steps])
    cumulating = st.builds(
        lambda pair, name: CalendarCumulating(*(Calendar(length, name) for length in pair)), pairs, zones
    )
    return st.one_of(st.builds(CalendarWindows, calendars(zones), st.integers(1, 4)), cumulating)


def sessions() -> st.SearchStrategy[Session]:
    return st.builds(Session, st.integers(1, 10))


def time_assigners() -> st.SearchStrategy[Assigner]:
    staggered = st.builds(Staggered, st.one_of(tumblings(), slidings()))
    return st.one_of(tumblings(), slidings(), cumulatings(), staggered, sessions(), st.just(DynamicSession("gap_ms")))


def elements() -> st.SearchStrategy[Element]:
    values = st.fixed_dictionaries({"value": st.integers(-9, 9), "gap_ms": st.integers(1, 12)})
    return st.builds(Element, KEYS, TIMESTAMPS, values)


def _numbered(batches: Sequence[Sequence[Element]]) -> list[list[Element]]:
    arrivals = iter(range(sum(map(len, batches))))
    return [[Element(e.key, e.timestamp_ms, e.value, next(arrivals)) for e in batch] for batch in batches]


@st.composite
def histories(draw: st.DrawFn, max_batches: int = 5, max_size: int = 12) -> History:
    batches = draw(st.lists(st.lists(elements(), max_size=max_size), min_size=1, max_size=max_batches))
    watermarks = sorted(draw(st.lists(st.integers(-45, 60), min_size=len(batches), max_size=len(batches))))
    return list(zip(_numbered(batches), watermarks, strict=True))


def order_free_specs() -> st.SearchStrategy[WindowSpec]:
    assigners = st.one_of(time_assigners(), calendar_windows(AT_EPOCH))
    return st.builds(WindowSpec, assigners, st.just(AGGREGATE), allowed_lateness_ms=LATENESSES)


def evictors() -> st.SearchStrategy[Evictor]:
    return st.one_of(
        st.builds(CountEvictor, st.integers(0, 3), after=st.booleans()),
        st.builds(TimeEvictor, st.integers(1, 9), after=st.booleans()),
        st.builds(DeltaEvictor, st.integers(1, 9), st.just("value"), absolute=st.booleans(), after=st.booleans()),
    )


def plain_triggers() -> st.SearchStrategy[Trigger]:
    return st.one_of(
        st.sampled_from([EventTimeTrigger(), ProcessingTimeTrigger(), NeverTrigger(), EndOfStreamTrigger()]),
        st.builds(CountTrigger, st.integers(1, 4)),
        st.builds(DeltaTrigger, st.integers(0, 5), st.just("value"), absolute=st.booleans()),
        st.builds(ContinuousEventTimeTrigger, st.integers(1, 9)),
        st.builds(ContinuousProcessingTimeTrigger, st.integers(1, 9)),
    )


def triggers() -> st.SearchStrategy[Trigger]:
    return st.one_of(
        plain_triggers(),
        st.builds(PurgingTrigger, plain_triggers()),
        st.builds(ProcessingTimeoutTrigger, plain_triggers(), st.integers(1, 20), st.booleans(), st.booleans()),
    )


@st.composite
def specs(draw: st.DrawFn) -> WindowSpec:
    """Any spec that is allowed: assigner × trigger × evictor × lateness × time."""
    assigner = draw(
        st.one_of(time_assigners(), calendar_windows(AT_EPOCH), st.just(Global()), st.just(Global(end_of_stream=True)))
    )
    kind = "global" if isinstance(assigner, Global) else "time"
    fitting = triggers().filter(lambda t: t.window_kind in ("any", kind) and (t.merges or not assigner.merges))
    return WindowSpec(
        assigner,
        AGGREGATE,
        trigger=draw(st.none() | fitting),
        evictor=draw(st.none() | evictors()),
        allowed_lateness_ms=draw(LATENESSES),
        time=draw(st.sampled_from(["event", "event", "processing"])),
    )
