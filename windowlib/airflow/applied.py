"""Batch that applied a preview, from the ledger. Any try of a task or a command may have applied the preview."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windowlib.airflow.job import Record
    from windowlib.definition.definition import Definition


def batch_that_applied(definition: Definition, preview_id: str) -> int | None:
    """Id of the batch that applied a preview; None if there is none, or a rollback has undone it."""
    from windowlib.batches.planning import ledger_of
    from windowlib.ledger.history import batch_of_preview

    return batch_of_preview(ledger_of(definition).tables, preview_id)


def done_since(definition: Definition, preview_id: str, began: datetime | None) -> list[Record]:
    """Outcome of the batch that applied a preview; empty if no such batch was committed since `began`."""
    from windowlib.runs.recent_batches import committed_since

    batch_id = batch_that_applied(definition, preview_id)
    since_ms = int(began.timestamp() * 1000) if began else 0
    return [batch.json_fields() for batch in committed_since(definition, since_ms) if batch.batch_id == batch_id]
