"""A migration from its first file to the switch, and back.

    shadow = build(...)          # the new tables, while the old definition goes on; again after a kill
    found = compare(...)         # what would change: all of a dry run
    done = switch(...)           # one batch, under the pipeline's own lease

The switch is a batch that computes nothing, as an adoption or a rollback is: a plan and a prepared publication are
written in one commit of the ledger, then every table gets one commit, then the batch exists. Dead before, it has done
nothing; dead later, the next command rolls it forward (`windowlib.publication.roll_forward`). So a reader by the newest
commit row sees the old tables or the new ones. `undo` is the same backwards: the files of the batch before the switch
are the tables again, with its definition, its watermark and its position in the source.
"""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.batches.pinned import Pinned
from windowlib.batches.planning import ledger_of
from windowlib.batches.staging import Staging
from windowlib.contract.result_tables import RESULT_CHANGES, RESULTS
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.decision_batch import publish_decision
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Tables
from windowlib.ledger.decision import Decision
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.migration import MIGRATED, drop_tables
from windowlib.ledger.prepare import TableChange
from windowlib.ledger.rows import Commit
from windowlib.migrations import files
from windowlib.migrations.batch import (
    GetSpark,
    MigrationOutcome,
    MigrationRequest,
    staged,
    stands,
    switch_batch,
)
from windowlib.migrations.difference import MigrationDifference, MigrationSide, difference
from windowlib.migrations.files import KEEP, PipelineSnapshot
from windowlib.migrations.shadow import (
    Shadow,
    approve_refused,
    catch_up,
    check_can_migrate,
    check_read_all,
    is_finished,
    shadow_of,
    still_there,
)
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.publication.damage import check_exist
from windowlib.publication.publish import with_all_columns
from windowlib.runs.deadline import bounded
from windowlib.runs.operation import HeldPipeline, Settlement, held
from windowlib.source.location import PLACE, place_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build(definition: Definition, spark: GetSpark, asked: MigrationRequest) -> Shadow:
    """Builds the tables under a definition as far as the source reaches now; what was built stays.

    Raises `NothingToMigrate`, `MigrationRefused`, `NewTablesRefused`, and as runs do. No table of the pipeline changes.
    """
    ledger = ledger_of(definition, asked.clock)
    state = ledger.state()
    check_can_migrate(definition, ledger, state)
    shadow = shadow_of(definition, state, asked.clock)
    if asked.approve:
        approve_refused(shadow, asked.who, asked.reason, asked.clock)
    with still_there(shadow):
        catch_up(shadow, spark, asked.clock, finish=is_finished(state), note=asked.note)
    return shadow


def compare(
    definition: Definition, shadow: Shadow, spark: GetSpark, clock: Clock = wall_clock_ms
) -> MigrationDifference:
    """How `results` of now differ from those that were built. Changes nothing."""
    ledger = ledger_of(definition, clock)
    commit = ledger.state().commit
    assert commit is not None, "there is something to migrate"
    folder = shadow.definition.root / f"_compared-{uuid.uuid4()}"  # others may compare the same tables now
    with still_there(shadow), bounded(definition.batch_timeout_ms, "the comparison", spark()):
        return _compared(definition, ledger, commit, shadow, folder, spark)


