"""Faults that schedules have found."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.disks import folder_of
from tests.support.killed import Killed, dead_owner, stopped
from tests.world.schedules.actors import (
    BY,
    ERASED,
    UNREAD,
    a_run,
    delete,
    erase,
    keep_migration,
    lossy_optimize,
    no_spark,
    of,
    optimize,
    rerun_of,
)
from tests.world.schedules.explore import (
    BEGUN,
    CHANGED,
    MIGRATED,
    REFUSED,
    begin,
    check_all_is_there,
    check_is_gone,
    fast_folder,
)
from tests.world.schedules.explorer import Explorer, VolatileDisk, explored
from tests.world.schedules.pipeline import NEW, OLD, OUTDATED, pipeline, root_of
from tests.world.schedules.reader import Reader
from windowlib.batches.planning import ledger_of, plan, rerun_plan
from windowlib.decisions.adopt import adopt
from windowlib.decisions.restore import restore
from windowlib.decisions.rollback import rollback
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.delta import commits as delta_commits
from windowlib.delta.data_files import DataFile
from windowlib.erasure import forget
from windowlib.erasure.certificates import certificates
from windowlib.inspection.unfinished import migration_begun
from windowlib.ledger import erasures, migration, prepare
from windowlib.ledger.history import commits_of
from windowlib.ledger.lease import Overtaken
from windowlib.ledger.ledger import DecidedMeanwhile, Ledger, Superseded, wall_clock_ms
from windowlib.ledger.migration import FINISHED, migrations
from windowlib.ledger.rows import Commit
from windowlib.maintenance.maintain import maintain
from windowlib.migrations import shadow
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.shadow import MigrationRefused, NothingToMigrate, still_there
from windowlib.migrations.switch import build, switch
from windowlib.migrations.undo import finish, undo
from windowlib.pages.newest_rows import tail
from windowlib.publication import roll_forward
from windowlib.publication.roll_forward import ForeignChange, LostRows
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk
from windowlib.storage.store import Store

QUIET, READ_TOO, GIVEN_UP, LOST = "quiet", "read too", "given up", "lost"  # each is used by one test
BUILT_AGAIN, LEAVES_NOTHING, BUILT_TWICE = "built again", "nothing", "built twice"
KEPT, KEPT_TOO, MIGRATED_TOO, TWICE, FIRST = "kept", "kept too", "migrated too", "twice", "first"
PLANNED: dict[str, tuple[str, str, Callable[[Definition], object]]] = {  # where, then by which gap, what is done
    "forget": (BEGUN, OLD, lambda of: forget.forget(of, no_spark, forget.ForgetRequest([str(ERASED)], *BY))),
    "rollback": (BEGUN, OLD, lambda of: rollback(of, 1, *BY)),
    "migrate_undo": (MIGRATED, NEW, lambda of: undo(of, no_spark, MigrationRequest(*BY))),
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Pipelines that have run. Batches in the test's process need no engine."""
    with fast_folder() as begun, pytest.MonkeyPatch.context() as patch:
        begin(begun)
        for name in (QUIET, READ_TOO, GIVEN_UP, LOST, BUILT_AGAIN, LEAVES_NOTHING, BUILT_TWICE, TWICE, FIRST):
            shutil.copytree(begun / BEGUN, begun / name)
        for name in (KEPT, KEPT_TOO, MIGRATED_TOO):
            shutil.copytree(begun / MIGRATED, begun / name)
        for name, (start, *_) in PLANNED.items():
            shutil.copytree(begun / start, begun / name)
        with explored(Explorer(0, lambda: None), VolatileDisk(begun), patch):
            yield begun


@pytest.mark.fault(
    "`abandon` finds a table that another program has changed since", "nothing is abandoned; the error says what to do"
)
def test_abandon_is_refused_after_a_foreign_change(folder: Path) -> None:
    definition = pipeline(folder / REFUSED)
    delete(folder / REFUSED)
    before = ledger_of(definition).state()
    with pytest.raises(ForeignChange, match="windowlib changed nothing"):
        abandon(definition, *BY)
    after = ledger_of(definition).state()
    assert (after.plan, after.prepared) == (before.plan, before.prepared)
    assert after.prepared is not None


