"""Gap in force, by the batches in the ledger, and events forbidden during a migration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from windowlib.contract.tables import LEDGER
from windowlib.delta.tables import Tables
from windowlib.publication.readers import snapshot
from windowlib.storage.disk import Disk

COLUMNS = ("sequence", "kind", "batch_id", "definition", "decision")


@dataclass(slots=True)
class Rules:
    """Gaps by the ledger: each batch keeps the gap of the batch before, unless it migrates or undoes a migration."""

    gap_ms: int | None = None  # in force; None: nothing was run yet
    gaps: dict[int, int] = field(default_factory=dict)  # by batch
    migration: tuple[int, str] | None = None  # the batch and id of one that can be undone
    migrated: int = 0
    undone: int = 0
    finished: int = 0

    def commit(self, batch_id: int, gap_ms: int, decision: Mapping[str, Any]) -> None:
        """One more batch. Raises AssertionError where it must not be."""
        kind, before = decision.get("kind"), self.gap_ms
        if kind == "migrate":
            assert self.migration is None, f"batch {batch_id} migrates, although batch {self.migration} can be undone"
            assert gap_ms != before, f"batch {batch_id} migrates to the gap of now"
            self.migration, self.migrated = (batch_id, decision["migration"]), self.migrated + 1
        elif kind == "migrate_undo":
            assert self.migration is not None, f"batch {batch_id} undoes what cannot be undone"
            assert decision["migration"] == self.migration[1], f"batch {batch_id} undoes another migration"
            assert decision["to_batch_id"] < self.migration[0], f"batch {batch_id} does not go back far enough"
            assert gap_ms == self.gaps[decision["to_batch_id"]] != before, f"batch {batch_id} brings another gap back"
            self.migration, self.undone = None, self.undone + 1
        else:
            assert before in (None, gap_ms), f"batch {batch_id} ({kind}) is of gap {gap_ms}, in force was {before}"
        if kind == "forget":
            assert self.migration is None, f"batch {batch_id} erases a key that old tables hold"
        if kind == "rollback":
            between = [number for number in self.gaps if number > decision["to_batch_id"]]
            assert {self.gaps[number] for number in between} <= {gap_ms}, f"batch {batch_id} goes across a migration"
        self.gaps[batch_id] = self.gap_ms = gap_ms

    def finish(self, decision: Mapping[str, Any]) -> None:
        """A migration is kept for good."""
        assert self.migration is not None, "a migration is kept that cannot be undone"
        assert decision["migration"] == self.migration[1], "another migration is kept"
        self.migration, self.finished = None, self.finished + 1


def rules_of(rows: Iterable[Mapping[str, Any]]) -> Rules:
    """Rules from the rows of a ledger. Raises AssertionError for rows that are not allowed."""
    found = Rules()
    for row in sorted(rows, key=lambda row: int(row["sequence"])):
        decision = json.loads(row["decision"] or "{}")
        if row["kind"] == "commit":
            found.commit(row["batch_id"], gap_of(row["definition"]), decision)
        elif row["kind"] == "migrate_finish":
            found.finish(decision)
    return found


def gap_of(definition: str) -> int:
    """The gap that a batch keeps of its definition."""
    gap_ms: int = json.loads(definition)["window"]["gap_ms"]
    return gap_ms


def ledger_rows(root: Path) -> Iterator[dict[str, Any]]:
    """The rows of the ledger of the pipeline in a folder, if it has any."""
    version = Tables(Disk(root))[LEDGER.name].version()
    rows = pa.table({}) if version is None else snapshot(Tables(Disk(root))[LEDGER.name], version).select(COLUMNS)
    yield from rows.to_pylist()