def _compared(
    definition: Definition, ledger: Ledger, commit: Commit, shadow: Shadow, folder: Path, spark: GetSpark
) -> MigrationDifference:
    try:
        here = PipelineSnapshot(ledger.tables, commit.versions)
        _check_types(here, shadow)
        staging = Staging(folder, "compared", definition.root, spark())
        sides = MigrationSide(Pinned(here.tables, here.versions, spark()), commit), _side(shadow, spark())
        return difference(definition, *sides, staging, 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _side(shadow: Shadow, spark: SparkSession) -> MigrationSide:
    return MigrationSide(Pinned(shadow.ledger.tables, shadow.commit.versions, spark), shadow.commit)


def _check_types(here: PipelineSnapshot, shadow: Shadow) -> None:
    """Raises `ColumnTypeChanged` before anything is computed from both."""
    known, more = (
        here.schema(RESULT_CHANGES.name),
        PipelineSnapshot(shadow.ledger.tables, shadow.commit.versions).schema,
    )
    new = more(RESULTS.name)
    if known is not None and new is not None:
        with_all_columns(known, new)


def switch(definition: Definition, shadow: Shadow, spark: GetSpark, asked: MigrationRequest) -> MigrationOutcome:
    """Reads what came since, then makes the tables that were built those of the pipeline, as one batch.

    Raises as `build` does, `Superseded` while a run is in progress, `ForeignChange`, `ColumnTypeChanged`.
    """
    ledger = ledger_of(definition, asked.clock)
    check_can_migrate(definition, ledger, ledger.state())
    with still_there(shadow):
        catch_up(shadow, spark, asked.clock, finish=False, note=asked.note)  # so that little is left for the lease
    with held(ledger, asked.note, Settlement.PUBLISH) as pipeline:
        check_can_migrate(definition, ledger, pipeline.state)
        with still_there(shadow):
            catch_up(shadow, spark, asked.clock, finish=is_finished(pipeline.state), note=asked.note)
        with bounded(definition.batch_timeout_ms, "the switch", spark()):
            done = _switched(definition, pipeline, shadow, spark(), asked)
    drop_tables(definition.root, shadow.migration)
    return done


def _switched(
    definition: Definition, pipeline: HeldPipeline, shadow: Shadow, spark: SparkSession, asked: MigrationRequest
) -> MigrationOutcome:
    ledger, commit, built = pipeline.ledger, pipeline.commit, shadow.commit
    check_read_all(definition.source, definition.uses, ledger, commit, shadow)
    here = stands(pipeline)
    _check_types(here, shadow)
    after = pipeline.state.last_batch_id
    batch_id = after + built.batch_id
    with staged(pipeline, batch_id, spark) as staging:
        with still_there(shadow):
            side = MigrationSide(Pinned(ledger.tables, here.versions, spark), commit)
            found = difference(definition, side, _side(shadow, spark), staging, batch_id)
            new = PipelineSnapshot(shadow.ledger.tables, built.versions)
            changes = [_from_shadow(name, here, new, staging, ledger.tables, after) for name in COMMIT_ORDER]
            check_exist(new.tables[RESULTS.name], new.files(RESULTS.name))  # an engine may pass over one that has gone
        cuts = tuple(_cuts(shadow, after))
        migration = shadow.migration
        decision = Decision(
            "migrate", asked.who, asked.reason, migration=migration.id, changed=migration.changed, cuts=cuts
        )
        place = place_of(definition.source, definition.root)
        stored = json.dumps({**built.stored, PLACE: place, MIGRATED: batch_id}, sort_keys=True)
        target = replace(built, definition=stored)
        publish_decision(pipeline, switch_batch(batch_id, pipeline.state, target, decision, changes, found))
    return MigrationOutcome(batch_id, found)


def _from_shadow(
    name: str, here: PipelineSnapshot, new: PipelineSnapshot, staging: Staging, into: Tables, after_batch: int
) -> TableChange:
    if name == RESULT_CHANGES.name:
        schemas = [one for one in (here.schema(RESULTS.name), new.schema(RESULTS.name)) if one is not None]
        return files.feed(staging, here, schemas)
    add = files.moved(new, name, into, staging.attempt, after_batch)
    how = files.appended if name in KEEP else files.replaced
    return how(name, here, add, new.schema(name))


def _cuts(shadow: Shadow, after_batch: int) -> list[dict[str, Any]]:
    """The batches that the new tables were built in, as batches of the pipeline."""
    found, watermark_in_ms, late_in_ms = list[dict[str, Any]](), None, MIN_WATERMARK
    for commit in commits_of(shadow.ledger.tables):
        found.append(
            {
                "batch_id": after_batch + commit.batch_id,
                "plan_time_ms": commit.plan_time_ms,
                "watermark_in_ms": watermark_in_ms,
                "watermark_out_ms": commit.watermark_out_ms,
                "late_in_ms": late_in_ms,
                "late_out_ms": commit.late_out_ms,
                "committed_at_ms": commit.at_ms,
                "rerun": commit.rerun.to_json() if commit.rerun else None,
            }
        )
        watermark_in_ms, late_in_ms = commit.watermark_out_ms, commit.late_out_ms
    return found
