"""Pipeline in a real Airflow: its own database, the real DAG files, real Spark (in `make test` Sail).

windowlib is installed from the wheel in its own environment. The user has copied only the files of `dags/`.
"""

import io
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs import local_airflow
from tests.support.disks import folder_of
from tests.support.installed import PROJECT, SESSIONS, built, environment, hostile
from tests.support.object_servers import Server
from tests.support.strategies import ALL
from windowlib.definition.definition import load_definition
from windowlib.publication.readers import read_table, table_versions
from windowlib.storage.objects import Objects

Airflow = Callable[..., str]

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]

SAIL = f"""
engine = "sail"
warehouse = "warehouse"
{SESSIONS}
"""
DEFINITION = f"""
warehouse = "warehouse"
{SESSIONS}
[spark]
master = "local[1]"
conf = {{ "spark.sql.shuffle.partitions" = "1" }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pipeline with one file: a session of `a` that ends, and a session of `b` that may go on.

    In `make test` no task starts a JVM; tests/packaging runs Spark from an installed wheel.
    """
    folder = tmp_path_factory.mktemp("team") / "dags" / "pipelines"
    (folder / "incoming").mkdir(parents=True)
    (folder / "small.toml").write_text(DEFINITION if ALL else SAIL, encoding="utf-8")
    pq.write_table(pa.table({"user": ["a", "a", "b"], "ts": [0, 10, 100]}), folder / "incoming" / "1.parquet")
    return folder


