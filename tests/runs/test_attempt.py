"""Messages, files and report of one attempt, and its treatment of files that change meanwhile. No engine runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import simple_batches
from tests.support.disks import folder_of
from tests.support.killed import dead_owner
from windowlib.batches import batch
from windowlib.batches.inputs import ComputedBatch, Inputs
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.engines.connect import EngineLost
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Plan, SourceFile
from windowlib.publication.publish import STAGING
from windowlib.publication.roll_forward import LostRows
from windowlib.reruns.preview_text import size
from windowlib.runs import attempt
from windowlib.runs.advance import advance
from windowlib.runs.run import RunRequest
from windowlib.storage.store import Store


@pytest.fixture
def definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """A pipeline whose first file waits."""
    simple_batches.compute_simply(monkeypatch)
    simple_batches.arrive(tmp_path, 1)
    return simple_batches.pipeline(tmp_path)


@pytest.fixture(autouse=True)
def incoming(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


def computing(monkeypatch: pytest.MonkeyPatch, act: Callable[[Inputs], Any]) -> None:
    """Makes each batch call `act` before it is computed."""
    compute = batch.compute

    def acting(inputs: Inputs) -> ComputedBatch:
        act(inputs)
        return compute(inputs)

    monkeypatch.setattr(batch, "compute", acting)


def waiting(definition: Definition) -> Path:
    return definition.file.parent / "incoming" / "1.parquet"


def values(definition: Definition) -> list[int]:
    return simple_batches.Reader(definition.file.parent).all_values()


# -- what is said and reported ----------------------------------------------------------------------------------------


def test_progress_shows_each_step_and_the_amount_read(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windowlib.runs.run.task_progress", lambda spark: nullcontext(lambda: ", far"))
    said: list[Any] = []
    [report] = simple_batches.batches_of(RunRequest.of(definition, say=said.append))
    reads = size(waiting(definition).stat().st_size)
    assert [one if isinstance(one, str) else one() for one in said] == [
        f"values, batch 1: computing 1 file, {reads}, far",
        "values, batch 1: checking",
        "values, batch 1: publishing",
    ]
    assert 0 < report.seconds < 60
    assert (report.batch_id, report.figures["rows_read"]) == (1, 3)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([], "no new file"),
        ([999], "1 file, 999 bytes"),
        ([400_000, 599_949], "2 files, 999.9 kB"),
        ([999_999, 1], "2 files, 1.0 MB"),
        ([999_999], "1 file, 1.0 MB"),
        ([1_000_000] * 1_234, "1,234 files, 1.2 GB"),
    ],
)
def test_amount_of_a_batch_in_words(sizes: list[int], said: str) -> None:
    files = tuple(SourceFile(f"{n}", size, 0, n) for n, size in enumerate(sizes, 1))
    plan = Plan(1, 0, None, 0, files, "", "")
    assert attempt._amount(plan) == said


def test_a_rerun_is_shown_by_its_title() -> None:
    asked = Rerun(0, 60_000, "a wrong file", "ann")
    assert attempt._amount(Plan(1, 0, None, 0, (), "", "", rerun=asked)) == asked.title


def test_a_roll_forward_reports_its_own_time(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(attempt, "publish", stop)
        with pytest.raises(Stopped):
            advance(definition, simple_batches.no_spark)
    assert ledger_of(definition).state().prepared
    [report] = advance(definition, simple_batches.no_spark)
    assert 0 < report.seconds < 60
    assert report.figures["rows_read"] == 3


def test_another_allowed_lateness_is_noted(definition: Definition) -> None:
    advance(definition, simple_batches.no_spark)
    text = definition.file.read_text().replace(
        f'gap = "{simple_batches.GAP}"', f'gap = "{simple_batches.GAP}"\nallowed_lateness = "1m"'
    )
    definition.file.write_text(text)
    simple_batches.arrive(definition.file.parent, 2)
    notes: list[str] = []
    advance(load_definition(definition.file), simple_batches.no_spark, on_note=notes.append)
    [note] = notes
    assert note.startswith("values: window.allowed_lateness")
    assert note.endswith(", from batch 2 on: windows that were cleaned up stay late")


def test_tables_that_hold_other_rows_than_the_ledger_counted_stop_a_batch(
    definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = batch.compute

    def miscounted(inputs: Inputs) -> ComputedBatch:
        made = compute(inputs)
        return replace(made, figures={**made.figures, "results_rows_after": 99})

    with monkeypatch.context() as patch:
        patch.setattr(batch, "compute", miscounted)
        advance(definition, simple_batches.no_spark)
    simple_batches.arrive(definition.file.parent, 2)
    with pytest.raises(LostRows, match="results holds 2 rows at version 1, but batch 1 recorded 99"):
        advance(definition, simple_batches.no_spark)
    assert ledger_of(definition).state().last_batch_id == 2


class Stopped(Exception):
    """Ends a run at the place that a test chooses."""


def stop(*_: object, **__: object) -> None:
    raise Stopped


# -- what is left -----------------------------------------------------------------------------------------------------


def test_a_finished_batch_leaves_no_staged_file(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    computing(monkeypatch, staging)
    advance(definition, simple_batches.no_spark)
    assert not (folder_of(definition) / STAGING).exists()


def staging(inputs: Inputs) -> None:
    inputs.staging.put("part.parquet", b"rows")


def test_staged_files_of_another_attempt_stay(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    def next_to_another(inputs: Inputs) -> None:
        staging(inputs)
        inputs.definition.store.put(f"{STAGING}/other/1", b"")

    computing(monkeypatch, next_to_another)
    advance(definition, simple_batches.no_spark)
    assert [path.name for path in (folder_of(definition) / STAGING).iterdir()] == ["other"]


def test_each_attempt_has_a_folder_of_its_own(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is taken for lost may still write to the folder of the attempt before."""
    folders: list[Store] = []

    def lost(inputs: Inputs) -> None:
        staging(inputs)
        folders.append(inputs.staging)
        if len(folders) == 1:
            raise EngineLost("no answer")

    computing(monkeypatch, lost)
    [report] = simple_batches.batches_of(RunRequest.of(definition), on_lost=lambda: True)
    assert report.batch_id == 1
    assert [Path(folder.url).name[:4] for folder in folders] == ["1-1-", "1-1-"]
    assert folders[0] != folders[1]
    assert not (folder_of(definition) / STAGING).exists()


