"""Traces of a key outside the tables that batches publish, and their removal.

- All dry runs of reruns are deleted, whatever keys they hold, because a user can repeat them.
- Verifications lose the differences of the key.
- Notices and the ledger's reasons lose the key's values in the examples of checks.
- Files with check outcomes, pages, tracebacks and the last error are deleted if they mention the key. The next run or
  report writes them again.

The removal is idempotent.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from windowlib.batches import sharing
from windowlib.contract.record_tables import NOTICES, PREVIEWS, VERIFICATIONS
from windowlib.contract.tables import LEDGER, TABLES
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files, disk
from windowlib.delta.tables import Table, Tables
from windowlib.erasure.texts import Mention
from windowlib.ledger import last_error
from windowlib.ledger.rerun_request import rerun_of
from windowlib.ledger.rows import BY_ITSELF
from windowlib.publication.key import Key
from windowlib.reruns import previews
from windowlib.reruns.findings import DIFFERENCE

FOLDERS = ("checks", "gx", "pages", "logs")
FILES = "files next to the tables"
NOTICED = ("signature", "sentence", "error")  # text columns of a notice

Row = dict[str, Any]


def find(tables: Tables, key: Key, *, remove: bool) -> dict[str, int]:
    """Counts the rows and files that hold traces of a key. Counts rows by table. With `remove`, removes the traces."""
    mention = Mention.of(key)
    changes: Mapping[str, Callable[[Row], Row | None]] = {
        PREVIEWS.name: lambda row: None,
        VERIFICATIONS.name: lambda row: {**row, "differences": _of_others(row["differences"], key)},
        NOTICES.name: lambda row: {**row, **{name: _reworded(row[name], mention, anywhere=True) for name in NOTICED}},
        LEDGER.name: lambda row: _of_ledger(row, key, mention),
    }
    counts = {name: _change(tables[name], name, change, remove=remove) for name, change in changes.items()}
    files = [*_files(tables.root, mention)]
    if remove:
        for folder in (previews.FOLDER, sharing.FOLDER):
            shutil.rmtree(tables.root / folder, ignore_errors=True)
        for path in files:
            path.unlink(missing_ok=True)
    return {name: count for name, count in {**counts, FILES: len(files)}.items() if count}


def is_in_previews(root: Path, key: Key) -> bool:
    """Tests if a stored dry run would change a window of a key."""
    for path in sorted((root / previews.FOLDER).glob(f"*/{DIFFERENCE}/**/*.parquet")):
        schema = pq.read_schema(path)
        if {*key.columns} <= {*schema.names} and ds.dataset(path, schema).count_rows(filter=key.where(schema)):
            return True
    return False


def _of_others(differences: str, key: Key) -> str:
    """The stored differences of a verification, without the differences in windows of the key."""
    kept = [finding for finding in json.loads(differences) if not key.is_of(json.loads(finding)["key"])]
    return json.dumps(kept)


def _of_ledger(row: Row, key: Key, mention: Mention) -> Row:
    """The ledger row without the key. Text that operators typed stays, except the key of readmitted late events."""
    rerun = rerun_of(row)
    if rerun and key.is_that(rerun.key):
        row = {**row, "rerun": replace(rerun, key=()).to_json()}
    return {**row, "reason": _reworded(row["reason"], mention, anywhere=row["who"] == BY_ITSELF)}


def _reworded(text: str | None, mention: Mention, *, anywhere: bool) -> str | None:
    """Removes the key from the examples in a text.

    With `anywhere`, removes the key from the whole text, because an error may list windows.
    """
    if not text:
        return text
    return mention.redacted(text) if anywhere and mention.is_in(text) else mention.without_examples(text)


def _change(table: Table, name: str, change: Callable[[Row], Row | None], *, remove: bool) -> int:
    """Counts the rows of a table that `change` alters or deletes (None). With `remove`, commits these changes.

    Repeats both if another process commits to the table meanwhile. Raises `RefusedCommit`.
    """

    def changed() -> int:
        newest = table.version()
        if newest is None:
            return 0
        differing, add, drop = 0, [], []
        for file in table.files(newest):
            before = data_files.rows_of(data_files.read_parquet(table.folder / file.path, TABLES[name].columns))
            after = [change(row) for row in before]
            count = sum(row != new for row, new in zip(before, after, strict=True))
            differing += count
            if count and remove:
                drop.append(file)
                kept = [row for row in after if row is not None]
                schema = pa.schema(table.schema(newest).to_arrow())
                if kept:
                    add.append(data_files.write(table.folder, pa.Table.from_pylist(kept, schema=schema)))
        if drop:
            disk.sync((table.folder / file.path for file in add), table.folder)
            delta_commits.commit(table, newest, add=add, remove=drop)
        return differing

    return delta_commits.again_on_conflict(changed)


def _files(root: Path, mention: Mention) -> Iterator[Path]:
    """The files next to the tables that mention a key."""
    outside = [root / last_error.FILE, *(path for name in FOLDERS for path in (root / name).rglob("*"))]
    for path in sorted(path for path in outside if path.is_file()):
        if mention.is_in(path.read_text(encoding="utf-8", errors="replace")):
            yield path
