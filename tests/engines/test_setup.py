"""Set-up: errors for a missing or old Java or Python, the JARs that it keeps, and the end of started processes."""

import contextlib
import hashlib
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from docs.local_airflow import environment, free_port, make_sample
from windowlib.airflow.processes import ProcessGroup
from windowlib.cli.main import app
from windowlib.engines import jars, jvm, setup_jars
from windowlib.engines.cache import cache_folder
from windowlib.engines.jars import Jar
from windowlib.engines.setup_java import UnusableJava, find_java
from windowlib.engines.spark import delta_settings, on_this_machine

PROJECT = Path(__file__).resolve().parents[2]


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


class TestJava:
    @pytest.fixture(autouse=True)
    def _only_this_java(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def test_missing(self) -> None:
        with pytest.raises(UnusableJava, match=r"found no java on PATH; need Java 17 or newer: install a JDK 17"):
            find_java()

    def test_too_old(self, tmp_path: Path) -> None:
        java = script(tmp_path / "bin" / "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
        with pytest.raises(UnusableJava, match=f"{java} is Java 11; need Java 17 or newer"):
            find_java()

    def test_not_java(self, tmp_path: Path) -> None:
        script(tmp_path / "bin" / "java", "echo 'Unable to locate a Java Runtime' >&2; exit 1")
        with pytest.raises(UnusableJava, match="does not print its version"):
            find_java()

    def test_java_home_goes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        script(tmp_path / "bin" / "java", """echo 'java version "1.8.0_402"' >&2""")
        newer = script(tmp_path / "a jdk" / "bin" / "java", """echo 'openjdk version "21" 2023-09-19' >&2""")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a jdk"))
        assert find_java() == str(newer)

    def test_java_home_without_java(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(UnusableJava, match=rf"no bin/java in JAVA_HOME \({tmp_path}\)"):
            find_java()


def fake_jars(folder: Path, *contents: str) -> list[Jar]:
    """JARs with these contents, locked and stored in the folder."""
    jars = [
        Jar("org.example", f"jar{number}", "1.0", hashlib.sha256(content.encode()).hexdigest())
        for number, content in enumerate(contents)
    ]
    folder.mkdir(exist_ok=True)
    for jar, content in zip(jars, contents, strict=True):
        (folder / jar.file).write_text(content)
    return jars


class TestJars:
    def test_the_lock_fits_the_python_packages(self) -> None:
        locked = {jar.name: jar for jar in jars.locked()}
        spark = ".".join(version("pyspark").split(".")[:2])
        assert locked[f"delta-spark_{spark}_2.13"].version == version("delta-spark")
        assert jars.LOCAL_FILES in locked
        assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in locked.values())

    def test_what_spark_brings_is_not_locked(self) -> None:
        bundled = {re.sub(r"-\d[\w.-]*\.jar$", "", file.name) for file in (jvm.spark_home() / "jars").glob("*.jar")}
        assert {jar.name for jar in jars.locked()} & bundled == set()

    def test_fetched_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the JARs there, Java is not even looked for."""
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
        assert setup_jars.fetch(tmp_path / "cache", fake_jars(tmp_path / "cache", "one", "two")) is False

    def test_another_content_is_an_error_that_names_the_jar(self, tmp_path: Path) -> None:
        wanted = fake_jars(tmp_path, "one", "two")
        (tmp_path / "jar1-1.0.jar").write_text("another")
        with pytest.raises(
            jars.MissingJars, match=r"jar1-1\.0\.jar is not the locked org\.example:jar1:1\.0: it has sha256"
        ):
            setup_jars.fetch(tmp_path, wanted)

    def test_what_a_repository_gives_is_checked(self, tmp_path: Path) -> None:
        """From a repository on this disk: the right JAR is put into the folder, a wrong one is not."""
        repository, right = tmp_path / "repository", "a jar"
        [jar] = fake_jars(tmp_path / "any", right)
        place = repository / "org" / "example" / jar.name / jar.version
        place.mkdir(parents=True)
        pom = "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
        (place / f"{jar.name}-1.0.pom").write_text(
            f"{pom}<artifactId>{jar.name}</artifactId><version>1.0</version></project>"
        )
        settings = tmp_path / "ivysettings.xml"
        settings.write_text(
            f"""<ivysettings><settings defaultResolver="mirror"/><resolvers>
            <ibiblio name="mirror" m2compatible="true" root="{repository.as_uri()}/"/></resolvers></ivysettings>"""
        )
        for content, cache in (("something else", tmp_path / "wrong"), (right, tmp_path / "right")):
            (place / jar.file).write_text(content)
            with contextlib.suppress(jars.MissingJars):
                setup_jars.fetch(cache, [jar], settings)
        assert list((tmp_path / "wrong").iterdir()) == []
        assert [(file.name, file.read_text()) for file in (tmp_path / "right").iterdir()] == [(jar.file, right)]

    def test_offline(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
        with pytest.raises(jars.MissingJars, match=r"could not fetch the JARs: need a connection"):
            setup_jars.fetch(tmp_path / "a b", jars.locked())
        assert list((tmp_path / "a b").iterdir()) == []

    def test_without_them_one_sentence_says_what_to_do(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only what needs them fails: a run does not."""
        monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path))
        with pytest.raises(
            jars.MissingJars, match=rf"^Delta's JARs are missing or incomplete in {tmp_path}: run `windowlib setup`$"
        ):
            delta_settings()
        assert "spark.driver.extraClassPath" not in on_this_machine()

    def test_a_jvm_that_runs_already_gets_no_class_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as spark-submit does
        assert "spark.hadoop.fs.file.impl" not in on_this_machine()