def test_staged_files_of_a_killed_attempt_are_removed(definition: Definition) -> None:
    with dead_owner():
        ledger_of(definition).claim()
    definition.store.put(f"{STAGING}/1-1-0123abcd/part.parquet", b"rows")
    advance(definition, simple_batches.no_spark)
    assert not (folder_of(definition) / STAGING).exists()


def test_an_engine_is_replaced_once_in_a_run(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def lost(inputs: Inputs) -> None:
        raise EngineLost("no answer")

    computing(monkeypatch, lost)
    with pytest.raises(EngineLost):
        list(simple_batches.batches_of(RunRequest.of(definition), on_lost=lambda: not asked.append(1)))
    assert asked == [1]


def test_an_attempt_that_fails_leaves_nothing_staged(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    computing(monkeypatch, staging)
    monkeypatch.setattr(attempt, "_judged", stop)
    with pytest.raises(Stopped):
        advance(definition, simple_batches.no_spark)
    assert not (folder_of(definition) / STAGING).exists()


# -- files that change ------------------------------------------------------------------------------------------------


def replaced(definition: Definition) -> None:
    """Other content under the same name: the values of file 7."""
    simple_batches.arrive(definition.file.parent, 7)
    os.replace(waiting(definition).with_name("7.parquet"), waiting(definition))


def once(act: Callable[[], object]) -> Callable[[Inputs], None]:
    left = [act]

    def acting(inputs: Inputs) -> None:
        if left:
            left.pop()()

    return acting


def test_a_file_that_changes_while_it_is_read_is_planned_again(
    definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    computing(monkeypatch, once(lambda: replaced(definition)))
    notes: list[str] = []
    [report] = advance(definition, simple_batches.no_spark, on_note=notes.append)
    assert report.batch_id == 1
    assert values(definition) == [70, 71, 72]
    assert ["is planned again" in note for note in notes] == [True]


def test_a_changed_file_explains_an_engine_error(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        replaced(definition)
        raise Stopped

    computing(monkeypatch, once(failing))
    advance(definition, simple_batches.no_spark)
    assert values(definition) == [70, 71, 72]


def test_an_engine_error_of_its_own_is_raised(definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    computing(monkeypatch, once(stop))
    with pytest.raises(Stopped):
        advance(definition, simple_batches.no_spark)


def test_a_batch_whose_file_changed_before_it_began_is_planned_again(
    definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan was found to hold before. Files are checked once more after they were read."""
    began: list[int] = []
    computing(monkeypatch, lambda inputs: began.append(1))
    begin = attempt.standing

    def slow(*arguments: Any) -> Any:
        replaced(definition)
        return begin(*arguments)

    monkeypatch.setattr(attempt, "standing", slow)
    advance(definition, simple_batches.no_spark)
    assert began == [1, 1], "as it was planned again"
    assert values(definition) == [70, 71, 72]
