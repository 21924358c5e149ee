"""Days of event time: final or not, results and headline values, changes, late and refused rows, reruns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Schema

from docs.reference.on_disk import PARTS
from tests.support.clicks import CLICKS
from tests.support.disks import folder_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import utc
from windowlib.definition.mistakes import InvalidDefinition
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.pages.counts import row_counts
from windowlib.pages.counts.row_reader import RowReader
from windowlib.pages.days import Days, days
from windowlib.pages.newest_rows import RecentRun, Tail
from windowlib.pages.plots.headline import headline_by_day
from windowlib.storage.disk import Disk

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
STAMP = pa.timestamp("us", tz="UTC")
NUMBERS = {"clicks": pa.int64(), "revenue": pa.decimal128(38, 2), "most": pa.float64(), "average": pa.float64()}
RESULTS = pa.schema([("window_start", STAMP), ("window_end", STAMP), *NUMBERS.items(), ("batch_id", pa.int64())])
AGGREGATES = """clicks = "count(*)"
revenue = "sum(price)"
most = "max(value)"
average = "avg(value)"
"""
KEYS = {part.where: {*part.keys} for part in PARTS}


def definition(folder: Path, pages: str = "", window: str = "") -> Definition:
    text = CLICKS.replace('type = "session"\ngap = "10m"', window) if window else CLICKS
    text = text.replace('allowed_lateness = "2h"\n', "") if window else text
    text = text.partition("[aggregates]")[0] + f"[aggregates]\n{AGGREGATES}[pages]\n{pages}\n"
    (folder / "incoming").mkdir(parents=True)
    (folder / "clicks.toml").write_text(text)
    made = load_definition(folder / "clicks.toml")
    return made.model_copy(update={"store": Disk(folder / "warehouse")})


def result(end_ms: int, clicks: int = 1, revenue: str = "1.00", batch_id: int = 1) -> dict[str, Any]:
    start = utc(end_ms - HOUR_MS)
    numbers = {"clicks": clicks, "revenue": Decimal(revenue), "most": float(clicks), "average": float(clicks)}
    return {"window_start": start, "window_end": utc(end_ms), "batch_id": batch_id, **numbers}


def put(
    tables: Tables, name: str, schema: pa.Schema, rows: Sequence[Mapping[str, Any]], partition: Sequence[str] = ()
) -> int:
    """Creates a table with one file of rows. Returns its version."""
    table = tables[name]
    version = delta_commits.create(table, Schema.from_arrow(schema), partition)
    stored = pa.schema([column for column in schema if column.name not in partition])
    file = data_files.write(table.store, pa.Table.from_pylist([*rows], schema=stored))
    file = replace(file, partition={column: rows[0][column] for column in partition})
    return delta_commits.commit(table, version, add=[file])


def tail(*runs: RecentRun) -> Tail:
    return Tail(runs)


def run(batch_id: int, at_ms: int, versions: Mapping[str, int], watermark_ms: int = 0) -> RecentRun:
    return RecentRun(batch_id, at_ms, 0, 1.0, 1, watermark_ms, {"newest_event_ms": 3 * DAY_MS + HOUR_MS}, versions)


def of_results(made: Definition, rows: Sequence[Mapping[str, Any]], final_ms: int | None = None, **more: Any) -> Days:
    tables = Tables(made.store)
    versions = {"results": put(tables, "results", RESULTS, rows)}
    return days(made, tables, tail(run(1, 0, versions)), final_ms, since_ms=-1, **more)


@pytest.fixture(autouse=True)
def _own_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)


def test_a_result_belongs_to_the_day_of_its_last_millisecond(tmp_path: Path) -> None:
    found = of_results(definition(tmp_path), [result(end_ms) for end_ms in (DAY_MS, DAY_MS + 1, 2 * DAY_MS)])
    assert {day.day: day.results for day in found.days} == {
        date(1970, 1, 4): 0, date(1970, 1, 3): 0, date(1970, 1, 2): 2, date(1970, 1, 1): 1,
    }  # fmt: skip


@pytest.mark.parametrize(("final_ms", "final"), [(None, 0), (DAY_MS - 1, 0), (DAY_MS, 1), (2 * DAY_MS, 2)])
def test_a_day_is_final_when_all_its_windows_are(tmp_path: Path, final_ms: int | None, final: int) -> None:
    found = of_results(definition(tmp_path), [result(DAY_MS)], final_ms)
    assert sum(day.is_final for day in found.days) == final
    assert found.first_open == date(1970, 1, 1 + final)
    assert found.open_until_ms == (final + 1) * DAY_MS - 1 + 2 * HOUR_MS


@pytest.mark.parametrize(
    ("final_ms", "final"), [(DAY_MS - 1, 0), (DAY_MS, 1), (DAY_MS + HOUR_MS - 1, 1), (2 * DAY_MS, 2)]
)
def test_an_hour_is_final_when_all_its_windows_are(tmp_path: Path, final_ms: int, final: int) -> None:
    hours = of_results(definition(tmp_path), [result(DAY_MS, 4), result(DAY_MS + HOUR_MS, 5)], final_ms).hours
    assert [(hour.start_ms, hour.results, hour.values[0]) for hour in hours] == [
        (DAY_MS - HOUR_MS, 1, 4),
        (DAY_MS, 1, 5),
    ]
    assert sum(hour.is_final for hour in hours) == final


def test_after_the_end_of_the_input_every_day_is_final(tmp_path: Path) -> None:
    found = of_results(definition(tmp_path), [result(DAY_MS)], MAX_WATERMARK)
    assert (found.all_final, found.first_open) == (True, None)


def test_a_watermark_before_all_calendars_makes_nothing_final(tmp_path: Path) -> None:
    found = of_results(definition(tmp_path, 'time_zone = "America/New_York"'), [result(DAY_MS)], -(2**62))
    assert (found.first_open, found.days[-1].is_final) == (date(1970, 1, 1), False)


def test_values_add_up_by_their_aggregate(tmp_path: Path) -> None:
    rows = [result(DAY_MS, 2**62, "1.10"), result(DAY_MS - 5, 2**62, "2.20"), result(DAY_MS - 5, 4, "0.05")]
    found = of_results(definition(tmp_path, 'headline = ["clicks", "revenue", "most", "average"]'), rows)
    total = 2**63 + 4  # more than 64 bits
    assert [*found.days[-1].values] == [total, Decimal("3.35"), float(2**62), pytest.approx(total / 3)]
    assert [output.combine for output in found.headline] == ["sum", "sum", "max", "mean"]


def test_headline_values_are_drawn_by_day(tmp_path: Path) -> None:
    found = of_results(definition(tmp_path), [result(DAY_MS, 4), result(2 * DAY_MS, 2, "0.00")], DAY_MS)
    clicks, revenue, most = headline_by_day(found, as_of_ms=0)
    assert [(bar.kind, bar.title) for bar in clicks.plot.bars] == [
        ("", "1 Jan: 4"), ("flight", "2 Jan: 2, not final"),
    ]  # fmt: skip
    assert clicks.plot.bars[0].height == 2 * clicks.plot.bars[1].height
    assert (revenue.plot.bars[1].height, most.title) == (0, "most")


def test_the_first_three_numbers_are_the_headline_unless_hidden(tmp_path: Path) -> None:
    shown = of_results(definition(tmp_path / "a"), [result(DAY_MS)])
    assert [output.name for output in shown.headline] == ["clicks", "revenue", "most"]
    hiding = of_results(definition(tmp_path / "b", 'hide = ["price"]'), [result(DAY_MS)])
    assert [output.name for output in hiding.headline] == ["clicks", "most", "average"]


def test_days_begin_at_midnight_of_their_zone(tmp_path: Path) -> None:
    made = definition(tmp_path, 'time_zone = "Europe/Berlin"')
    found = of_results(made, [result(DAY_MS - HOUR_MS), result(DAY_MS - HOUR_MS + 1)], DAY_MS - HOUR_MS)
    assert [(day.day, day.results, day.is_final) for day in found.days[-2:]] == [
        (date(1970, 1, 2), 1, False), (date(1970, 1, 1), 1, True),
    ]  # fmt: skip


def test_changes_are_since_the_moment(tmp_path: Path) -> None:
    made = definition(tmp_path)
    tables = Tables(made.store)
    before = put(tables, "results", RESULTS, [result(DAY_MS, 5, "1.00")])
    more = pa.Table.from_pylist([result(DAY_MS, 7, "0.50"), result(2 * DAY_MS)], schema=RESULTS)
    now = delta_commits.commit(tables["results"], before, add=[data_files.write(tables["results"].store, more)])
    runs = tail(run(2, 1_000, {"results": now}), run(1, 0, {"results": before}))
    *_, second, first = days(made, tables, runs, None, since_ms=999).days
    assert (first.results, first.results_before, second.results_before) == (2, 1, 0)
    assert (first.values[1], first.values_before[1]) == (Decimal("1.50"), Decimal("1.00"))
    assert days(made, tables, runs, None, since_ms=-1).days[-1].results_before == 0
    unknown = replace(runs, is_whole=False)
    assert days(made, tables, unknown, None, since_ms=-1).days[-1].results_before is None


def test_late_and_refused_rows_count_in_the_day_of_their_event(tmp_path: Path) -> None:
    made = definition(tmp_path)
    tables = Tables(made.store)
    late = pa.schema([("event_time", STAMP), ("readmitted_by", pa.int64())])
    rows = [{"event_time": utc(DAY_MS), "readmitted_by": None}, {"event_time": utc(DAY_MS), "readmitted_by": 4}]
    refused = [{"event_time": utc(time_ms)} for time_ms in (DAY_MS - 1, 0, DAY_MS, 900 * DAY_MS)] + [
        {"event_time": None}
    ]
    versions = {
        "results": put(tables, "results", RESULTS, [result(DAY_MS)]),
        "late_events": put(tables, "late_events", late, rows),
        "quarantine": put(tables, "quarantine", pa.schema([("event_time", STAMP)]), refused),
    }
    found = days(made, tables, tail(run(1, 0, versions)), None, since_ms=-1).days
    assert [(day.late, day.refused) for day in found[-2:]] == [(1, 1), (0, 2)]


def test_a_rerun_marks_a_day_that_was_final(tmp_path: Path) -> None:
    made = definition(tmp_path)
    tables = Tables(made.store)
    changes = pa.schema([*RESULTS, ("cause", pa.string())])
    rows = [{**result(DAY_MS, batch_id=batch), "cause": "rerun"} for batch in (2, 3)]
    versions = {
        "results": put(tables, "results", RESULTS, [result(DAY_MS)]),
        "result_changes": put(tables, "result_changes", changes, rows, ["cause"]),
    }
    final_at_ms = DAY_MS - 1 + made.spec.allowed_lateness_ms
    runs = [run(3, 0, versions, final_at_ms), run(2, 0, versions, final_at_ms - 1)]
    found = days(made, tables, tail(*runs), None, since_ms=-1).days
    assert [(rework.batch_id, rework.after_final) for rework in found[-1].reworks] == [(2, False), (3, True)]
    assert [day.was_reopened for day in found[-2:]] == [False, True]


@pytest.mark.parametrize(
    ("window", "why"),
    [
        ('type = "tumbling_count"\nsize = 3', "windows have no end in time"),
        ('type = "tumbling"\nsize = "1h"\ntime = "processing"', "windows use processing time"),
    ],
)
def test_windows_without_a_day_say_why(tmp_path: Path, window: str, why: str) -> None:
    made = definition(tmp_path, window=window)
    found = days(made, Tables(made.store), Tail(), None, since_ms=0)
    assert (found.why_none, found.days) == (why, ())


def test_a_pipeline_without_results_has_no_days(tmp_path: Path) -> None:
    made = definition(tmp_path)
    assert days(made, Tables(made.store), Tail(), None, since_ms=0).days == ()


def test_each_file_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = definition(tmp_path)
    first = of_results(made, [result(DAY_MS, revenue="0.10")], keep=True)
    kept = folder_of(made) / row_counts.FILE
    assert json.loads(kept.read_text()).keys() == KEYS["pages/days.json"]
    monkeypatch.setattr(RowReader, "_count", lambda *_: pytest.fail("it is counted again"))
    tables = Tables(made.store)
    versions = {"results": tables["results"].version() or 0}
    assert days(made, tables, tail(run(1, 0, versions)), None, since_ms=-1) == first
    kept.write_text('{"terms": 1}')
    with pytest.raises(pytest.fail.Exception, match="it is counted again"):
        days(made, tables, tail(run(1, 0, versions)), None, since_ms=-1)


def test_a_headline_must_be_an_output(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match=r'pages\.headline: there is no output "revenues"'):
        definition(tmp_path, 'headline = ["revenues"]')