class TestCache:
    def test_where_the_setting_says(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path))
        assert cache_folder() == tmp_path
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("WINDOWLIB_CACHE", "here")
        assert cache_folder() == tmp_path / "here"

    @pytest.mark.skipif(sys.platform != "linux", reason="where it lies on Linux")
    def test_of_the_user(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("WINDOWLIB_CACHE")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert cache_folder() == tmp_path / ".cache" / "windowlib"

    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path / "file" / "cache"))
        ended = CliRunner().invoke(app, ["setup"])
        assert ended.exit_code == 2
        assert ended.stderr == (
            f"error: the cache folder {tmp_path / 'file' / 'cache'} cannot be created (Not a directory): give this user"
            " the right, or name another folder in WINDOWLIB_CACHE\n"
        )


class TestCommand:
    def test_says_what_is_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path))
        monkeypatch.setattr(jars, "locked", lambda: fake_jars(tmp_path, "one", "two"))
        ended = CliRunner().invoke(app, ["setup", "--check"])
        assert ended.exit_code == 0
        assert f"JARs: 2 in {tmp_path}, all as locked" in ended.output
        assert "class archive: none that fits, so Spark starts more slowly" in ended.output

    def test_archives_classes_only_when_asked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path))
        monkeypatch.setattr(jars, "locked", lambda: fake_jars(tmp_path, "one", "two"))
        ended = CliRunner().invoke(app, ["setup"])
        assert ended.exit_code == 0
        assert "class archive" not in ended.output
        assert sorted(file.name for file in tmp_path.iterdir()) == ["jar0-1.0.jar", "jar1-1.0.jar"]

    def test_check_changes_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WINDOWLIB_CACHE", str(tmp_path / "none"))
        ended = CliRunner().invoke(app, ["setup", "--check"])
        assert ended.exit_code == 2
        assert f"is not in {tmp_path / 'none'}: run `windowlib setup`" in ended.output
        assert not (tmp_path / "none").exists()


