"""The batches that a ledger has of the past, as far back as it goes; what stands now: `windowlib.tables.ledger`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from windowlib.tables import delta
from windowlib.tables.decision import Decision
from windowlib.tables.ledger_read import rows_of_kinds
from windowlib.tables.ledger_rows import OF_COMMITS, Commit, at_ms_of, commit_of, rerun_of
from windowlib.tables.meaning import LEDGER
from windowlib.tables.opened import Tables


def commits_of(tables: Tables) -> list[Commit]:
    """Every batch that was committed, oldest first; those that a rollback has undone among them."""
    found = [commit_of(row, at_ms_of(row)) for row in _committed(tables, OF_COMMITS)]
    return sorted(found, key=lambda commit: commit.batch_id)


def batch_of_preview(tables: Tables, preview_id: str) -> int | None:
    """The batch that did the rerun which a dry run said; None where none has, or a rollback has undone it."""
    found, decided = None, list[tuple[int, Decision]]()
    for row in _committed(tables, ("batch_id", "correction", "decision")):
        if (done := rerun_of(row)) and done.preview_id == preview_id:
            found = int(row["batch_id"])
        if row["decision"]:
            decided.append((int(row["batch_id"]), Decision.from_json(row["decision"])))
    if found is not None and any(one.undoes(found) for batch_id, one in decided if batch_id > found):
        return None
    return found


def _committed(tables: Tables, columns: Collection[str]) -> Iterator[Mapping[str, Any]]:
    table = tables[LEDGER.name]
    return rows_of_kinds(table, delta.version(table), {"commit"}, columns)
