"""The demo itself, small: both pipelines file by file, and nothing differs from the truth."""

import io
import json
import os
import secrets
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tests.support.object_servers import Server
from windowlib.definition.definition import Definition, load_definition
from windowlib.demo.clicks import ClickSettings
from windowlib.demo.pipelines import write_definitions
from windowlib.demo.run import MARK, Stage, compare_with_truth, demo, demo_own_data
from windowlib.demo.truth import Truth, make_demo_data
from windowlib.model.errors import InvalidSpec
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

SMALL = ClickSettings(events=4_000, users=200, files=8, seed=3)
NO_ROW = {"json": '{"event_id": "cut short", "user_i', "csv": "cut short"}  # a line that is not a row


@pytest.fixture(autouse=True)
def _own_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)


@pytest.fixture
def stage(tmp_path: Path, pytestconfig: pytest.Config) -> Stage:
    """A demo on the engine of the tests, in processes of its own."""
    return Stage(tmp_path / "demo", Console(file=io.StringIO(), width=200), pytestconfig.getoption("--engine"))


def shown(stage: Stage) -> str:
    assert isinstance(stage.console.file, io.StringIO)
    return stage.console.file.getvalue()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_nothing_differs_from_the_truth(stage: Stage) -> None:
    assert demo(stage, SMALL), shown(stage)
    text = shown(stage)
    assert "\n0 differences\n" in text
    assert f"windowlib status {stage.folder}/sessions.toml" in text
    truth_files = {path.name for path in (stage.folder / "truth").iterdir()}
    assert truth_files == {f"{side}{part}.parquet" for side in ("sessions", "sliding") for part in ("", "_late")}


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize(
    "cloud", ["s3", pytest.param("azure", marks=pytest.mark.long("the demo in S3 is compared in make test"))]
)
def test_nothing_differs_from_the_truth_in_an_object_store(
    cloud: str, stage: Stage, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(f"{cloud}_server")
    for name, value in server.variables().items():
        monkeypatch.setenv(name, value)
    address = f"{server.bucket}/{secrets.token_hex(4)}"
    stage = replace(stage, engine="sail", address=address)
    assert demo(stage, replace(SMALL, events=1_500)), shown(stage)
    assert "\n0 differences\n" in shown(stage)
    definition = load_definition(stage.folder / "sessions.toml")
    assert (definition.source.path, str(definition.store)) == (
        f"{address}/incoming",
        f"{address}/warehouse/demo_sessions",
    )
    assert not (stage.folder / "incoming").exists()
    assert not (stage.folder / "warehouse").exists()
    monkeypatch.setattr("windowlib.demo.run.make_demo_data", lambda *_: pytest.fail("the store is not the demo's"))
    definition.store.above()[0].above()[0].delete([MARK])  # type: ignore[index]
    with pytest.raises(InvalidSpec, match=f"{address} is not empty and was not created by the demo"):
        demo(stage, SMALL)


@pytest.mark.spark
@pytest.mark.slow
def test_sessions_run_on_spark_and_sliding_windows_on_sail(stage: Stage) -> None:
    stage = replace(stage, engine=None)
    assert demo(stage, SMALL), shown(stage)
    titles = [line for line in shown(stage).splitlines() if line.endswith(".toml)")]
    assert [title.partition("  (")[0] for title in titles] == ["sessions on Spark", "sliding windows on Sail"]
    files = (stage.folder / "sessions.toml", stage.folder / "sliding.toml")
    assert [load_definition(file).engine for file in files] == ["spark", "sail"]


SCHEMA = """
[source.schema]
event_id = "string"
user_id = "string"
ts = "timestamp"
value = "bigint"
kind = "string"

[watermark]"""


def text_data(folder: Path, format: str) -> tuple[Truth, dict[str, int]]:
    """The demo's files as text, each with a line that is not a row; the truth, and the unusable rows by reason."""
    truth = make_demo_data(SMALL, folder)
    for parquet in sorted(folder.iterdir()):
        table, text, when = pq.read_table(parquet), parquet.with_suffix(f".{format}"), parquet.stat().st_mtime_ns
        if format == "json":
            texts = table.set_column(2, "ts", pc.strftime(table["ts"], "%Y-%m-%dT%H:%M:%SZ"))
            text.write_text("".join(f"{json.dumps(row)}\n" for row in texts.to_pylist()))
        else:
            pa_csv.write_csv(table, text)
        with text.open("a") as file:
            file.write(f"{NO_ROW[format]}\n")
        os.utime(text, ns=(when, when))
        parquet.unlink()
    return truth, {**truth.unusable, "malformed": SMALL.files}


def text_pipeline(folder: Path, format: str) -> Definition:
    file, _ = write_definitions(folder)
    text = file.read_text().replace('format = "parquet"', f'format = "{format}"').replace("[watermark]", SCHEMA)
    file.write_text(text)
    return load_definition(file)


@pytest.mark.long("the demo in Parquet is compared with the truth in make test; JSON is read in others")
@pytest.mark.spark
@pytest.mark.slow
def test_nothing_differs_in_json(tmp_path: Path, spark: SparkSession) -> None:
    truth, unusable = text_data(tmp_path / "incoming", "json")
    definition = text_pipeline(tmp_path, "json")
    advance(definition, lambda: spark)
    comparisons = compare_with_truth(definition, "sessions", truth.sessions, unusable)
    assert [comparison for comparison in comparisons if comparison.differences] == []
    assert malformed(definition) == [NO_ROW["json"]] * SMALL.files


@pytest.mark.spark
@pytest.mark.long("unusable rows of CSV are in tests/source; those of the demo in Parquet are in make test")
def test_every_unusable_row_is_refused_in_csv(tmp_path: Path, spark: SparkSession) -> None:
    truth, unusable = text_data(tmp_path / "incoming", "csv")
    definition = text_pipeline(tmp_path, "csv")
    all_at_once = definition.source.model_copy(update={"max_files_per_run": 0})
    (report,) = advance(definition.model_copy(update={"source": all_at_once}), lambda: spark)
    assert report.figures["rows_read"] == truth.rows + SMALL.files
    assert {reason: report.figures[f"quarantined_{reason}"] for reason in unusable} == unusable
    assert report.figures["rows_quarantined"] == sum(unusable.values())
    assert malformed(definition) == [NO_ROW["csv"]] * SMALL.files


def malformed(definition: Definition) -> list[str]:
    """The raw rows of that reason."""
    rows = read_table(definition, "quarantine").to_pylist()
    return [row["raw"] for row in rows if row["reason"] == "malformed"]


@pytest.mark.spark
@pytest.mark.parametrize(
    "form",
    [
        pytest.param("parquet", marks=pytest.mark.embedded),
        pytest.param("json", marks=pytest.mark.long("test_own_data writes the definition of such files in make test")),
    ],
)
def test_files_of_the_readers_own(form: str, stage: Stage, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for hour in range(2):
        rows = [{"client": f"c{n % 3}", "at": f"2026-03-02T{hour:02}:{n:02}:00Z"} for n in range(0, 60, 7)]
        if form == "json":
            (data / f"{hour}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            times = [{**row, "at": datetime.fromisoformat(row["at"])} for row in rows]
            pq.write_table(pa.Table.from_pylist(times), data / f"{hour}.parquet")
    demo_own_data(stage, data)
    assert f"2 {form} files" in shown(stage)
    assert "time is at, key is client" in shown(stage)
    results = read_table(load_definition(stage.folder / "own_hours.toml"), "results")
    assert results.num_rows > 0


def test_folders_of_others_are_left_alone(stage: Stage) -> None:
    stage.folder.mkdir()
    (stage.folder / "thesis.txt").write_text("precious")
    with pytest.raises(InvalidSpec, match="is not empty and was not created by the demo"):
        demo(stage, SMALL)
    assert (stage.folder / "thesis.txt").read_text() == "precious"


def test_data_inside_the_folder_are_left_alone(stage: Stage) -> None:
    data = stage.folder / "incoming"
    make_demo_data(SMALL, data)
    with pytest.raises(InvalidSpec, match="but the demo empties that folder"):
        demo_own_data(stage, data)
    assert len(list(data.iterdir())) == SMALL.files
    shutil.rmtree(stage.folder)


def test_a_warehouse_elsewhere_must_be_empty(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere" / "demo_sessions").mkdir(parents=True)
    (tmp_path / "elsewhere" / "demo_sessions" / "metrics.prom").touch()
    with pytest.raises(InvalidSpec, match="unset WINDOWLIB_WAREHOUSE"):
        demo(stage, SMALL)


@pytest.mark.parametrize("engine", ["spark", "sail"])
def test_the_definitions_name_the_engine_that_the_demo_runs_on(tmp_path: Path, engine: str) -> None:
    files = write_definitions(tmp_path, (engine, "sail"))
    assert [load_definition(file).engine for file in files] == [engine, "sail"]
