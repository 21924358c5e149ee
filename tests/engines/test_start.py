"""Start of a run: it does nothing unnecessary, and starts slow work first."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks, clock
from windowlib.definition.definition import load_definition
from windowlib.engines import cache, jvm, setup_cds
from windowlib.engines.spark import session, settings_of
from windowlib.runs.advance import advance
from windowlib.runs.spark_sessions import is_small

PROJECT = Path(__file__).parents[2]
LOOKED_FOR = ("pyspark", "py4j", "pandas", "great_expectations", "grpc", "windowlib.quality.verdict")
RUN = f"""
import json, sys
import psutil
from windowlib.cli.main import app
app(["run", sys.argv[1]], standalone_mode=False)
children = [child.name() for child in psutil.Process().children(recursive=True)]
print(json.dumps([[name for name in {LOOKED_FOR} if name in sys.modules], children]))
"""


def empty_run(pipeline: Path) -> list[Any]:
    """Output, imports and started processes of a run in its own process that has nothing to do."""
    command = [sys.executable, "-c", RUN, str(pipeline)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    said, found = done.stdout.splitlines()
    return [said, done.stderr, *json.loads(found)]


HOUR_MS = 3_600_000
NOTHING = ["nothing new: there is nothing left to read", "", [], []]


@pytest.mark.parametrize(
    "master",
    [
        pytest.param("local[*]", marks=pytest.mark.long("where nothing is new, in make test, it is this master too")),
        "sc://no-such-host:15002",
    ],
)
def test_a_first_run_without_input_starts_no_engine(tmp_path: Path, master: str) -> None:
    definition = clicks(tmp_path, 0, CLICKS + f'[spark]\nmaster = "{master}"\n')
    assert empty_run(definition.file) == NOTHING


ALIKE = pytest.mark.long("what is due is planned by one rule for all kinds")


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    "window",
    [
        pytest.param('type = "session"\ngap = "10m"', id="sessions"),
        pytest.param(
            'type = "sliding"\nsize = "1h"\nslide = "10m"\nallowed_lateness = "2h"', id="aligned", marks=ALIKE
        ),
        pytest.param('type = "session"\ngap = "10m"\ntrigger = { type = "count", n = 3 }', id="general", marks=ALIKE),
    ],
)
def test_nothing_new(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """This holds even if the passing of time has fired all windows, and may do so again."""
    quiet = CLICKS.replace('type = "session"\ngap = "10m"\nallowed_lateness = "2h"', window)
    assert window in quiet
    clicks(tmp_path, 1, quiet.replace("[window]", 'idle_timeout = "1h"\n[window]'))
    definition = load_definition(tmp_path / "clicks.toml")
    for hours in (0, 2):
        assert len(advance(definition, lambda: spark, clock=lambda hours=hours: clock() + hours * HOUR_MS)) == 1
    assert empty_run(definition.file) == NOTHING


# -- the JVM ------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_the_command_is_spark_s_own_but_for_the_incubator(tmp_path: Path) -> None:
    """Compares with the command of Spark's launcher, option by option."""
    settings = settings_of("local[*]", {"spark.driver.memory": "3g"})
    classes = str(jvm.spark_home() / "jars" / "*")
    launcher = [jvm.java(), "-cp", classes, "org.apache.spark.launcher.Main", jvm.MAIN]
    conf = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    environment = {**os.environ, **jvm.added_environment(), "SPARK_SCALA_VERSION": "2.13"}
    done = subprocess.run(
        [*launcher, *conf, "pyspark-shell"], env=environment, capture_output=True, text=True, check=True
    )
    theirs = [part for part in done.stdout.split("\0") if part.startswith("-")]
    command = [*jvm.OPTIONS.read_text().splitlines(), *jvm.command(settings, ["pyspark-shell"])]
    ours = [part for part in command if part.startswith("-")]
    extra = set(shlex.split(settings["spark.driver.extraJavaOptions"]))
    differs = "Spark's launcher has changed: see docs/contributing/private-apis.md"
    assert set(theirs) - set(ours) == {"--add-modules=jdk.incubator.vector"}, differs
    assert set(ours) - set(theirs) - extra <= {jvm.QUIET_ARCHIVE, _shared(ours)}, differs
    assert "-Xmx3g" in ours


def _shared(options: list[str]) -> str:
    return next((option for option in options if option.startswith("-XX:SharedArchiveFile=")), jvm.QUIET_ARCHIVE)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("make setup makes one, which every JVM of make test uses")
