"""Earlier batches and decisions, read from the whole ledger. The current state is in `windowlib.ledger.ledger`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from windowlib.contract.tables import LEDGER
from windowlib.delta.tables import Tables
from windowlib.ledger.decision import Decision, decision_of
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rerun_request import rerun_of
from windowlib.ledger.rows import COMMIT_COLUMNS, Commit, at_ms_of, commit_of


def commits_of(tables: Tables, since_batch: int = 0) -> list[Commit]:
    """Committed batches from `since_batch` on, oldest first, including batches that a rollback has undone."""
    rows = _committed(tables, COMMIT_COLUMNS, since_batch)
    commits = [commit_of(row, at_ms_of(row)) for row in rows if row["batch_id"] >= since_batch]
    return sorted(commits, key=lambda commit: commit.batch_id)


def committed_before(tables: Tables, batch_id: int) -> int | None:
    """Committed batch with the greatest id below `batch_id`; None if there is none.

    Abandoned batches leave gaps in the ids.
    """
    return max((commit.batch_id for commit in commits_of(tables) if commit.batch_id < batch_id), default=None)


def batch_of_preview(tables: Tables, preview_id: str) -> int | None:
    """Newest batch that applied a preview of a rerun; None if no batch did, or if a rollback has undone that batch."""
    rows = {int(row["batch_id"]): row for row in _committed(tables, ("batch_id", "rerun", "decision"))}
    for batch_id in in_force({number: decision_of(row) for number, row in rows.items()}):
        if (rerun := rerun_of(rows[batch_id])) and rerun.preview_id == preview_id:
            return batch_id
    return None


def decisions_of(tables: Tables, since_batch: int) -> dict[int, Decision | None]:
    """Decision of each committed batch. It is None for a batch without a decision. Batches before `since_batch` may be
    missing.
    """
    rows = _committed(tables, ("batch_id", "decision"), since_batch)
    return {int(row["batch_id"]): decision_of(row) for row in rows}


def in_force(decisions: Mapping[int, Decision | None]) -> Iterator[int]:
    """Batches whose outcome the tables hold, newest first. Batches that a rollback has undone are skipped.

    >>> back = Decision("rollback", "ann", "not right", to_batch_id=1)
    >>> [*in_force({1: None, 2: None, 3: back, 4: None})]
    [4, 3, 1]
    """
    newest = max(decisions, default=0)
    for batch_id in sorted(decisions, reverse=True):
        if batch_id > newest:
            continue
        yield batch_id
        if (decision := decisions[batch_id]) and decision.to_batch_id is not None:
            newest = decision.to_batch_id


def _committed(tables: Tables, columns: Collection[str], since_batch: int = 0) -> Iterator[Mapping[str, Any]]:
    table = tables[LEDGER.name]
    return rows_of_kinds(table, table.version(), {"commit"}, columns, since_batch)
