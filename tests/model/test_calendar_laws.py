"""Laws of calendars and of the geometry of their windows, around transitions of any zone and in far years."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import calendar_windows, calendars, examples
from windowlib.model.assigners import Assigner, CalendarCumulating, CalendarWindows
from windowlib.model.calendar import Calendar, CalendarLength
from windowlib.model.errors import InvalidSpec
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange, needed, readmitted
from windowlib.model.time_zones.zones import zone, zone_names
from windowlib.model.windows import TimeWindow

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ZONES = st.sampled_from(["Europe/Berlin", "Pacific/Apia", "Australia/Lord_Howe", "America/Juneau", "Asia/Tokyo", "UTC"])
ANY_ZONE = st.sampled_from(sorted(zone_names()))


@st.composite
def times(draw: st.DrawFn, name: str) -> int:
    """A time near a transition of a zone, or any of the years 1 to 9999."""
    changes = zone(name).starts[1:]
    anywhere = st.integers(-62_135_596_800_000, 253_402_300_799_999)
    near = st.builds(int.__add__, st.sampled_from(changes), st.integers(-30 * HOUR_MS, 30 * HOUR_MS))
    return draw(st.one_of(near, st.sampled_from(changes), anywhere) if changes else anywhere)


@st.composite
def calendars_and_times(draw: st.DrawFn) -> tuple[Calendar, int]:
    calendar = draw(calendars(ANY_ZONE))
    return calendar, draw(times(calendar.time_zone))


@st.composite
def windows_and_times(draw: st.DrawFn) -> tuple[Assigner, int]:
    assigner = draw(calendar_windows(ZONES))
    return assigner, draw(
        times((geometry_of(assigner).calendar or Calendar(CalendarLength(1, "day"), "UTC")).time_zone)
    )


@examples(60, 1_000)
@given(calendars_and_times())
def test_intervals_follow_one_another_without_gap_or_overlap(drawn: tuple[Calendar, int]) -> None:
    calendar, time_ms = drawn
    number = calendar.number(time_ms)
    edges = [calendar.edge_ms(number + at) for at in range(-2, 4)]
    assert all(start_ms < end_ms for start_ms, end_ms in pairwise(edges))
    assert edges[2] <= time_ms < edges[3]
    for at, edge_ms in enumerate(edges, number - 2):
        assert [calendar.number(edge_ms - 1), calendar.number(edge_ms)] == [at - 1, at]
    assert max(end_ms - start_ms for start_ms, end_ms in pairwise(edges)) <= calendar.longest_ms()
    assert edges[5] - edges[0] <= calendar.longest_ms(5)


@examples(60, 1_000)
@given(calendars_and_times(), st.integers(1, 400))
def test_runs_give_each_edge_once(drawn: tuple[Calendar, int], days: int) -> None:
    calendar, from_ms = drawn
    to_ms = from_ms + days * min(DAY_MS, 5 * calendar.longest_ms())
    runs = calendar.runs(from_ms, to_ms)
    last = calendar.number(to_ms - 1) + 1
    assert runs[0].number == calendar.number(from_ms)
    numbers = [*(run.number for run in runs), last + 1]
    for run, following in zip(runs, numbers[1:], strict=True):
        edges = [calendar.edge_ms(number) for number in range(run.number, following)]
        assert edges == [run.first_ms + at * run.every_ms for at in range(len(edges))]
    for run, following in pairwise(runs):
        assert run.first_ms + (following.number - run.number) * run.every_ms >= following.first_ms


@examples(60, 1_000)
@given(windows_and_times())
def test_an_event_is_in_the_windows_that_its_geometry_names(drawn: tuple[Assigner, int]) -> None:
    assigner, time_ms = drawn
    geometry, windows = geometry_of(assigner), assigner.assign(time_ms)
    assert windows == sorted(windows)
    assert all(window.start_ms <= time_ms < window.end_ms for window in windows)
    assert all(window.end_ms - window.start_ms <= (geometry.longest_ms or 0) for window in windows)
    assert len(windows) <= (geometry.most_windows or 0)
    assert geometry.latest_end_ms(time_ms) == max(window.end_ms for window in windows)
    assert geometry.last_start_ms(time_ms) == max(window.start_ms for window in windows)
    assert geometry.windows_until(windows[-1], time_ms) == windows[::-1]
    assert geometry.has_holes is False
    assert geometry.by_time


@examples(60, 1_000)
@given(windows_and_times())
def test_an_edge_ends_windows_and_starts_others(drawn: tuple[Assigner, int]) -> None:
    assigner, time_ms = drawn
    geometry = geometry_of(assigner)
    assert geometry.calendar is not None
    edge_ms = geometry.calendar.start_ms(time_ms)
    before, after = assigner.assign(edge_ms - 1), assigner.assign(edge_ms)
    assert edge_ms in {window.end_ms for window in before}
    if geometry.within is not None:
        assert bool(after[0] in before) == (geometry.within.start_ms(edge_ms) < edge_ms)
    assert all(window.end_ms > edge_ms for window in after)
    assert [window for window in before if window.end_ms > edge_ms] == [w for w in after if w.start_ms < edge_ms]


@examples(60, 1_000)
@given(windows_and_times(), st.integers(1, 90 * DAY_MS))
def test_windows_that_meet_a_range_and_the_reach_of_a_rerun(drawn: tuple[Assigner, int], length_ms: int) -> None:
    assigner, from_ms = drawn
    requested = TimeRange(from_ms, from_ms + length_ms)
    met = geometry_of(assigner).meeting(requested.from_ms, requested.to_ms)
    assert met == (assigner.assign(from_ms)[0].start_ms, assigner.assign(requested.to_ms - 1)[-1].end_ms)
    counted, read = readmitted(assigner, requested), needed(assigner, requested)
    assert read.holds(counted)
    assert counted.holds(requested)
    assert (counted == read) or geometry_of(assigner).starts_overlap


@examples(60, 1_000)
@given(windows_and_times(), st.integers(-DAY_MS, DAY_MS), st.integers(-1, 1))
def test_bounds_are_those_of_a_window_of_a_calendar(drawn: tuple[Assigner, int], by_ms: int, off_ms: int) -> None:
    assigner, time_ms = drawn
    geometry = geometry_of(assigner)
    for window in assigner.assign(time_ms):
        bounds = TimeWindow(window.start_ms + off_ms, window.end_ms)
        fits = bounds in assigner.assign(time_ms + by_ms)
        assert geometry.are_bounds(*bounds, time_ms + by_ms) == fits
        arrays = (np.array([value, value]) for value in (*bounds, time_ms + by_ms))
        assert geometry.are_bounds(*arrays).tolist() == [fits, fits]


def test_most_steps_are_reached_in_the_longest_day_and_month() -> None:
    quarters, hours, days, months = (
        Calendar(CalendarLength(count, unit), "Europe/Berlin")
        for count, unit in ((15, "minute"), (1, "hour"), (1, "day"), (1, "month"))
    )
    assert [days.most_steps(step) for step in (quarters, hours)] == [100, 25]
    assert (months.most_steps(days), months.most_steps(hours)) == (31, 31 * 24 + 1)
    assert (hours.longest_ms(), days.longest_ms()) == (HOUR_MS, 25 * HOUR_MS)


@pytest.mark.parametrize(
    ("count", "unit", "refused"),
    [
        (7, "minute", "7 minutes does not divide a day"),
        (5, "hour", "5 hours does not"),
        (0, "day", "0 day is no length"),
    ],
)
def test_lengths_that_no_calendar_has_are_refused(count: int, unit: str, refused: str) -> None:
    with pytest.raises(InvalidSpec, match=refused):
        Calendar(CalendarLength(count, unit), "UTC")


def test_calendars_that_do_not_fit_are_refused() -> None:
    day, week, month = (CalendarLength(1, unit) for unit in ("day", "week", "month"))
    with pytest.raises(InvalidSpec, match='the time zone "Europe/Berlim" is unknown'):
        Calendar(day, "Europe/Berlim")
    with pytest.raises(InvalidSpec, match="need 0 <= starts_at_ms < a day"):
        Calendar(day, "UTC", DAY_MS)
    with pytest.raises(InvalidSpec, match="English names of a weekday"):
        Calendar(week, "UTC", week_starts="montag")
    with pytest.raises(InvalidSpec, match="need edges of 1 month that are edges of 1 week"):
        CalendarCumulating(Calendar(month, "UTC"), Calendar(week, "UTC"))
    with pytest.raises(InvalidSpec, match="need edges"):
        CalendarCumulating(Calendar(month, "UTC"), Calendar(day, "Asia/Tokyo"))
    with pytest.raises(InvalidSpec, match="1 or more intervals"):
        CalendarWindows(Calendar(day, "UTC"), 0)
