"""Credentials from an Airflow connection: tasks, their commands and pages read a warehouse in an object store."""

from __future__ import annotations

import html
import json
import os
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.clicks import CLICKS, ON_SAIL, events
from tests.support.fault_proxy import TOKEN, Request, Rule, answered, fault_proxy
from tests.support.object_servers import ACCOUNT, KEY, Server
from tests.support.stored_pipelines import StoredClicks, reach
from windowlib.engines import jars
from windowlib.ledger.ledger import wall_clock_ms
from windowlib.publication.readers import read_table
from windowlib.storage import clients, credentials
from windowlib.storage.address import store_at
from windowlib.storage.bucket import BucketAddress
from windowlib.storage.handover import SECRET_VARIABLES

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.embedded,
    pytest.mark.sail,
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]
JARS = '[spark.conf]\n"spark.jars.packages" = "org.apache.hadoop:hadoop-aws:3.5.0"\n'
SHOP = "AIRFLOW_CONN_SHOP"  # Airflow's variable for the connection `shop`
SECRET, PLANTED = "SECRET-which-nobody-may-see", "TOKEN-which-nobody-may-see"
KEYS = {"login": "key-of-tests", "password": SECRET}


def aws(server: Server, **more: Any) -> str:
    """Connection to a server of S3 as JSON. `more` are other fields."""
    extra = {"endpoint_url": server.endpoint, "region_name": "us-east-1", **more.pop("extra", {})}
    return json.dumps({"conn_type": "aws", **KEYS, "extra": extra, **more})


def wasb(server: Server, **more: Any) -> str:
    """Connection to a server of Azure as JSON."""
    return json.dumps({"conn_type": "wasb", "login": ACCOUNT, "password": KEY, "host": server.endpoint, **more})


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Removes all that leads to a store without a connection, when the test's own pipeline is there."""
    monkeypatch.setattr(credentials, "_advice", {})
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    return monkeypatch


def stored(server: Server, folder: Path, patch: pytest.MonkeyPatch, text: str = ON_SAIL) -> StoredClicks:
    """Pipeline with a file in a store. Afterwards this process has no credentials but those of its connection."""
    reach(server, patch)
    pipeline = StoredClicks(folder, str(server.store()))
    pipeline.arrive(1, events(1))
    pipeline.definition(f'{text}\n[airflow]\nconnection = "shop"\n')
    patch.setattr(clients, "_clients", {})
    for name in (*server.variables(), *(name for names in SECRET_VARIABLES.values() for name in names)):
        if name != "AZURE_STORAGE_ACCOUNT_NAME":
            patch.delenv(name, raising=False)
    return pipeline


def task(pipeline: StoredClicks) -> Any:
    """Task that runs a pipeline with its connection."""
    from windowlib.airflow.commands import of_pipeline
    from windowlib.airflow.job import Job

    return Job(task_id="run", command=of_pipeline("run", pipeline.folder / "clicks.toml"), connection="shop")


