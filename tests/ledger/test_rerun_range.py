"""Ranges that a rerun accepts, its messages about others, and mistakes of the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.support.clicks import clicks
from tests.support.rerun_oracle import Pipeline, Row
from tests.support.strategies import slidings, tumblings
from windowlib.cli.exits import USER
from windowlib.cli.main import app
from windowlib.definition.instants import iso_instant
from windowlib.ledger.rerun_request import LONGEST_DAYS, Rerun, RerunRefused, time_ms, time_range
from windowlib.model.assigners import Sliding, Tumbling
from windowlib.model.rerun import TimeRange, needed, readmitted
from windowlib.plans.partitions import DAY_MS
from windowlib.publication.data_range import asked_range

NOW_MS = 1_800_000_000_000


DATA = TimeRange(time_ms("from", "2025-01-01Z"), time_ms("to", "2026-12-01Z"))


@pytest.mark.parametrize(
    ("start", "end", "data", "says"),
    [
        ("", "", None, "from and to are empty, and there are no results yet to take the range from"),
        ("2026-03-03Z", " ", None, "to is empty, and there are no results yet"),
        ("", "", DATA, "699 days exceed the 400 days of one rerun. Rerun shorter ranges"),
        ("", "", DATA, "(from was empty: 2025-01-01T00:00:00Z, the first result's window start; to was empty: 2026-"),
        ("2026-12-02Z", "", DATA, "is not before to 2026-12-01 00:00:00 UTC"),
        ("", "2024-12-01Z", DATA, "is not before to 2024-12-01 00:00:00 UTC"),
    ],
)
def test_a_proposed_range_is_checked_like_a_given_one(start: str, end: str, data: TimeRange | None, says: str) -> None:
    with pytest.raises(RerunRefused, match=re.escape(says)):
        asked_range(start, end, data, NOW_MS)


def test_an_end_in_the_future_is_not_proposed() -> None:
    after = TimeRange(NOW_MS - 10, NOW_MS + 10)
    asked = asked_range("", "", after, NOW_MS)
    assert asked.range == TimeRange(NOW_MS - 10, NOW_MS)
    assert asked.proposed[1] == "to was empty: 2027-01-15T08:00:00Z, now; the last result's window ends later"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-10-25", "2026-10-24T22:00Z"),
        ("2026-10-26", "2026-10-25T23:00Z"),  # a day of 25 hours
        ("2026-03-29 02:30", "2026-03-29T01:00Z"),  # skipped: the clock change
        ("2026-10-25T02:30+01:00", "2026-10-25T01:30Z"),
        ("2026-10-25T00:00Z", "2026-10-25T00:00Z"),
        ("2026-10-25 00:00 America/New_York", "2026-10-25T04:00Z"),
    ],
)
def test_a_time_without_a_zone_is_in_the_zone_of_the_windows(text: str, instant: str) -> None:
    assert time_ms("from", text, "Europe/Berlin") == time_ms("from", instant)


def test_a_date_whose_midnight_is_skipped_or_comes_twice_starts_at_its_edge() -> None:
    assert time_ms("from", "2026-03-29", "Asia/Beirut") == time_ms("from", "2026-03-28T22:00Z")  # clocks show 01:00
    assert time_ms("from", "2026-11-01", "America/Havana") == time_ms("from", "2026-11-01T00:00-04:00")


def test_a_time_of_the_windows_that_comes_twice_needs_its_offset() -> None:
    says = 'from = "2026-10-25T02:30" occurs twice, because clocks change in Europe/Berlin: give the offset, as in'
    with pytest.raises(RerunRefused, match=re.escape(f"{says} 2026-10-25T02:30:00+02:00")):
        time_ms("from", "2026-10-25T02:30", "Europe/Berlin")


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        ("2026-03-03", "2026-03-04Z", 'from = "2026-03-03" has no time zone: add Z for UTC'),
        ("2026-03-03T00:00", "2026-03-04Z", 'from = "2026-03-03T00:00" has no time zone'),
        ("2026-03-03Z", "tomorrow", 'to = "tomorrow" is not a time: need date, time and zone'),
        ("2026-02-30Z", "2026-03-04Z", 'from = "2026-02-30Z" is not a time: day'),
        ("2026-03-03T00:00+05:99", "2026-03-04Z", 'from = "2026-03-03T00:00+05:99" is not a time'),
        ("2026-03-03 Mars/Olympus", "2026-03-04Z", 'from = "2026-03-03 Mars/Olympus" is not a time'),
        ("2026-03-03 localtime", "2026-03-04Z", "is not a time: must be the name of a time zone"),
        ("2026-03-04Z", "2026-03-03Z", "from 2026-03-04 00:00:00 UTC is not before to 2026-03-03 00:00:00 UTC"),
        ("2026-03-04Z", "2026-03-04Z", "is not before"),
        ("2026-03-04Z", "2127-03-03Z", "to 2127-03-03 00:00:00 UTC is in the future: it is 2027-01-15"),
        ("2020-01-01Z", "2026-03-03Z", "2,253 days exceed the 400 days of one rerun"),
        ("2026-03-29 02:30 Europe/Berlin", "2026-04-01Z", "occurs twice or not at all, because clocks change"),
    ],
)
def test_ranges_that_are_refused(start: str, end: str, says: str) -> None:
    with pytest.raises(RerunRefused, match=re.escape(says)):
        time_range(start, end, NOW_MS)


def test_the_longest_accepted_range_ends_now() -> None:
    longest_ms = LONGEST_DAYS * DAY_MS
    texts = [str(iso_instant(at_ms)) for at_ms in (NOW_MS - longest_ms, NOW_MS)]
    assert time_range(texts[0], texts[1], NOW_MS) == TimeRange(NOW_MS - longest_ms, NOW_MS)
    with pytest.raises(RerunRefused, match="is in the future"):
        time_range(texts[0], texts[1], NOW_MS - 1)
    assert time_range(texts[0], texts[1], NOW_MS - 5, ahead_ms=5).to_ms == NOW_MS
    with pytest.raises(RerunRefused, match="is in the future"):
        time_range(texts[0], texts[1], NOW_MS - 6, ahead_ms=5)
    with pytest.raises(RerunRefused, match="401 days exceed the 400 days"):
        time_range(str(iso_instant(NOW_MS - longest_ms - 1)), texts[1], NOW_MS)


def test_reruns_are_the_same_by_preview_id_or_else_by_all_fields() -> None:
    asked = Rerun(1, 2, "why", "ann")
    shown = asked.expecting("p1")
    assert asked.is_same_as(Rerun(1, 2, "why", "ann"))
    assert not asked.is_same_as(Rerun(1, 2, "why", "bob"))
    assert not asked.is_same_as(shown)
    assert shown.is_same_as(Rerun(5, 6, "", "bob", preview_id="p1"))
    assert not shown.is_same_as(asked.expecting("p2"))
    assert not shown.is_same_as(None)
    assert not asked.is_same_as(None)


def test_windows_that_need_no_order_can_be_rerun_in_part(tmp_path: Path) -> None:
    assert clicks(tmp_path, 0).never_rerun is None


def test_the_title_of_a_rerun() -> None:
    assert Rerun(0, DAY_MS, "", "ann").title == "rerun 1970-01-01 00:00:00 UTC to 1970-01-02 00:00:00 UTC"
    readmitted = Rerun(0, DAY_MS, "", "ann", late_only=True, key=("u1", "x")).title
    assert readmitted == "readmit late events of 1970-01-01 00:00:00 UTC to 1970-01-02 00:00:00 UTC, key u1, x"


@given(st.integers(0, NOW_MS))
def test_a_written_time_is_read_back(at_ms: int) -> None:
    assert time_ms("from", str(iso_instant(at_ms))) == at_ms


def test_a_rerun_is_read_back_from_json() -> None:
    for rerun in (
        Rerun(1, 2, "why", "ann"),
        Rerun(1, 2, "", "ann", late_only=True, key=("u1", "é")).expecting("p1"),
    ):
        assert Rerun.from_json(rerun.to_json()) == rerun


@given(st.one_of(tumblings(), slidings()), st.integers(-60, 60), st.integers(1, 40), st.integers(-99, 99))
def test_an_event_is_read_if_a_window_of_its_own_is_recomputed(
    assigner: Tumbling | Sliding, from_ms: int, length_ms: int, time_ms: int
) -> None:
    asked = TimeRange(from_ms, from_ms + length_ms)
    windows = Pipeline(assigner, 0, 0).windows(Row("k", time_ms, 0, 1, ("f", 0)))
    computed = any(start < asked.to_ms and asked.from_ms < end for start, end in windows)
    span, counted = needed(assigner, asked), readmitted(assigner, asked)
    assert span.holds(counted)
    assert counted.holds(asked)
    if computed:
        assert span.from_ms <= time_ms < span.to_ms
    if isinstance(assigner, Tumbling) and counted.from_ms <= time_ms < counted.to_ms:
        assert computed


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--from or --to is missing: give each as a time with its zone"),
        (("--from", "2026-03-03Z"), "--from or --to is missing"),
        (("--from", "2026-03-03", "--to", "2026-03-04"), "has no time zone"),
        (("--from", "2026-03-03Z", "--to", "2026-03-04Z"), "use --dry-run to see what would change, or --yes"),
        (("--from", "2026-03-03Z", "--to", "2026-03-04Z", "--yes", "--dry-run"), "are mutually exclusive"),
        (("--apply", "p1", "--from", "2026-03-03Z"), "--apply applies its dry run unchanged, so it takes no range"),
        (
            ("--apply", "p1", "--reason", "euros"),
            "--reason does not go with --apply, which keeps the reason of its dry run. Leave",
        ),
        (("--apply", "p1"), "no preview 'p1' here"),
        (("--from", "2026-03-03Z", "--to", "2026-03-04Z", "--yes"), "this pipeline has not run yet"),
        (
            ("--from", "2026-03-03Z", "--to", "2026-03-04Z", "--yes", "--wait", "soon"),
            '--wait "soon" is not a duration',
        ),
    ],
)
def test_mistakes_of_the_command_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    definition = clicks(tmp_path, 0)
    ended = call("rerun", definition.file, *arguments)
    assert (ended.exit_code, says in ended.output) == (USER, True), ended.output
    assert len(ended.output.strip().splitlines()) == 1