@pytest.fixture(scope="module")
def airflow(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    """Airflow's command line, with the DAG files of `dags/` next to the pipelines and nothing else of the project."""
    place = tmp_path_factory.mktemp("airflow")
    installed = environment(place)
    installed.install(str(built("wheel", place / "wheel")))
    for file in (PROJECT / "dags").glob("*.py"):
        shutil.copy(file, folder.parent)
    working = hostile(place / "working folder")
    settings = local_airflow.environment(folder.parents[1], 8080)
    transport = {"type": "file", "log_file_path": str(folder / "lineage.json"), "append": True}
    settings["AIRFLOW__OPENLINEAGE__TRANSPORT"] = json.dumps(transport)

    def airflow(*arguments: str) -> str:
        ended = installed.run([str(installed.bin / "airflow"), *arguments], working, settings)
        assert ended.code == 0, ended.out + ended.err
        return ended.out + ended.err

    airflow("db", "migrate")
    return airflow


@pytest.fixture(scope="module")
def first_run(airflow: Airflow) -> str:
    """Output of a run of the pipeline's DAG."""
    return airflow("dags", "test", "windows_small")


def test_the_dag_runs(folder: Path, first_run: str) -> None:
    definition, printed = load_definition(folder / "small.toml"), first_run
    results = read_table(definition, "results").select(["user", "events", "firing", "timing"]).to_pylist()
    assert results == [{"user": "a", "events": 2, "firing": 1, "timing": "on_time"}]
    assert "batch 1: 1 new file, watermark none yet" in printed
    assert "  read 3  admitted 3  quarantined 0" in printed
    page = (folder_of(definition) / "pages" / "index.html").read_text()
    assert re.search(r"made by manual__\d{4}-\S+ of the DAG windows_small", page)
    rows_written = {Path(one["name"]).name: one["outputFacets"] for one in _lineage(folder, "advance")["outputs"]}
    assert rows_written["results"]["outputStatistics"]["rowCount"] == 1


@pytest.mark.usefixtures("first_run")
@pytest.mark.long(
    "test_dags skips the tasks after a plan of nothing, and a run with nothing new writes nothing, in make test"
)
def test_a_second_run_changes_nothing(folder: Path, airflow: Airflow) -> None:
    definition = load_definition(folder / "small.toml")
    versions = table_versions(definition)
    printed = airflow("dags", "test", "windows_small")
    assert "nothing to do: no new file, and no window that the watermark has passed" in printed
    assert "nothing was planned: nothing was changed" in printed
    assert table_versions(definition) == versions


def test_the_dag_runs_in_an_object_store_with_a_connection(folder: Path, airflow: Airflow, s3_server: Server) -> None:
    """The connection is in Airflow's database, and nothing else leads to the store."""
    place = Objects(s3_server.bucket, "airflow", s3_server)
    table = io.BytesIO()
    pq.write_table(pa.table({"user": ["a", "a", "b"], "ts": [0, 10, 100]}), table)
    place.put("incoming/1.parquet", table.getvalue())
    text = SAIL.replace('"warehouse"', f'"{place}/warehouse"').replace('"incoming"', f'"{place}/incoming"')
    text = text.replace('"small"', '"stored"') + '[airflow]\nconnection = "shop"\n'
    (folder / "stored.toml").write_text(text, encoding="utf-8")
    extra = {"endpoint_url": s3_server.endpoint, "region_name": "us-east-1"}
    connection = {"conn_type": "aws", "login": "key-of-tests", "password": "secret-of-tests", "extra": extra}
    printed = airflow("connections", "add", "shop", "--conn-json", json.dumps(connection))
    printed += airflow("dags", "test", "windows_stored")
    assert "  read 3  admitted 3  quarantined 0" in printed
    assert "secret-of-tests" not in printed
    assert b"windows_stored" in (place.get("warehouse/stored/pages/index.html") or b"")
    sources = [one["name"] for one in _lineage(folder, "advance")["inputs"]]
    assert sources == [f"{place}/incoming"]


def _lineage(folder: Path, task: str) -> dict[str, Any]:
    """Newest event of a successful task, as OpenLineage's file transport has written it."""
    events = map(json.loads, (folder / "lineage.json").read_text().splitlines())
    done: list[dict[str, Any]] = [
        one for one in events if one["eventType"] == "COMPLETE" and one["job"]["name"].endswith(f".{task}")
    ]
    return done[-1]


FORM = {"pipeline": "small", "from": "1970-01-01T00:00:00Z", "to": "1970-01-02T00:00:00Z", "reason": "late"}
APPLIED = {**FORM, "dry_run": False, "approval": False}


@pytest.mark.usefixtures("first_run")
@pytest.mark.long("test_dags runs the tasks of a rerun, and the advance above a real Airflow's")
def test_the_dag_for_reruns_readmits_a_late_event(folder: Path, airflow: Airflow) -> None:
    file = folder / "small.toml"
    file.write_text(SAIL, encoding="utf-8")  # the rerun's DAG is looked at here: no JVM a task
    definition = load_definition(file)
    pq.write_table(pa.table({"user": ["a"], "ts": [5]}), folder / "incoming" / "2.parquet")
    airflow("dags", "test", "windows_small")
    assert read_table(definition, "late_events").num_rows == 1

    printed = airflow("dags", "test", "rerun_windows", "--conf", json.dumps(APPLIED))
    assert "windows      0 added, 0 removed, 1 changed" in printed
    assert "rerun 1970-01-01 00:00:00 UTC to 1970-01-02 00:00:00 UTC  added 0  removed 0  changed 1" in printed
    assert _lineage(folder, "apply")["inputs"][0]["name"] == str(folder / "incoming")
    results = read_table(definition, "results").select(["user", "events", "firing", "timing"]).to_pylist()
    assert results == [{"user": "a", "events": 3, "firing": 2, "timing": "late"}]
    assert [row["readmitted_by"] for row in read_table(definition, "late_events").to_pylist()] == [3]
    with closing(sqlite3.connect(local_airflow.home(folder.parents[1]) / "airflow.db")) as database:
        events = database.execute("SELECT source_task_id, extra FROM asset_event ORDER BY id").fetchall()
    assert [task for task, _ in events] == ["advance", "advance", "apply"]  # those who follow the results learn of it
    of_rerun = json.loads(events[-1][1])
    assert (of_rerun["batch_id"], of_rerun["windows_changed"], of_rerun["late_readmitted"]) == (3, 1, 1)


@pytest.mark.usefixtures("first_run")
@pytest.mark.long("a rerun that is applied makes the same preview, and test_dags holds the order of tasks")
def test_a_dry_run_ends_with_its_preview(folder: Path, airflow: Airflow) -> None:
    definition = load_definition(folder / "small.toml")
    pq.write_table(pa.table({"user": ["a"], "ts": [6]}), folder / "incoming" / "3.parquet")
    airflow("dags", "test", "windows_small")  # late
    versions = table_versions(definition)
    dry_run = airflow("dags", "test", "rerun_windows", "--conf", json.dumps(FORM))
    assert "a dry run ends with its preview" in dry_run
    assert table_versions(definition) == versions
