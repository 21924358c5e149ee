"""The batches that a ledger has of the past, as far back as it goes; what stands now: `windowlib.ledger.ledger`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from windowlib.contract.tables import LEDGER
from windowlib.delta.tables import Tables
from windowlib.ledger.decision import Decision, decision_of
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rerun_request import rerun_of
from windowlib.ledger.rows import OF_COMMITS, Commit, at_ms_of, commit_of


def commits_of(tables: Tables, since_batch: int = 0) -> list[Commit]:
    """Batches that were committed, from `since_batch` on, oldest first; those that a rollback has undone among them."""
    rows = _committed(tables, OF_COMMITS, since_batch)
    found = [commit_of(row, at_ms_of(row)) for row in rows if row["batch_id"] >= since_batch]
    return sorted(found, key=lambda commit: commit.batch_id)


def committed_before(tables: Tables, batch_id: int) -> int | None:
    """The newest batch that was committed before another one; None where there is none. Not each number is a batch's
    that was: some were abandoned.
    """
    return max((one.batch_id for one in commits_of(tables) if one.batch_id < batch_id), default=None)


def batch_of_preview(tables: Tables, preview_id: str) -> int | None:
    """The newest batch that did the rerun which a dry run said; None where none has, or a rollback has undone it."""
    rows = {int(row["batch_id"]): row for row in _committed(tables, ("batch_id", "rerun", "decision"))}
    for batch_id in in_force({number: decision_of(row) for number, row in rows.items()}):
        if (done := rerun_of(rows[batch_id])) and done.preview_id == preview_id:
            return batch_id
    return None


def decisions_of(tables: Tables, since_batch: int) -> dict[int, Decision | None]:
    """What operators have decided, by batch that was committed; some of those before `since_batch` are left out."""
    rows = _committed(tables, ("batch_id", "decision"), since_batch)
    return {int(row["batch_id"]): decision_of(row) for row in rows}


def in_force(decisions: Mapping[int, Decision | None]) -> Iterator[int]:
    """The batches whose outcome the tables hold, newest first: what was before a rollback is the batch that it went
    back to, and what was before that.

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
