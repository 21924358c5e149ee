"""Refused rows and late events of a batch that waits for a decision, and its results that failed a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from windowlib.definition.definition import Definition
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.inspection.late.events import how_late
from windowlib.ledger import prepare
from windowlib.ledger.rows import LedgerState
from windowlib.pages.history import outcomes_of
from windowlib.pages.newest_rows import rows_of_newest
from windowlib.pages.rows import EXAMPLES, TextRows, text_rows
from windowlib.quality.validations import stored_outcome

WHY = "why"


def rows_in_no_window(definition: Definition, tables: Tables, state: LedgerState) -> list[TextRows]:
    """Some refused rows and late events of the waiting batch, with file and row; empty if no batch is prepared.

    The rows are read from the files that the publication would add, so nothing is computed. Columns that `[pages]`
    hides are not shown.
    """
    if state.plan is None or state.prepared is None:
        return []
    batch_id, examples = state.plan.batch_id, []
    try:
        prepared = prepare.read(tables.store, state.prepared)
    except prepare.Unreadable:  # decided after `state` was read, or damaged; the next run reports damage
        return []
    for change in prepared.changes:
        if change.name in COLUMNS:
            files = [DataFile(file.path, file.size_bytes, 0, file.partition) for file in change.add]
            rows = rows_of_newest(tables, change.name, files, EXAMPLES, pc.field("batch_id") == batch_id)
            before, after = COLUMNS[change.name]
            columns = [WHY, *before, *(definition.source.key if change.name == "late_events" else ()), *after]
            examples += [text_rows(definition, [{**row, WHY: _why(row)} for row in rows], columns)] if rows else []
    return examples


def wrong_results(definition: Definition, batch_id: int) -> list[TextRows]:
    """Some wrong results for each check that prevents the publication, with key and window."""
    checked = stored_outcome(definition.store, batch_id)
    outcomes = outcomes_of(definition, checked) if checked else []
    return [
        TextRows(
            [WHY, *outcome.rows.columns],
            [[outcome.result.sentence.removesuffix("."), *cells] for cells in outcome.rows.cells],
        )
        for outcome in outcomes
        if outcome.rows and not outcome.result.success and outcome.result.severity == "critical"
    ]


COLUMNS = {
    "quarantine": (("source_file", "source_row"), ("event_time", "raw")),
    "late_events": (("source_file", "source_row"), ("event_time",)),
}
"""Shown columns of each table: those before and those after the key columns."""


def _why(row: Mapping[str, Any]) -> str:
    return row["reason"] if "reason" in row else f"late by {how_late(row['late_by_ms'])}"


def lines(rows: TextRows) -> Iterator[str]:
    """Yields each row as a line of text.

    >>> list(lines(TextRows(["why", "source_file", "source_row", "raw"], [["null_key", "4.parquet", "3", "{}"]])))
    ['null_key: source_file 4.parquet, source_row 3, raw {}']
    """
    for cells in rows.cells:
        named = dict(zip(rows.columns, cells, strict=True))
        why = named.pop(WHY)
        yield f"{why}: {', '.join(f'{name} {text}' for name, text in named.items() if text)}"
