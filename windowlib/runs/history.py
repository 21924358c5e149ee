"""The figures of earlier batches, which the checks compare a batch with."""

from __future__ import annotations

from windowlib.tables import data_files, delta
from windowlib.tables.ledger_rows import LedgerState
from windowlib.tables.meaning import RUN_METRICS
from windowlib.tables.opened import Tables

HISTORY = 20  # batches


def history(tables: Tables, state: LedgerState) -> list[dict[str, int | None]]:
    """The figures of the newest `HISTORY` batches that are not reruns, oldest first."""
    table, version = tables[RUN_METRICS.name], state.pinned(RUN_METRICS.name)
    newest_first = sorted(delta.files(table, version), key=lambda file: -file.high["batch_id"])
    batches: dict[int, dict[str, int | None]] = {}
    for file in newest_first:
        if len(batches) >= HISTORY:
            break
        for row in data_files.rows_of(data_files.read_parquet(table.folder / file.path, RUN_METRICS.columns)):
            batches.setdefault(row["batch_id"], {})[row["figure"]] = row["value"]
    ordinary = [figures for _, figures in sorted(batches.items()) if "rerun_from_ms" not in figures]
    return ordinary[-HISTORY:]
