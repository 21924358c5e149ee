"""What a batch that waits for a decision would put away, rows that it refuses and events that are late in it; and which
of its results its checks found wrong.
"""

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
from windowlib.pages.rows import EXAMPLES, TextRows, shown
from windowlib.quality.validations import kept_of

WHY = "why"


def put_away(definition: Definition, tables: Tables, state: LedgerState) -> list[TextRows]:
    """A few of its refused rows and of its late events, each with file and row; nothing where no batch is prepared.

    They are of the files that its publication would add, so nothing is computed. Columns that `[pages]` hides are not
    shown.
    """
    if state.plan is None or state.prepared is None:
        return []
    batch_id, found = state.plan.batch_id, []
    try:
        made = prepare.read(tables.root, state.prepared)
    except prepare.Unreadable:  # decided since `state` was read, or damaged, which the next run says
        return []
    for change in made.changes:
        if change.name in COLUMNS:
            files = [DataFile(one.path, one.size_bytes, 0, one.partition) for one in change.add]
            rows = rows_of_newest(tables, change.name, files, EXAMPLES, pc.field("batch_id") == batch_id)
            before, after = COLUMNS[change.name]
            columns = [WHY, *before, *(definition.source.key if change.name == "late_events" else ()), *after]
            found += [shown(definition, [{**row, WHY: _why(row)} for row in rows], columns)] if rows else []
    return found


def wrong_results(definition: Definition, batch_id: int) -> list[TextRows]:
    """A few of its results for each check that keeps it from being published, with key and window."""
    checked = kept_of(definition.root, batch_id)
    found = outcomes_of(definition, checked) if checked else []
    return [
        TextRows(
            [WHY, *one.rows.columns], [[one.result.sentence.removesuffix("."), *cells] for cells in one.rows.cells]
        )
        for one in found
        if one.rows and not one.result.success and one.result.severity == "critical"
    ]


COLUMNS = {
    "quarantine": (("source_file", "source_row"), ("event_time", "raw")),
    "late_events": (("source_file", "source_row"), ("event_time",)),
}
"""The columns of each table's rows that are shown: before and after those of the key."""


def _why(row: Mapping[str, Any]) -> str:
    return row["reason"] if "reason" in row else f"late by {how_late(row['late_by_ms'])}"


def lines(rows: TextRows) -> Iterator[str]:
    """Each row in a line of text.

    >>> list(lines(TextRows(["why", "source_file", "source_row", "raw"], [["null_key", "4.parquet", "3", "{}"]])))
    ['null_key: source_file 4.parquet, source_row 3, raw {}']
    """
    for cells in rows.cells:
        named = dict(zip(rows.columns, cells, strict=True))
        why = named.pop(WHY)
        yield f"{why}: {', '.join(f'{name} {text}' for name, text in named.items() if text)}"
