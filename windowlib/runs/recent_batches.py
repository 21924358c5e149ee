"""What runs have committed lately, as they reported it themselves, or would have.

A run whose caller was killed goes on and reports to no one; what it did is asked for here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import DQ_RESULTS, LEDGER
from windowlib.definition.definition import Definition
from windowlib.delta import small_tables as small
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rows import LedgerState, at_ms_of
from windowlib.quality.check import CheckResult
from windowlib.runs.attempt import BatchReport

SECONDS_UNKNOWN = 0.0
BEGUN = {"claim", "plan"}  # rows of the ledger after which work on a batch begins


def committed_since(definition: Definition, since_ms: int) -> list[BatchReport]:
    """The batches that were committed at `since_ms` or later, oldest first, by the clocks of those who wrote them.

    Their seconds passed from their plan, or their run's start if that came later, to their commit.
    """
    ledger = ledger_of(definition)
    state, table = ledger.state(), ledger.tables[LEDGER.name]
    columns = ("batch_id", "at", "counts", "watermark_out_ms", "sequence")
    found = rows_of_kinds(table, state.version, {"commit", *BEGUN}, columns)
    written = sorted(found, key=lambda row: int(row["sequence"]))
    commits = [row for row in written if row["kind"] == "commit" and at_ms_of(row) >= since_ms]
    rows, seconds = sorted(commits, key=lambda row: int(row["batch_id"])), _seconds(written)
    checks = _checks(ledger, state, rows[0]["batch_id"]) if rows else {}
    return [
        BatchReport(
            row["batch_id"],
            dict(row["counts"]),
            row["watermark_out_ms"],
            seconds.get(row["batch_id"], SECONDS_UNKNOWN),
            checks.get(row["batch_id"], []),
        )
        for row in rows
    ]


def _seconds(rows: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """By batch, how long it took; of rows of the ledger in their order."""
    began_ms, seconds = None, dict[int, float]()
    for row in rows:
        if row["kind"] in BEGUN:
            began_ms = at_ms_of(row)
        elif began_ms is not None:
            seconds[row["batch_id"]] = max(0, at_ms_of(row) - began_ms) / 1000
    return seconds


def _checks(ledger: Ledger, state: LedgerState, first_batch_id: int) -> dict[int, list[CheckResult]]:
    """The outcomes of the checks by batch, from `first_batch_id` on."""
    table, found = ledger.tables[DQ_RESULTS.name], dict[int, list[CheckResult]]()
    files = table.files(state.pinned(DQ_RESULTS.name))
    newer = [file for file in files if file.high.get("batch_id", first_batch_id) >= first_batch_id]
    for row in table.rows(newer, DQ_RESULTS.columns):
        if row["batch_id"] >= first_batch_id:
            found.setdefault(row["batch_id"], []).append(small.of_row(CheckResult, row))
    return found
