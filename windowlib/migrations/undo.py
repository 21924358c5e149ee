"""Undo and final confirmation of a migration, and completion of a killed switch or undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.batches.pinned import Pinned
from windowlib.batches.planning import ledger_of
from windowlib.contract.result_tables import RESULT_CHANGES, RESULTS
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.decision_batch import publish_decision
from windowlib.definition.commands import to_paste
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
    newest_snapshot,
    staged,
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


def undo(definition: Definition, spark: GetSpark, request: MigrationRequest) -> MigrationOutcome | None:
    """Restores the tables from before the newest migration, as one batch. If the migration is not switched yet, deletes
    the new tables and returns None.

    The source position is restored too, so the next run reads the files that arrived after it. Raises
    `NothingToMigrate` if nothing can be undone, `CannotUndo` if old files are deleted, `Superseded`,
    `DecidedMeanwhile` and `ForeignChange`.
    """
    ledger = ledger_of(definition, request.clock)
    done = switched(ledger)
    if done is None:
        _nothing_switched(definition)
        return None
    with held(ledger, request.note, Settlement.PUBLISH) as pipeline:
        if switched(ledger) != done:
            raise DecidedMeanwhile(
                "another command has already undone or finished the migration. Check its state:"
                f" `{to_paste('status', definition.file)}`"
            )
        with bounded(definition.batch_timeout_ms, "undo", spark()):
            outcome = _undone(definition, pipeline, done, spark(), request)
    forget(definition.store, done[1])
    return outcome


def _nothing_switched(definition: Definition) -> None:
    tidy(definition)
    built = migrations(definition.store)
    if not built:
        raise NothingToMigrate(
            "no migration can be undone: none was begun, or the newest is already finished or undone"
        )
    for begun in built:
        forget(definition.store, begun)


def _undone(
    definition: Definition,
    pipeline: HeldPipeline,
    done: tuple[int, Migration],
    spark: SparkSession,
    request: MigrationRequest,
) -> MigrationOutcome:
    ledger, (number, undone) = pipeline.ledger, done
    base = max(
        (commit for commit in commits_of(ledger.tables) if commit.batch_id < number), key=lambda commit: commit.batch_id
    )
    check_kept(ledger.store, base.batch_id, f"no way back to before the migration of batch {number}")
    here, then = newest_snapshot(pipeline), PipelineSnapshot(ledger.tables, base.versions)
    for name in COMMIT_ORDER:
        so_that = f"no way back to before the migration of batch {number}"
        check_files_exist(ledger.tables[name], then.files(name), so_that)
    batch_id = pipeline.state.last_batch_id + 1
    with staged(pipeline, batch_id, spark) as staging:
        both = (here, pipeline.commit), (then, base)
        sides = [MigrationSide(Pinned(ledger.tables, at.versions, spark), commit) for at, commit in both]
        differences = difference(definition, sides[0], sides[1], staging, batch_id)
        schemas = [schema for at in (then, here) if (schema := at.schema(RESULTS.name)) is not None]
        changes = [
            files.feed(staging, here, schemas)
            if name == RESULT_CHANGES.name
            else files.replaced(name, here, then.files(name), then.schema(name))
            for name in COMMIT_ORDER
        ]
        decision = Decision("migrate_undo", request.who, request.reason, to_batch_id=base.batch_id, migration=undone.id)
        publish_decision(pipeline, switch_batch(batch_id, pipeline.state, base, decision, changes, differences))
    return MigrationOutcome(batch_id, differences)


def finish(definition: Definition, request: MigrationRequest) -> int:
    """Confirms the newest migration, so that it can no longer be undone, and returns its batch.

    The ledger records requester and reason. Raises `NothingToMigrate`, `DecidedMeanwhile`.
    """
    ledger = ledger_of(definition, request.clock)
    number = migration.finish(ledger, request.who, request.reason)
    if number is None:
        raise NothingToMigrate(
            "no migration can be finished: none was switched, or the newest is already finished or undone"
        )
    return number


def finish_prepared(
    definition: Definition, clock: Clock = wall_clock_ms, note: Note = silent
) -> MigrationOutcome | None:
    """Publishes a prepared switch or undo whose command was killed. Returns None if there is none."""
    ledger = ledger_of(definition, clock)
    plan = ledger.state().plan
    if plan is None or plan.decision is None or not plan.decision.switches:
        return None
    with held(ledger, note, Settlement.PUBLISH) as pipeline:
        published = pipeline.settled
    return MigrationOutcome(plan.batch_id) if published else None  # None: another command settled the batch


def tidy(definition: Definition, clock: Clock = wall_clock_ms) -> None:
    """Deletes the remaining files of switched, undone or finished migrations; a killed command leaves them."""
    ledger = ledger_of(definition, clock)
    begun = {entry.id: entry for entry in migrations(definition.store)}
    if not begun:
        return
    for kept in migration.finished(ledger):
        forget(definition.store, kept)
    done = switched(ledger)
    if done:
        drop_tables(definition.store, done[1])
    for commit in commits_of(ledger.tables):
        later = done is None or commit.batch_id > done[0]
        if later and commit.decision and commit.decision.kind == "migrate_undo":
            for left in (entry for entry in begun.values() if entry.id == commit.decision.migration):
                forget(definition.store, left)
