"""The newest batches of a pipeline, and in words what each was, where it did not just read what was new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from windowlib.contract.tables import LEDGER
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.ledger.decision import decision_of
from windowlib.ledger.rerun_request import Rerun, rerun_of
from windowlib.ledger.rows import LedgerState, at_ms_of

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch that exists."""

    batch_id: int
    at_ms: int
    watermark_ms: int
    counts: dict[str, int]
    rerun: str | None = None  # what it recomputed, or an operator decided, in words
    what: str = ""  # the same in a word


def newest_commits(tables: Tables, state: LedgerState) -> list[Committed]:
    """The newest commits, newest first; the ledger's files are read only as far back as they need."""
    table = tables[LEDGER.name]
    found: list[Committed] = []
    for file in sorted(table.files(state.version), key=lambda file: -file.high["sequence"]):
        if not file.low.get("kind", "commit") <= "commit" <= file.high.get("kind", "commit"):
            continue
        rows = data_files.read_parquet(table.folder / file.path, LEDGER.columns)
        commits = rows.filter(pc.equal(rows["kind"], "commit")).sort_by([("sequence", "descending")])
        found += map(_committed, data_files.rows_of(commits.slice(0, SHOWN)))
        if len(found) >= SHOWN:
            break
    return sorted(found, key=lambda commit: -commit.batch_id)[:SHOWN]


def _committed(row: dict[str, Any]) -> Committed:
    rerun, decision, counts = rerun_of(row), decision_of(row), dict(row["counts"])
    said, what = None, ""
    if rerun is not None:
        said, what = _rerun(rerun, counts), "rerun"
    elif decision is not None:
        said, what = f"{decision.title}. Reason: {decision.reason} ({decision.who})", decision.kind.partition("_")[0]
    return Committed(row["batch_id"], at_ms_of(row), row["watermark_out_ms"], counts, said, what)


def _rerun(done: Rerun, counts: dict[str, int]) -> str:
    said = ", ".join(f"{counts.get(f'windows_{change}', 0):,} {change}" for change in ("added", "removed", "changed"))
    return f"{done.title}: {said}. Reason: {done.reason or 'none given'} ({done.who})"
