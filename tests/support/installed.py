"""windowlib as its users have it: a wheel in an environment of its own, used in a folder with packages of its own.

The environment sees the locked packages of the one that runs the tests, but not its editable windowlib, nor what is
registered of it: where Airflow finds a plugin twice, it leaves out all that come after. Nothing is fetched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SPARK_SCRIPTS = ("spark-submit", "spark-class", "load-spark-env.sh", "find-spark-home", "find_spark_home.py")
HOSTILE = ("airflow", "benchmarks", "dags", "expectations", "jobs", "source", "tests")
SMALL = """
name = "small"

[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "ts"
timestamp_unit = "ms"

[watermark]
out_of_orderness = "0s"

[window]
type = "{type}"
{settings}

[aggregates]
events = "count(*)"
"""
SESSIONS = SMALL.format(type="session", settings='gap = "10ms"')


def built(target: str, folder: Path, source: Path = PROJECT) -> Path:
    """A wheel, or an sdist, of the project in `source`."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
    [file] = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return file


@dataclass(frozen=True, slots=True)
class Ended:
    """Output and exit code of a command."""

    code: int
    out: str
    err: str

    def records(self) -> list[dict[str, Any]]:
        """The JSON objects that it printed, one on a line."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment, and a home folder without caches."""

    folder: Path
    home: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def python(self) -> str:
        return str(self.bin / "python")

    def install(self, *arguments: str) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--no-index", "--no-deps"]
        subprocess.run([*pip, "--no-build-isolation", *arguments], capture_output=True, text=True, check=True)

    def run(self, command: list[str], cwd: Path, variables: Mapping[str, str] | None = None) -> Ended:
        """A command of this environment, with nothing of the one that runs the tests."""
        ours = ("PYTHON", "PYSPARK", "SPARK", "WINDOWLIB", "AIRFLOW", "VIRTUAL_ENV", "XDG_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = os.pathsep.join((str(self.bin), os.environ["PATH"]))
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**kept, "HOME": str(self.home), "PATH": path, **(variables or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


def environment(folder: Path) -> Environment:
    """An empty environment that sees the packages this one has, with the programs of Spark and Airflow."""
    venv.create(folder / "venv", symlinks=True)
    (folder / "home").mkdir()
    made = Environment(folder / "venv", folder / "home")
    asked = [made.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "windowlib" not in package.name and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    programs = Path(sys.executable).parent
    for name in SPARK_SCRIPTS:
        shutil.copy(programs / name, made.bin / name)
    airflow = made.bin / "airflow"
    airflow.write_text(f"#!{made.python}\nfrom airflow.__main__ import main\n\nmain()\n")
    airflow.chmod(0o755)
    return made


def hostile(folder: Path) -> Path:
    """A folder with packages of its own whose names are also ours, or Airflow's: importing one is an error."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in HOSTILE:
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text(f"raise ImportError('this is the {name} of the working folder')\n")
    return folder


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel in an environment of its own."""
    made = environment(tmp_path_factory.mktemp("installed"))
    made.install(str(wheel))
    return made
