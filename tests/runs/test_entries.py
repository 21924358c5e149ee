"""Entries of a run in the ledger: its claim and plan, then a prepare entry and a commit entry for each batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support import simple_batches
from tests.support.killed import dead_owner, stopped
from windowlib.batches.planning import ledger_of, plan
from windowlib.contract.tables import LEDGER
from windowlib.definition.definition import Definition, load_definition
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.publication.readers import read_table
from windowlib.runs import run as run_module
from windowlib.runs.advance import advance, batches
from windowlib.runs.attempt import BatchReport
from windowlib.runs.claimed_pipeline import first_batch
from windowlib.runs.deadline import Expired
from windowlib.runs.run import RunRequest
from windowlib.runs.together import advance_together
from windowlib.source.listed import SourceError

FIRST, PREPARE, LAST = ["claim", "plan"], ["prepare"], ["commit", "release"]
ONE_BATCH = [FIRST, PREPARE, LAST]
TWO_BATCHES = [FIRST, PREPARE, ["commit", "plan"], PREPARE, LAST]


@pytest.fixture
def definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """A pipeline of one file per batch, whose first two files wait."""
    simple_batches.compute_simply(monkeypatch)
    made = simple_batches.pipeline(tmp_path)
    for number in (1, 2):
        simple_batches.arrive(tmp_path, number)
    return made.model_copy(update={"source": made.source.model_copy(update={"max_files_per_run": 1})})


def entries(definition: Definition) -> list[list[str]]:
    """Kinds of the rows of each version of the ledger, oldest first."""
    table = ledger_of(definition).tables[LEDGER.name]
    newest = table.version()
    assert newest is not None
    counts = [sum(file.rows for file in table.files(version)) for version in range(newest + 1)]
    found = sorted(read_table(definition, "ledger").to_pylist(), key=lambda row: row["sequence"])
    kinds = [row["kind"] for row in found]
    return [kinds[start:end] for start, end in pairwise(counts)]


def run(definition: Definition, max_batches: int | None = None) -> list[int]:
    reports = advance(definition, simple_batches.no_spark, max_batches=max_batches)
    return [report.batch_id for report in reports]


def test_a_run_of_two_batches_makes_five_entries(definition: Definition) -> None:
    assert run(definition) == [1, 2]
    assert entries(definition) == TWO_BATCHES
    assert run(definition) == []
    assert entries(definition) == TWO_BATCHES


def test_a_run_of_one_batch_makes_three_entries(definition: Definition) -> None:
    assert run(definition, max_batches=1) == [1]
    assert entries(definition) == ONE_BATCH
    assert run(definition) == [2]
    assert entries(definition) == [*ONE_BATCH, *ONE_BATCH]


def test_several_pipelines_make_as_few_entries(definition: Definition) -> None:
    file = definition.file.with_name("others.toml")
    file.write_text(definition.file.read_text().replace('"values"', '"others"', 1))
    other = load_definition(file).model_copy(update={"source": definition.source})
    runs = [RunRequest.of(one) for one in (definition, other)]
    ends = advance_together(runs, simple_batches.no_spark)
    assert [(end.error, len(end.reports)) for end in ends] == [(None, 2), (None, 2)]
    assert [entries(one) for one in (definition, other)] == [TWO_BATCHES, TWO_BATCHES]


def test_a_plan_that_is_frozen_before_is_claimed_alone(definition: Definition) -> None:
    assert plan(definition)
    run(definition)
    assert entries(definition) == [["plan"], ["claim"], *TWO_BATCHES[1:]]


def test_looking_for_the_first_batch_writes_nothing(definition: Definition) -> None:
    ledger = ledger_of(definition)
    assert first_batch(RunRequest.of(definition))
    assert ledger.state().version is None


def test_a_batch_is_planned_again_if_the_ledger_changes_before_the_claim(definition: Definition) -> None:
    request = RunRequest.of(definition)
    first = first_batch(request)
    assert first
    Ledger(definition.store, wall_clock_ms).write({"kind": "acknowledge"})
    with closing(batches(request, first, simple_batches.no_spark)) as reports:
        assert [report.batch_id for report in reports] == [1, 2]
    assert entries(definition) == [["acknowledge"], ["claim"], ["plan"], *TWO_BATCHES[1:]]


@pytest.mark.fault("a run waits for the lease of another run, which ends", "it plans again on the other run's state")
def test_a_run_that_waited_for_a_lease_plans_again(definition: Definition) -> None:
    with dead_owner(host="elsewhere"):
        theirs = ledger_of(definition)
        _, claim = theirs.claim()

    def end(sentence: str) -> None:
        theirs.write({"kind": "release"}, claim.epoch)

    request = RunRequest.of(definition, note=end)
    assert [report.batch_id for report in simple_batches.batches_of(request)] == [1, 2]
    assert entries(definition) == [["claim"], ["release"], ["claim"], ["plan"], *TWO_BATCHES[1:]]


@pytest.mark.fault("the next batch cannot be planned", "the batch before it is committed; then the run fails")
@pytest.mark.parametrize("error", [SourceError("the source is gone"), Expired("the time is over")], ids=repr)
def test_a_batch_is_committed_if_the_next_cannot_be_planned(
    definition: Definition, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    next_plan = run_module.next_plan

    def failing(definition: Definition, tables: Any, state: Any, *rest: Any) -> Any:
        if state.commit:
            raise error
        return next_plan(definition, tables, state, *rest)

    monkeypatch.setattr(run_module, "next_plan", failing)
    reports = list[BatchReport]()
    with pytest.raises(type(error), match=str(error)):
        reports.extend(simple_batches.batches_of(RunRequest.of(definition)))
    assert [report.batch_id for report in reports] == [1]
    assert entries(definition) == [FIRST, PREPARE, ["commit"], ["release"]]


def test_a_run_that_is_closed_early_leaves_the_next_plan_frozen(definition: Definition) -> None:
    with closing(simple_batches.batches_of(RunRequest.of(definition))) as reports:
        assert next(reports).batch_id == 1
    assert entries(definition) == [*TWO_BATCHES[:3], ["release"]]
    assert run(definition) == [2]
    assert entries(definition) == [*TWO_BATCHES[:3], ["release"], ["claim"], PREPARE, LAST]


def test_a_plan_in_the_entry_of_a_commit_is_replaced_if_its_file_changes(definition: Definition) -> None:
    notes = list[str]()
    for report in simple_batches.batches_of(RunRequest.of(definition, note=notes.append)):
        if report.batch_id == 1:
            simple_batches.arrive(definition.file.parent, 3)
            (definition.source.path / "3.parquet").replace(definition.source.path / "2.parquet")
    assert ["is planned again" in note for note in notes] == [True]
    assert entries(definition) == [*TWO_BATCHES[:3], ["plan"], *TWO_BATCHES[3:]]


@pytest.mark.fault("a run dies before its commit entry", "the next run publishes the prepared batch and goes on")
@pytest.mark.parametrize(
    ("moment", "left"),
    [
        ("ledger:plan", []),
        ("ledger:prepare", [FIRST]),
        ("ledger:commit", [FIRST, PREPARE]),
        ("ledger:release", [FIRST, PREPARE, ["commit", "plan"], PREPARE]),
    ],
)
def test_a_run_killed_between_two_entries_is_finished(
    definition: Definition, moment: str, left: Sequence[list[str]]
) -> None:
    with stopped(moment):
        run(definition)
    table = ledger_of(definition).tables[LEDGER.name]
    assert (entries(definition) if table.version() else []) == left
    assert run(definition)[-1] == 2
    kinds = [kind for entry in entries(definition) for kind in entry]
    assert (kinds.count("commit"), kinds.count("prepare"), kinds[-2:]) == (2, 2, LAST)
    state = ledger_of(definition).state()
    assert (state.last_batch_id, state.plan, state.left_by_a_dead_run) == (2, None, False)
    assert simple_batches.Reader(definition.file.parent).all_values() == [10, 11, 12, 20, 21, 22]
