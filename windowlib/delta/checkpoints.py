"""A table's log kept short: a checkpoint repeats all entries before it, so that readers need not open those.

Entries before the newest checkpoint that is not after the oldest kept version are deleted: every kept version can still
be opened. Checkpoints are on the disk before an entry goes, and entries go from the oldest on.

Every commit writes one where the last is as many entries back as the table's settings say. A table that gained columns
may need more settings than it was created with (`settle`).

A checkpoint repeats the *tombstones* of removed files, too, for as long as the table's retention says: they keep VACUUM
off these files. Every process that opens the table reads them all, and in 30 days of a run each minute there come
200,000 in the ledger. Those of files that maintenance has deleted protect nothing, and are left out of the newest
checkpoint: later ones repeat it.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from windowlib.delta import commits as delta_commits
from windowlib.delta import disk, log
from windowlib.delta.tables import Table

ENTRIES = 10  # so many entries after a checkpoint are worth another one


def settle(table: Table) -> None:
    """Gives a table the settings of new ones that it lacks, in a commit of its own, which changes no row.

    Raises `delta_commits.Conflict` where another was faster.
    """
    newest = table.newest()
    assert newest is not None, "the table exists"
    have, version = newest.metadata().configuration, newest.version()
    wanted = delta_commits.configuration(table.folder.name, newest.schema())
    lacking = {name: value for name, value in wanted.items() if name not in have}
    if not lacking:
        return
    try:
        newest.alter.set_table_properties(lacking, commit_properties=CommitProperties(max_commit_retries=0))
    except DeltaError as error:
        if table.version() == version:
            raise
        raise delta_commits.Conflict(f"{table.folder.name} is no longer at version {version}") from error
    delta_commits.lasting(table, version + 1)


def checkpoint(table: Table, oldest: int, worth: int = ENTRIES) -> None:
    """Writes a checkpoint of version `oldest` and of the newest, where the last before each is `worth` entries back.

    The newest names no deleted files then, whichever program wrote it. None is written of a version past which another
    maintenance, that has taken this one over, has shortened the log meanwhile.
    """
    newest = table.version()
    assert newest is not None, "a table with an oldest kept version exists"
    for version in sorted({oldest, newest}):
        worthwhile = version - (_last_checkpoint(table.folder, version) or 0) >= worth
        if worthwhile and can_open(table.folder, version):
            DeltaTable(str(table.folder), version=version).create_checkpoint()
            _leave_out_gone(table.folder, version)
            disk.sync(log.written_by(table.folder, version), table.folder)
    last = _last_checkpoint(table.folder, newest)
    if last is not None and len(log.written_by(table.folder, last)) > 1:  # one file, as delta-rs and Spark write it
        _leave_out_gone(table.folder, last)


def _leave_out_gone(folder: Path, version: int) -> None:
    """Takes the tombstones of files that are not there any more out of the checkpoint of a version."""
    _, checkpoint, *_ = log.written_by(folder, version)
    actions = pq.read_table(checkpoint)
    removed = pc.struct_field(actions["remove"], "path").to_pylist()
    kept = [path is None or (folder / unquote(path)).exists() for path in removed]
    if all(kept):
        return
    buffer = pa.BufferOutputStream()
    pq.write_table(actions.filter(pa.array(kept)), buffer)
    _replace(checkpoint, buffer.getvalue(), version)
    if log.last_checkpoint(folder) == version:
        newest = checkpoint.with_name(log.HINT)
        about = json.loads(newest.read_text(encoding="utf-8"))
        about.pop("checksum", None)  # Spark's, of what stood there before
        about |= {"size": sum(kept), "sizeInBytes": checkpoint.stat().st_size}
        _replace(newest, json.dumps(about, separators=(",", ":")).encode(), version)


def _replace(path: Path, content: bytes, version: int) -> None:
    """Replaces a file of the log, at once. What a killed process leaves goes with the entries of its version."""
    new = path.with_name(f"{version:020}.{uuid.uuid4().hex}.tmp")
    new.write_bytes(content)
    disk.sync([new], new.parent)
    os.replace(new, path)


def can_open(folder: Path, version: int) -> bool:
    """Whether the log still says what the table held at a version."""
    return version >= log.oldest_version(folder)


def superfluous(folder: Path, oldest: int, worth: int = ENTRIES) -> list[Path]:
    """The files of a log that no version from `oldest` on needs, oldest first."""
    last = _last_checkpoint(folder, oldest) or 0
    first = oldest if oldest - last >= worth else last  # where `checkpoint` writes one before they go
    return sorted(path for version, path in _numbered(folder) if version < first)


def delete(files: list[Path]) -> None:
    """Deletes entries, oldest first."""
    for path in files:
        path.unlink(missing_ok=True)


def _last_checkpoint(folder: Path, up_to: int) -> int | None:
    """The newest checkpoint that is not after a version."""
    return max((n for n, path in _numbered(folder) if n <= up_to and ".checkpoint." in path.name), default=None)


def _numbered(folder: Path) -> Iterator[tuple[int, Path]]:
    """The files of a log by their version."""
    for path in (folder / "_delta_log").iterdir():
        number = path.name.partition(".")[0]
        if number.isdigit():
            yield int(number), path
