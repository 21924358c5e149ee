"""Set-up: what it says where Java or Python is missing or too old, which JARs it keeps, how it ends what it started."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from jobs import setup_jars
from jobs.processes import ProcessGroup
from jobs.setup_airflow import environment, free_port, make_sample
from jobs.setup_java import UnusableJava, find_java

PROJECT = Path(__file__).resolve().parent.parent


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
        with pytest.raises(UnusableJava, match=r"need Java 17 or newer, found no java on PATH: install a JDK 17"):
            find_java()

    def test_too_old(self, tmp_path: Path) -> None:
        java = script(tmp_path / "bin" / "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
        with pytest.raises(UnusableJava, match=f"need Java 17 or newer, {java} is Java 11"):
            find_java()

    def test_not_java(self, tmp_path: Path) -> None:
        script(tmp_path / "bin" / "java", "echo 'Unable to locate a Java Runtime' >&2; exit 1")
        with pytest.raises(UnusableJava, match="does not tell its version"):
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


class TestJars:
    def test_resolved_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the JARs there, Java is not even looked for."""
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
        modules = (setup_jars.delta_module(), setup_jars.LOCAL_FILES)
        jars = [tmp_path / f"{name}-{revision}.jar" for _, name, revision in modules]
        for jar in jars:
            jar.touch()
        assert setup_jars.resolve(tmp_path) == sorted(jars)

    def test_offline(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
        with pytest.raises(setup_jars.MissingJars, match=r"could not fetch io\.delta:delta-spark_4\.2_2\.13:4\.4\.0"):
            setup_jars.resolve(tmp_path / "a b" / ".jars")
        assert not (tmp_path / "a b" / ".jars").exists()


class TestMake:
    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        folder = tmp_path / "a clone"
        folder.mkdir()
        for name in ("Makefile", "requirements.lock", "pyproject.toml"):
            shutil.copy(PROJECT / name, folder)
        for name in ("jobs", "windowlib"):
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
        assert "need Java 17 or newer, found no java on PATH" in done.stderr
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
        """On another port than Airflow's own, every task fails unless the execution API is told too."""
        settings = environment(4711)
        assert settings["AIRFLOW__API__PORT"] == "4711"
        assert settings["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:4711/execution/"

    def test_sample_is_made_once(self, tmp_path: Path) -> None:
        make_sample(tmp_path)
        files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.parquet"))
        assert [file.parent.name for file in files] == ["incoming"] * 8 + ["waiting"] * 2
        (tmp_path / files[0]).unlink()
        make_sample(tmp_path)
        assert not (tmp_path / files[0]).exists()
