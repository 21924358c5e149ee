"""The wheel holds `windowlib` alone and all of it, however it is made; the extras name what they need."""

from __future__ import annotations

import email
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.installed import PROJECT, Environment, built, environment

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
DATA = ("engines/jars.lock", "engines/log4j2.properties", "pages/templates/page.css", "reruns/page.html.jinja")


def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def of_the_checkout() -> set[str]:
    """The files of the package that are under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "windowlib", "expectations"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    suites = "windowlib/quality/suites"
    return {re.sub("^expectations", suites, name) for name in listed if name != suites}


def test_one_top_level_package(wheel: Path) -> None:
    assert {name.partition("/")[0] for name in names(wheel)} == {"windowlib", "windowlib-0.1.0.dist-info"}


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    packed = {name for name in names(wheel) if name.startswith("windowlib/")}
    assert packed == of_the_checkout()
    assert {f"windowlib/{name}" for name in DATA} <= packed


def test_the_wheel_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    sdist = built("sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    again = built("wheel", tmp_path / "again", source)
    first, second = zipfile.ZipFile(wheel), zipfile.ZipFile(again)
    assert names(again) == names(wheel)
    assert [name for name in first.namelist() if first.read(name) != second.read(name)] == []


def test_the_start_files_are_short_and_not_installed(wheel: Path) -> None:
    starts = sorted((PROJECT / "jobs").iterdir())
    assert [file.name for file in starts] == ["plan.py", "report.py", "rerun.py", "run.py"]
    assert all(len(file.read_text(encoding="utf-8").splitlines()) <= 15 for file in starts)


def test_the_dag_files_are_short() -> None:
    files = sorted((PROJECT / "dags").glob("*.py"))
    assert [file.name for file in files] == ["maintain.py", "rerun.py", "windows.py"]
    assert all(len(file.read_text(encoding="utf-8").splitlines()) < 100 for file in files)


def test_each_dependency_is_in_the_lock() -> None:
    """Each direct one, in a version that the project allows; none without a hash, no address of an index."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lock = (PROJECT / "requirements.lock").read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==([\w.]+).* \\\n +--hash=sha256:", lock, re.MULTILINE)  # some twice, by platform
    locked: dict[str, set[str]] = {}
    for name, version in found:
        locked.setdefault(name, set()).add(version)
    project = PYPROJECT["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        if name != project["name"]:
            assert all(requirement.specifier.contains(version) for version in locked[name]), requirement
    assert lock.count("==") >= len(found) == len(re.findall("^[a-zA-Z]", lock, re.MULTILINE))
    assert "://" not in lock


def test_the_extras(wheel: Path) -> None:
    [metadata] = [name for name in names(wheel) if name.endswith("/METADATA")]
    declared = email.message_from_bytes(zipfile.ZipFile(wheel).read(metadata))
    assert declared.get_all("Provides-Extra") == [
        "airflow",
        "azure",
        "dev",
        "docs",
        "gcs",
        "openlineage",
        "s3",
        "sail",
        "spark",
    ]
    needs = {re.split(r"[^\w-]", one)[0] for one in declared.get_all("Requires-Dist") or [] if "extra ==" not in one}
    assert needs == {"deltalake", "platformdirs", "psutil", "pyarrow", "pydantic", "rich", "sqlglot", "typer", "tzdata"}


SUITES = """
from importlib.resources import files

print(*sorted(one.name for one in (files("windowlib.quality") / "suites").iterdir()))
"""


EDITABLE = pytest.mark.long("the tests themselves run on an editable installation, by whose suites batches are judged")


@pytest.mark.parametrize("kind", ["wheel", pytest.param("editable", marks=EDITABLE)])
def test_the_suites_are_found(kind: str, installed: Environment, tmp_path: Path) -> None:
    if kind == "editable":
        installed = environment(tmp_path)
        installed.install("--editable", str(PROJECT))
    ended = installed.run([installed.python, "-c", SUITES], tmp_path)
    assert ended.code == 0, ended.err
    assert ended.out.split() == sorted(file.name for file in (PROJECT / "expectations").iterdir())
