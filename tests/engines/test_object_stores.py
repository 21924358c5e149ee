"""Spark in object stores: JARs and settings, refusals before a JVM starts, and the demo's sessions on S3."""

from __future__ import annotations

import io
import os
import secrets
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.support.object_servers import Server
from windowlib.cli.main import app
from windowlib.demo.clicks import ClickSettings
from windowlib.demo.run import Stage, demo
from windowlib.engines import jars
from windowlib.engines.jars import S3_LOCK, conf_with_stores
from windowlib.engines.spark import session_settings, settings_of
from windowlib.model.errors import InvalidSpec
from windowlib.storage import clients
from windowlib.storage.address import store_at

SECRET = "secret-that-nobody-may-see"
EVENTS = store_at("s3://events/shop")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that has every JAR, as empty files, and an endpoint with credentials in the environment."""
    monkeypatch.setattr(clients, "_clients", {})  # as in a new process
    monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    for jar in (*jars.locked(), *jars.locked(S3_LOCK)):
        (tmp_path / jar.file).touch()
    return tmp_path


def test_a_disk_changes_nothing(tmp_path: Path) -> None:
    assert conf_with_stores("local[*]", {"spark.a": "b"}, [store_at(tmp_path)]) == {"spark.a": "b"}


def test_a_local_session_has_the_jars_on_its_class_path_and_no_secret(cache: Path) -> None:
    settings = settings_of("local[*]", conf_with_stores("local[*]", {}, [EVENTS]))
    on_path = settings["spark.driver.extraClassPath"].split(os.pathsep)
    assert on_path[0] == str(jars.local_files_jar())
    assert on_path[1:] == [str(cache / jar.file) for jar in jars.locked(S3_LOCK)]
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert settings["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-1"
    assert settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert SECRET not in str(settings)


def test_a_cluster_gets_the_jars_as_files(cache: Path) -> None:
    conf = conf_with_stores("spark://one:7077", {"spark.jars": "mine.jar"}, [EVENTS])
    assert conf["spark.jars"].split(",")[:2] == ["mine.jar", str(cache / jars.locked(S3_LOCK)[0].file)]


def test_a_session_on_a_server_gets_the_settings_that_a_session_can_have(cache: Path) -> None:
    settings = session_settings([EVENTS])
    assert settings["fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert settings["fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert SECRET not in str(settings)


def test_the_settings_of_the_definition_win(cache: Path) -> None:
    own = {"spark.hadoop.fs.s3a.endpoint": "https://elsewhere", "spark.driver.extraClassPath": "/mine.jar"}
    conf = conf_with_stores("local[2]", own, [EVENTS])
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "https://elsewhere"
    assert conf["spark.driver.extraClassPath"].startswith(f"/mine.jar{os.pathsep}{cache}")


def test_without_the_jars_one_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path))
    with pytest.raises(jars.MissingJars, match=r"^Spark needs JARs for s3:// .+: run `windowlib setup --with s3`$"):
        conf_with_stores("local[*]", {}, [EVENTS])
    own = {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0"}
    assert own.items() <= conf_with_stores("local[*]", own, [EVENTS]).items()


def test_spark_does_not_reach_azure_without_jars_of_the_definition() -> None:
    store = store_at("abfss://events@shop.dfs.core.windows.net/in")
    with pytest.raises(InvalidSpec, match=r'cannot be reached by engine = "spark": expected s3://'):
        conf_with_stores("local[*]", {}, [store])
    own = {"spark.jars.packages": "org.apache.hadoop:hadoop-azure:3.5.0"}
    assert conf_with_stores("local[*]", own, [store]) == own


def test_setup_checks_the_jars_of_s3_only_if_asked(cache: Path) -> None:
    for jar in jars.locked(S3_LOCK):
        (cache / jar.file).unlink()
    checked = CliRunner().invoke(app, ["setup", "--check", "--with", "s3"])
    assert checked.exit_code == 2
    assert "is not the locked" in checked.stderr or "is not in" in checked.stderr


def test_no_version_of_a_jar_is_locked_twice() -> None:
    every = dict.fromkeys([*jars.locked(), *jars.locked(S3_LOCK)])
    assert len({(jar.organisation, jar.name) for jar in every}) == len(every)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("on Sail the demo runs in S3 in make test; Spark needs 35 more JARs and a JVM for each pipeline")
def test_nothing_differs_from_the_truth_on_spark_in_s3(
    s3_server: Server, s3_jars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.variables().items():
        monkeypatch.setenv(name, value)
    stage = Stage(
        tmp_path / "demo", Console(file=io.StringIO(), width=200), "spark", f"s3://windowlib/{secrets.token_hex(4)}"
    )
    assert demo(stage, ClickSettings(events=1_500, users=200, files=8, seed=3)), stage.console.file.getvalue()  # type: ignore[attr-defined]
