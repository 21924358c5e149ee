"""Rows on the screen and in files: times beyond Python's range, and places that exports must not use."""

from __future__ import annotations

import io
import json
import re
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, SCHEMA, START_MS, arrive, clicks, clock
from windowlib.cli.display import show_rows
from windowlib.cli.main import app
from windowlib.ledger.rerun_request import Rerun
from windowlib.reruns.dry_run import dry_run
from windowlib.runs.advance import advance

FAR = "1970-01-01 and 4,611,686,018,427,387,904 us"


@pytest.mark.spark
@pytest.mark.embedded
def test_times_after_the_year_9999_are_shown_as_texts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", str(tmp_path / "warehouse"))
    definition = clicks(tmp_path, 0, CLICKS.replace('total = "sum(value)"', 'total = "max(value)"'))
    times = SCHEMA.set(SCHEMA.get_field_index("value"), pa.field("value", pa.timestamp("us")))
    row = {"id": "1", "user": "ann", "at_ms": START_MS, "value": None}
    path = arrive(tmp_path, 1, [row], times)
    far = pa.table({name: pa.array([row[name]], times.field(name).type) for name in ("id", "user", "at_ms")})
    pq.write_table(far.append_column("value", pa.array([2**62], pa.timestamp("us"))), path)
    advance(definition, lambda: spark, clock=clock, finish=True)
    for command in (
        ["read", "results"],
        ["read", "results", "--json"],
        ["explain", "--key", "ann", "--at", "2026-03-02T00:00Z"],
    ):
        name, *others = command
        ended = CliRunner().invoke(app, [name, str(definition.file), *others], env={"COLUMNS": "300"})
        assert (ended.exit_code, FAR in ended.stdout) == (0, True), ended.output
    out = tmp_path / "results.json"
    assert CliRunner().invoke(app, ["read", str(definition.file), "results", "--out", str(out)]).exit_code == 0
    assert [one["total"] for one in json.loads(out.read_text())] == [FAR]


DAYS = "1970-01-01 and 2,147,483,647 days"  # what other databases write of a day that is infinitely far


@pytest.mark.spark
@pytest.mark.both
def test_far_dates_and_times_work_as_keys_and_values(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Covers a run, the commands that show its results, and a rerun that compares them."""
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", str(tmp_path / "warehouse"))
    outputs = 'day = "max(user)"\nevery = "collect_list(value)"'
    definition = clicks(tmp_path, 0, CLICKS.replace('event_id = "id"\n', "").replace('total = "sum(value)"', outputs))
    day, far = pa.array([2**31 - 1], pa.date32()), pa.array([2**62], pa.timestamp("us", "UTC"))
    for number in (1, 2):  # the second is late
        rows = pa.table({"user": day, "at_ms": pa.array([START_MS]), "value": far})
        pq.write_table(rows, tmp_path / "incoming" / f"{number}.parquet")
        advance(definition, lambda: spark, clock=clock, finish=True)
    for command in (
        ["read", "results"],
        ["read", "results", "--json"],
        ["read", "results", "--out", str(tmp_path / "a.csv")],
        ["report"],
    ):
        name, *others = command
        ended = CliRunner().invoke(app, [name, str(definition.file), *others], env={"COLUMNS": "300"})
        assert ended.exit_code == 0, ended.output
        assert command == ["report"] or "--out" in command or (DAYS in ended.output and FAR in ended.output)
    assert FAR in (tmp_path / "a.csv").read_text(encoding="utf-8")
    wanted = Rerun(START_MS - 3_600_000, START_MS + 3_600_000, "a test", "ann")
    changes = dry_run(definition, wanted, clock).preview(spark).summary
    assert FAR in repr(changes)


@pytest.mark.usefixtures("zone")
def test_times_without_a_zone_are_shown_as_they_are() -> None:
    times = [datetime(1, 1, 1), datetime(2026, 3, 29, 2, 30, 0, 999_999)]
    kinds = {"local": pa.timestamp("us"), "utc": pa.timestamp("us", "UTC")}
    screen = Console(width=200, record=True, file=io.StringIO())
    show_rows(screen, pa.table({name: pa.array(times, kind) for name, kind in kinds.items()}))
    shown = [re.split(r" {2,}", line.strip()) for line in screen.export_text().splitlines()]
    assert shown[1:3] == [
        ["0001-01-01 00:00:00", "0001-01-01 00:00:00 UTC"],
        ["2026-03-29 02:30:00.999", "2026-03-29 02:30:00.999 UTC"],
    ]


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("incoming/1.json", "lies in the source folder"),
        ("warehouse/clicks/results/a.json", "lies among the pipeline's"),
    ],
)
def test_rows_are_not_written_where_runs_would_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, why: str
) -> None:
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", str(tmp_path / "warehouse"))
    definition = clicks(tmp_path, 0)
    ended = CliRunner().invoke(app, ["read", str(definition.file), "results", "--out", str(tmp_path / place)])
    assert (ended.exit_code, why in ended.stderr, not (tmp_path / place).exists()) == (2, True, True)
