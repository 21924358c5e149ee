"""Files that are read differently than before: a rerun of all their events reads them anew, any other is refused."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import time_of
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun, RerunRefused
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.runs.attempt import BatchReport
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark]
NOW_MS = time_of(datetime(2026, 12, 1))
DAY = datetime(2026, 3, 2)
FILES = [[DAY + timedelta(days=day, hours=hour, minutes=30) for hour in (0, 5, 12)] for day in (1, 0)]
WINDOWS = {"tumbling": 'type = "tumbling"\nsize = "1h"', "session": 'type = "session"\ngap = "30m"'}
DEFINITION = """
name = "clocks"
engine = "{engine}"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at"
max_files_per_run = 1
{dialect}
[watermark]
out_of_orderness = "1h"
[window]
{window}
[aggregates]
values = "collect_list(value)"
"""
BERLIN = '[source.dialect]\ntime_zone = "Europe/Berlin"'


def made(folder: Path, engine: str, window: str, dialect: str) -> Definition:
    file = folder / "clocks.toml"
    file.write_text(DEFINITION.format(engine=engine, window=WINDOWS[window], dialect=dialect), encoding="utf-8")
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse")})


def rerun(definition: Definition, spark: SparkSession, start: datetime, end: datetime, **more: Any) -> BatchReport:
    asked = Rerun(time_of(start), time_of(end), "a test", "ann", **more)
    (report,) = advance(definition, lambda: spark, clock=lambda: NOW_MS, rerun=asked)
    return report


def shown(definition: Definition, table: str = "results") -> list[dict[str, Any]]:
    return read_table(definition, table).to_pylist()


def in_berlin(local: datetime) -> datetime:
    return local.replace(tzinfo=ZoneInfo("Europe/Berlin")).astimezone(UTC)


@pytest.mark.embedded
@pytest.mark.parametrize(
    "window",
    [pytest.param("tumbling", marks=pytest.mark.long("sessions are read otherwise, in make test")), "session"],
)
def test_a_zone_that_was_forgotten(
    window: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each row is in exactly one place, before and after."""
    engine = request.config.getoption("--engine")
    (tmp_path / "incoming").mkdir()
    for number, times in enumerate(FILES, 1):
        rows = {
            "user": ["ann"] * 3,
            "at": pa.array(times, pa.timestamp("us")),
            "value": range(number * 10, number * 10 + 3),
        }
        pq.write_table(pa.table(rows), tmp_path / "incoming" / f"{number}.parquet")
        os.utime(tmp_path / "incoming" / f"{number}.parquet", (number, number))
    definition = made(tmp_path, engine, window, "")
    advance(definition, lambda: spark, clock=lambda: NOW_MS, finish=True)
    before = shown(definition), shown(definition, "late_events")
    assert len(before[1]) == 3

    definition = made(tmp_path, engine, window, BERLIN)
    report = rerun(definition, spark, DAY - timedelta(days=9), DAY - timedelta(days=8))  # where no event was
    assert report.figures["files_changed"] == report.figures["windows_added"] == 0
    for start, end in ((0, 1), (3, 20)):
        with pytest.raises(
            RerunRefused, match=r"2\.parquet would be read differently than before \(source\.dialect\.time_zone"
        ):
            rerun(definition, spark, DAY + timedelta(hours=start), DAY + timedelta(hours=end))
    with pytest.raises(RerunRefused, match=r"2\.parquet would be read differently .* before you readmit late events"):
        rerun(definition, spark, DAY, DAY + timedelta(days=1), late_only=True)
    assert (shown(definition), shown(definition, "late_events")) == before
    found = verify(definition, VerifyRequest(None), spark, lambda: NOW_MS)
    assert found.files == 0
    assert "1.parquet, 2.parquet (gone, changed, or read differently now)" in found.not_compared[0]

    report = rerun(definition, spark, DAY - timedelta(days=1), DAY + timedelta(days=3))
    assert report.figures["files_changed"] == 2
    start = {
        time: in_berlin(time) - timedelta(minutes=30 if window == "tumbling" else 0) for of in FILES for time in of
    }
    expected = {
        start[time]: [number * 10 + row] for number, times in enumerate(FILES, 1) for row, time in enumerate(times)
    }
    assert {row["window_start"]: row["values"] for row in shown(definition)} == expected
    assert shown(definition, "late_events") == shown(definition, "quarantine") == []
    found = verify(definition, VerifyRequest(None), spark, lambda: NOW_MS)
    assert (found.files, found.differences, found.not_compared) == (2, [], [])
    report = rerun(definition, spark, DAY + timedelta(hours=3), DAY + timedelta(hours=20))
    assert report.figures["files_changed"] == report.figures["windows_changed"] == 0


