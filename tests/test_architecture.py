"""The three rings: the core is pure Python, arrows point inwards, and plans keep to what Spark Connect offers."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = sorted((ROOT / "windowlib").glob("*.py"))
PLANS = sorted((ROOT / "windowlib" / "plans").glob("*.py"))
JOBS = sorted((ROOT / "jobs").rglob("*.py"))
CLASSIC = re.compile(r"sparkContext|\.rdd\b|\b_jvm\b|\b_jdf\b|_jsparkSession")
OURS = {"windowlib", "jobs", "dags", "expectations", "tests"}
MAY_IMPORT = {
    "windowlib": {"windowlib"},
    "jobs": {"windowlib", "jobs", "expectations"},
    "expectations": {"windowlib", "jobs", "expectations"},
    "dags": {"windowlib", "jobs", "expectations", "dags"},
}


def imports(file: Path) -> set[str]:
    """The full names of the modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: need absolute imports"
            found.add(node.module or "")
    return found


def top(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.parametrize("file", CORE, ids=lambda file: file.name)
def test_the_core_imports_the_standard_library_and_itself(file: Path) -> None:
    foreign = {m for m in imports(file) if top(m) not in sys.stdlib_module_names | {"windowlib"}}
    plans = {m for m in imports(file) if m.startswith("windowlib.plans")}
    assert foreign | plans == set()


@pytest.mark.parametrize("file", CORE, ids=lambda file: file.name)
def test_the_core_knows_no_clock_no_chance_and_no_log(file: Path) -> None:
    assert imports(file) & {"time", "datetime", "random", "secrets", "uuid", "logging", "os", "pathlib"} == set()


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_arrows_between_folders_point_inwards(folder: str) -> None:
    for file in (ROOT / folder).rglob("*.py"):
        ours = {top(module) for module in imports(file)} & OURS
        assert ours <= MAY_IMPORT[folder], f"{file.relative_to(ROOT)} imports {sorted(ours - MAY_IMPORT[folder])}"


@pytest.mark.parametrize("file", PLANS + JOBS, ids=lambda file: str(file.relative_to(ROOT)))
def test_what_runs_keeps_to_what_spark_connect_offers(file: Path) -> None:
    if file.name == "plans.py":  # the benchmark's, which shows what Spark itself says of a plan
        return
    assert CLASSIC.findall(file.read_text()) == []


def test_there_is_no_drawer_for_everything() -> None:
    names = {file.stem for folder in MAY_IMPORT for file in (ROOT / folder).rglob("*.py")}
    assert names & {"utils", "util", "helpers", "common", "misc"} == set()


def test_the_checks_notice_what_they_forbid(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("def later():\n    import pyspark.sql\n    from os import path\n")
    assert imports(file) == {"pyspark.sql", "os"}
    assert CLASSIC.findall("spark.sparkContext; frame.rdd.count(); spark._jvm; end_jvm()") == [
        "sparkContext",
        ".rdd",
        "_jvm",
    ]
