"""Event times in a local zone: footers, rows and both engines agree on the instant."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.source.arriving import source_file
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import of_local, time_of, utc
from windowlib.inspection.lineage.source_events import times_ms
from windowlib.ledger.rerun_request import Rerun, time_range
from windowlib.model.assigners import Session
from windowlib.plans.admission import Admission
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source import footers
from windowlib.source.columns.check import SourceError
from windowlib.storage.disk import Disk

BERLIN, DAY_MS = "Europe/Berlin", 86_400_000
FORWARD, BACK = datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30)
NOW_MS = time_of(datetime(2026, 12, 1))
DEFINITION = """
name = "clocks"
engine = "{engine}"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at"
{more}
[source.dialect]
time_zone = "{zone}"
[watermark]
out_of_orderness = "1h"
[window]
type = "tumbling"
size = "15m"
[aggregates]
events = "count(*)"
first_written = "min(at)"
"""


def made(folder: Path, engine: str = "sail", zone: str = BERLIN, more: str = "") -> Definition:
    (folder / "incoming").mkdir()
    file = folder / "clocks.toml"
    file.write_text(DEFINITION.format(engine=engine, zone=zone, more=more), encoding="utf-8")
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse")})


def arrive(definition: Definition, name: str, times: Sequence[Any], kind: pa.DataType, **writing: Any) -> Path:
    path = definition.source.path / name
    pq.write_table(pa.table({"user": ["ann"] * len(times), "at": pa.array(times, kind)}), path, **writing)
    os.utime(path, (1, 1))
    return path


def by_hand(local: datetime, zone: str = BERLIN) -> datetime:
    return local.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)


ALIKE = pytest.mark.long("a zone with and one without whole hours of summer time are in make test")


@pytest.mark.spark
@pytest.mark.parametrize(
    "zone",
    [
        pytest.param(BERLIN, marks=pytest.mark.embedded),
        pytest.param("Australia/Lord_Howe", marks=pytest.mark.both),
        *(pytest.param(zone, marks=[pytest.mark.embedded, ALIKE]) for zone in ("America/New_York", "Asia/Kolkata")),
    ],
)
def test_each_event_is_in_the_window_of_its_instant(
    zone: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Around the hours that clocks skip and show twice, of one day alone, before 1970."""
    definition = made(tmp_path, request.config.getoption("--engine"), zone)
    around = [at + timedelta(minutes=15 * n, microseconds=1) for at in (FORWARD, BACK) for n in range(-12, 12)]
    old = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1901, 5, 1)]
    arrive(definition, "1.parquet", [*old, *around], pa.timestamp("us"))
    arrive(definition, "2.parquet", [datetime(2026, 7, 1, 12, minute) for minute in range(60)], pa.timestamp("ns"))
    advance(definition, lambda: spark, clock=lambda: NOW_MS, finish=True)
    expected: dict[datetime, list[datetime]] = {}
    for local in [*old, *around, *(datetime(2026, 7, 1, 12, minute) for minute in range(60))]:
        at_ms = time_of(by_hand(local, zone))
        expected.setdefault(utc(at_ms // 900_000 * 900_000), []).append(local)
    found = {row["window_start"]: row for row in read_table(definition, "results").to_pylist()}
    assert {start: row["events"] for start, row in found.items()} == {s: len(of) for s, of in expected.items()}
    written = {start: row["first_written"].replace(tzinfo=None) for start, row in found.items()}
    assert written == {start: min(of) for start, of in expected.items()}


@pytest.mark.spark
@pytest.mark.embedded
def test_a_day_begins_at_midnight_of_its_zone(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    definition = made(tmp_path, request.config.getoption("--engine"))
    arrive(definition, "1.parquet", [date(2026, 7, 1)], pa.date32())
    advance(definition, lambda: spark, clock=lambda: NOW_MS, finish=True)
    [row] = read_table(definition, "results").to_pylist()
    assert row["window_start"] == datetime(2026, 6, 30, 22, tzinfo=UTC)


@given(
    local=st.datetimes(min_value=datetime(1890, 1, 1), max_value=datetime(2200, 1, 1)),
    zone=st.sampled_from([BERLIN, "America/St_Johns", "Pacific/Apia", "Africa/Casablanca", "UTC"]),
)
def test_instants_follow_the_calendar_of_the_zone(local: datetime, zone: str) -> None:
    assert utc(of_local(time_of(local), zone)) == utc(time_of(by_hand(local, zone)))


@pytest.mark.parametrize("times", [[datetime(2026, 7, 1), datetime(2026, 9, 1)], [FORWARD, BACK], [BACK, BACK]])
def test_footer_bounds_have_a_day_of_margin(times: Sequence[datetime], tmp_path: Path) -> None:
    """The engine decides the instants, because Python may know other clock changes."""
    path = arrive(made(tmp_path), "1.parquet", times, pa.timestamp("us"))
    instants = [time_of(by_hand(time)) for time in times]
    store, file = Disk(path.parent), source_file(path.parent, path.name)
    low_ms, high_ms = footers.span(footers.footer(store, file), "at", None, BERLIN) or (0, 0)
    assert low_ms <= min(instants) - DAY_MS // 2
    assert high_ms >= max(instants) + DAY_MS // 2
    admission = Admission(("user",), "at", None, Session(gap_ms=1), 0)
    assert footers.look(store, [file], admission) is not None
    assert footers.look(store, [file], replace(admission, time_zone=BERLIN)) is None


def test_explain_reads_the_same_times() -> None:
    local = [FORWARD, BACK, None, datetime(1969, 12, 31, 23, 59, 59, 999_999)]
    expected = [None if one is None else time_of(by_hand(one)) for one in local]
    for unit in ("us", "ns"):
        assert times_ms(pa.array(local, pa.timestamp(unit)), None, BERLIN) == expected
    assert times_ms(pa.array([date(2026, 7, 1)]), None, BERLIN) == [time_of(datetime(2026, 6, 30, 22))]
    with_zone = pa.array([FORWARD.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert times_ms(with_zone, None, BERLIN) == [time_of(FORWARD)]


@pytest.mark.parametrize("use_int96", [False, True])
def test_times_that_need_no_zone_are_refused(tmp_path: Path, use_int96: bool) -> None:
    """With a zone of their own, or as old releases of Spark wrote them: in UTC."""
    definition = made(tmp_path)
    kind = pa.timestamp("us") if use_int96 else pa.timestamp("us", "UTC")
    arrive(definition, "1.parquet", [FORWARD], kind, use_deprecated_int96_timestamps=use_int96)
    with pytest.raises(SourceError, match=r"a type that needs no time zone. Leave out source\.dialect\.time_zone"):
        advance(definition, lambda: pytest.fail("nothing is computed"), clock=lambda: NOW_MS)


@pytest.mark.spark
@pytest.mark.embedded
def test_the_rerun_for_a_removal_is_possible_at_once(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A day after the newest event, which footers leave, is in the future yet."""
    definition = made(tmp_path, request.config.getoption("--engine"))
    source = definition.source.model_copy(update={"format": "delta"})
    definition = definition.model_copy(update={"source": source})
    local = datetime(2026, 12, 1, 0, 30)  # half an hour before the clock, in Berlin
    rows = {"user": ["ann", "bob"], "at": pa.array([local, local], pa.timestamp("us"))}
    write_deltalake(source.path, pa.table(rows))
    advance(definition, lambda: spark, clock=lambda: NOW_MS)
    DeltaTable(source.path).delete("user = 'bob'")
    with pytest.raises(SourceError, match="removes rows") as stopped:
        advance(definition, lambda: spark, clock=lambda: NOW_MS)
    [bounds] = re.findall(r"--from (\S+) --to ([^\s`]+)`", str(stopped.value))
    span = time_range(*bounds, NOW_MS, definition.furthest_ahead_ms)
    assert span.to_ms > NOW_MS
    rerun = Rerun(span.from_ms, span.to_ms, "a test", "ann")
    advance(definition, lambda: spark, clock=lambda: NOW_MS, rerun=rerun)
    advance(definition, lambda: spark, clock=lambda: NOW_MS, finish=True)
    assert [row["user"] for row in read_table(definition, "results").to_pylist()] == ["ann"]
