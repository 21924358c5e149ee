"""A cluster and a Spark Connect server that share no disk with the driver: source and warehouse are in S3."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.clicks import CLICKS, COMPARED, clicks, events, tables
from tests.support.clusters import section, standalone_cluster
from tests.support.connect_server import ConnectServer
from tests.support.machines import APART, KILLED, PROJECT, Machine
from tests.support.object_servers import Server
from tests.support.stored_pipelines import StoredClicks, reach
from windowlib.airflow.commands import advance_command
from windowlib.airflow.connections.access import load_pipeline
from windowlib.airflow.job import Job
from windowlib.publication.publish import STAGING
from windowlib.storage import clients

FILES = 2
Tables = dict[str, list[str]]
SAME = [name for name in COMPARED if name != "source_files"]  # it holds the times of the files
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long("a cluster, a server and a JVM for each run; Sail runs in S3 in make test"),
]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Address of a standalone cluster."""
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster") as address:
        yield address


@pytest.fixture
def server(tmp_path: Path, s3_server: Server, s3_jars: list[Path]) -> Iterator[ConnectServer]:
    """A Spark Connect server that was started with the JARs for S3."""
    (tmp_path / "server").mkdir()
    options = "--jars", ",".join(map(str, s3_jars))
    server = ConnectServer(tmp_path / "server", options, s3_server.variables())
    server.start()
    yield server
    server.end()


@pytest.fixture
def stored(tmp_path: Path, s3_server: Server, monkeypatch: pytest.MonkeyPatch) -> StoredClicks:
    """The pipeline of clicks with its files in S3."""
    reach(s3_server, monkeypatch)
    pipeline = StoredClicks(tmp_path, str(s3_server.store()))
    for number in range(1, FILES + 1):
        pipeline.arrive(number, events(number))
    return pipeline


@pytest.fixture
def expected(tmp_path: Path) -> Tables:
    """Tables of the pipeline after a run with files and tables on a disk."""
    definition = clicks(tmp_path / "disk", FILES)
    command = [sys.executable, "-m", "tests.support.on_sail", str(FILES), str(tmp_path / "disk")]
    subprocess.run(command, cwd=PROJECT, check=True)
    return tables(definition, SAME)


@pytest.fixture
def apart(without_rights: list[str], request: pytest.FixtureRequest) -> None:
    """For a test whose runs see no processes of other runs."""
    if subprocess.run([*APART, "true"], capture_output=True, check=False).returncode:
        without_rights.append(f"{request.node.name}: processes that see no others (unshare --pid)")
        pytest.skip("needs the right to make PID namespaces")


@pytest.mark.usefixtures("apart")
def test_a_driver_of_a_cluster_needs_nothing_of_another_driver(
    master: str, stored: StoredClicks, s3_server: Server, s3_jars: list[Path], expected: Tables, tmp_path: Path
) -> None:
    definition = CLICKS + section(master)
    killed_and_finished(stored, definition, s3_jars, expected, tmp_path, s3_server.variables())


def test_a_task_of_airflow_submits_a_batch_with_its_connection(
    master: str, stored: StoredClicks, s3_server: Server, s3_jars: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver finds the storage by the connection alone."""
    stored.definition(f'{CLICKS}[airflow]\nconnection = "shop"\n{section(master)}')
    for name in s3_server.variables():
        monkeypatch.delenv(name)
    monkeypatch.setattr(clients, "_clients", {})
    extra = {"endpoint_url": s3_server.endpoint, "region_name": "us-east-1"}
    keys = {"login": "key-of-tests", "password": "secret-of-tests"}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "aws", **keys, "extra": extra}))
    definition = load_pipeline(stored.folder / "clicks.toml")
    command = advance_command(definition)
    assert Path(command[0]).name == "spark-submit"
    assert all(str(jar) in ",".join(command) for jar in s3_jars)
    batches = Job(task_id="advance", command=command, connection="shop").execute({})
    assert [batch["rows_read"] for batch in batches] == [len(events(number)) for number in range(1, FILES + 1)]


@pytest.mark.usefixtures("apart")
def test_a_client_of_a_server_needs_nothing_of_another_client(
    server: ConnectServer, stored: StoredClicks, s3_server: Server, expected: Tables, tmp_path: Path
) -> None:
    definition = CLICKS + f'[spark]\nmaster = "{server.address}"\n[spark.conf]\n"spark.sql.shuffle.partitions" = "2"\n'
    variables = {**server.environment, **s3_server.variables()}
    killed_and_finished(stored, definition, [], expected, tmp_path, variables)


def killed_and_finished(
    stored: StoredClicks, text: str, jars: list[Path], expected: Tables, folder: Path, variables: Mapping[str, str]
) -> None:
    """Kills a run in its second batch, and its machine is lost. Another machine finishes with the tables of a disk."""
    definition = stored.definition(f'lease_timeout = "3s"\n{text}')
    lost, other = (Machine.with_definition(folder / name, definition.file, jars) for name in ("lost", "other"))
    ended = lost.run(variables, "2:write:windows")
    assert ended.returncode == KILLED, ended.stderr
    assert [*lost.home.iterdir()] == []
    assert [file.name for file in lost.work.iterdir()] == [definition.file.name]
    shutil.rmtree(lost.folder)
    ended = other.run(variables)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [2]
    ours = tables(definition, SAME)
    assert {name: rows for name, rows in expected.items() if rows != ours[name]} == {}
    assert [*definition.store.list(f"{STAGING}/")] == []
