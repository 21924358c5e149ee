"""Batch that switches all tables and computes nothing: request, staged files and outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.batches.staging import Staging
from windowlib.decisions.decision_batch import DecisionBatch, discarded_unless_fixed
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Clock, wall_clock_ms
from windowlib.ledger.prepare import TableChange
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.migrations.difference import MigrationDifference
from windowlib.migrations.files import PipelineSnapshot
from windowlib.publication.publish import STAGING
from windowlib.publication.start_versions import COUNTED
from windowlib.runs.operation import HeldPipeline, Note, silent
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GetSpark = Callable[[], "SparkSession"]


@dataclass(frozen=True, slots=True)
class MigrationOutcome:
    """Batch of a switch or an undo.

    `difference` is None if the command only published a switch or undo that was killed before.
    """

    batch_id: int
    difference: MigrationDifference | None = None


@dataclass(frozen=True, slots=True)
class MigrationRequest:
    """Requester, reason and clock of a migration. With `approve`, builds the tables even if checks refuse a batch."""

    who: str
    reason: str
    clock: Clock = wall_clock_ms
    approve: bool = False
    note: Note = silent


@contextmanager
def removed_at_end(store: Store) -> Iterator[Store]:
    """Yields a store. Deletes its files after the block; maintenance deletes what the storage refuses."""
    try:
        yield store
    finally:
        with suppress(OSError):
            store.clear()


@contextmanager
def staged(pipeline: HeldPipeline, batch_id: int, spark: SparkSession) -> Iterator[Staging]:
    """Yields a staging area. Deletes its files if the block fails before the ledger contains the batch."""
    attempt, ledger = pipeline.attempt(batch_id), pipeline.ledger
    with removed_at_end(ledger.store.below(f"{STAGING}/{attempt}")) as place:
        staging = Staging(place, ledger.store, attempt, spark)
        with discarded_unless_fixed(pipeline, batch_id, staging.discard):
            yield staging


def newest_snapshot(pipeline: HeldPipeline) -> PipelineSnapshot:
    """Snapshot of the tables after the newest batch. Raises as `HeldPipeline.standing` does."""
    return PipelineSnapshot(pipeline.ledger.tables, pipeline.standing())


def switch_batch(
    batch_id: int,
    state: LedgerState,
    target: Commit,
    decision: Decision,
    changes: Sequence[TableChange],
    difference: MigrationDifference,
) -> DecisionBatch:
    """Batch of a switch or undo. The pipeline takes the definition, watermark and source position of `target`."""
    windows = {f"windows_{kind}": number for kind, number in difference.windows.items()}
    counts = {figure: target.counts[figure] for figure in COUNTED.values() if figure in target.counts}
    return DecisionBatch(
        decision,
        target,
        tuple(changes),
        windows | counts,
        written=decision.kind == "migrate",
        plan_time_ms=max(state.time_ms or 0, target.plan_time_ms or 0),
        batch_id=batch_id,
    )
