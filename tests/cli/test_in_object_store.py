"""Commands on a pipeline in an object store: each ends as on a disk, and leaves the same rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.support.object_servers import Server
from tests.support.stored_pipelines import delete_rows, put_rows, reach
from windowlib.cli.main import app
from windowlib.contract.tables import TABLES
from windowlib.definition.definition import Definition, load_definition
from windowlib.publication.readers import duckdb_views, read_table
from windowlib.storage.address import store_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded, pytest.mark.sail]
DEFINITION = """
name = "clicks"
engine = "sail"
warehouse = "{place}/warehouse"
[source]
format = "parquet"
path = "{place}/incoming"
key = ["user"]
timestamp = "at"
max_files_per_run = 1
min_file_age = "0s"
[watermark]
out_of_orderness = "5m"
[window]
type = "session"
gap = "30m"
[aggregates]
events = "count(*)"
total = "sum(value)"
"""
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
ARRIVALS: tuple[list[tuple[str | None, int, int]], ...] = (
    [("ann", 0, 1), ("bob", 5, 2), ("ann", 10, 3)],
    [("ann", 60, 4), ("cid", 90, 5), (None, 91, 6)],
    [("bob", 20, 7), ("ann", 130, 8)],  # the first is late
    [("cid", 240, 9)],
)
NEW_EACH_TIME = ("ledger", "dq_results", "run_metrics", "previews", "source_files", "watermarks")
PREVIEW_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
WHY = ("--reason", "asked for", "--yes")


class Pipeline:
    """A pipeline below an address, and the outcome of commands on it."""

    def __init__(self, folder: Path, place: str) -> None:
        folder.mkdir()
        self.file, self.place = folder / "clicks.toml", place
        self.write("30m")
        for number, rows in enumerate(ARRIVALS):
            times = [START + timedelta(minutes=minute) for _, minute, _ in rows]
            columns = {
                "user": pa.array([user for user, _, _ in rows], pa.string()),
                "at": pa.array(times, pa.timestamp("us", "UTC")),
                "value": [value for _, _, value in rows],
            }
            put_rows(store_at(place), f"incoming/{number}.parquet", pa.table(columns))

    def write(self, gap: str) -> None:
        self.file.write_text(DEFINITION.format(place=self.place).replace("30m", gap), encoding="utf-8")

    @property
    def definition(self) -> Definition:
        return load_definition(self.file)

    def windowlib(self, *words: str, ends: int = 0) -> str:
        name, *arguments = words
        done = CliRunner().invoke(app, [name, str(self.file), *arguments], env={"COLUMNS": "200"})
        assert done.exit_code == ends, f"{words}: {done.output}\n{done.exception!r}"
        return done.output

    def tables(self) -> dict[str, list[str]]:
        """Rows of all tables that hold data of the pipeline, sorted. Records of what was done have a number."""
        rows = {name: read_table(self.definition, name) for name in TABLES if name not in NEW_EACH_TIME}
        data = {name: table for name, table in rows.items() if "number" not in table.column_names}
        return {name: sorted(map(str, table.to_pylist())) for name, table in data.items()}


@pytest.fixture(params=["s3", pytest.param("azure", marks=pytest.mark.long("in make test S3 is compared with a disk"))])
def pipelines(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> tuple[Pipeline, Pipeline]:
    """The same pipeline on a disk and in an object store."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    reach(server, monkeypatch)
    return Pipeline(tmp_path / "disk", str(tmp_path / "data")), Pipeline(tmp_path / "store", str(server.store()))


def test_every_command_ends_as_on_a_disk(pipelines: tuple[Pipeline, Pipeline]) -> None:
    for number, step in enumerate(STEPS):
        outputs = [step(pipeline) for pipeline in pipelines]
        assert outputs[0] == outputs[1], f"step {number}"
        disk, store = (pipeline.tables() for pipeline in pipelines)
        assert disk == store, f"step {number}"
        assert store["results"]
    assert not any(pipelines[1].file.parent.rglob("*.parquet"))


def _all_read(pipeline: Pipeline) -> list[Any]:
    pipeline.windowlib("plan")
    lines = pipeline.windowlib("run", "--json").splitlines()
    batches = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(batches) == len(ARRIVALS)
    return [(batch["rows_read"], batch["rows_late"], batch["windows_fired_on_time"]) for batch in batches]


def _readmitted(pipeline: Pipeline) -> list[Any]:
    assert "no difference" in pipeline.windowlib("verify")
    day = ("--from", "2026-03-02T09:00Z", "--to", "2026-03-02T10:00Z", "--reason", "asked for")
    previewed = PREVIEW_ID.search(pipeline.windowlib("rerun", *day, "--dry-run"))
    assert previewed
    pipeline.windowlib("rerun", "--apply", previewed[0])
    assert "no difference" in pipeline.windowlib("verify")
    return []


def _explained(pipeline: Pipeline) -> list[Any]:
    pages = f"{pipeline.place}/pages"
    assert f"{pages}/index.html" in pipeline.windowlib("report", "--out", pages)
    assert b"clicks" in (store_at(pages).get("index.html") or b"")
    pipeline.windowlib("read", "results", "--out", f"{pipeline.place}/exports/results.csv")
    written = sorted((store_at(pipeline.place).get("exports/results.csv") or b"").splitlines())
    assert written
    connection = duckdb.connect()
    duckdb_views(connection, pipeline.definition)
    counted = connection.sql("select count(*), sum(total) from results").fetchall()
    explained = pipeline.windowlib("explain", "--key", "ann", "--at", "2026-03-02T09:05Z")
    events = [line for line in explained.splitlines() if ".parquet" in line]
    return [written, counted, events, pipeline.windowlib("checks").count(" met")]


def _rolled_back(pipeline: Pipeline) -> list[Any]:
    pipeline.windowlib("rollback", "--to-batch", "3", *WHY)
    return [json.loads(pipeline.windowlib("run", "--json").splitlines()[-1])["rows_read"]]


def _forgotten(pipeline: Pipeline) -> list[Any]:
    dry = pipeline.windowlib("forget", "--key", "bob", "--dry-run")
    pipeline.windowlib("forget", "--key", "bob", "--now", *WHY)
    assert not any("bob" in row for rows in pipeline.tables().values() for row in rows)
    return [dry]


def _migrated(pipeline: Pipeline) -> list[Any]:
    pipeline.write("2h")
    assert "window.gap" in pipeline.windowlib("run", ends=2)
    pipeline.windowlib("migrate", *WHY)
    assert "no difference" in pipeline.windowlib("verify")
    return []


def _restored(pipeline: Pipeline) -> list[Any]:
    delete_rows(pipeline.definition, "results", "user = 'cid'")
    pipeline.windowlib("restore", *WHY)
    assert "no difference" in pipeline.windowlib("verify")
    return []


def _maintained(pipeline: Pipeline) -> list[Any]:
    pipeline.windowlib("maintain")
    assert "no difference" in pipeline.windowlib("verify")
    return []


STEPS: tuple[Callable[[Pipeline], list[Any]], ...] = (
    *(_all_read, _readmitted, _explained, _rolled_back, _forgotten, _migrated, _restored, _maintained),
)
