"""What runs have committed lately, as they reported it themselves, or would have.

A run whose caller was killed goes on and reports to no one; what it did is asked for here.
"""

from __future__ import annotations

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.quality.check import CheckResult
from windowlib.runs.attempt import BatchReport
from windowlib.tables import data_files, delta
from windowlib.tables.ledger import Ledger
from windowlib.tables.ledger_rows import LedgerState
from windowlib.tables.meaning import DQ_RESULTS, LEDGER

SECONDS_UNKNOWN = 0.0


def committed_since(definition: Definition, since_ms: int) -> list[BatchReport]:
    """The batches that were committed at `since_ms` or later, oldest first, by the clocks of those who wrote them."""
    ledger = ledger_of(definition)
    state, table = ledger.state(), ledger.tables[LEDGER.name]
    rows = [
        row
        for row in data_files.rows(table, delta.files(table, state.version), LEDGER.columns)
        if row["kind"] == "commit" and row["at"].timestamp() * 1000 >= since_ms
    ]
    rows.sort(key=lambda row: row["batch_id"])
    checks = _checks(ledger, state, rows[0]["batch_id"]) if rows else {}
    return [
        BatchReport(
            row["batch_id"],
            dict(row["counts"]),
            row["watermark_out_ms"],
            SECONDS_UNKNOWN,
            checks.get(row["batch_id"], []),
        )
        for row in rows
    ]


def _checks(ledger: Ledger, state: LedgerState, first_batch_id: int) -> dict[int, list[CheckResult]]:
    """The outcomes of the checks by batch, from `first_batch_id` on."""
    table, found = ledger.tables[DQ_RESULTS.name], dict[int, list[CheckResult]]()
    for row in data_files.rows(table, delta.files(table, state.pinned(DQ_RESULTS.name)), DQ_RESULTS.columns):
        if row["batch_id"] >= first_batch_id:
            outcome = CheckResult(**{name: row[name] for name in CheckResult.__dataclass_fields__})
            found.setdefault(row["batch_id"], []).append(outcome)
    return found
