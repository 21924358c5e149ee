"""Cost of pages: it does not grow with the history."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.long_history import lengthen
from tests.support.strategies import ALL
from tests.world.stopped.cases import stopped
from windowlib.definition.definition import Definition, load_definition
from windowlib.delta import data_files, row_groups
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.pages.metrics import samples
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.render import PageLinks, pipeline_page

NOW_MS = 1_900_000_000_000


def page_bytes(definition: Definition) -> int:
    commit = Ledger(definition.store, wall_clock_ms).state().commit
    assert commit is not None
    page = pipeline_page(
        pipeline(observe_pipeline(definition, commit.at_ms)), PageLinks(pipeline=lambda name: name, home=None)
    )
    return len(page)


def test_the_page_of_a_long_history_is_not_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_in: Path
) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    found = []
    for runs in (100, 5_000 if ALL else 400):
        folder = tmp_path / str(runs)
        folder.mkdir()
        definition = load_definition(stopped("tumbling", folder, built_in))
        lengthen(definition, runs)
        found.append(page_bytes(definition))
    young, old = found
    assert old < 1.2 * young


def test_the_newest_batch_reads_few_ledger_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_in: Path
) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = load_definition(stopped("unkeyed", tmp_path, built_in))
    before = {one.gauge: one.value for one in samples(definition, NOW_MS)}
    lengthen(definition, 1_200)
    read: list[int] = []
    shaped = row_groups.shaped
    monkeypatch.setattr(row_groups, "shaped", lambda rows, of: read.append(rows.num_rows) or shaped(rows, of))
    after = {one.gauge: one.value for one in samples(definition, NOW_MS)}
    assert sum(read) <= 4 * data_files.ROWS_PER_GROUP, "a group of each, for the state of the ledger and for its tail"
    assert after.keys() == before.keys()
    assert after["last_commit_timestamp_seconds"] == before["last_commit_timestamp_seconds"] + 1_200 * 60


def test_the_newest_batch_that_is_not_a_rerun_is_found_behind_many_that_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_in: Path
) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = load_definition(stopped("tumbling", tmp_path, built_in))  # its newest batch is a rerun
    before = {one.gauge: one.value for one in samples(definition, NOW_MS)}
    lengthen(definition, 40)
    after = {one.gauge: one.value for one in samples(definition, NOW_MS)}
    assert {name: after[name] for name in ("read", "fired")} == {name: before[name] for name in ("read", "fired")}


def test_the_metrics_of_a_run_import_no_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_in: Path) -> None:
    """Each command writes them at its end; the import takes longer than the rest of a run with nothing new."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    file = stopped("tumbling", tmp_path, built_in)
    program = (
        "import sys; from windowlib.definition.definition import load_definition;"
        "from windowlib.pages.metrics import samples;"
        f"print(len(samples(load_definition(sys.argv[1]), {NOW_MS})), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
    count, imported = done.stdout.split()
    assert (int(count) > 5, imported) == (True, "False")
