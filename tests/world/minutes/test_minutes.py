"""The judges of `python -m tests.world.minutes` find each kind of fault."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tests.world.minutes.judge import DagRun, Task, run_faults, runs, table_faults, windows
from tests.world.minutes.place import GAP_MS, MINUTE_MS, Event, Feed, events, make
from windowlib.definition.definition import load_definition

BEGIN_MS = 1_772_409_600_000


def run(number: int, report_after_ms: int = 5_000, tries: int = 1, state: str = "success") -> DagRun:
    minute_ms = BEGIN_MS + number * MINUTE_MS
    start_ms, advanced_ms = minute_ms + MINUTE_MS, minute_ms + MINUTE_MS + 9_000
    tasks = {
        "plan": Task("success", tries, start_ms, start_ms + 3_000),
        "advance": Task("success", 1, start_ms + 3_000, advanced_ms),
        "decide": Task("skipped", 0, None, None),
        "report": Task("success", 1, advanced_ms, advanced_ms + report_after_ms),
    }
    return DagRun(minute_ms, state, start_ms, advanced_ms + report_after_ms, tasks)


def test_correct_minutes_have_no_fault() -> None:
    assert list(run_faults([run(-1, state="failed"), *map(run, range(3))], BEGIN_MS, 3)) == []


def test_each_fault_of_a_run_is_found() -> None:
    undone = replace(run(4), tasks=run(4).tasks | {"advance": Task("upstream_failed", 0, None, None)})
    dumb = replace(run(5), tasks={name: task for name, task in run(5).tasks.items() if name != "report"})
    found = [run(0), run(2, tries=2), run(3, report_after_ms=60_001), undone, dumb, run(6, state="running")]
    assert [fault.partition("UTC: ")[2] for fault in run_faults(found, BEGIN_MS, 7)] == [
        "no run",
        "plan was tried 2 times",
        "the report came 60 s after advance",
        "nothing was published",
        "there is no report",
        "the run is running",
    ]


def test_a_minute_without_a_new_file_is_allowed_and_an_hour_of_them_is_a_fault() -> None:
    idle = [replace(run(n), tasks=run(n).tasks | {"advance": Task("skipped", 0, None, None)}) for n in range(10)]
    assert list(run_faults([*idle[:1], *map(run, range(1, 10))], BEGIN_MS, 10)) == []
    assert list(run_faults(idle, BEGIN_MS, 10)) == ["only 0 of 10 runs published anything"]


def test_runs_are_read_from_airflows_database(tmp_path: Path) -> None:
    database = tmp_path / "airflow.db"
    with sqlite3.connect(database) as connection:
        columns = "dag_id, run_id, state, start_date, end_date"
        connection.execute(f"create table dag_run ({columns}, data_interval_start)")
        connection.execute(f"create table task_instance ({columns}, task_id, try_number)")
        times = "2026-03-02 00:01:00.500000", "2026-03-02 00:01:20.500000"
        connection.execute(
            "insert into dag_run values ('d', 'r', 'success', ?, ?, '2026-03-02 00:00:00.000000')", times
        )
        connection.execute("insert into task_instance values ('d', 'r', 'success', ?, ?, 'plan', 1)", times)
    connection.close()
    task = Task("success", 1, BEGIN_MS + 60_500, BEGIN_MS + 80_500)
    assert runs(database, "d") == [DagRun(BEGIN_MS, "success", BEGIN_MS + 60_500, BEGIN_MS + 80_500, {"plan": task})]


def test_windows_from_scratch() -> None:
    at = [0, GAP_MS, 2 * GAP_MS + 1, 2 * GAP_MS + 1]
    mine = [Event("a", one) for one in at]
    assert windows("sessions", [*mine, Event("b", 5)]) == {
        ("a", 0, 2 * GAP_MS): 2,
        ("a", 2 * GAP_MS + 1, 3 * GAP_MS + 1): 2,
        ("b", 5, GAP_MS + 5): 1,
    }
    assert windows("tumbling", mine) == {("a", 0, MINUTE_MS): 4}


def test_a_file_for_each_pipeline_and_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    make(tmp_path)
    feed = Feed(tmp_path, 2)
    assert [feed.is_due(at_ms, 0) for at_ms in (39_999, 40_000)] == [False, True]
    feed.move()
    assert [feed.is_due(at_ms, 0) for at_ms in (40_000, 100_000)] == [False, True]
    for name in ("tumbling", "sessions"):
        definition = load_definition(tmp_path / "dags" / "pipelines" / f"{name}.toml")
        assert [file.name for file in definition.source.path.iterdir()] == ["00000.parquet"]
        assert list(table_faults(definition.file, feed.events[name], 1)) == ["nothing was published"]
    assert {one.at_ms for one in events("x", 10, 12)} == {11, 12}