@pytest.mark.fault(
    "a run finds the rerun of a dead run, which is no longer possible",
    "the rerun is abandoned with a note; the run reads the new files",
)
def test_a_run_abandons_a_dead_rerun_that_is_refused(folder: Path) -> None:
    definition, notes = pipeline(folder / BEGUN), list[str]()
    ledger = ledger_of(definition)
    with dead_owner():
        ledger.claim()
        ledger.freeze(lambda state: rerun_plan(definition, ledger.tables, state, rerun_of(OUTDATED), wall_clock_ms))
    reports = advance(definition, no_spark, on_note=notes.append)
    assert [report.batch_id for report in reports] == [4]
    assert reports[0].figures["rows_read"] == 6
    assert any("batch 3, a rerun that an earlier run left, is abandoned: what the preview" in n for n in notes)


@pytest.mark.fault(
    "`adopt` died, and the operator uses `restore` instead", "`restore` abandons the adoption; runs continue"
)
def test_restore_replaces_a_dead_adoption(folder: Path) -> None:
    place = folder / CHANGED
    definition = pipeline(place)
    with stopped("ledger:commit"):
        adopt(definition, *BY)
    delete(place, value=12)
    with pytest.raises(ForeignChange):
        advance(definition, no_spark)
    assert restore(definition, *BY) == ["results"]
    assert [report.figures["rows_read"] for report in advance(definition, no_spark)] == [6]
    reader = Reader(root_of(place))
    reader.watch()
    check_all_is_there(reader)


@pytest.mark.fault(
    "another program changes a table while `restore` undoes its earlier change", "the operator is asked to look again"
)
def test_a_superseded_restore_asks_to_look_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder / BEGUN
    delete(place)
    taken_back = delta_commits.restore

    def late(*arguments: Any) -> int | None:
        delete(place, value=12)
        return taken_back(*arguments)

    monkeypatch.setattr(delta_commits, "restore", late)
    with pytest.raises(Overtaken, match=r"results is no longer at version \d+.: check the table, then start again"):
        restore(pipeline(place), *BY)


@pytest.mark.fault("a key is erased after another program compacted `results`", "the compacted file is removed too")
def test_forget_erases_the_key_from_a_foreign_compaction(folder: Path) -> None:
    place = folder / QUIET
    optimize(place)
    reader = Reader(root_of(place))
    reader.watch()
    erase(place, OLD)
    reader.watch()
    check_is_gone(place, reader)


@pytest.mark.fault(
    "another program's compaction loses rows while a run rolls its batch forward", "the run stops; nothing more is lost"
)
def test_a_compaction_that_loses_rows_under_a_batch_stops_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, looked = folder / LOST, roll_forward.judge

    def late(*given: Any) -> Any:
        monkeypatch.undo()
        lossy_optimize(place)
        return looked(*given)

    monkeypatch.setattr(roll_forward, "judge", late)
    with pytest.raises(LostRows, match="changed rows, although its commit claims not to"):
        a_run(place)


@pytest.mark.fault(
    "`windowlib forget` abandons a migration at the moment it begins", "the migration says so and has switched nothing"
)
def test_a_migration_abandoned_as_it_begins_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = pipeline(folder / MIGRATED)  # back to the definition before
    keep_migration(folder / MIGRATED)
    begin = shadow.begin

    def late(store: Store, begun: migration.Migration) -> None:
        begin(store, begun)
        migration.forget(store, begun)

    monkeypatch.setattr(shadow, "begin", late)
    with pytest.raises(MigrationRefused, match="another command dropped this migration: "):
        build(definition, no_spark, MigrationRequest(*BY))


def test_an_abandoned_migration_leaves_no_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = of(folder / LEAVES_NOTHING, NEW)
    commit, done = delta_commits.commit_logged, list[str]()

    def late(table: Any, *others: Any) -> Any:
        if table.name == "source_files" and "_migration" in folder_of(table).parts and not done:
            done.append("given up")
            [begun] = migration.migrations(definition.store)
            migration.forget(definition.store, begun)
            (folder_of(table) / "written.parquet").parent.mkdir(parents=True)
            (folder_of(table) / "written.parquet").touch()
        return commit(table, *others)

    monkeypatch.setattr(delta_commits, "commit_logged", late)
    with pytest.raises(MigrationRefused, match="another command dropped this migration: "):
        build(definition, no_spark, MigrationRequest(*BY))
    assert done
    assert not [*definition.store.list("_migration/")]


