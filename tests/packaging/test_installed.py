"""The wheel runs in a folder that has its own `jobs/`, `dags/`, `expectations/`, `tests/`, `airflow/` and `source/`.

The README's twelve lines give the README's results, by each way to start them; so do the commands of Airflow's tasks.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.installed import PROJECT, SESSIONS, SMALL, Environment, hostile
from windowlib.cli.outcomes import OUTCOMES
from windowlib.engines.cache import cache_folder

README = (PROJECT / "README.md").read_text(encoding="utf-8")
COLUMNS = ("user", "window_start", "window_end", "events", "total", "firing", "timing")
READ = """
from windowlib import load_definition, read_table

for row in read_table(load_definition("clicks.toml"), "results").to_pylist():
    print("|", " | ".join(str(row[name]).removesuffix("+00:00") for name in {columns}), "|")
"""
COUNTS = SMALL.format(type="tumbling_count", settings="size = 2")  # the operator in Spark's Python workers


def block(language: str, part: str) -> str:
    """The first block of the README in a language that has this part."""
    blocks = re.findall(rf"^```{language}[^\n]*\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return next(text for text in blocks if part in text)


def printed_results() -> set[str]:
    """The rows of the README's table of results."""
    table = README.partition(f"| {' | '.join(COLUMNS)} |\n")[2].partition("\n\n")[0]
    return set(table.splitlines()[1:])


@pytest.fixture
def twelve_lines(tmp_path: Path) -> Path:
    """The README's pipeline and events in a hostile folder."""
    folder = hostile(tmp_path / "a folder")
    (folder / "clicks.toml").write_text(block("toml", 'name = "clicks"'))
    subprocess.run(["bash", "-ec", block("bash", "mkdir incoming")], cwd=folder, check=True)
    return folder


def small(folder: Path, definition: str) -> str:
    """A pipeline of three events in a hostile folder; the name of its file."""
    (hostile(folder) / "incoming").mkdir()
    (folder / "small.toml").write_text(definition)
    pq.write_table(pa.table({"user": ["a", "a", "b"], "ts": [0, 10, 100]}), folder / "incoming" / "1.parquet")
    return "small.toml"


def starts(installed: Environment) -> dict[str, list[str]]:
    """Each way to start `windowlib run` on this machine."""
    start = subprocess.run(
        [installed.python, "-c", "import windowlib; print(windowlib.__path__[0])"],
        cwd=installed.home,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    module = f"{start}/__main__.py"
    return {
        "console script": [str(installed.bin / "windowlib"), "run"],
        "module": [installed.python, "-P", "-m", "windowlib", "run"],
        "module, the working folder on the path": [installed.python, "-m", "windowlib", "run"],
        "file": [installed.python, module, "run"],
        "start file": [installed.python, str(PROJECT / "jobs" / "run.py")],
        "spark-submit": [str(installed.bin / "spark-submit"), "--master", "local[1]", module, "run"],
        "spark-submit of a start file": [str(installed.bin / "spark-submit"), str(PROJECT / "jobs" / "run.py")],
    }


SUBMIT_AGAIN = pytest.mark.long(
    "the console script runs the same lines in make test; each way to start is tried there without an engine"
)
WAYS = (
    "console script",
    "module",
    "module, the working folder on the path",
    "file",
    "start file",
    "spark-submit",
    "spark-submit of a start file",
)


A_FILE_TOO = pytest.mark.long("the console script, the module and a start file are tried in make test")


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[A_FILE_TOO] if way in (WAYS[1], "file") else []) for way in WAYS[:5]]
)
def test_commands_without_an_engine(way: str, installed: Environment, tmp_path: Path) -> None:
    """Nothing of the working folder is imported, nothing is looked for next to the package."""
    name = small(tmp_path / "folder", SESSIONS)
    plan = [*starts(installed)[way][:-1], "plan"] if "start file" not in way else starts(installed)[way]
    plan = [part.replace("run.py", "plan.py") for part in plan]
    ended = installed.run([*plan, name, "--json"], tmp_path / "folder")
    assert (ended.code, ended.err) == (0, "")
    assert [(record["batch_id"], record["files"]) for record in ended.records()] == [(1, 1)]


@pytest.mark.long("in make test the wheel holds every file and runs on Spark; batches on Sail run without a wheel")
@pytest.mark.parametrize("way", ["console script", "file"])
def test_a_run_on_sail(way: str, installed: Environment, tmp_path: Path) -> None:
    name = small(tmp_path / "folder", 'engine = "sail"\n' + SESSIONS)
    ended = installed.run([*starts(installed)[way], name], tmp_path / "folder")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("batch 1  fired ")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("way", ["console script", pytest.param("spark-submit", marks=SUBMIT_AGAIN)])
