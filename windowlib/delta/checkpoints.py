"""Checkpoints and the shortening of a table's log.

A checkpoint repeats all entries before it, so that readers need not open these entries. `delete` removes the entries
before the last checkpoint at or before the oldest kept version, so every kept version can still be opened. Checkpoints
are stored before an entry is deleted. The first entry and old checkpoints are deleted before the other entries.

A commit writes a checkpoint after as many entries as the table's settings say. A table that gained columns may need
more settings than it was created with (`add_missing_settings`).

A checkpoint also repeats the *tombstones* of removed files during the table's retention, to protect the files from
VACUUM. Every process that opens the table reads all of them. A run each minute leaves 200,000 in the ledger in 30 days.
The tombstones of files that maintenance has already deleted protect nothing. They are removed from the newest
checkpoint, and later checkpoints build on that checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties
from deltalake.exceptions import DeltaError

from windowlib.delta import commits as delta_commits
from windowlib.delta import log, log_writing
from windowlib.delta.tables import Table, explained, opened
from windowlib.storage.store import ObjectInfo, Store

ENTRIES = 10  # entries after a checkpoint that justify the next one


def make_if_due(table: Table, version: int) -> None:
    """Writes a checkpoint of a version that was just committed, if the last checkpoint is `ENTRIES` entries back.

    A process that opens the table then reads few entries. Call this after the commit, so that the commit does not wait
    for the checkpoint. A version past which maintenance has shortened the log needs none: the log has a later one.
    """
    if version - (-1 if table.checkpoint is None else table.checkpoint) >= ENTRIES:
        with suppress(log.CutLog), explained(table.store, version):
            opened(table.store, version).create_checkpoint()
            table.store.sync(log.written_by(table.store, version))
            table.checkpoint = version


def add_missing_settings(table: Table) -> None:
    """Adds the settings of a new table that this table lacks, in a separate commit that changes no row.

    Raises `delta_commits.Conflict` if another commit was faster.
    """
    newest = table.newest()
    assert newest is not None, "the table exists"
    have, version = newest.metadata().configuration, newest.version()
    wanted = log_writing.configuration(table.name, newest.schema())
    lacking = {name: value for name, value in wanted.items() if name not in have}
    if not lacking:
        return
    try:
        newest.alter.set_table_properties(lacking, commit_properties=CommitProperties(max_commit_retries=0))
    except DeltaError as error:
        if table.version() == version:
            raise
        raise delta_commits.Conflict(f"{table.name} is no longer at version {version}") from error
    delta_commits.sync_version(table, version + 1)


def checkpoint(table: Table, oldest: int, worth: int = ENTRIES) -> None:
    """Writes checkpoints of version `oldest` and of the newest version, each if the last is `worth` entries back.

    Afterwards the newest checkpoint names no deleted files, even if another program wrote it. A version is skipped if
    another maintenance has taken over and shortened the log past it.
    """
    newest = table.version()
    assert newest is not None, "a table with an oldest kept version exists"
    for version in sorted({oldest, newest}):
        worthwhile = version - (_last_checkpoint(table.store, version) or 0) >= worth
        if worthwhile and can_open(table.store, version):
            opened(table.store, version).create_checkpoint()
            _leave_out_gone(table.store, version)
            table.store.sync(log.written_by(table.store, version))
    last = _last_checkpoint(table.store, newest)
    if last is not None and len(log.written_by(table.store, last)) > 1:  # one file, as delta-rs and Spark write it
        _leave_out_gone(table.store, last)


def _leave_out_gone(store: Store, version: int) -> None:
    """Removes the tombstones of files that no longer exist from the checkpoint of a version."""
    content = store.get(log.checkpoint_of(version))
    assert content is not None, "the checkpoint exists"
    actions = pq.read_table(pa.BufferReader(content))
    removed = [path and unquote(path) for path in pc.struct_field(actions["remove"], "path").to_pylist()]
    tombstones = [path for path in removed if path]
    gone = {path for path, size in zip(tombstones, store.sizes(tombstones), strict=True) if size is None}
    kept = [path not in gone for path in removed]
    if all(kept):
        return
    buffer = pa.BufferOutputStream()
    pq.write_table(actions.filter(pa.array(kept)), buffer)
    left = buffer.getvalue().to_pybytes()
    store.put(log.checkpoint_of(version), left)
    hint = store.get(log.HINT)
    if hint is not None and log.last_checkpoint(store) == version:
        about = json.loads(hint)
        about.pop("checksum", None)  # written by Spark for the earlier content
        about |= {"size": sum(kept), "sizeInBytes": len(left)}
        store.put(log.HINT, json.dumps(about, separators=(",", ":")).encode())


def can_open(store: Store, version: int) -> bool:
    """Tests if the log can still open a version of the table."""
    return version >= log.oldest_version(store)


def superfluous(store: Store, oldest: int, worth: int = ENTRIES) -> list[ObjectInfo]:
    """The log files that are not needed for versions from `oldest` on, oldest first."""
    last = _last_checkpoint(store, oldest) or 0
    first = oldest if oldest - last >= worth else last  # `checkpoint` writes one of `oldest` before the deletion
    return [file for version, _, file in log.numbered(store) if version < first]


def delete(store: Store, files: Sequence[ObjectInfo]) -> None:
    """Deletes log files from `superfluous`.

    A log begins with the entry of version 0 or with a checkpoint. These files are deleted first, the oldest first. So a
    killed deletion leaves no beginning without the entries after it, although a storage deletes the rest in any order.
    """
    begins = [file.path for file in files if file.path == log.path_of(0) or ".checkpoint" in file.path]
    for path in begins:
        store.delete([path])
    store.delete([file.path for file in files if file.path not in begins])


def _last_checkpoint(store: Store, up_to: int) -> int | None:
    """Version of the newest checkpoint at or before a version."""
    checkpoints = (version for version, kind, _ in log.numbered(store) if kind.startswith("checkpoint."))
    return max((version for version in checkpoints if version <= up_to), default=None)
