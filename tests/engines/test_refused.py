"""A `spark.master` or a `spark.conf` setting that Spark refuses: one sentence, without a Java stack trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import IllegalArgumentException, PySparkRuntimeError

from tests.support.clicks import CLICKS, clicks
from windowlib.cli.exits import UNEXPECTED, USER, exit_code
from windowlib.definition.definition import InvalidDefinition
from windowlib.engines.connect import Unreachable
from windowlib.engines.jvm import JvmEnded
from windowlib.engines.jvm_output import STDERR, captured_stderr
from windowlib.engines.refused_settings import refusals_named
from windowlib.model.errors import InvalidSpec, WindowError

FILE = Path("clicks.toml")
TASKS = "spark.sql.shuffle.partitions"
NOT_A_NUMBER = f"[INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'many' in the config \"{TASKS}\" is invalid."


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[*]", "local[4]", "local[2,3]", "local[*, 2]", "local-cluster[2, 1, 1024]", "yarn"),
        *("sc://host", "sc://host:15002/;use_ssl=true", "spark://one:7077,two:7077", "k8s://https://host:443"),
    ],
)
def test_valid_masters_are_accepted(tmp_path: Path, master: str) -> None:
    assert clicks(tmp_path, 0, CLICKS + f'[spark]\nmaster = "{master}"\n').spark.master == master


@pytest.mark.parametrize(
    ("master", "meant"),
    [
        ("lokal[2]", "local[2]"),
        ("LOCAL[*]", "local[*]"),
        ("spak://host:7077", "spark://host:7077"),
        ("yarn-client", "yarn"),
        ("warm", "yarn"),
        ("local[0]", "local"),
        ("mesos://host:5050", None),
        ("", None),
    ],
)
def test_unknown_masters_are_refused(tmp_path: Path, master: str, meant: str | None) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        clicks(tmp_path, 0, CLICKS + f'[spark]\nmaster = "{master}"\n')
    proposal = f"; did you mean {meant}?" if meant else ""
    said = f'clicks.toml: spark.master: given "{master}"{proposal}; allowed: "local[*]", or "local[4]" for 4 threads;'
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ('master = "sc://host:15002/;use_ssl=true;token=s3cret"', "spark.master: "),
        ('master = "SC://host/; Token=s3cret"', "spark.master: "),
        ('conf = { "spark.connect.authenticate.token" = "s3cret" }', 'spark.conf: "spark.connect.authenticate.token" '),
    ],
)
def test_a_token_is_refused_in_a_definition_and_not_repeated(tmp_path: Path, section: str, key: str) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        clicks(tmp_path, 0, CLICKS + f"[spark]\n{section}\n")
    said = str(caught.value)
    assert f"clicks.toml: {key}holds a token" in said
    assert "set SPARK_CONNECT_AUTHENTICATE_TOKEN where runs start" in said
    assert "s3cret" not in said


def refusal(error: Exception, master: str = "local[*]", **conf: str) -> WindowError:
    with pytest.raises(WindowError) as caught, refusals_named(FILE, master, {f"spark.{k}": v for k, v in conf.items()}):
        raise error
    return caught.value


def test_a_setting_that_spark_refuses_is_named() -> None:
    with pytest.raises(InvalidSpec) as caught, refusals_named(FILE, "local[*]", {"spark.a": "b", TASKS: "many"}):
        raise IllegalArgumentException(f"{NOT_A_NUMBER} SQLSTATE: 22022")
    said = f'clicks.toml: spark.conf has "{TASKS}" = "many", with which Spark does not start: {NOT_A_NUMBER}'
    assert (str(caught.value), exit_code(caught.value)) == (said, USER)


def test_a_master_with_which_spark_does_not_start_is_named() -> None:
    error = refusal(JvmEnded("HADOOP_CONF_DIR must be set in the environment."), "yarn", a="true")
    said = (
        'clicks.toml: Spark does not start with spark.master = "yarn": HADOOP_CONF_DIR must be set in the environment.'
    )
    assert (str(error), exit_code(error)) == (said, USER)


def test_a_cluster_without_an_answer_is_unreachable() -> None:
    """The cluster may answer on a retry."""
    gone = (
        "An error occurred while calling X.\n: org.apache.spark.SparkException: All masters are unresponsive!\n\tat a"
    )
    error = refusal(PySparkRuntimeError(gone), "spark://host:7077")
    said = 'clicks.toml: Spark does not start with spark.master = "spark://host:7077": All masters are unresponsive!'
    assert isinstance(error, Unreachable)
    assert (str(error), exit_code(error)) == (said, UNEXPECTED)


def test_errors_of_other_origin_are_raised_unchanged() -> None:
    for error in (ValueError("no"), PySparkRuntimeError("no"), InvalidSpec("no")):
        with pytest.raises(type(error)) as caught, refusals_named(FILE, "local[*]", {"spark.a": "b"}):
            raise error
        assert caught.value is error


def test_stderr_is_kept_until_a_process_is_up(capfd: pytest.CaptureFixture[str]) -> None:
    assert sys.__stderr__.fileno() == STDERR if sys.__stderr__ else True
    with captured_stderr() as words:
        ended = subprocess.Popen(
            ["sh", "-c", "echo WARNING: a >&2; echo no such master >&2; exit 1"], stderr=words.write_end
        )
    assert ended.wait(60) == 1
    assert words.reason() == "no such master"
    assert capfd.readouterr().err == ""
    with captured_stderr() as words:
        up = subprocess.Popen(["sh", "-c", "echo one >&2; read x; echo two >&2"], stdin=-1, stderr=words.write_end)
    assert up.stdin
    words.pass_on()
    up.stdin.write(b"go\n")
    up.stdin.close()
    assert up.wait(60) == 0
    words.reason()
    assert capfd.readouterr().err == "one\ntwo\n"


@pytest.mark.spark
def test_a_cluster_without_its_set_up_is_a_clear_error() -> None:
    """Spark's own launcher is used for it, and reports the missing configuration."""
    code = "from windowlib.engines.spark import session; session('yarn', {})"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("CONF_DIR")}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 1
    assert "\tat org.apache" not in ran.stderr
    assert "JvmEnded: Spark's JVM ended before it was ready: When running with master 'yarn' either" in ran.stderr
