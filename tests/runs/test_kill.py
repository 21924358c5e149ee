"""A run that is killed anywhere and started again leaves the same tables as an undisturbed run."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks, clock, tables
from tests.support.disks import folder_of
from tests.support.killed import FILES, stopped
from tests.support.strategies import ALL
from windowlib.batches.planning import ledger_of, plan
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]

Tables = dict[str, list[str]]
SESSION = 'type = "session"\ngap = "10m"\nallowed_lateness = "2h"'
KINDS = {
    "sliding": 'type = "sliding"\nsize = "1h"\nslide = "15m"\nallowed_lateness = "2h"',
    "tumbling": 'type = "tumbling"\nsize = "20m"\nallowed_lateness = "2h"',
    "tumbling counts": 'type = "tumbling_count"\nsize = 3',
    "counts": 'type = "sliding_count"\nsize = 6\nslide = 4',
    "general": SESSION + '\n[window.trigger]\ntype = "continuous_event_time"\ninterval = "5m"',
    "kept elements": SESSION + '\n[window.evictor]\ntype = "count"\nn = 3',
}
MARKS = {
    name: [
        pytest.mark.long("sessions are killed so in make test; what is prepared is rolled forward whatever the plan"),
        *([pytest.mark.classic] if name in ("general", "kept elements") else []),
    ]
    for name in KINDS
}


def run(definition: Definition, spark: SparkSession, max_batches: int | None = None) -> list[int]:
    """Advances the pipeline and returns the ids of the batches."""
    return [report.batch_id for report in advance(definition, lambda: spark, clock=clock, max_batches=max_batches)]


@pytest.fixture(scope="module")
def undisturbed(after_three: Path) -> Definition:
    """The pipeline after an undisturbed run of all its files."""
    definition = clicks(after_three, 0)
    assert committed(definition) == FILES
    changes = {(row["change"], row["cause"]) for row in read_table(definition, "result_changes").to_pylist()}
    assert {("added", "firing"), ("added", "merge"), ("added", "late"), ("removed", "merge")} <= changes
    return definition


def committed(definition: Definition) -> int | None:
    """The newest batch that exists."""
    commit = ledger_of(definition).state().commit
    return commit and commit.batch_id


def as_of(rows: Tables, batch_id: int) -> Tables:
    return {name: [row for row in found if f"'batch_id': {batch_id}" in row] for name, found in rows.items()}


@pytest.mark.promised("a run that is killed at any write loses nothing, and the next run finishes its batch", "disk")
@pytest.mark.fault(
    "SIGKILL again and again in the middle of a run",
    "the next run finishes the batch and cleans up; tables equal those of an undisturbed run",
)
def test_runs_killed_by_sigkill_lose_nothing(
    undisturbed: Definition, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = request.config.getoption("--engine")
    kills = ((1, "write:windows"), (2, "commit:result_changes"), (3, "ledger:commit"))[: 3 if ALL else 2]
    for batch_id, moment in kills:
        command = [sys.executable, "-m", "tests.support.killed", str(tmp_path), str(batch_id), moment, engine]
        child = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
        assert child.returncode == -signal.SIGKILL, child.stderr
    definition = clicks(tmp_path, FILES)
    assert committed(definition) == len(kills) - 1
    assert run(definition, spark) == [*range(len(kills), FILES + 1)]
    assert tables(definition) == tables(undisturbed)
    assert left_by_attempts(definition) == []


@pytest.mark.long("processes are killed at two such moments in make test")
def test_killed_while_it_writes_and_before_its_last_table(spark: SparkSession, tmp_path: Path) -> None:
    undisturbed, definition = (clicks(tmp_path / name, 1) for name in ("undisturbed", "killed"))
    assert run(undisturbed, spark) == [1]
    for moment in ("write:windows", "commit:results"):
        with stopped(moment):
            run(definition, spark)
    assert run(definition, spark) == [1]
    assert tables(definition) == tables(undisturbed)
    assert left_by_attempts(definition) == []


@pytest.mark.long("two moments are in make test, and tests/world/schedules kills runs at each step, without an engine")
def test_each_attempt_dies_one_commit_later(undisturbed: Definition, spark: SparkSession, tmp_path: Path) -> None:
    die_one_commit_later(undisturbed, clicks(tmp_path, FILES), spark)


@pytest.mark.fault(
    "a run of sliding, tumbling or count windows, or of the general plan, is killed before each commit in turn",
    "the next run finishes the batch; tables equal those of an undisturbed run",
)
@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind, marks=MARKS.get(kind, [])) for kind in KINDS])
def test_runs_of_each_kind_killed_before_each_commit_lose_nothing(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    text = CLICKS.replace(SESSION, KINDS[kind])
    undisturbed = clicks(tmp_path / "undisturbed", FILES, text)
    assert run(undisturbed, spark) == [1, 2, 3]
    assert read_table(undisturbed, "results").num_rows
    die_one_commit_later(undisturbed, clicks(tmp_path / "killed", FILES, text), spark)


def die_one_commit_later(undisturbed: Definition, definition: Definition, spark: SparkSession) -> None:
    """Kills the second batch before each of its commits in turn. In the end the tables are those of an undisturbed run.
    `make test` takes every other commit, because `tests/world/schedules` kills runs before each step, without an
    engine.
    """
    assert run(definition, spark, max_batches=1) == [1]
    frozen = plan(definition, clock)  # killed right after it
    assert (frozen and frozen.batch_id) == 2
    written = [name for name in COMMIT_ORDER if as_of(tables(undisturbed), 2).get(name)]
    moments = [
        "write:windows",
        "ledger:prepare",
        *(f"commit:{name}" for name in written[:: 1 if ALL else 2]),
        "ledger:commit",
    ]
    for moment in moments:
        with stopped(moment):
            run(definition, spark)
        assert committed(definition) == 1
    assert left_by_attempts(definition)
    assert run(definition, spark) == [2, 3]
    assert tables(definition) == tables(undisturbed)
    assert left_by_attempts(definition) == []


def left_by_attempts(definition: Definition) -> list[Path]:
    """Files named after attempts that no table's log names."""
    root, named = folder_of(definition), set[Path]()
    for table in COMMIT_ORDER:
        for entry in (root / table / "_delta_log").glob("*.json"):
            actions = map(json.loads, entry.read_text().splitlines())
            named |= {root / table / unquote(action["add"]["path"]) for action in actions if "add" in action}
    written = [path for table in COMMIT_ORDER for path in (root / table).rglob("*.parquet")]
    of_attempts = [path for path in written if re.match(r"\d+-\d+-", path.name) and path not in named]
    return [*of_attempts, *(root / "_prepared").glob("*"), *(root / "_staging").glob("*")]


@pytest.mark.long("tests/world/schedules kills it at any of its steps, without an engine, in make test")
@pytest.mark.fault("`windowlib abandon` is killed half way", "the next run undoes the rest and plans again")
def test_the_next_run_replans_after_a_killed_abandon(
    undisturbed: Definition, spark: SparkSession, tmp_path: Path
) -> None:
    definition = clicks(tmp_path, FILES)
    assert run(definition, spark, max_batches=1) == [1]
    before = tables(definition)
    with stopped("commit:run_metrics"):
        run(definition, spark)
    with stopped("restore:open_windows"):
        abandon(definition, "ann", "too many clicks", clock)
    assert tables(definition) == before
    assert run(definition, spark) == [3, 4]  # 2 is never used again
    assert tables(definition) == {name: renumbered(rows) for name, rows in tables(undisturbed).items()}


def renumbered(rows: list[str]) -> list[str]:
    """Rows of batches 2 and 3 as batches 3 and 4 would have written them."""
    return sorted(_BATCH.sub(lambda found: found[1] + str(int(found[2]) + 1), row) for row in rows)


_BATCH = re.compile(r"('batch_id': |'figure': 'batch_id', 'value': )([2-9])")