@pytest.mark.parametrize(("kind", "connection"), [("s3", aws), ("azure", wasb)])
def test_a_task_and_pages_take_the_credentials_of_the_connection(
    kind: str,
    connection: Callable[[Server], str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    patch: pytest.MonkeyPatch,
) -> None:
    from windowlib.airflow.connections.access import load_pipeline
    from windowlib.airflow.lineage import newest_checks
    from windowlib.airflow.live_pages import page

    server: Server = request.getfixturevalue(f"{kind}_server")
    with fault_proxy(server.port) as proxy:
        pipeline = stored(server, tmp_path, patch)
        patch.setenv(SHOP, connection(server.behind(proxy.port)))
        [batch] = task(pipeline).execute({})
        assert batch["rows_read"] == 82
        definition = load_pipeline(tmp_path / "clicks.toml")
        assert read_table(definition, "results").num_rows
        assert newest_checks(definition.store, definition.pages)
        assert "batch 1" in page(definition, wall_clock_ms())


def test_credentials_that_are_refused_are_asked_again(
    s3_server: Server, tmp_path: Path, patch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def is_old(request: Request) -> bool:
        if request.headers.get(TOKEN) == "token-2":
            return False
        refused.append(request.method)
        os.environ[SHOP] = aws(s3_server.behind(proxy.port), extra={"aws_session_token": "token-2"})
        return True

    with fault_proxy(s3_server.port) as proxy:
        pipeline = stored(s3_server, tmp_path, patch)
        patch.setenv(SHOP, aws(s3_server.behind(proxy.port), extra={"aws_session_token": "token-1"}))
        proxy.rules.append(Rule(answered(400, "ExpiredToken"), times=None, chosen=is_old))
        [batch] = task(pipeline).execute({})
        assert batch["rows_read"] == 82
        assert refused


def test_refused_credentials_are_one_sentence_and_tried_again(
    s3_server: Server, tmp_path: Path, patch: pytest.MonkeyPatch
) -> None:
    from windowlib.airflow.operators import BuildReport
    from windowlib.airflow.sentences import ExpectedFailure, FinalFailure
    from windowlib.definition.definition import load_definition

    with fault_proxy(s3_server.port) as proxy:
        pipeline = stored(s3_server, tmp_path, patch)
        patch.setenv(SHOP, aws(s3_server.behind(proxy.port)))
        proxy.rules.append(Rule(answered(403, "InvalidAccessKeyId"), times=None, chosen=lambda _: True))
        tables = load_definition(tmp_path / "clicks.toml").store
        report = BuildReport(task_id="report", command=[], tables=tables, connection="shop")
        for failing in (task(pipeline), report):
            with pytest.raises(ExpectedFailure) as caught:
                failing.execute({})
            assert not isinstance(caught.value, FinalFailure)
            said = " ".join(str(caught.value).split())
            assert "refuses the credentials (403 InvalidAccessKeyId)" in said
            assert said.endswith("expected credentials of AWS; correct the Airflow connection shop")


NEEDS_KEYS = (
    "expected an access key as login and its secret as password, or role_arn or profile_name in the extra fields"
)
UNUSABLE = {
    "": "airflow.connection: Airflow has no connection 'shop': expected the id of one; add it in Admin, Connections, or"
    " correct the id",
    '{"conn_type": "postgres"}': "the Airflow connection shop has the type 'postgres': expected one of aws, wasb, adls,"
    " google_cloud_platform",
    '{"conn_type": "wasb", "login": "shop", "password": "key"}': "the Airflow connection shop has the type 'wasb', but"
    " s3://events needs aws",
    '{"conn_type": "aws"}': f"the Airflow connection shop has no login and password: {NEEDS_KEYS}",
    '{"conn_type": "aws", "login": "key"}': f"the Airflow connection shop has no password: {NEEDS_KEYS}",
}


@pytest.mark.parametrize(("connection", "sentence"), UNUSABLE.items())
def test_a_connection_that_cannot_be_used_is_one_sentence_and_not_tried_again(
    connection: str, sentence: str, tmp_path: Path, patch: pytest.MonkeyPatch
) -> None:
    from windowlib.airflow.connections.access import load_pipeline
    from windowlib.airflow.live_pages import page
    from windowlib.airflow.sentences import FinalFailure

    patch.setattr(clients, "_clients", {})
    if connection:
        patch.setenv(SHOP, connection)
    text = ON_SAIL.replace("[source]", 'warehouse = "s3://events/warehouse"\n[source]', 1)
    text += '\n[airflow]\nconnection = "shop"\n'
    (tmp_path / "clicks.toml").write_text(text.replace('"incoming"', '"s3://events/incoming"'), encoding="utf-8")
    with pytest.raises(FinalFailure) as caught:
        task(StoredClicks(tmp_path, "s3://events")).execute({})
    assert " ".join(str(caught.value).split()).removeprefix("an error that a retry cannot fix: ") == sentence
    shown = page(load_pipeline(tmp_path / "clicks.toml"), wall_clock_ms())
    assert sentence in " ".join(html.unescape(shown).split())


AZURE = {
    '{"conn_type": "wasb", "login": "shop", "password": "key"}': {"access_key": "key"},
    '{"conn_type": "wasb", "login": "shop", "extra": {"sas_token": "?sv=1&sig=2"}}': {"sas_token": "sv=1&sig=2"},
    '{"conn_type": "wasb", "extra": {"extra__wasb__shared_access_key": "key"}}': {"access_key": "key"},
    '{"conn_type": "adls", "host": "shop", "extra": {"connection_string": "AccountName=shop;AccountKey=a=="}}': {
        "access_key": "a=="
    },
    '{"conn_type": "wasb", "login": "other", "password": "key"}': "is for the account other, but the address"
    " abfss://events@shop.dfs.core.windows.net needs shop: use another",
    '{"conn_type": "wasb", "login": "shop"}': "has no credentials: expected an account as login and its key as",
    '{"conn_type": "wasb", "login": "client", "extra": {"tenant_id": "t"}}': "has tenant_id: expected a client id as"
    " login and its secret as password, too",
    '{"conn_type": "wasb", "extra": "no json"}': "has extra fields that cannot be read: expected an object of JSON",
    '{"conn_type": "aws", "login": "a", "password": "b"}': "has the type 'aws', but abfss://events@shop.dfs.core.windows"
    ".net needs wasb or adls",
}


@pytest.mark.parametrize(("connection", "expected"), AZURE.items())
def test_fields_of_azure(connection: str, expected: Mapping[str, str] | str, patch: pytest.MonkeyPatch) -> None:
    from windowlib.airflow.connections.access import ConnectionAccess
    from windowlib.model.errors import InvalidSpec

    patch.setenv(SHOP, connection)
    bucket = BucketAddress("abfss", "events", "shop")
    if isinstance(expected, dict):
        way = ConnectionAccess("shop")(bucket)
        assert (way.settings["account_name"], way.source().secrets) == ("shop", expected)
        return
    with pytest.raises(InvalidSpec) as caught:
        ConnectionAccess("shop")(bucket)
    assert str(caught.value).startswith(f"the Airflow connection shop {expected}")


@pytest.mark.parametrize(
    "text", [ON_SAIL, pytest.param(CLICKS, marks=pytest.mark.long("a JVM with the JARs of S3A"), id="spark")]
)
def test_no_output_and_no_process_of_a_task_holds_a_secret(
    text: str, s3_server: Server, tmp_path: Path, patch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Secrets are in the connection only. Tables, logs, pages, errors, arguments and environments are searched."""
    from windowlib.airflow.connections.access import ConnectionAccess, load_pipeline
    from windowlib.airflow.live_pages import page

    caplog.set_level("DEBUG")
    with fault_proxy(s3_server.port) as proxy:
        pipeline = stored(s3_server, tmp_path, patch, text)
        patch.setenv(SHOP, aws(s3_server.behind(proxy.port), extra={"aws_session_token": PLANTED}))
        shown = watched(lambda: str(task(pipeline).execute({})))
        assert "'rows_read': 82" in shown[0]
        definition = load_pipeline(tmp_path / "clicks.toml")
        shown += [repr(definition), page(definition, wall_clock_ms())]
        for fault in (answered(403, "AccessDenied"), answered(400, "ExpiredToken")):
            proxy.rules[:] = [Rule(fault, times=None, chosen=lambda _: True)]
            shown += watched(lambda: failure(pipeline))
        proxy.rules.clear()
        place = store_at(pipeline.place, ConnectionAccess("shop"))
        shown += [(place.get(found.path) or b"").decode("latin1") for found in place.list()]
    shown += [path.read_text("latin1") for path in tmp_path.rglob("*") if path.is_file()]
    everything = "".join([*shown, caplog.text])
    assert "refuses the credentials (400 ExpiredToken)" in " ".join(everything.split())
    assert [secret for secret in (SECRET, PLANTED) if secret in everything] == []


def failure(pipeline: StoredClicks) -> str:
    """Error of a task with its traceback."""
    with pytest.raises(Exception, match="credentials") as caught:
        task(pipeline).execute({})
    return "".join(traceback.format_exception(caught.value))


def watched(step: Callable[[], str]) -> list[str]:
    """Result of a step, then the arguments and environments of the processes that it started."""
    seen: set[str] = set()
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(step)
        while not result.done():
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):  # it ends meanwhile
                    seen |= {*process.cmdline(), *(f"{name}={value}" for name, value in process.environ().items())}
            time.sleep(0.05)
        return [result.result(), *seen]


@pytest.mark.parametrize(
    ("place", "own", "passed"), [("s3://events", "", True), ("s3://events", JARS, False), ("", "", False)]
)
def test_spark_submit_gets_the_jars_of_the_store(
    place: str, own: str, passed: bool, tmp_path: Path, patch: pytest.MonkeyPatch
) -> None:
    from windowlib.airflow.commands import advance_command
    from windowlib.definition.definition import load_definition

    patch.setenv("WINDOWLIB_CACHE", str(tmp_path))
    files = [tmp_path / jar.file for jar in jars.locked(jars.S3_LOCK)]
    text = CLICKS.replace('"incoming"', f'"{place or tmp_path}/incoming"') + f'[spark]\nmaster = "yarn"\n{own}'
    (tmp_path / "clicks.toml").write_text(text, encoding="utf-8")
    definition = load_definition(tmp_path / "clicks.toml")
    assert "--jars" not in advance_command(definition), "not fetched yet: the run says so"
    for file in files:
        file.touch()
    _, *options, start, run, _ = advance_command(definition)
    assert options == ["--master", "yarn", *(["--jars", ",".join(map(str, files))] if passed else [])]
    assert (Path(start).name, run) == ("__main__.py", "run")
