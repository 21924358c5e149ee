"""Reading of the ledger: its newest rows for the current state, rows of given kinds for its history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any

import pyarrow as pa

from windowlib.contract.tables import LEDGER
from windowlib.delta import data_files, row_groups
from windowlib.delta.data_files import DataFile
from windowlib.delta.log import DamagedLog
from windowlib.delta.small_tables import again_if_cut
from windowlib.delta.tables import Table
from windowlib.ledger.entries import after
from windowlib.ledger.rows import CLAIM_KINDS, KINDS, LedgerState
from windowlib.storage.store import Store

FETCHED = 8  # files that are read at once


def fold(table: Table, newest: int | None) -> LedgerState:
    """State of the ledger at its `newest` version, or at a later version."""
    version, rows = again_if_cut(table, lambda version: _tail(table, version), newest)
    if version is None or rows is None:
        return LedgerState()
    _check_whole(table, rows)
    return after(LedgerState(version=version), rows)


def _check_whole(table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises `DamagedLog` if a row after the newest commit row is missing, because a batch might then run twice."""
    first = max((row["sequence"] for row in rows if row["kind"] == "commit"), default=1)
    sequences = [row["sequence"] for row in rows if row["sequence"] >= first]
    missing = next((number for number, sequence in enumerate(sequences, first) if sequence != number), None)
    if missing is not None:
        raise DamagedLog(
            f"row {missing} of the ledger is gone, and no run starts without it. Another program deleted it, such as"
            f" by a DELETE on {table.store}, or its files are damaged. Run RESTORE TABLE delta.`{table.store}`"
            " TO VERSION AS OF the version before (see DESCRIBE HISTORY), or restore the warehouse from a backup"
        )


def _tail(table: Table, version: int) -> Sequence[Mapping[str, Any]]:
    """Rows from the newest commit row on, and rows about the newest claim, oldest first.

    Reads files newest first, and only as far as needed. The time therefore depends neither on the ledger's length nor
    on the number of batches since the claim.
    """
    rows, newest = list[Mapping[str, Any]](), dict[str, int]()
    newest_first = sorted(table.files(version), key=lambda f: -f.high["sequence"])
    for number, file in enumerate(newest_first):
        if number % FETCHED == 0:
            data_files.fetch(table.store, newest_first[number : number + FETCHED])
        if "commit" in newest and _is_silent_about_claims(file, newest.keys()):
            continue
        for row in _end_of_file(table.store, file.path, file.size_bytes):
            rows.append(row)
            newest[row["kind"]] = max(newest.get(row["kind"], 0), row["sequence"])
        if {"claim", "commit"} <= newest.keys():
            break
    count = (row for row in rows if _counts(row["kind"], row["sequence"], newest))
    return sorted(count, key=lambda row: row["sequence"])


def _counts(kind: str, sequence: int, newest: Mapping[str, int]) -> bool:
    """Tests if no later row replaces a row. `newest` has the newest sequence of each kind."""
    if sequence >= newest.get("commit", 0) or kind not in KINDS:
        return True
    since = max(newest.get("claim", 0), newest["heartbeat"] if kind == "heartbeat" else 0)
    return kind in CLAIM_KINDS and sequence >= since


def _is_silent_about_claims(file: DataFile, newer: Set[str]) -> bool:
    """Tests if a file adds nothing about claims to the rows already read, which have the kinds `newer`.

    Kinds compare as strings: "heartbeat" lies between "commit" and "plan", and only the newest heartbeat counts.
    """
    between = file.low.get("kind", "") > "claim" and file.high.get("kind", "release") < "release"
    return between and "heartbeat" in newer


@lru_cache(maxsize=256)
def _end_of_file(store: Store, path: str, size_bytes: int) -> Sequence[Mapping[str, Any]]:
    """Rows of one ledger file, without rows that a later row of the file replaces (`_counts`).

    Reads only the last row groups, because a compacted file has thousands of rows and only the last few matter. Avoids
    pyarrow's compute functions, because they import pandas: half a second in a run without new files.
    """
    parts, newest = list[pa.Table](), dict[str, int]()
    file = data_files.parquet_file(store, path, size_bytes)
    for part, left in row_groups.newest_first(file, "sequence", LEDGER.columns):
        parts.append(part)
        for kind, sequence in zip(part["kind"].to_pylist(), part["sequence"].to_pylist(), strict=True):
            newest[kind] = max(newest.get(kind, 0), sequence)
        if left is None or ({"commit", "claim"} <= newest.keys() and min(newest["commit"], newest["claim"]) > left):
            break
    rows = pa.concat_tables(parts)
    kinds, sequences = rows["kind"].to_pylist(), rows["sequence"].to_pylist()
    count = [_counts(kind, sequence, newest) for kind, sequence in zip(kinds, sequences, strict=True)]
    return data_files.rows_of(pa.concat_tables(rows.slice(n, 1) for n, counts in enumerate(count) if counts))


def rows_of_kinds(
    table: Table, version: int | None, kinds: Collection[str], columns: Collection[str], since_batch: int = 0
) -> Iterator[dict[str, Any]]:
    """Rows of the given kinds as of a version, in the order of each file.

    Only `columns` and `kind` are read. Rows of batches before `since_batch` may be missing, because row groups that
    hold only such rows are skipped.
    """
    assert LEDGER.columns is not None, "they are the same for every pipeline"
    schema = pa.schema([field for field in LEDGER.columns if field.name == "kind" or field.name in columns])
    may_hold: Mapping[str, Callable[[Any, Any], bool]] = {
        "kind": lambda low, high: any(low <= kind <= high for kind in kinds),
        "batch_id": lambda low, high: high >= since_batch,
    }
    for file in table.files(version):
        if all(name not in file.low or may(file.low[name], file.high[name]) for name, may in may_hold.items()):
            rows = row_groups.holding(
                data_files.parquet_file(table.store, file.path, file.size_bytes), may_hold, schema
            )
            yield from data_files.rows_of(data_files.having(rows, "kind", lambda kind: kind in kinds))


def newest_of_batches(
    table: Table, version: int | None, kinds: Collection[str], columns: Collection[str]
) -> dict[str, dict[int, dict[str, Any]]]:
    """Newest row of each kind and batch. A batch that was planned again or refused again has several rows of a kind."""
    newest: dict[str, dict[int, dict[str, Any]]] = {kind: {} for kind in kinds}
    rows = rows_of_kinds(table, version, kinds, {*columns, "sequence", "batch_id"})
    for row in sorted(rows, key=lambda row: row["sequence"]):
        newest[row["kind"]][row["batch_id"]] = row
    return newest
