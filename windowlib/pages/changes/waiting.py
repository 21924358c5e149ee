"""Changes that a waiting batch would make, from the files that its publication adds and removes: by day, and examples.

Nothing is computed again. Values of columns that `[pages]` hides are not shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.definition.definition import Definition
from windowlib.delta.data_files import DataFile
from windowlib.delta.table_change import LoggedFile
from windowlib.delta.tables import Tables
from windowlib.ledger import prepare
from windowlib.ledger.prepare import Publication
from windowlib.ledger.rows import LedgerState
from windowlib.pages.changes.by_batch import MOST_ROWS, NUMBERED, BatchReader, NotKnown
from windowlib.pages.changes.changed_windows import END, START
from windowlib.pages.changes.since_moment import ChangedDay, together
from windowlib.pages.counts.row_counts import numeric_outputs
from windowlib.pages.local_hours import page_zone
from windowlib.pages.newest_rows import rows_of_newest
from windowlib.pages.rows import EXAMPLES, TextRows, text_rows
from windowlib.reruns.preview_text import ARROW

CHANGE = "change"


@dataclass(frozen=True, slots=True)
class WaitingChanges:
    """Changes that a waiting batch would make: `days`, newest first, with the change of the sums of `outputs`.

    `examples` marks the values that would change. `days` is None if they cannot be counted.
    """

    outputs: Sequence[str]
    days: Sequence[ChangedDay] | None
    examples: TextRows


def waiting_changes(definition: Definition, tables: Tables, state: LedgerState) -> WaitingChanges | None:
    """Changes that the waiting batch would make; None if no batch is prepared, or its publication cannot be read."""
    if state.prepared is None:
        return None
    try:
        files_of = partial(_files, prepare.read(tables.store, state.prepared))
    except prepare.Unreadable:  # decided after `state` was read, or damaged; the next run reports damage
        return None
    numbers, in_headline = numeric_outputs(definition, tables, files_of("results")[1])
    outputs = [output for output in numbers[:in_headline] if output.combine == "sum"]
    reader = BatchReader(definition, tables, outputs, ZoneInfo(page_zone(definition)), MOST_ROWS)
    try:
        parts = [*reader.of_feed(files_of, fires_early=True)]
        examples = _examples(definition, tables, files_of("result_changes")[1], files_of("results")[0])
    except (NotKnown, FileNotFoundError, pa.ArrowException):
        return WaitingChanges([], None, TextRows((), ()))
    newest_first = sorted({part.day for part in parts}, key=str, reverse=True)
    days = [together(day, [part for part in parts if part.day == day]) for day in newest_first]
    return WaitingChanges([output.name for output in outputs], days, examples)


def _files(publication: Publication, name: str) -> tuple[list[DataFile], list[DataFile]]:
    """Files of a table that a publication removes, and those that it adds."""
    changes = [change for change in publication.changes if change.name == name]
    removed = [_data_file(file) for change in changes for file in change.remove]
    return removed, [_data_file(file) for change in changes for file in change.add]


def _data_file(file: LoggedFile) -> DataFile:
    rows = json.loads(file.statistics or "{}").get("numRecords", 0)
    return DataFile(file.path, file.size_bytes, rows, file.partition)


def _examples(
    definition: Definition, tables: Tables, feed: Sequence[DataFile], replaced: Sequence[DataFile]
) -> TextRows:
    """Some rows that the batch would change, add or remove. Changed rows come first, with their values before."""
    outputs, rows = [*definition.outputs], list[dict[str, Any]]()
    identity = [*definition.source.key, START, END, NUMBERED]
    for change in (CHANGED, ADDED, REMOVED):
        files = [file for file in feed if file.partition[CHANGE] == change and len(rows) < EXAMPLES]
        rows += rows_of_newest(tables, "result_changes", files, EXAMPLES - len(rows), None, [*identity, *outputs])
    before = _before(tables, replaced, [row for row in rows if row[CHANGE] == CHANGED], identity, outputs)
    columns = [CHANGE, *(name for name in identity if name != NUMBERED), *outputs]
    text = text_rows(definition, rows, columns)
    old = text_rows(definition, [before.get(_identity(row, identity), row) for row in rows], outputs)
    first = len(columns) - len(outputs)
    marked = [
        (place, first + number)
        for place, cells in enumerate(old.cells)
        for number, cell in enumerate(cells)
        if cell != text.cells[place][first + number]
    ]
    cells = [[*row] for row in text.cells]
    for place, column in marked:
        cells[place][column] = f"{old.cells[place][column - first]}{ARROW}{cells[place][column]}"
    return TextRows(columns, cells, marked=marked)


def _before(
    tables: Tables,
    replaced: Sequence[DataFile],
    changed: Sequence[Mapping[str, Any]],
    identity: Sequence[str],
    outputs: Sequence[str],
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Published rows of changed results, by their identity."""
    if not changed:
        return {}
    ends = pa.array([row[END] for row in changed])
    rows = rows_of_newest(tables, "results", replaced, MOST_ROWS, pc.field(END).isin(ends), [*identity, *outputs])
    return {_identity(row, identity): row for row in rows}


def _identity(row: Mapping[str, Any], identity: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in identity)
