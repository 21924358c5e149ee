"""How the ledger is read: its end for what stands now, rows of some kinds for its history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from windowlib.contract.tables import LEDGER
from windowlib.delta import data_files, row_groups
from windowlib.delta.data_files import DataFile
from windowlib.delta.log import DamagedLog
from windowlib.delta.tables import Table
from windowlib.ledger.rows import KINDS, OF_CLAIMS, LedgerState, applied


def fold(table: Table) -> LedgerState:
    version = table.version()
    if version is None:
        return LedgerState()
    state, rows = LedgerState(version=version), _tail(table, version)
    _check_whole(table, rows)
    for row in rows:
        state = applied(replace(state, sequence=row["sequence"]), row)
    return state


def _check_whole(table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises `DamagedLog` where a row is gone from the newest commit row on: a batch might be done twice."""
    first = max((row["sequence"] for row in rows if row["kind"] == "commit"), default=1)
    there = [row["sequence"] for row in rows if row["sequence"] >= first]
    missing = next((number for number, one in enumerate(there, first) if one != number), None)
    if missing is not None:
        raise DamagedLog(
            f"row {missing} of the ledger is gone: another program has deleted it, such as a DELETE on"
            f" {table.folder}, or its files are damaged. No run begins on it. Take that back: RESTORE TABLE"
            f" delta.`{table.folder}` TO VERSION AS OF the version before (DESCRIBE HISTORY names it), or restore the"
            " warehouse from a backup"
        )


def _tail(table: Table, version: int) -> Sequence[Mapping[str, Any]]:
    """The rows from the newest commit row on, and those about the newest claim, oldest first.

    Files are read newest first and only as far as needed, so the ledger's length does not matter; nor do the batches
    that a long run has made since its claim.
    """
    rows, newest = list[Mapping[str, Any]](), dict[str, int]()
    for file in sorted(table.files(version), key=lambda f: -f.high["sequence"]):
        if "commit" in newest and _is_silent_about_claims(file, newest.keys()):
            continue
        for row in _end_of_file(table.folder / file.path):
            rows.append(row)
            newest[row["kind"]] = max(newest.get(row["kind"], 0), row["sequence"])
        if {"claim", "commit"} <= newest.keys():
            break
    count = (row for row in rows if _counts(row["kind"], row["sequence"], newest))
    return sorted(count, key=lambda row: row["sequence"])


def _counts(kind: str, sequence: int, newest: Mapping[str, int]) -> bool:
    """Whether a row says what no later one, the `newest` of their kinds, has made history."""
    if sequence >= newest.get("commit", 0) or kind not in KINDS:
        return True
    since = max(newest.get("claim", 0), newest["heartbeat"] if kind == "heartbeat" else 0)
    return kind in OF_CLAIMS and sequence >= since


def _is_silent_about_claims(file: DataFile, newer: Set[str]) -> bool:
    """Whether a file says nothing of claims that rows of `newer` kinds do not: by the order of kinds as texts, in which
    a heartbeat, of which the newest counts, is between a commit and a plan.
    """
    between = file.low.get("kind", "") > "claim" and file.high.get("kind", "release") < "release"
    return between and "heartbeat" in newer


@lru_cache(maxsize=256)
def _end_of_file(file: Path) -> Sequence[Mapping[str, Any]]:
    """The rows of one of the ledger's files without those that a later commit row in it has made history.

    A file into which small ones were folded has thousands of rows, and a few that count: the last of its row groups
    are read. They are looked for without pyarrow's functions, which would import pandas: half a second of a run with
    nothing new.
    """
    parts, newest = list[pa.Table](), dict[str, int]()
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
    """The ledger's rows of some kinds as of a version, each file's in the order in which they lie there.

    `columns` are those that they are asked for; others than those and `kind` are not read. Rows of batches before
    `since_batch` may be left out: row groups of nothing else are not read.
    """
    assert LEDGER.columns is not None, "they are the same for every pipeline"
    schema = pa.schema([field for field in LEDGER.columns if field.name == "kind" or field.name in columns])
    may_hold: Mapping[str, Callable[[Any, Any], bool]] = {
        "kind": lambda low, high: any(low <= kind <= high for kind in kinds),
        "batch_id": lambda low, high: high >= since_batch,
    }
    for file in table.files(version):
        if all(name not in file.low or may(file.low[name], file.high[name]) for name, may in may_hold.items()):
            rows = row_groups.holding(table.folder / file.path, may_hold, schema)
            yield from data_files.rows_of(data_files.having(rows, "kind", lambda kind: kind in kinds))


def newest_of_batches(
    table: Table, version: int | None, kinds: Collection[str], columns: Collection[str]
) -> dict[str, dict[int, dict[str, Any]]]:
    """By kind and batch, the newest row; of a batch that was planned again, or refused again, there are several."""
    found: dict[str, dict[int, dict[str, Any]]] = {kind: {} for kind in kinds}
    rows = rows_of_kinds(table, version, kinds, {*columns, "sequence", "batch_id"})
    for row in sorted(rows, key=lambda row: row["sequence"]):
        found[row["kind"]][row["batch_id"]] = row
    return found
