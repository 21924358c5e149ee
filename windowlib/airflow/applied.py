"""What the ledger says of a preview that was applied, by whichever try or command."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windowlib.airflow.job import Record
    from windowlib.definition.definition import Definition


def batch_that_applied(definition: Definition, preview_id: str) -> int | None:
    """The batch that did what a preview showed; None where none has, or a rollback has undone it."""
    from windowlib.batches.planning import ledger_of
    from windowlib.ledger.history import batch_of_preview

    return batch_of_preview(ledger_of(definition).tables, preview_id)


def done_since(definition: Definition, preview_id: str, began: datetime | None) -> list[Record]:
    """The outcome of the batch that did what a preview showed, where it was committed since `began`."""
    from windowlib.runs.recent_batches import committed_since

    batch_id = batch_that_applied(definition, preview_id)
    since_ms = int(began.timestamp() * 1000) if began else 0
    return [one.json_fields() for one in committed_since(definition, since_ms) if one.batch_id == batch_id]