def test_an_archive_is_made_once_and_for_one_class_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java refuses an archive of another class path, and a run then works without an archive."""
    settings = settings_of("local[*]", {})
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    without_jars = settings_of("local[*]", {})
    assert not jvm.archive_fits(without_jars)
    made = setup_cds.make()
    assert made == jvm.archive()
    assert f"-XX:SharedArchiveFile={made}" in jvm.command(without_jars, ["pyspark-shell"])
    assert jvm.archive_fits(without_jars)
    assert not jvm.archive_fits({**settings, "spark.driver.extraClassPath": str(jvm.spark_home() / "jars" / "*")})
    before = made.stat()
    assert setup_cds.make().stat() == before
    assert [file.name for file in tmp_path.iterdir()] == [made.name]


@pytest.mark.spark
@pytest.mark.slow
def test_a_machine_whose_own_name_has_no_address(tmp_path: Path) -> None:
    """This happens in containers and foreign networks. Here Java finds only the names in this file."""
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n")
    options = f"-Djdk.net.hosts.file={tmp_path / 'hosts'}"
    gateway = jvm.start(settings_of("local[*]", {"spark.driver.extraJavaOptions": options}))
    try:
        assert "PYSPARK_GATEWAY_PORT" in gateway.variables()
    finally:
        gateway.end()


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(jvm.NoJvm, match=rf"no bin/java in JAVA_HOME \({tmp_path}\), .*; `windowlib setup` says"):
        jvm.start(settings_of("local[*]", {}))


@pytest.mark.parametrize("name", jvm.SETTLED_ELSEWHERE)
def test_a_spark_that_is_configured_elsewhere_is_not_started_directly(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in jvm.SETTLED_ELSEWHERE:
        monkeypatch.delenv(other, raising=False)
    assert jvm.can_start_directly("local[2]", {})
    assert not jvm.can_start_directly("spark://host:7077", {})
    assert not jvm.can_start_directly("local[2]", {"spark.driver.extraLibraryPath": "/usr/lib"})
    monkeypatch.setenv(name, "something")
    assert not jvm.can_start_directly("local[2]", {})


@pytest.mark.long("a cold run more; those of README are compared with what they print")
@pytest.mark.spark
def test_a_cold_run_prints_only_its_batches(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1, CLICKS + '[spark]\nmaster = "local[1]"\n')
    command = [sys.executable, "-P", "-m", "windowlib", "run", str(definition.file)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert re.fullmatch(r"batch 1  fired .*  read 82 .*\n", done.stdout)


@pytest.mark.spark
def test_a_jvm_that_cannot_start(tmp_path: Path) -> None:
    conf = '[spark.conf]\n"spark.driver.memory" = "much"\n'
    definition = clicks(tmp_path, 1, CLICKS + conf)
    command = [sys.executable, "-P", "-m", "windowlib", "run", str(definition.file)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    refused = f'{definition.file}: spark.conf has "spark.driver.memory" = "much", with which Spark does not start'
    assert done.stderr == f"error: {refused}: Invalid maximum heap size: -Xmxmuch\n"


@pytest.mark.spark
@pytest.mark.fault("Ctrl-C while Spark's JVM starts", "the JVM ends too")
def test_an_interrupted_jvm_start_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started = jvm.start(settings_of("local[1]", {}))

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("windowlib.engines.jvm.time.sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            started.variables()
    try:
        assert started.process.wait(timeout=60) == -signal.SIGKILL
    finally:
        started.process.kill()


def test_the_waiting_files_decide_if_a_run_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from windowlib.batches.planning import plan
    from windowlib.runs import spark_sessions

    definition = clicks(tmp_path, 3)
    frozen = plan(definition, clock)
    assert frozen
    assert len(frozen.files) == 1
    assert is_small(definition, frozen)
    monkeypatch.setitem(spark_sessions.SMALL_BYTES, "parquet", 2 * frozen.files[0].size_bytes)
    assert not is_small(definition, frozen)


@pytest.mark.spark
def test_sessions_of_one_process_share_its_jvm(spark: SparkSession) -> None:
    assert session("local[2]") is spark
    assert "PYSPARK_GATEWAY_PORT" not in os.environ


def test_setup_removes_what_a_killed_setup_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path))
    monkeypatch.setattr(setup_cds.jvm, "archive", lambda: tmp_path / "classes.jsa")
    monkeypatch.setattr(setup_cds.jvm, "archive_fits", lambda _settings: False)
    monkeypatch.setattr(setup_cds, "find_java", lambda: None)
    monkeypatch.setattr(setup_cds, "_train", lambda _folder, archive: archive.write_bytes(b"classes"))
    killed, at_work = tmp_path / ".training-killed", tmp_path / ".training-at_work"
    for folder in (killed, at_work):
        (folder / "incoming").mkdir(parents=True)
    os.utime(killed, (1_772_409_600, 1_772_409_600))
    setup_cds.make()
    assert sorted(left.name for left in tmp_path.iterdir()) == [at_work.name, "classes.jsa"]