TEXT = """
name = "texts"
[source]
format = "{form}"
path = "incoming"
key = ["user"]
timestamp = "at"
schema = {{ user = "string", at = "timestamp", value = "bigint"{more} }}
[source.dialect]
{dialect}
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1h"
[aggregates]
total = "sum(value)"
"""
EARLY, LATE = Rerun(time_of(DAY), time_of(DAY + timedelta(hours=1)), "a test", "ann"), DAY + timedelta(hours=5)


def text(folder: Path, form: str, dialect: str = "", more: str = "") -> Definition:
    file = folder / "texts.toml"
    file.write_text(TEXT.format(form=form, dialect=dialect, more=more), encoding="utf-8")
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse")})


def arrive(folder: Path, name: str, content: str) -> None:
    (folder / "incoming").mkdir(exist_ok=True)
    (folder / "incoming" / name).write_text(content, encoding="utf-8")
    os.utime(folder / "incoming" / name, (1, 1))


def totals(definition: Definition) -> list[int]:
    return sorted(row["total"] for row in shown(definition))


@pytest.mark.slow
@pytest.mark.long("a zone refuses the same reruns, and another dialect is one of text, in make test")
def test_columns_that_were_added(spark: SparkSession, tmp_path: Path) -> None:
    """A row whose value does not fit the new column is malformed. A rerun of its whole file moves it to quarantine. All
    columns number the rows of one time, so no late event is readmitted before, and none is compared.
    """
    line = '{{"user": "{}", "at": "2026-03-02T{}:00Z", "value": {}, "size": {}}}\n'
    arrive(tmp_path, "1.json", line.format("ann", "08:00", 8, '"large"') + line.format("ann", "09:00", 4, "null"))
    definition = text(tmp_path, "json")
    advance(definition, lambda: spark, clock=lambda: NOW_MS)
    late = [("ann", "00:10", 1, 9), ("bob", "00:10", 2, 5)]
    arrive(tmp_path, "2.json", "".join(line.format(*row) for row in late))
    advance(definition, lambda: spark, clock=lambda: NOW_MS, finish=True)
    assert [(row["user"], row["source_row"]) for row in shown(definition, "late_events")] == [("ann", 0), ("bob", 1)]

    def with_schema(more: str) -> Definition:
        changed = text(tmp_path, "json").file.read_text().replace("schema = { ", f"schema = {{ {more}, ")
        definition.file.write_text(changed, encoding="utf-8")
        return load_definition(definition.file).model_copy(update={"store": definition.store})

    harmless = with_schema('colour = "string"')
    of_ann = Rerun(EARLY.from_ms, EARLY.to_ms, "a test", "ann", late_only=True, key=("ann",))
    with pytest.raises(RerunRefused, match=r"2\.json would be read differently .* before you readmit late events"):
        advance(harmless, lambda: spark, clock=lambda: NOW_MS, rerun=of_ann)
    found = verify(harmless, VerifyRequest(None), spark, lambda: NOW_MS)
    assert (found.files, found.differences) == (1, [])
    rerun(harmless, spark, DAY + timedelta(hours=8), DAY + timedelta(hours=10))  # of the file that has no late events
    assert totals(harmless) == [4, 8]
    typed = with_schema('size = "bigint"')
    with pytest.raises(RerunRefused, match=r"read differently than before \(source\.schema\.size was not given, is "):
        rerun(typed, spark, DAY + timedelta(hours=8), DAY + timedelta(hours=9))  # a part of that file
    assert totals(typed) == [4, 8]
    rerun(typed, spark, DAY, DAY + timedelta(hours=10))
    assert totals(typed) == [1, 2, 4]
    assert [(row["reason"], row["source_row"]) for row in shown(typed, "quarantine")] == [("malformed", 0)]
    assert verify(typed, VerifyRequest(None), spark, lambda: NOW_MS).differences == []


@pytest.mark.slow
def test_files_of_an_earlier_dialect(spark: SparkSession, tmp_path: Path) -> None:
    """Other times can be rerun. The file itself would be malformed, and its rerun is refused by name."""
    arrive(tmp_path, "1.csv", "user,at,value\nann,2026-03-02T00:10:00Z,1\n")
    advance(text(tmp_path, "csv"), lambda: spark, clock=lambda: NOW_MS)
    arrive(tmp_path, "2.csv", "user;at;value\nann;2026-03-02T05:10:00Z;2\n")
    definition = text(tmp_path, "csv", 'delimiter = ";"')
    advance(definition, lambda: spark, clock=lambda: NOW_MS, finish=True)
    rerun(definition, spark, LATE, LATE + timedelta(hours=1))
    with pytest.raises(StateMismatch, match=r"1\.csv begins with the columns user,at,value"):
        advance(definition, lambda: spark, clock=lambda: NOW_MS, rerun=EARLY)
    assert totals(definition) == [1, 2]
