"""Migration of a pipeline: it equals a fresh pipeline over the same files, also after kills, and can be undone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, arrive, clicks, clock, events, tables
from tests.support.disks import folder_of
from tests.support.follower import apply_changes
from tests.support.killed import stopped
from tests.support.strategies import ALL
from windowlib.batches.planning import ledger_of
from windowlib.decisions.rollback import rollback
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.definition.toml.retention import RetentionPeriod
from windowlib.inspection.lineage.cuts import cut
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.unfinished import migration_begun
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.migration import migrations
from windowlib.maintenance.maintain import maintain
from windowlib.migrations import difference as migrations_difference
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.difference import MigrationDifference
from windowlib.migrations.shadow import MigrationRefused, NothingToMigrate
from windowlib.migrations.switch import build, compare, switch
from windowlib.migrations.undo import finish, finish_prepared, tidy, undo
from windowlib.model.errors import StateMismatch
from windowlib.plans.partitions import DAY_MS
from windowlib.publication.foreign_changes import CannotUndo
from windowlib.publication.key import CannotLook
from windowlib.publication.publish import ColumnTypeChanged
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
FILES = 3
ASKED = MigrationRequest("ann", "sessions were cut too early", clock)
SESSION = 'type = "session"\ngap = "10m"'
GAP = CLICKS.replace('gap = "10m"', 'gap = "25m"')
KINDS = {
    "gap": GAP,
    "key and aggregates": CLICKS.replace('key = ["user"]', 'key = ["id"]').replace("first =", "most ="),
    "aggregate": CLICKS.replace('first = "first(value)"', 'most = "max(value)"'),
    "another kind of window": CLICKS.replace(SESSION, 'type = "sliding"\nsize = "40m"\nslide = "20m"'),
}
OUTCOME = ("results", "open_windows", "late_events", "quarantine", "seen_ids")


def run(definition: Definition, spark: SparkSession) -> Definition:
    advance(definition, lambda: spark, clock=clock)
    return definition


def migrate(definition: Definition, spark: SparkSession) -> MigrationDifference:
    shadow = build(definition, lambda: spark, ASKED)
    done = switch(definition, shadow, lambda: spark, ASKED)
    assert done.difference is not None
    return done.difference


def fresh(folder: Path, text: str, spark: SparkSession, files: int = FILES) -> Definition:
    """A fresh pipeline under a definition. It reads the first files in one batch, the others in one batch each."""
    whole = text.replace("max_files_per_run = 1", "max_files_per_run = 0")
    definition = run(clicks(folder, FILES, whole), spark)
    for number in range(FILES + 1, files + 1):
        arrive(folder, number, events(number))
        run(definition, spark)
    return definition


def days_later() -> int:
    return clock() + 20 * DAY_MS


def rows(definition: Definition, table: str) -> list[str]:
    """Rows of a table without batch ids, which continue across a migration."""
    found = read_table(definition, table).to_pylist()
    return sorted(str({k: v for k, v in row.items() if k not in ("batch_id", "window_day")}) for row in found)


def outcome(definition: Definition) -> dict[str, list[str]]:
    return {table: rows(definition, table) for table in OUTCOME}


def identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return row.get("user"), row.get("id"), row["window_start"], row["window_end"]


def values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("last_event_time", "clicks", "total", "first", "most"))


def check_followers(definition: Definition, stale: tuple[str, ...] = ()) -> None:
    """Checks that the changes, applied in the order of batches, give `results`."""
    current: dict[tuple[Any, ...], dict[str, Any]] = {}
    apply_changes(current, read_table(definition, "result_changes").to_pylist(), identity)
    results = read_table(definition, "results").to_pylist()
    assert {key: values(row) for key, row in current.items()} == {identity(row): values(row) for row in results}


# -- as from scratch, and back ----------------------------------------------------------------------------------------


@pytest.mark.long("a random migration, and one that is killed and undone, end as fresh pipelines in make test")
@pytest.mark.parametrize("kind", KINDS)
def test_a_migration_equals_a_fresh_pipeline_and_undo_restores_the_old_one(
    spark: SparkSession, after_three: Path, folder: Path, tmp_path: Path, kind: str
) -> None:
    old, before = clicks(folder, 0), tables(clicks(folder, 0))
    new = clicks(folder, 0, KINDS[kind])
    with pytest.raises(StateMismatch, match=r"written by another definition: .*`\S*windowlib migrate .* --reason"):
        run(new, spark)
    shadow = build(new, lambda: spark, ASKED)
    shown = compare(new, shadow, lambda: spark)
    assert tables(old) == before  # nothing but the new tables' own folder was written
    arrive(folder, 4, events(4))
    run(old, spark)  # the old definition goes on
    found = switch(new, shadow, lambda: spark, ASKED).difference
    assert found is not None
    assert not found.is_empty
    assert not shown.is_empty
    scratch = fresh(tmp_path / "fresh", KINDS[kind], spark, 4)
    assert outcome(new) == outcome(scratch)
    check_followers(new)
    for one in (folder, tmp_path / "fresh"):
        arrive(one, 5, events(5))
    run(new, spark)
    assert outcome(new) == outcome(run(scratch, spark))
    check_followers(new)
    undo(new, lambda: spark, ASKED)
    run(old, spark)
    assert migrations(old.store) == []
    shutil.copytree(after_three, tmp_path / "old")
    for number in (4, 5):
        arrive(tmp_path / "old", number, events(number))
    undisturbed = run(clicks(tmp_path / "old", 0), spark)
    assert outcome(old) == outcome(undisturbed)
    check_followers(old)


@pytest.mark.long("verify, explain and rollback are by themselves in make test; this is all of them after a migration")
def test_verify_explain_and_cuts_after_a_migration(spark: SparkSession, folder: Path) -> None:
    new = clicks(folder, 0, GAP)
    shadow = build(new, lambda: spark, ASKED)
    arrive(folder, 4, events(4))
    run(clicks(folder, 0), spark)
    switch(new, shadow, lambda: spark, ASKED)
    arrive(folder, 5, events(5))
    run(new, spark)
    assert verify(new, VerifyRequest(), spark, clock).differing == {}
    commit = ledger_of(new).state().commit
    assert commit is not None
    assert sorted(cut(new).batches) == [5, 6, 7]  # 6 is the migration, in two cuts; 1 to 4 were of the old definition
    assert commit.batch_id == 7
    for row in read_table(new, "results").to_pylist():
        assert row["batch_id"] in (5, 6, 7)
        explained = explain_window(new, [row["user"]], time_of(row["last_event_time"]))
        assert any(one.published and one.events for one in explained.windows)
    with pytest.raises(CannotLook, match="batch 3 was published under an earlier definition"):
        cut(new, 3)
    with pytest.raises(CannotLook, match="batch 5 built only a part of the tables of the migration, batch 6"):
        cut(new, 5)
    with pytest.raises(
        CannotUndo, match=r"batch 6 is a migration .* `\S*windowlib migrate PIPELINE.toml --undo --reason"
    ):
        rollback(new, 3, "ann", "why", clock)
    with pytest.raises(MigrationRefused, match="the migration of batch 6 can still be undone"):
        build(clicks(folder, 0), lambda: spark, ASKED)
    assert rollback(new, 6, "ann", "why", clock) == 8
    undo(new, lambda: spark, ASKED)
    old = clicks(folder, 0)
    assert verify(run(old, spark), VerifyRequest(), spark, clock).differing == {}
    assert sorted(cut(old).batches) == [1, 2, 3, 4, 9, 10]


@pytest.mark.long("one random migration is in make test, and one after another that was given up")
@pytest.mark.parametrize("seed", range(8))
def test_one_migration_after_another(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Random definitions in turn. Files arrive between steps, some migrations are undone, any step may be killed."""
    chance, folder = random.Random(seed), tmp_path / "pipeline"
    texts = [CLICKS, *(text for kind, text in KINDS.items() if kind != "key and aggregates")]
    chance.shuffle(texts)
    cuts, arrived = [1], 1  # the files of each batch since the newest definition began
    now = run(clicks(folder, 1, texts[0]), spark)
    for text in texts[1:]:
        before, before_cuts = text_of(now), [*cuts]
        new = clicks(folder, 0, text)
        with stopped(chance.choice(("write:windows", "commit:results", "ledger:commit"))):
            build(new, lambda: spark, ASKED)
        shadow, cuts = build(new, lambda: spark, ASKED), [arrived]
        if chance.random() < 0.7:
            arrived += 1
            arrive(folder, arrived, events(arrived))
            cuts.append(arrived)
        switch(new, shadow, lambda: spark, ASKED)
        if chance.random() < 0.4:
            undo(new, lambda: spark, ASKED)
            new, cuts = clicks(folder, 0, before), before_cuts
        else:
            finish(new, ASKED)
        arrived += 1
        arrive(folder, arrived, events(arrived))
        now = run(new, spark)
        unread = range(cuts[-1] + 1, arrived + 1)
        cuts = [*cuts, *unread]
        assert outcome(now) == outcome(in_cuts(tmp_path / f"fresh {arrived}", text_of(now), cuts, spark))
        check_followers(now)
        assert verify(now, VerifyRequest(), spark, clock).differing == {}


