"""Commands and runs that wake after others have continued, and programs that commit to a table first."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.disks import folder_of
from tests.support.killed import dead_owner, stopped
from tests.support.log_files import file_of
from tests.support.simple_batches import one_by_one
from tests.world.schedules.actors import BY, a_rerun, a_run, delete, no_spark, optimize
from tests.world.schedules.explore import BEGUN, REFUSED, begin, check_all_is_there, fast_folder
from tests.world.schedules.explorer import Explorer, VolatileDisk, explored
from tests.world.schedules.pipeline import pipeline, root_of
from tests.world.schedules.reader import Reader
from windowlib.batches.planning import ledger_of
from windowlib.cli.exits import SUPERSEDED, UNEXPECTED, exit_code
from windowlib.decisions import verdicts
from windowlib.decisions.adopt import adopt
from windowlib.decisions.rollback import rollback
from windowlib.decisions.set_aside import set_aside
from windowlib.decisions.verdicts import abandon
from windowlib.delta import commits as delta_commits
from windowlib.delta.log import DamagedLog
from windowlib.delta.tables import Tables
from windowlib.ledger.lease import TRIES, Overtaken
from windowlib.ledger.ledger import Superseded
from windowlib.ledger.prepare import Prepared
from windowlib.maintenance.maintain import maintain
from windowlib.publication import roll_forward
from windowlib.publication.roll_forward import ForeignChange
from windowlib.runs.advance import advance
from windowlib.source.listed import SourceError
from windowlib.storage.disk import Disk


@pytest.fixture(scope="module")
def begun() -> Iterator[Path]:
    """Pipelines that have run. Batches in the test's process need no engine."""
    with fast_folder() as folder, pytest.MonkeyPatch.context() as patch:
        begin(folder)
        with explored(Explorer(0, lambda: None), VolatileDisk(folder), patch):
            yield folder


@pytest.fixture
def place(begun: Path) -> Iterator[Callable[[str], Path]]:
    """A copy of one of them."""

    def copied(start: str) -> Path:
        shutil.rmtree(begun / "copy", ignore_errors=True)
        return Path(shutil.copytree(begun / start, begun / "copy"))

    yield copied
    shutil.rmtree(begun / "copy", ignore_errors=True)


def watched(folder: Path) -> Reader:
    reader = Reader(root_of(folder))
    reader.watch()
    return reader


def check_at_rest(reader: Reader) -> None:
    reader.watch()
    check_all_is_there(reader)


def sleeping_abandon(folder: Path, meanwhile: Callable[[], object], patch: pytest.MonkeyPatch) -> None:
    """`abandon` is stopped after its row is written; others act; it wakes."""
    really = verdicts.give_up

    def late(*arguments: Any) -> None:
        patch.setattr(verdicts, "give_up", really)
        meanwhile()
        really(*arguments)

    patch.setattr(verdicts, "give_up", late)
    abandon(pipeline(folder), *BY)