class TestMake:
    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        folder = tmp_path / "a clone"
        folder.mkdir()
        for name in ("Makefile", "requirements.lock", "pyproject.toml"):
            shutil.copy(PROJECT / name, folder)
        for name in ("windowlib",):
            (folder / name).symlink_to(PROJECT / name)
        return folder

    def make(self, folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {
            name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "MAKEFLAGS", "MAKELEVEL")
        }
        return subprocess.run(
            [str(shutil.which("make")), *arguments],
            cwd=folder,
            env={**kept, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_help(self, clone: Path) -> None:
        printed = self.make(clone).stdout
        for target in ("setup", "demo", "test", "check", "airflow", "clean"):
            assert f"make {target}" in printed

    def test_without_python(self, clone: Path) -> None:
        done = self.make(clone, "setup", "PYTHON=no-such-python")
        assert 'need Python 3.11 or newer, found no "no-such-python"' in done.stderr
        assert done.returncode == 2

    def test_old_python(self, clone: Path, tmp_path: Path) -> None:
        script(tmp_path / "bin" / "python3.9", '[ "$1" = -V ] && echo Python 3.9.2; exit 1')
        done = self.make(clone, "setup", "PYTHON=../bin/python3.9")
        assert "need Python 3.11 or newer, ../bin/python3.9 is Python 3.9.2" in done.stderr
        assert done.returncode == 2

    def test_python_without_venv(self, clone: Path, tmp_path: Path) -> None:
        script(tmp_path / "bin" / "python3", 'case "$2" in *ensurepip*) exit 1;; esac; exit 0')
        done = self.make(clone, "setup", "PYTHON=../bin/python3")
        assert "apt install python3-venv" in done.stderr
        assert not (clone / ".venv").exists()

    def test_without_java(self, clone: Path, tmp_path: Path) -> None:
        """Nothing is downloaded before this is said."""
        tools = tmp_path / "tools"
        tools.mkdir()
        for tool in ("sh", "echo"):
            (tools / tool).symlink_to(str(shutil.which(tool)))
        done = self.make(clone, "setup", f"PYTHON={sys.executable}", PATH=str(tools))
        assert "found no java on PATH; need Java 17 or newer" in done.stderr
        assert not (clone / ".venv").exists()


class TestProcessGroup:
    def test_ends_grandchildren(self) -> None:
        with ProcessGroup(["/bin/sh", "-c", "sleep 600 & echo $!; wait"]) as process:
            grandchild = int(next(process.lines()))
            assert psutil.pid_exists(grandchild)
        assert_ends(grandchild)

    def test_ends_on_an_exception(self) -> None:
        process = ProcessGroup(["/bin/sh", "-c", "echo $$; sleep 600"])
        with pytest.raises(TimeoutError), process:
            raise TimeoutError(child := int(next(process.lines())))
        assert_ends(child)

    def test_makes_end_what_does_not_listen(self) -> None:
        command = ["/bin/sh", "-c", "trap '' TERM; echo $$; while true; do sleep 0.1; done"]
        with ProcessGroup(command, grace_seconds=0.3) as process:
            child = int(next(process.lines()))
        assert_ends(child)
        assert process.wait() == -9

    def test_exit_code_and_both_outputs(self) -> None:
        with ProcessGroup(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]) as process:
            assert (list(process.lines()), process.wait(), process.alive()) == (["out", "err"], 3, False)


def assert_ends(pid: int) -> None:
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"process {pid} still runs"
        time.sleep(0.02)


class TestAirflowHome:
    def test_port_taken(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = other.getsockname()[1]
            assert free_port(taken) != taken

    def test_one_port_everywhere(self) -> None:
        """On another port than Airflow's own, every task fails unless the execution API has it too."""
        settings = environment(Path("any"), 4711)
        assert settings["AIRFLOW__API__PORT"] == "4711"
        assert settings["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:4711/execution/"

    def test_sample_is_made_once(self, tmp_path: Path) -> None:
        make_sample(tmp_path)
        files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.parquet"))
        assert [file.parent.name for file in files] == ["incoming"] * 8 + ["waiting"] * 2
        for number, file in enumerate(sorted(files, key=lambda file: file.name)):
            path, now_s = tmp_path / file, time.time()
            assert 0 <= now_s - path.stat().st_mtime - (9 - number) * 3_600 < 3_700  # the last one arrived this hour
            past = [at.timestamp() for at in pq.read_table(path)["ts"].to_pylist() if at and at.timestamp() < now_s]
            assert path.stat().st_mtime - 3_600 <= statistics.median(past) <= path.stat().st_mtime
        (tmp_path / files[0]).unlink()
        make_sample(tmp_path)
        assert not (tmp_path / files[0]).exists()
