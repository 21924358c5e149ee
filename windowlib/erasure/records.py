"""Traces of a key outside the tables that batches publish, and their removal.

- All dry runs of reruns are deleted, whatever keys they hold, because a user can repeat them.
- Verifications lose the differences of the key.
- Notices and the ledger's reasons lose the key's values in the examples of checks.
- Files with check outcomes, tracebacks and the last error are deleted if they mention the key. The next run writes them
  again.
- Pages and their stored counts are deleted, because their sums include the key. The next run or report writes them
  again, without the key.

The removal is idempotent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.batches import sharing
from windowlib.contract.record_tables import NOTICES, PREVIEWS, VERIFICATIONS
from windowlib.contract.tables import LEDGER, TABLES
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.tables import Table, Tables
from windowlib.erasure.texts import Mention
from windowlib.ledger import last_error
from windowlib.ledger.rerun_request import rerun_of
from windowlib.ledger.rows import BY_ITSELF
from windowlib.publication.key import Key
from windowlib.reruns import previews
from windowlib.reruns.findings import DIFFERENCE
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import opened
from windowlib.storage.store import ObjectInfo, Store

PAGES = "pages"
FOLDERS = ("checks", "gx", PAGES, "logs")
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
    changed = at_once(lambda name: _change(tables[name], name, changes[name], remove=remove), changes)
    files = _mentioning(tables.store, mention)
    if remove:
        tables.store.delete([*files, *_paths(tables.store, (previews.FOLDER, sharing.FOLDER, PAGES))])
    counts = {**dict(zip(changes, changed, strict=True)), FILES: len(files)}
    return {name: count for name, count in counts.items() if count}


def _paths(store: Store, folders: Sequence[str]) -> list[str]:
    """Paths of all files in some folders."""
    listed = at_once(lambda folder: [file.path for file in store.list(f"{folder}/")], folders)
    return [path for paths in listed for path in paths]


def is_in_previews(store: Store, key: Key) -> bool:
    """Tests if a stored dry run would change a window of a key. `store` is the store of the tables."""

    def holds(file: ObjectInfo) -> bool:
        source = pq.ParquetFile(opened(store, file.path, file.size_bytes))
        schema, columns = source.schema_arrow, [*key.columns]
        if not {*columns} <= {*schema.names}:
            return False
        groups = (source.read_row_group(group, columns) for group in range(source.num_row_groups))
        return any(rows.filter(key.where(schema)).num_rows for rows in groups)

    listed = store.list(f"{previews.FOLDER}/")
    files = [file for file in listed if file.path.endswith(".parquet") and file.path.split("/")[2:3] == [DIFFERENCE]]
    return any(at_once(holds, files))


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
        files = table.files(newest)
        read = at_once(lambda file: data_files.read_parquet(table.store, file, TABLES[name].columns), files)
        for file, rows in zip(files, read, strict=True):
            before = data_files.rows_of(rows)
            after = [change(row) for row in before]
            count = sum(row != new for row, new in zip(before, after, strict=True))
            differing += count
            if count and remove:
                drop.append(file)
                kept = [row for row in after if row is not None]
                schema = pa.schema(table.schema(newest).to_arrow())
                if kept:
                    add.append(data_files.write(table.store, pa.Table.from_pylist(kept, schema=schema)))
        if drop:
            table.store.sync(file.path for file in add)
            delta_commits.commit(table, newest, add=add, remove=drop)
        return differing

    return delta_commits.again_on_conflict(changed)


def _mentioning(store: Store, mention: Mention) -> list[str]:
    """Paths of the files next to the tables that mention a key."""

    def mentions(path: str) -> bool:
        content = store.get(path)
        return content is not None and mention.is_in(content.decode("utf-8", errors="replace"))

    paths = [last_error.FILE, *_paths(store, FOLDERS)]
    return [path for path, is_mentioned in zip(paths, at_once(mentions, paths), strict=True) if is_mentioned]
