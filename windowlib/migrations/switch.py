"""Whole migration: build of the new tables, comparison, switch.

    shadow = build(...)          # builds the new tables; runs continue under the old definition
    found = compare(...)         # differences; a dry run ends here
    done = switch(...)           # one batch, under the pipeline's own lease

The switch is a batch that computes nothing, like an adoption or a rollback. First, one commit of the ledger adds the
plan and the prepared publication. Then every table gets one commit. Then the ledger gets the commit row. A command that
is killed before the first commit has changed nothing. If it is killed later, the next command rolls the batch forward
(`windowlib.publication.roll_forward`). So a reader of the newest commit row sees either the old or the new tables.
`undo` restores the files, definition, watermark and source position of the batch before the switch.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windowlib.batches.pinned import Pinned
from windowlib.batches.planning import ledger_of
from windowlib.batches.staging import Staging
from windowlib.contract.result_tables import RESULT_CHANGES, RESULTS
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.decision_batch import publish_decision
from windowlib.definition.definition import Definition
from windowlib.ledger.decision import Decision
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Clock, wall_clock_ms
from windowlib.ledger.migration import MIGRATED, drop_tables, forget, migrations
from windowlib.ledger.prepare import TableChange
from windowlib.migrations import files
from windowlib.migrations.batch import (
    GetSpark,
    MigrationOutcome,
    MigrationRequest,
    newest_snapshot,
    removed_at_end,
    staged,
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


def build(definition: Definition, spark: GetSpark, request: MigrationRequest) -> Shadow:
    """Builds the tables under a definition up to the newest source file. Continues a killed build.

    Raises `NothingToMigrate`, `MigrationRefused`, `NewTablesRefused`, and as runs do. No table of the pipeline changes.
    """
    ledger = ledger_of(definition, request.clock)
    state = ledger.state()
    check_can_migrate(definition, ledger, state)
    shadow = shadow_of(definition, state, request.clock)
    if request.approve:
        approve_refused(shadow, request.who, request.reason, request.clock)
    with still_there(shadow):
        catch_up(shadow, spark, request.clock, finish=is_finished(state), note=request.note)
    return shadow


def compare(
    definition: Definition, shadow: Shadow, spark: GetSpark, clock: Clock = wall_clock_ms
) -> MigrationDifference:
    """Compares the current `results` with the new `results`. Changes nothing."""
    ledger = ledger_of(definition, clock)
    commit = ledger.state().commit
    assert commit is not None, "there is something to migrate"
    folder = f"_compared-{uuid.uuid4()}"  # another command may compare the same tables
    with (
        still_there(shadow),
        bounded(definition.batch_timeout_ms, "the comparison", spark()),
        removed_at_end(shadow.definition.store.below(folder)) as place,
    ):
        here = PipelineSnapshot(ledger.tables, commit.versions)
        _check_types(here, shadow)
        staging = Staging(place, definition.store, "compared", spark())
        sides = MigrationSide(Pinned(here.tables, here.versions, spark()), commit), _side(shadow, spark())
        return difference(definition, *sides, staging, 0)


def _side(shadow: Shadow, spark: SparkSession) -> MigrationSide:
    return MigrationSide(Pinned(shadow.ledger.tables, shadow.commit.versions, spark), shadow.commit)


def _check_types(here: PipelineSnapshot, shadow: Shadow) -> None:
    """Raises `ColumnTypeChanged` if a column of the new `results` has another type in `result_changes`."""
    old = here.schema(RESULT_CHANGES.name)
    new = PipelineSnapshot(shadow.ledger.tables, shadow.commit.versions).schema(RESULTS.name)
    if old is not None and new is not None:
        with_all_columns(old, new)


def switch(definition: Definition, shadow: Shadow, spark: GetSpark, request: MigrationRequest) -> MigrationOutcome:
    """Reads the files that arrived since the build, then switches the pipeline to the new tables in one batch.

    Raises the errors of `build`, `ForeignChange`, `ColumnTypeChanged`, and `Superseded` while a run is in progress.
    """
    ledger = ledger_of(definition, request.clock)
    check_can_migrate(definition, ledger, ledger.state())
    with still_there(shadow):
        # Most files are read here, so that little is left to do under the lease.
        catch_up(shadow, spark, request.clock, finish=False, note=request.note)
    with held(ledger, request.note, Settlement.PUBLISH) as pipeline:
        check_can_migrate(definition, ledger, pipeline.state)
        with still_there(shadow):
            catch_up(shadow, spark, request.clock, finish=is_finished(pipeline.state), note=request.note)
        with bounded(definition.batch_timeout_ms, "the switch", spark()):
            done = _switched(definition, pipeline, shadow, spark(), request)
        for other in migrations(definition.store):
            if other != shadow.migration:
                forget(definition.store, other)  # another command began it at the same time
    drop_tables(definition.store, shadow.migration)
    return done


def _switched(
    definition: Definition, pipeline: HeldPipeline, shadow: Shadow, spark: SparkSession, request: MigrationRequest
) -> MigrationOutcome:
    ledger, commit, built = pipeline.ledger, pipeline.commit, shadow.commit
    check_read_all(definition.source, definition.uses, ledger, commit, shadow)
    here = newest_snapshot(pipeline)
    _check_types(here, shadow)
    after = pipeline.state.last_batch_id
    batch_id = after + built.batch_id
    with staged(pipeline, batch_id, spark) as staging:
        with still_there(shadow):
            side = MigrationSide(Pinned(ledger.tables, here.versions, spark), commit)
            differences = difference(definition, side, _side(shadow, spark), staging, batch_id)
            new = PipelineSnapshot(shadow.ledger.tables, built.versions)
            changes = [_from_shadow(name, here, new, staging, after) for name in COMMIT_ORDER]
            check_exist(new.tables, RESULTS.name, new.files(RESULTS.name))  # an engine may skip a missing file
        cuts = tuple(_cuts(shadow, after))
        migration = shadow.migration
        decision = Decision(
            "migrate", request.who, request.reason, migration=migration.id, changed=migration.changed, cuts=cuts
        )
        place = place_of(definition.source, definition.store)
        stored = json.dumps({**built.stored, PLACE: place, MIGRATED: batch_id}, sort_keys=True)
        target = replace(built, definition=stored)
        publish_decision(pipeline, switch_batch(batch_id, pipeline.state, target, decision, changes, differences))
    return MigrationOutcome(batch_id, differences)


def _from_shadow(
    name: str, here: PipelineSnapshot, new: PipelineSnapshot, staging: Staging, after_batch: int
) -> TableChange:
    """Change that brings the files of a new table into the pipeline's table."""
    if name == RESULT_CHANGES.name:
        schemas = [schema for schema in (here.schema(RESULTS.name), new.schema(RESULTS.name)) if schema is not None]
        return files.feed(staging, here, schemas)
    add = files.copied(new, name, here.tables, staging.attempt, after_batch)
    change = files.appended if name in KEEP else files.replaced
    return change(name, here, add, new.schema(name))


def _cuts(shadow: Shadow, after_batch: int) -> list[dict[str, Any]]:
    """Records of the batches of the new tables. Their ids continue after batch `after_batch` of the pipeline."""
    cuts, watermark_in_ms, late_in_ms = list[dict[str, Any]](), None, MIN_WATERMARK
    for commit in commits_of(shadow.ledger.tables):
        cuts.append(
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
    return cuts
