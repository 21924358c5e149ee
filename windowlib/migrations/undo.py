"""A migration taken back, kept for good, or finished after its command was killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.batches.pinned import Pinned
from windowlib.batches.planning import ledger_of
from windowlib.contract.result_tables import RESULT_CHANGES, RESULTS
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.decision_batch import publish_decision
from windowlib.definition.definition import Definition
from windowlib.ledger import migration
from windowlib.ledger.decision import Decision
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Clock, DecidedMeanwhile, wall_clock_ms
from windowlib.ledger.migration import Migration, drop_tables, forget, migrations, switched
from windowlib.ledger.retained_batches import check_kept
from windowlib.migrations import files
from windowlib.migrations.batch import (
    GetSpark,
    MigrationOutcome,
    MigrationRequest,
    staged,
    stands,
    switch_batch,
)
from windowlib.migrations.difference import MigrationSide, difference
from windowlib.migrations.files import PipelineSnapshot
from windowlib.migrations.shadow import NothingToMigrate
from windowlib.publication.foreign_changes import check_files_exist
from windowlib.runs.deadline import bounded
from windowlib.runs.operation import HeldPipeline, Note, Settlement, held, silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def undo(definition: Definition, spark: GetSpark, asked: MigrationRequest) -> MigrationOutcome | None:
    """Makes the tables from before the newest migration those of the pipeline again, as one batch; None: nothing was
    switched yet, and what was built is deleted.

    They go on from their own position in the source: the next run reads what has come since. Raises `NothingToMigrate`
    where nothing can be undone, `CannotUndo` where old files are deleted, `Superseded`, `DecidedMeanwhile`,
    `ForeignChange`.
    """
    ledger = ledger_of(definition, asked.clock)
    done = switched(ledger)
    if done is None:
        _nothing_switched(definition)
        return None
    with held(ledger, asked.note, Settlement.PUBLISH) as pipeline:
        if switched(ledger) != done:
            raise DecidedMeanwhile("the migration has been undone, or finished, meanwhile: look again")
        with bounded(definition.batch_timeout_ms, "undo", spark()):
            made = _undone(definition, pipeline, done, spark(), asked)
    forget(definition.root, done[1])
    return made


def _nothing_switched(definition: Definition) -> None:
    tidy(definition)
    built = migrations(definition.root)
    if not built:
        raise NothingToMigrate("no migration can be undone: none was begun, or the newest is finished or undone")
    for one in built:
        forget(definition.root, one)


def _undone(
    definition: Definition,
    pipeline: HeldPipeline,
    done: tuple[int, Migration],
    spark: SparkSession,
    asked: MigrationRequest,
) -> MigrationOutcome:
    ledger, (number, undone) = pipeline.ledger, done
    base = max((one for one in commits_of(ledger.tables) if one.batch_id < number), key=lambda one: one.batch_id)
    check_kept(ledger.root, base.batch_id, f"no way back to before the migration of batch {number}")
    here, then = stands(pipeline), PipelineSnapshot(ledger.tables, base.versions)
    for name in COMMIT_ORDER:
        so_that = f"no way back to before the migration of batch {number}: of table {name}"
        check_files_exist(ledger.tables[name], then.files(name), so_that)
    batch_id = pipeline.state.last_batch_id + 1
    with staged(pipeline, batch_id, spark) as staging:
        both = (here, pipeline.commit), (then, base)
        sides = [MigrationSide(Pinned(ledger.tables, at.versions, spark), of) for at, of in both]
        found = difference(definition, sides[0], sides[1], staging, batch_id)
        schemas = [one for at in (then, here) if (one := at.schema(RESULTS.name)) is not None]
        changes = [
            files.feed(staging, here, schemas)
            if name == RESULT_CHANGES.name
            else files.replaced(name, here, then.files(name), then.schema(name))
            for name in COMMIT_ORDER
        ]
        decision = Decision("migrate_undo", asked.who, asked.reason, to_batch_id=base.batch_id, migration=undone.id)
        publish_decision(pipeline, switch_batch(batch_id, pipeline.state, base, decision, changes, found))
    return MigrationOutcome(batch_id, found)


def finish(definition: Definition, asked: MigrationRequest) -> int:
    """Keeps the newest migration for good: it can no longer be undone. Gives its batch. The ledger keeps who and why.

    Raises `NothingToMigrate`, `DecidedMeanwhile`.
    """
    ledger = ledger_of(definition, asked.clock)
    number = migration.finish(ledger, asked.who, asked.reason)
    if number is None:
        raise NothingToMigrate("no migration waits to be finished: none was switched, or it is finished or undone")
    return number


def finish_prepared(
    definition: Definition, clock: Clock = wall_clock_ms, note: Note = silent
) -> MigrationOutcome | None:
    """Publishes a switch, or one back, that was prepared and then killed; None without one."""
    ledger = ledger_of(definition, clock)
    plan = ledger.state().plan
    if plan is None or plan.decision is None or not plan.decision.switches:
        return None
    with held(ledger, note, Settlement.PUBLISH) as pipeline:
        published = pipeline.settled
    return MigrationOutcome(plan.batch_id) if published else None  # it was finished meanwhile


def tidy(definition: Definition, clock: Clock = wall_clock_ms) -> None:
    """Removes what a killed command has left of a migration that is switched, undone, or kept for good."""
    ledger = ledger_of(definition, clock)
    known = {one.id: one for one in migrations(definition.root)}
    if not known:
        return
    for kept in migration.finished(ledger):
        forget(definition.root, kept)
    done = switched(ledger)
    if done:
        drop_tables(definition.root, done[1])
    for commit in commits_of(ledger.tables):
        later = done is None or commit.batch_id > done[0]
        if later and commit.decision and commit.decision.kind == "migrate_undo":
            for left in (one for one in known.values() if one.id == commit.decision.migration):
                forget(definition.root, left)