def test_a_migration_abandoned_while_it_builds_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = of(folder / GIVEN_UP, NEW)
    create = Disk.create

    def late(store: Disk, path: str, data: bytes) -> bool:
        if "_migration" in store.root.parts and path.startswith("_delta_log/"):
            [begun] = migration.migrations(definition.store)
            migration.drop_tables(definition.store, begun)
        return create(store, path, data)

    monkeypatch.setattr(Disk, "create", late)
    with pytest.raises(MigrationRefused, match="another command dropped this migration: "):
        build(definition, no_spark, MigrationRequest(*BY))


def test_a_migration_restarted_by_another_command_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another `migrate` builds the same tables in another folder by then."""
    definition = of(folder / BUILT_AGAIN, NEW)
    commit = delta_commits.commit_logged

    def late(table: Any, expected: int, *others: Any) -> Any:
        built = folder_of(table).parent
        if table.name == "ledger" and built.parent.name == "_migration" and "gone" not in done:
            done.append("gone")
            [begun] = migration.migrations(definition.store)
            migration.forget(definition.store, begun)
            migration.begin(definition.store, replace(begun, id=f"{begun.id}0"))
        return commit(table, expected, *others)

    done: list[str] = []
    monkeypatch.setattr(delta_commits, "commit_logged", late)
    with pytest.raises(MigrationRefused, match="another command dropped this migration: "):
        build(definition, no_spark, MigrationRequest(*BY))
    assert [path.parent.name for path in folder_of(definition).glob("_migration/**/*") if path.is_file()] == [
        entry.id for entry in migrations(definition.store)
    ]


@pytest.mark.fault(
    "two commands begin a migration at the same moment", "one switches; no files of the other migration remain"
)
def test_a_switch_forgets_a_migration_that_began_at_the_same_moment(folder: Path) -> None:
    definition = of(folder / BUILT_TWICE, NEW)
    chosen = build(definition, no_spark, MigrationRequest(*BY))
    other = replace(chosen.migration, id="other")
    migration.begin(definition.store, other)
    definition.store.put(f"{other.folder}/results/1.parquet", b"")
    switch(definition, chosen, no_spark, MigrationRequest(*BY))
    assert migrations(definition.store) == [chosen.migration]
    with (
        pytest.raises(MigrationRefused, match="another command dropped this migration: "),
        still_there(shadow.built(definition, other, wall_clock_ms)),
    ):
        pytest.fail("the migration is gone")
    assert [file.path for file in definition.store.list("_migration/")] == [
        f"{chosen.migration.folder}/{name}" for name in (migration.DROPPED, migration.ABOUT)
    ]


@pytest.mark.fault(
    "`windowlib migrate --finish` is killed after its row is in the ledger",
    "the migration is kept; the next `maintain` or `migrate` deletes its leftovers",
)
def test_a_killed_finish_leaves_nothing_behind(folder: Path) -> None:
    place = folder / KEPT
    definition = of(place, NEW)
    ledger = ledger_of(definition)
    killed_as_it_finishes(definition)
    assert (migration_begun(definition.file, ledger), bool(migrations(definition.store))) == (
        None,
        True,
    )
    (said,) = [one for one in tail(ledger.tables, ledger.tables["ledger"].version()).actions if one.kind == FINISHED]
    assert (said.title, said.who, said.reason) == ("keep the migration of batch 3", *BY)
    with pytest.raises(NothingToMigrate, match="no migration can be undone"):
        undo(definition, no_spark, MigrationRequest(*BY))
    assert not [*definition.store.list("_migration/")]
    with pytest.raises(NothingToMigrate, match="no migration can be finished"):
        finish(definition, MigrationRequest(*BY))


def test_maintenance_deletes_leftovers_of_a_kept_migration(folder: Path) -> None:
    place = folder / KEPT_TOO
    definition = of(place, NEW)
    killed_as_it_finishes(definition)
    ids = [entry.id for entry in migrations(definition.store)]
    base = commits_of(Ledger(definition.store, wall_clock_ms).tables)[1]
    old = [folder_of(definition) / "results" / one.path for one in _files(definition, base)]
    assert old
    definition.store.put("_migration/given up/results/1", b"")  # by a migration that another command had given up
    left = {f"_migration/{finished}/{name}" for finished in ids for name in ("migration.json", "dropped")}
    assert {file.path for file in definition.store.list("_migration/")} == {*left, "_migration/given up/results/1"}
    assert maintain(definition, BY[0]).others == {"finished migrations": 3}
    assert not [*definition.store.list("_migration/")]
    assert not any(path.exists() for path in old), "no cut before the migration is kept any more"
    assert migrations(definition.store) == []


@pytest.mark.fault("one command finishes a migration while another undoes it", "one succeeds, the other is refused")
def test_one_of_finish_and_undo_is_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition, written = of(folder / MIGRATED_TOO, NEW), prepare.write

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(prepare, "write", written)
        finish(definition, MigrationRequest(*BY))
        return written(*arguments)

    monkeypatch.setattr(prepare, "write", late)
    with pytest.raises(DecidedMeanwhile, match="another command planned or decided first"):
        undo(definition, no_spark, MigrationRequest(*BY))
    state = ledger_of(definition).state()
    assert (state.plan, state.commit and state.commit.batch_id) == (None, 3)


@pytest.mark.fault(
    "a run plans files while `migrate --undo`, `rollback` or `forget` holds the pipeline",
    "the command replaces that plan; the next run plans again",
)
@pytest.mark.parametrize("kind", PLANNED)
def test_a_plan_made_meanwhile_stops_no_operator(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    _, gap, act = PLANNED[kind]
    definition, written = of(folder / kind, gap), prepare.write

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(prepare, "write", written)
        assert plan(definition) is not None
        return written(*arguments)

    monkeypatch.setattr(prepare, "write", late)
    act(definition)
    state = ledger_of(definition).state()
    assert (state.plan, state.commit and state.commit.decision and state.commit.decision.kind) == (None, kind)
    read = [report.figures["rows_read"] for report in advance(of(folder / kind, OLD), no_spark)]
    again = 3 if kind == "rollback" else 0  # what batch 2 had read
    assert sum(int(rows or 0) for rows in read) == 6 + again


def _files(definition: Definition, at: Commit) -> list[DataFile]:
    return ledger_of(definition).tables["results"].files(at.versions["results"])


def killed_as_it_finishes(definition: Definition) -> None:
    def die(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migration, "forget", die)
        with pytest.raises(Killed):
            finish(definition, MigrationRequest(*BY))


@pytest.mark.fault(
    "a run reads a key while `windowlib forget` of it sleeps",
    "the command says that a run took over; repeated, it erases the key",
)
def test_a_superseded_erasure_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, keep = folder / READ_TOO, erasures.keep
    reader = Reader(root_of(place))
    reader.watch()

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(erasures, "keep", keep)
        a_run(place)
        reader.watch()
        keep(*arguments)

    monkeypatch.setattr(erasures, "keep", late)
    with pytest.raises(Superseded, match="another run took this pipeline over"):
        erase(place, OLD, UNREAD)
    reader.watch()
    assert UNREAD in reader.truth.values
    erase(place, OLD, UNREAD)
    reader.watch()
    assert UNREAD not in reader.truth.values


@pytest.mark.fault(
    "two commands erase the same unread key, one while the other deletes old cuts", "each gives its certificate"
)
def test_two_erasures_of_an_unread_key_give_certificates(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, really = folder / TWICE, forget.maintain

    def late(*arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(forget, "maintain", really)
        erase(place, OLD, UNREAD)
        return really(*arguments, **more)

    monkeypatch.setattr(forget, "maintain", late)
    erase(place, OLD, UNREAD, now=True)
    first, second = certificates(of(place, OLD))
    assert first.erasure.digest == second.erasure.digest
    assert first.is_published
    assert second.is_published


@pytest.mark.fault(
    "the first two erasures of a pipeline run at once",
    "the slower is refused before it lists its key: all keys are hashed with one secret",
)
def test_the_slower_of_two_first_erasures_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, keep = folder / FIRST, erasures.keep
    reader = Reader(root_of(place))
    reader.watch()

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(erasures, "keep", keep)
        erase(place, OLD)
        reader.watch()
        keep(*arguments)

    monkeypatch.setattr(erasures, "keep", late)
    with pytest.raises(DecidedMeanwhile, match="another erasure of this pipeline came first: repeat the command"):
        erase(place, OLD, UNREAD)
    assert len({one.secret for one in erasures.erasures(Disk(root_of(place)))}) == 1
    erase(place, OLD, UNREAD)
    reader.watch()
    a_run(place)
    reader.watch()
    assert not {ERASED, UNREAD} & {*reader.truth.values}