def test_the_twelve_lines_give_the_results_of_the_readme(way: str, installed: Environment, twelve_lines: Path) -> None:
    """On Spark, without any JAR but its own, and without a cache."""
    ended = installed.run([*starts(installed)[way], "clicks.toml"], twelve_lines)
    assert ended.code == 0, ended.err
    assert [line[:7] for line in ended.out.splitlines() if line.startswith("batch")] == [
        f"batch {n}" for n in range(1, 6)
    ]
    read = installed.run([installed.python, "-P", "-c", READ.format(columns=COLUMNS)], twelve_lines)
    assert set(read.out.splitlines()) == printed_results(), read.err
    assert not (installed.home / ".cache" / "windowlib").exists()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("workers of a cluster are in tests/engines; its console script and start file are run in make test")
@pytest.mark.parametrize("way", ["spark-submit of a start file", "spark-submit"])
def test_python_workers_find_windowlib(way: str, installed: Environment, tmp_path: Path) -> None:
    """Count windows are computed by the operator in Spark's Python workers. Here the JARs are in the cache."""
    name = small(tmp_path / "folder", COUNTS)
    cache = {"WINDOWLIB_CACHE": str(cache_folder())}
    ended = installed.run([*starts(installed)[way], name, "--json"], tmp_path / "folder", cache)
    assert ended.code == 0, ended.err
    read = installed.run([str(installed.bin / "windowlib"), "read", name, "results", "--json"], tmp_path / "folder")
    assert [(row["user"], row["events"]) for row in read.records()] == [("a", 2)], read.err


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.airflow
@pytest.mark.long("a real Airflow, in make test, runs a DAG by an installed wheel")
def test_the_command_of_each_operator(installed: Environment, tmp_path: Path) -> None:
    """As the operators build them: plan, advance with `spark-submit`, a rerun's preview and its apply, report.

    The rerun on Sail: it starts as other commands do, and each JVM takes fifteen seconds.
    """
    folder = tmp_path / "folder"
    small(folder, SESSIONS)
    asked = """
import json, sys
from windowlib import load_definition
from windowlib.airflow.commands import advance_command, command, of_pipeline

one = load_definition("small.toml")
cluster = one.model_copy(update={"spark": one.spark.model_copy(update={"master": "local-cluster[1,1,1024]"})})
submit = advance_command(cluster)
submit[submit.index("local-cluster[1,1,1024]")] = "local[1]"
print(json.dumps({
    "plan": of_pipeline("plan", one),
    "advance": submit,
    "preview": command("rerun", str(one.file), "--from", "1970-01-01T00:00Z", "--to", "1970-01-02T00:00Z",
                       "--reason", "test", "--dry-run"),
    "report": of_pipeline("report", one),
}))
"""
    printed = installed.run([installed.python, "-P", "-c", asked], folder)
    assert printed.code == 0, printed.err
    outcomes = tmp_path / "outcomes"
    variables = {"PYSPARK_DRIVER_PYTHON": installed.python, OUTCOMES: str(outcomes)}
    found = {}
    for name, command in json.loads(printed.out).items():
        ended = installed.run(command, folder, variables)
        assert ended.code == 0, f"{name}: {ended.err}"
        found[name] = json.loads(outcomes.read_text(encoding="utf-8").splitlines()[-1])
        if name == "advance":
            (folder / "small.toml").write_text('engine = "sail"\n' + SESSIONS)
    assert found["plan"]["batch_id"] == 1
    assert found["advance"]["rows_admitted"] == 3
    assert Path(found["report"]["page"]).is_file()
    apply = [installed.python, "-P", "-m", "windowlib", "rerun", "small.toml", "--json"]
    ended = installed.run([*apply, "--apply", found["preview"]["preview_id"]], folder)
    assert ended.code == 0, ended.err


def test_what_needs_the_jars_says_so_in_one_sentence(installed: Environment, tmp_path: Path) -> None:
    code = "from windowlib.engines.spark import delta_settings; delta_settings()"
    ended = installed.run([installed.python, "-c", code], tmp_path)
    cache = installed.home / ".cache" / "windowlib"
    assert ended.err.splitlines()[-1].endswith(
        f"Delta's JARs are missing or incomplete in {cache}: run `windowlib setup`"
    )
    checked = installed.run([str(installed.bin / "windowlib"), "setup", "--check"], tmp_path)
    assert checked.code == 2
    assert "run `windowlib setup`" in checked.err