@pytest.mark.fault(
    "`abandon` sleeps after its ledger row while a run commits the next batch",
    "it says that another run took over; that batch stays in every table",
)
def test_an_abandon_that_slept_keeps_the_batch_of_another_run(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(REFUSED)
    reader = watched(folder)
    with pytest.raises(Superseded, match="another run took this pipeline over"):
        sleeping_abandon(folder, lambda: a_run(folder), monkeypatch)
    check_at_rest(reader)


def test_an_abandon_that_slept_keeps_a_prepared_batch(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(REFUSED)
    reader = watched(folder)

    def others() -> None:
        a_run(folder)
        with stopped("commit:results"):
            a_rerun(folder)
        reader.watch()

    with pytest.raises(Superseded):
        sleeping_abandon(folder, others, monkeypatch)
    a_run(folder)
    check_at_rest(reader)
    assert "rerun" in reader.decided


def test_an_abandon_superseded_between_two_tables_stops(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, commit = place(REFUSED), delta_commits.commit
    reader = watched(folder)

    def late(table: Any, *arguments: Any, **named: Any) -> int:
        if named.get("identity") == delta_commits.RESTORED and table.name == "results":
            monkeypatch.setattr(delta_commits, "commit", commit)
            a_run(folder)
            reader.watch()
        return commit(table, *arguments, **named)

    monkeypatch.setattr(delta_commits, "commit", late)
    with pytest.raises(Superseded):
        abandon(pipeline(folder), *BY)
    check_at_rest(reader)


@pytest.mark.fault(
    "the prepare file of a batch is damaged or missing, and the operator abandons the batch",
    "`abandon` works without it; the next run computes the batch again",
)
@pytest.mark.parametrize("left", [None, b"{}"], ids=["gone", "damaged"])
def test_a_batch_without_its_prepare_file_can_be_abandoned(place: Callable[[str], Path], left: bytes | None) -> None:
    folder = place(REFUSED)
    reader, definition = watched(folder), pipeline(folder)
    before, results = ledger_of(definition).state(), Tables(Disk(root_of(folder)))["results"]
    assert before.prepared is not None
    file, version = folder_of(definition) / before.prepared.path, results.version()
    file.unlink()
    if left is not None:
        file.write_bytes(left)
    assert version is not None
    assert abandon(definition, *BY) == 3
    assert results.version() == version + 1
    a_run(folder)
    check_at_rest(reader)


@pytest.mark.fault(
    "windowlib itself has undone a batch beneath a prepared one",
    "the run stops before any table changes and names `abandon`",
)
def test_a_batch_on_an_undone_one_must_be_abandoned(place: Callable[[str], Path]) -> None:
    folder = place(BEGUN)
    with stopped("commit:run_metrics"):
        a_run(folder)
    results = Tables(Disk(root_of(folder)))["results"]
    delta_commits.restore(results, results.version(), None)
    with pytest.raises(ForeignChange, match=r"windowlib itself changed .*, version .*windowlib abandon .* drops"):
        a_run(folder)
    reader = watched(folder)
    assert abandon(pipeline(folder), *BY) == 3
    a_run(folder)
    check_at_rest(reader)


@pytest.mark.fault(
    "a run sleeps before a commit while `adopt` of a foreign change abandons its batch",
    "it fails at its next commit; no table gets rows of this batch",
)
def test_a_run_that_slept_commits_nothing_of_an_abandoned_batch(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(BEGUN)
    reader, definition = watched(folder), pipeline(folder)

    def others() -> None:
        delete(folder)
        with pytest.raises(ForeignChange):
            a_run(folder)  # takes over, and releases
        adopt(definition, *BY)
        reader.watch()

    before_the_commit("run_metrics", others, monkeypatch, 1)
    with pytest.raises(Superseded):
        a_run(folder)
    reader.watch()
    tables = Tables(Disk(root_of(folder)))
    versions = ledger_of(definition).state().versions
    assert {name: tables[name].version() for name in versions} == versions
    a_run(folder)
    check_at_rest(reader)


@pytest.mark.fault(
    "a run sleeps while `abandon` of its batch dies and later commands claim the pipeline",
    "it commits nothing; the last batch is published as prepared",
)
def test_a_command_after_a_dead_one_fences_sleeping_runs(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, waiting = place(BEGUN), list[Prepared | None]()
    reader, definition = watched(folder), pipeline(folder)

    def others() -> None:
        with stopped("restore:source_files"):
            abandon(definition, *BY)
        with pytest.raises(SourceError, match="was already read"):
            set_aside(definition, "1.parquet", *BY)
        with stopped("commit:source_files"):
            a_run(folder)
        waiting.append(ledger_of(definition).state().prepared)

    before_the_commit("run_metrics", others, monkeypatch, 1)
    with pytest.raises(Superseded):
        a_run(folder)
    assert waiting == [ledger_of(definition).state().prepared] != [None]
    a_run(folder)
    check_at_rest(reader)


@pytest.mark.fault(
    "maintenance sleeps after it prepared a batch, and a rollback abandons it",
    "it says that another run took over, not that a table was changed",
)
def test_a_maintenance_that_slept_is_superseded(place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, judge = place(BEGUN), roll_forward.judge
    a_run(folder)

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(roll_forward, "judge", judge)
        rollback(pipeline(folder), 1, *BY)
        return judge(*arguments)

    monkeypatch.setattr(roll_forward, "judge", late)
    with pytest.raises(Superseded, match="another run took this pipeline over"):
        maintain(pipeline(folder), BY[0])
    assert roll_forward.judge is judge, "it had a batch"


def before_the_commit(table: str, act: Callable[[], object], patch: pytest.MonkeyPatch, times: int) -> None:
    """`act` is done just before a batch commits to a table, so many times."""
    commit, left = delta_commits.commit_logged, iter(range(times))
    one_by_one(patch)

    def committing(at: Any, *arguments: Any) -> int:
        if len(arguments) == 4 and at.name == table and next(left, None) is not None:
            act()
        return commit(at, *arguments)

    patch.setattr(delta_commits, "commit_logged", committing)


def move_on(folder: Path) -> None:
    """A foreign commit that changes no row."""
    results = Tables(Disk(root_of(folder)))["results"]
    newest = results.version()
    assert newest is not None
    delta_commits.commit(results, newest)


@pytest.mark.fault(
    "another program compacts `results` between a run's check and its commit", "the run checks again and publishes"
)
def test_a_run_publishes_after_a_foreign_compaction(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(BEGUN)
    reader = watched(folder)
    before_the_commit("results", lambda: optimize(folder), monkeypatch, 1)
    a_run(folder)
    check_at_rest(reader)


@pytest.mark.fault(
    "another program changes a table before each commit of a run",
    "after a few tries the run fails, to be tried again; it is not superseded",
)
def test_a_table_that_keeps_changing_is_tried_again_later(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(BEGUN)
    reader = watched(folder)
    with monkeypatch.context() as patch:
        before_the_commit("results", lambda: move_on(folder), patch, TRIES)
        with pytest.raises(Overtaken, match="another program has changed a table while this command ran") as said:
            a_run(folder)
    assert exit_code(said.value) == UNEXPECTED != SUPERSEDED
    before_the_commit("results", lambda: move_on(folder), monkeypatch, TRIES - 1)
    a_run(folder)
    check_at_rest(reader)


@pytest.mark.fault(
    "a superseded run creates or changes a table as another begins to publish", "the other checks again and publishes"
)
def test_a_run_builds_on_a_table_created_by_a_superseded_run(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, create, made = place(BEGUN), delta_commits.create, list[str]()
    shutil.rmtree(root_of(folder))
    reader = watched(folder)

    def creating(table: Any, *arguments: Any) -> int:
        if table.name == "results" and not made:
            made.append("results")
            create(table, *arguments)
        return create(table, *arguments)

    monkeypatch.setattr(delta_commits, "create", creating)
    a_run(folder)
    assert made
    check_at_rest(reader)


@pytest.mark.fault(
    "a run fails while it recovers a dead run, before its own batch begins", "its claim is free; the next run continues"
)
def test_a_run_that_fails_early_keeps_no_claim(begun: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(begun / BEGUN, tmp_path / "copy"))
    definition = pipeline(folder)
    with dead_owner():
        ledger_of(definition).claim()
    results = root_of(folder) / "results"
    newest = Tables(Disk(root_of(folder)))["results"].version()
    assert newest is not None
    entry = file_of(results, newest)
    text = entry.read_bytes()
    entry.write_bytes(b"")
    with pytest.raises(DamagedLog, match="is empty"):
        advance(definition, no_spark)
    claim = ledger_of(definition).state().claim
    assert claim is not None
    assert claim.released
    entry.write_bytes(text)
    reader = watched(folder)
    a_run(folder)
    check_at_rest(reader)
