"""The newest batches of a pipeline, with a sentence for each batch that did more than read new files."""

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
    """A committed batch, with its counts by figure."""

    batch_id: int
    at_ms: int
    watermark_ms: int
    counts: dict[str, int]
    rerun: str | None = None  # sentence about a rerun or an operator's decision
    what: str = ""  # kind of the rerun or decision, in a word


def newest_commits(tables: Tables, state: LedgerState) -> list[Committed]:
    """The `SHOWN` newest commits, newest first. Stops opening ledger files once these are found."""
    table = tables[LEDGER.name]
    committed: list[Committed] = []
    for file in sorted(table.files(state.version), key=lambda file: -file.high["sequence"]):
        if not file.low.get("kind", "commit") <= "commit" <= file.high.get("kind", "commit"):
            continue
        rows = data_files.read_parquet(table.store, file, LEDGER.columns)
        commits = rows.filter(pc.equal(rows["kind"], "commit")).sort_by([("sequence", "descending")])
        committed += map(_committed, data_files.rows_of(commits.slice(0, SHOWN)))
        if len(committed) >= SHOWN:
            break
    return sorted(committed, key=lambda commit: -commit.batch_id)[:SHOWN]


def _committed(row: dict[str, Any]) -> Committed:
    rerun, decision, counts = rerun_of(row), decision_of(row), dict(row["counts"])
    sentence, kind = None, ""
    if rerun is not None:
        sentence, kind = _rerun(rerun, counts), "rerun"
    elif decision is not None:
        sentence, kind = (
            f"{decision.title}. Reason: {decision.reason} ({decision.who})",
            decision.kind.partition("_")[0],
        )
    return Committed(row["batch_id"], at_ms_of(row), row["watermark_out_ms"], counts, sentence, kind)


def _rerun(done: Rerun, counts: dict[str, int]) -> str:
    windows = ", ".join(
        f"{counts.get(f'windows_{change}', 0):,} {change}" for change in ("added", "removed", "changed")
    )
    return f"{done.title}: {windows}. Reason: {done.reason or 'none given'} ({done.who})"
