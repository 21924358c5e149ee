"""A switch of all tables as one batch that computes nothing: what it publishes, and how that is fixed.

Before it, the pipeline is brought to rest: what a dead run has prepared is published, half commits are taken back.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windowlib.batches.staging import Staging
from windowlib.decisions.decided import NOTHING_READ
from windowlib.delta import disk
from windowlib.ledger import prepare
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.prepare import Publication, TableChange
from windowlib.ledger.rows import Claim, Commit, LedgerState, Plan, abandon_row, commit_row, prepare_row
from windowlib.migrations import files
from windowlib.migrations.difference import MigrationDifference
from windowlib.migrations.files import PipelineSnapshot
from windowlib.publication.publish import staging_folder
from windowlib.publication.start_versions import COUNTED, check_counts, fence, standing
from windowlib.runs.deadline import FAILED
from windowlib.runs.publication import publish
from windowlib.runs.run import Note, silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GetSpark = Callable[[], "SparkSession"]


@dataclass(frozen=True, slots=True)
class MigrationOutcome:
    """A switch, or one back: its batch, and how `results` changed by it; None where a killed one was finished."""

    batch_id: int
    difference: MigrationDifference | None = None


@dataclass(frozen=True, slots=True)
class MigrationRequest:
    """Who asks for a migration, why, and by which clock; `approve`: in spite of the checks."""

    who: str
    reason: str
    clock: Clock = wall_clock_ms
    approve: bool = False
    note: Note = silent


@dataclass(frozen=True, slots=True)
class ClaimedPipeline:
    """A claimed pipeline in which no batch is half published: what its ledger says then."""

    ledger: Ledger
    claim: Claim
    state: LedgerState

    @property
    def commit(self) -> Commit:
        """The newest batch: there is one where tables are switched, or a key is erased from them."""
        assert self.state.commit is not None, "it was looked for before the claim"
        return self.state.commit


@contextmanager
def staged(pipeline: ClaimedPipeline, batch_id: int, spark: SparkSession) -> Iterator[Staging]:
    """Where the files of a switch are written until it is prepared; none of them stays where the block fails."""
    attempt, root = f"{batch_id}-{pipeline.claim.epoch}", pipeline.ledger.root
    staging = Staging(staging_folder(root) / attempt, attempt, root, spark)
    shutil.rmtree(staging.folder, ignore_errors=True)
    try:
        yield staging
    except FAILED:
        staging.discard()
        raise
    finally:
        shutil.rmtree(staging.folder, ignore_errors=True)


def settled(ledger: Ledger, claim: Claim, before: LedgerState) -> ClaimedPipeline:
    """The pipeline once a batch that waits prepared, and was not refused, is published."""
    if before.left_by_a_dead_run and before.prepared is None:
        fence(ledger.tables, before.versions)
    state = ledger.state()
    if state.prepared and not state.is_refused:
        publish(ledger, claim, prepare.read(ledger.root, state.prepared))
        state = ledger.state()
    return ClaimedPipeline(ledger, claim, state)


def stands(pipeline: ClaimedPipeline) -> PipelineSnapshot:
    """The tables as the newest batch left them. Raises `ForeignChange`, `LostRows`, `Superseded`."""
    tables, epoch = pipeline.ledger.tables, pipeline.claim.epoch
    versions = standing(tables, pipeline.commit.versions, lambda: pipeline.ledger.check(epoch))
    check_counts(tables, versions, pipeline.commit)
    return PipelineSnapshot(tables, versions)


def publication(
    batch_id: int,
    state: LedgerState,
    target: Commit,
    decision: Decision,
    changes: Sequence[TableChange],
    found: MigrationDifference,
) -> Publication:
    """What a switch publishes; `target` is the commit whose definition, watermark and position the pipeline gets."""
    assert state.commit is not None, "there is a batch to go on from"
    plan = Plan(
        batch_id=batch_id,
        plan_time_ms=max(state.time_ms or 0, target.plan_time_ms or 0),
        watermark_in_ms=state.commit.watermark_out_ms,
        from_sequence=target.to_sequence,
        files=(),
        fingerprint=target.fingerprint,
        definition=target.definition,
        decision=decision,
        late_in_ms=state.commit.late_out_ms,
    )
    windows = {f"windows_{kind}": number for kind, number in found.windows.items()}
    counts = {figure: target.counts[figure] for figure in COUNTED.values() if figure in target.counts}
    row = commit_row(
        plan, target.watermark_out_ms, target.late_out_ms, dict.fromkeys(NOTHING_READ, 0) | windows | counts
    )
    return Publication(
        f"{batch_id}-{decision.kind}-{decision.migration}-{state.sequence}",
        batch_id,
        tuple(changes),
        {**row, "who": decision.who, "reason": decision.reason},
        computed=decision.kind == "migrate",
    )


def fix(pipeline: ClaimedPipeline, made: Publication) -> Publication:
    """Writes a publication down, with its plan, in one commit of the ledger; a plan that was open is abandoned."""
    ledger, state, rows = pipeline.ledger, pipeline.state, list[dict[str, Any]]()
    if state.plan:
        rows.append(abandon_row(state.plan.batch_id, made.row["who"], made.row["reason"]))
    disk.sync((ledger.root / table / path for table, path in files.added(made.changes)), ledger.root)
    prepared = prepare.write(ledger.root, made)
    plan = {
        name: made.row[name] for name in made.row if name not in ("kind", "watermark_out_ms", "late_out_ms", "counts")
    }
    plan |= {"kind": "plan", "files": [], "replaces": [], "finished": False}
    ledger.write_together([*rows, plan, prepare_row(made.batch_id, prepared)], state, pipeline.claim.epoch)
    return made
