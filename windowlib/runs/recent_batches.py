"""Reports of recently committed batches, rebuilt from the ledger and the checks' outcomes.

A run whose caller was killed goes on, but its report is lost. The restarted caller gets the report here.
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
BEGUN = {"claim", "plan"}  # kinds of ledger rows after which work on a batch begins


def committed_since(definition: Definition, since_ms: int) -> list[BatchReport]:
    """Reports of the batches committed at `since_ms` or later, oldest first. The runs' clocks gave the commit times.

    `seconds` counts from the plan to the commit, or from the start of the run if that is later than the plan.
    """
    ledger = ledger_of(definition)
    state, table = ledger.state(), ledger.tables[LEDGER.name]
    columns = ("batch_id", "at", "counts", "watermark_out_ms", "sequence")
    unsorted = rows_of_kinds(table, state.version, {"commit", *BEGUN}, columns)
    written = sorted(unsorted, key=lambda row: int(row["sequence"]))
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
    """Duration of each batch in seconds. `rows` are ledger rows in their order."""
    began_ms, seconds = None, dict[int, float]()
    for row in rows:
        if row["kind"] in BEGUN:
            began_ms = at_ms_of(row)
        elif began_ms is not None:
            seconds[row["batch_id"]] = max(0, at_ms_of(row) - began_ms) / 1000
    return seconds


def _checks(ledger: Ledger, state: LedgerState, first_batch_id: int) -> dict[int, list[CheckResult]]:
    """Outcomes of the checks by batch, from `first_batch_id` on."""
    table, checks = ledger.tables[DQ_RESULTS.name], dict[int, list[CheckResult]]()
    files = table.files(state.pinned(DQ_RESULTS.name))
    newer = [file for file in files if file.high.get("batch_id", first_batch_id) >= first_batch_id]
    for row in table.rows(newer, DQ_RESULTS.columns):
        if row["batch_id"] >= first_batch_id:
            checks.setdefault(row["batch_id"], []).append(small.of_row(CheckResult, row))
    return checks
