"""Events that arrived after ``--finish``: number of events dropped as late, and the command to undo the finish."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from windowlib.contract.intake_tables import LATE_EVENTS
from windowlib.contract.table import TableSpec
from windowlib.contract.tables import WATERMARKS
from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.plurals import counted
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.ledger.history import committed_before
from windowlib.ledger.rows import Commit
from windowlib.model.watermark import MAX_WATERMARK, SourceState


def late_after_finish(file: Path, tables: Tables, commit: Commit) -> str | None:
    """Sentence about late events of a finished pipeline, with commands to undo the finish; None without late events.

    file:   definition of the pipeline
    commit: newest commit
    """
    if commit.watermark_out_ms != MAX_WATERMARK:
        return None
    moves = _rows(tables, commit, WATERMARKS, {"state": pa.string()}, since=0)
    ends = [row["batch_id"] for row in moves if row["state"] == SourceState.FINISHED.value]
    before = committed_before(tables, min(ends)) if ends else None
    if before is None:
        return None
    finished_by = min(ends)
    late = _rows(tables, commit, LATE_EVENTS, {"readmitted_by": pa.int64()}, since=finished_by + 1)
    if not (dropped := sum(row["readmitted_by"] is None for row in late)):
        return None
    undo = to_paste("rollback", file, "--to-batch", str(before), *WHY)
    return (
        f"{counted(dropped, 'event')} {'was' if dropped == 1 else 'were'} dropped as late, because batch {finished_by}"
        f" was run with --finish. If more input is expected, undo the end: `{undo}`. Then `{to_paste('run', file)}`"
        " reads those files again"
    )


def _rows(
    tables: Tables, commit: Commit, spec: TableSpec, columns: dict[str, pa.DataType], since: int
) -> Iterator[dict[str, Any]]:
    """Yields the rows of batch `since` and of later batches, with `columns` and batch_id."""
    table = tables[spec.name]
    schema = pa.schema([("batch_id", pa.int64()), *columns.items()])

    def may_have(file: DataFile) -> bool:
        return bool(file.high.get("batch_id", since) >= since)

    for file in filter(may_have, table.files(commit.versions.get(spec.name))):
        for row in data_files.rows_of(data_files.read_parquet(table.store, file, schema)):
            if row["batch_id"] >= since:
                yield row
