"""Whole pipeline by the command line: run it, inspect it, run it again."""

from __future__ import annotations

import html
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from windowlib.cli.main import app
from windowlib.ledger.ledger import Superseded
from windowlib.runs import start

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]  # README is run on Spark in make test

DEFINITION = """
name = "clicks"
[source]
format = "parquet"
path = "incoming"
key = ["user_id"]
timestamp = "ts"
[watermark]
out_of_orderness = "0s"
[window]
type = "session"
gap = "30m"
[aggregates]
events = "count(*)"
total = "sum(value)"
mean = "avg(value)"
first = "first(value)"
dear = "count(*) filter (where value > 2)"
"""
START = datetime(2026, 3, 2, tzinfo=UTC)
EVENTS = [("a", 0, "1.50"), ("a", 10, "2.50"), ("a", 100, "7.00"), ("b", 5, None), (None, 6, "1.00")]


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def pipeline(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    file = tmp_path / "clicks.toml"
    file.write_text(f'engine = "{request.config.getoption("--engine")}"\n{DEFINITION}')
    (tmp_path / "incoming").mkdir()
    rows = {
        "user_id": [user for user, _, _ in EVENTS],
        "ts": pa.array([START + timedelta(minutes=at) for _, at, _ in EVENTS], pa.timestamp("us", "UTC")),
        "value": pa.array([value and Decimal(value) for _, _, value in EVENTS], pa.decimal128(10, 2)),
    }
    pq.write_table(pa.table(rows), tmp_path / "incoming" / "1.parquet")
    return file


def test_a_pipeline_from_run_to_read(spark: SparkSession, pipeline: Path) -> None:
    ended = call("run", pipeline)
    assert ended.exit_code == 0, ended.stderr
    assert "batch 1  fired 2  late 0  watermark " in ended.stdout
    assert "  read 5  admitted 4  quarantined 1 (null_key 1)  in flight " in ended.stdout

    results = sorted(lines(call("read", pipeline, "results", "--json").stdout), key=lambda row: row["user_id"])
    shown = [(row["user_id"], row["events"], row["total"], row["mean"], row["first"], row["dear"]) for row in results]
    assert shown == [("a", 2, "4.00", "2.000000", "1.50", 1), ("b", 1, None, None, None, 0)]
    assert results[0]["window_start"] == "2026-03-02T00:00:00Z"

    stands = json.loads(call("status", pipeline, "--json").stdout)
    assert [commit["batch_id"] for commit in stands["commits"]] == [1]
    assert stands["time"]["source_file"] == "1.parquet"
    assert stands["windows_in_flight"] == 1
    assert [check["severity"] for check in stands["checks"]["failed"]] == ["warning"]  # one row of five is unusable
    assert (stands["unfinished"], stands["files_waiting"]) == (None, 0)
    status = call("status", pipeline).stdout
    assert "the newest event, 2026-03-02 01:40:00 UTC (row 2 of 1.parquet, batch 1)" in status
    assert "only newer events advance it: the definition has no idle_timeout" in status

    assert call("run", pipeline).stdout.startswith("nothing new")
    finished = call("run", pipeline, "--finish")
    assert finished.exit_code == 0, finished.stderr
    assert "fired 1" in finished.stdout


def test_a_run_builds_the_page_of_what_it_did(spark: SparkSession, pipeline: Path) -> None:
    ended = call("run", pipeline, "--report", "--json")
    assert ended.exit_code == 0, ended.stderr
    _, shown = lines(ended.stdout)
    page = Path(shown["page"])
    assert "<strong>batch 1</strong>" in page.read_text(encoding="utf-8")
    metrics = page.parents[1] / "metrics.prom"
    assert 'pipeline="clicks"' in metrics.read_text(encoding="utf-8")

    built = page.stat().st_mtime_ns
    assert lines(call("run", pipeline, "--report", "--json").stdout) == []  # nothing was new
    assert page.stat().st_mtime_ns == built

    (pipeline.parent / "incoming" / "1.parquet").unlink()
    (pipeline.parent / "incoming").rmdir()
    failed = call("run", pipeline, "--report")
    assert failed.exit_code != 0
    [sentence] = [line.removeprefix("error: ") for line in failed.stderr.splitlines() if line.startswith("error: ")]
    assert f"open {page}" in failed.stdout
    assert f" with: {sentence}" in html.unescape(page.read_text(encoding="utf-8"))


def test_a_page_that_cannot_be_built_is_a_note(spark: SparkSession, pipeline: Path) -> None:
    in_the_way = pipeline.parent / "warehouse" / "clicks" / "pages"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file")
    ended = call("run", pipeline, "--report", "--json")
    assert ended.exit_code == 0, ended.stderr
    assert [line["batch_id"] for line in lines(ended.stdout)] == [1]
    assert "clicks: its page could not be built: " in ended.stderr


def test_a_superseded_run_leaves_the_page_to_the_other_run(
    spark: SparkSession, pipeline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("run", pipeline).exit_code == 0

    def superseded(*given: Any, **named: Any) -> Any:
        raise Superseded("another run is in progress")

    monkeypatch.setattr(start, "run", superseded)
    ended = call("run", pipeline, "--report")
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert not (pipeline.parent / "warehouse" / "clicks" / "pages").exists()