def text_of(definition: Definition) -> str:
    return definition.file.read_text()


def in_cuts(folder: Path, text: str, cuts: list[int], spark: SparkSession) -> Definition:
    """A fresh pipeline that reads files up to each cut in one batch."""
    definition, done = clicks(folder, 0, text.replace("max_files_per_run = 1", "max_files_per_run = 0")), 0
    for cut_at in cuts:
        for number in range(done + 1, cut_at + 1):
            arrive(folder, number, events(number))
        done = cut_at
        run(definition, spark)
    return definition


# -- killed -----------------------------------------------------------------------------------------------------------

MOMENTS: tuple[str, ...] = ("write:feed", "ledger:prepare", "commit:open_windows", "commit:results", "ledger:commit")
if not ALL:
    MOMENTS = MOMENTS[3:4]  # each takes seconds; tests/world/schedules kills it at every step, without an engine


@pytest.mark.fault(
    "a migration is killed while it builds, prepares or switches",
    "readers see whole old or new tables; the same command or the next run continues",
)
def test_a_killed_migration_continues(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    old, new = clicks(folder, 0), clicks(folder, 0, KINDS["aggregate"])
    before, after = outcome(old), outcome(fresh(tmp_path / "fresh", KINDS["aggregate"], spark))
    with stopped("write:windows"):
        build(new, lambda: spark, ASKED)
    for moment in MOMENTS:
        shadow = build(new, lambda: spark, ASKED)
        with stopped(moment):
            switch(new, shadow, lambda: spark, ASKED)
        assert outcome(old) == before
        if not ledger_of(new).state().prepared:
            continue  # nothing is done: the same command does it
        with pytest.raises(StateMismatch, match=r"`\S*windowlib migrate"):
            run(old, spark)
        if moment == "commit:results":
            run(new, spark)  # the next run finishes it
        else:
            assert finish_prepared(new, clock) is not None
        assert outcome(new) == after
        check_followers(new)
        with stopped(moment):
            undo(new, lambda: spark, ASKED)
        assert outcome(new) == after
        assert finish_prepared(old, clock) is not None
        tidy(old, clock)
        assert migrations(old.store) == []
        assert outcome(old) == before
        check_followers(old)


def test_a_switch_that_was_prepared_can_be_abandoned(spark: SparkSession, folder: Path) -> None:
    old, new = clicks(folder, 0), clicks(folder, 0, KINDS["key and aggregates"])
    before = outcome(old)
    shadow = build(new, lambda: spark, ASKED)
    with stopped("ledger:commit"):
        switch(new, shadow, lambda: spark, ASKED)
    said = migration_begun(new.file, ledger_of(new))
    assert said is not None
    assert "is prepared (migrate to another definition" in said
    assert "the next run publishes it" in said
    abandon(new, "ann", "not yet", clock)
    assert outcome(old) == before
    arrive(folder, 4, events(4))
    run(old, spark)
    check_followers(old)
    if ALL:  # in make test it is another migration that follows on one which was given up
        migrate(new, spark)
        check_followers(new)


def test_a_file_that_is_renamed_after_a_dry_run_was_read(spark: SparkSession, folder: Path) -> None:
    old, new = clicks(folder, 0), clicks(folder, 0, KINDS["aggregate"])
    for archive in ("old", "older"):
        build(new, lambda: spark, ASKED)
        (folder / "incoming" / archive).mkdir()
        for path in (folder / "incoming").rglob("2.parquet"):
            path.rename(folder / "incoming" / archive / "2.parquet")
    migrate(new, spark)
    run(new, spark)
    assert len(read_table(old, "source_files").to_pylist()) == FILES


def test_a_file_repaired_after_a_dry_run_is_read_again(spark: SparkSession, folder: Path) -> None:
    new = clicks(folder, 0, KINDS["aggregate"])
    shadow = build(new, lambda: spark, ASKED)
    arrive(folder, 2, events(2)[:40])
    with pytest.raises(MigrationRefused, match=r"2\.parquet has changed since it was read under the new definition"):
        switch(new, shadow, lambda: spark, ASKED)
    migrate(new, spark)
    shutil.copytree(folder / "incoming", folder / "apart" / "incoming")
    whole = KINDS["aggregate"].replace("max_files_per_run = 1", "max_files_per_run = 0")
    assert outcome(new) == outcome(run(clicks(folder / "apart", 0, whole), spark))


@pytest.mark.fault("a migration and a dry run compare the same tables at once", "each shows the same as alone")
def test_two_comparisons_at_once_do_not_disturb_each_other(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, sums, found = clicks(folder, 0, GAP), migrations_difference._sums, list[MigrationDifference]()
    shadow = build(new, lambda: spark, ASKED)

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(migrations_difference, "_sums", sums)
        found.append(compare(new, shadow, lambda: spark))
        return sums(*arguments)

    monkeypatch.setattr(migrations_difference, "_sums", late)
    found.append(compare(new, shadow, lambda: spark))
    assert found[0] == found[1]
    assert not found[0].is_empty
    assert sorted(path.name for path in folder_of(shadow.definition).glob("_compared*")) == []


# -- refused ----------------------------------------------------------------------------------------------------------


def _gone(folder: Path) -> None:
    (folder / "incoming" / "2.parquet").unlink()


def _left_out(folder: Path) -> None:
    (folder / "clicks.toml").write_text(GAP.replace("max_files", 'exclude = ["2*"]\nmax_files'))


def _same(folder: Path) -> None:
    (folder / "clicks.toml").write_text(CLICKS)


def _other_type(folder: Path) -> None:
    (folder / "clicks.toml").write_text(CLICKS.replace('"sum(value)"', '"avg(value)"'))


def _by_clock(folder: Path) -> None:
    timeless = CLICKS.replace('allowed_lateness = "2h"\n', "")
    (folder / "clicks.toml").write_text(timeless.replace(SESSION, f'{SESSION}\ntime = "processing"'))


REFUSED: dict[str, tuple[Callable[[Path], None], type[Exception], str]] = {
    "files are gone": (_gone, MigrationRefused, r"no longer holds 1 file with 82 rows .*\n  2.parquet: 82 rows"),
    "files are left out": (_left_out, MigrationRefused, r"1 file with rows .* leave them out:\n  2.parquet: 82 rows"),
    "nothing differs": (_same, NothingToMigrate, "needs no migration to this definition"),
    "another type": (
        _other_type,
        ColumnTypeChanged,
        "column total was long, but is double .* Give the new column another name",
    ),
    "processing time": (_by_clock, MigrationRefused, "would put all past events into today's windows"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_migration_changes_nothing(spark: SparkSession, folder: Path, why: str) -> None:
    change, error, message = REFUSED[why]
    old, before = clicks(folder, 0), outcome(clicks(folder, 0))
    (folder / "clicks.toml").write_text(GAP)
    change(folder)
    new = clicks(folder, 0, (folder / "clicks.toml").read_text())
    with pytest.raises(error, match=message):
        compare(new, build(new, lambda: spark, ASKED), lambda: spark)
    assert outcome(old) == before


@pytest.mark.parametrize(("was", "now"), [('total = "sum', 'Total = "sum'), ('key = ["user"]', 'key = ["User"]')])
def test_a_column_that_differs_only_in_case_is_refused_before_the_build(
    spark: SparkSession, folder: Path, was: str, now: str
) -> None:
    new = clicks(folder, 0, CLICKS.replace(was, now))
    before = outcome(clicks(folder, 0))
    with pytest.raises(
        ColumnTypeChanged, match=r"column (Total|User) differs only in case from (total|user), a column of result_ch"
    ):
        build(new, lambda: spark, ASKED)
    assert migrations(new.store) == []
    assert outcome(clicks(folder, 0)) == before


def test_a_finished_migration_cannot_be_undone_and_undo_before_the_switch_deletes_it(
    spark: SparkSession, folder: Path
) -> None:
    old, new = clicks(folder, 0), clicks(folder, 0, GAP)
    with pytest.raises(NothingToMigrate, match="no migration can be undone"):
        undo(new, lambda: spark, ASKED)
    shadow = build(new, lambda: spark, ASKED)
    assert len(migrations(new.store)) == 1
    assert undo(new, lambda: spark, ASKED) is None
    with pytest.raises(MigrationRefused, match="another command dropped this migration"):
        switch(new, shadow, lambda: spark, ASKED)  # its command was still asking
    assert not [*new.store.list("_migration/")]
    migrate(new, spark)
    one_batch = new.model_copy(
        update={"retention": new.retention.model_copy(update={"cuts": RetentionPeriod(batches=1)})}
    )
    assert maintain(one_batch, "ann", days_later).kept_from == 3  # what --undo goes back to
    assert finish(new, ASKED) == 4
    with pytest.raises(CannotUndo, match="a rollback cannot cross it") as kept:
        rollback(new, 3, "ann", "why", clock)
    assert "--undo" not in str(kept.value)
    assert "--to-batch" not in str(kept.value)  # it is the newest batch
    assert maintain(one_batch, "ann", days_later).kept_from == 4
    with pytest.raises(NothingToMigrate, match="no migration can be undone"):
        undo(new, lambda: spark, ASKED)
    migrate(old, spark)  # which is how it is taken back then
    assert {identity(row): values(row) for row in read_table(old, "results").to_pylist()}
    check_followers(old)
