"""A Delta table as a source: the files that its versions added, from the version that the last batch left off at.

The table's log is read from there on, so what comes before may be cleaned up. Where a pipeline begins with a table
whose log no longer reaches back to version 0, its first files are those that the table holds then.

A commit that removes rows (DELETE, UPDATE, MERGE, an overwrite) is no event that arrives. It stops the run, or, with
`source.removals = "skip"`, is passed over with all that it adds. OPTIMIZE and VACUUM change no row: passed over too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from windowlib.definition.definition import Definition
from windowlib.source.found import Found, SourceError
from windowlib.tables import log

CURSOR = "source_cursor"  # where a plan and a commit keep it: beside what the state depends on


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a Delta table was read: every version up to `version`.

    `snapshot`: the version whose files come first, where the log did not reach back to 0; until all of them are read.
    """

    version: int = -1
    snapshot: int | None = None

    @classmethod
    def of(cls, definition_json: str) -> Cursor:
        """The cursor that a commit keeps; the log's beginning where a release wrote it that kept none."""
        return cls(**json.loads(definition_json).get(CURSOR, {}))

    def to_json(self) -> dict[str, int | None]:
        """For the ledger."""
        return {"version": self.version, "snapshot": self.snapshot}


def delta_files(definition: Definition, cursor: Cursor | None) -> list[Found]:
    """The files to read after a cursor (None: the log's beginning), maybe with some that were read; once each.

    Raises `SourceError` where there is no table, its log does not reach back to the cursor, or rows were removed.
    """
    if not _log_of(definition).is_dir():
        raise SourceError(
            f"{definition.source.path} is not a Delta table (it has no _delta_log); correct source.path in"
            f" {definition.file}"
        )
    after = cursor or Cursor()
    found = [] if after.snapshot is None else _snapshot(definition, after.snapshot)
    found += _since(definition, after.version if after.snapshot is None else after.snapshot)
    once: dict[str, Found] = {}
    for file in found:
        once.setdefault(file.path, file)  # RESTORE adds a file again
    return list(once.values())


def cursor_after(taken: Sequence[Found], left: Sequence[Found], before: Cursor) -> Cursor:
    """The cursor of a batch that takes some of the files that are not read, and leaves others.

    >>> a, b = Found("a", 1, 1, (4, "a")), Found("b", 1, 1, (5, "b"))
    >>> cursor_after([a], [b], Cursor(3)), cursor_after([a, b], [], Cursor(3)), cursor_after([], [], Cursor(3))
    (Cursor(version=4, snapshot=None), Cursor(version=5, snapshot=None), Cursor(version=3, snapshot=None))
    """
    if not taken:
        return before
    newest = max(file.order[0] for file in taken)
    oldest_left = min((file.order[0] for file in left), default=newest + 1)
    if before.snapshot is not None and oldest_left <= before.snapshot:
        return before
    return Cursor(newest)


def beginning(definition: Definition) -> Cursor:
    """Where a new pipeline begins: at version 0, or, where the log was cleaned up, with what the table holds now."""
    if log.file_of(definition.source.path, 0).exists() or not _log_of(definition).is_dir():
        return Cursor()
    return Cursor(snapshot=_table(definition).version())


def _log_of(definition: Definition) -> Path:
    return definition.source.path / "_delta_log"


def _table(definition: Definition, version: int | None = None) -> DeltaTable:
    try:
        return DeltaTable(str(definition.source.path), version=version)
    except DeltaError as error:
        which = "" if version is None else f" at version {version}"
        raise SourceError(f"the Delta table {definition.source.path}{which} cannot be opened: {error}") from error


def _snapshot(definition: Definition, version: int) -> list[Found]:
    """The files that the table holds at a version, in the order in which they were written."""
    table = _table(definition, version)
    if "deletionVectors" in (table.protocol().reader_features or ()):
        raise SourceError(
            f"{definition.source.path} uses deletion vectors, and its log was cleaned up: which rows of its files are"
            " deleted is not read. Rewrite the table without them: REORG TABLE … APPLY (PURGE), then DROP FEATURE"
        )
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()
    columns = (actions[name].to_pylist() for name in ("path", "size_bytes", "modification_time"))
    files = sorted(zip(*columns, strict=True), key=lambda file: (file[2], file[0]))
    return [
        Found(unquote(path), size_bytes, modified * 1_000_000, (version, f"{number:09}"))
        for number, (path, size_bytes, modified) in enumerate(files)
    ]


def _since(definition: Definition, after: int) -> Iterator[Found]:
    """What the versions after one have added."""
    folder, newest = definition.source.path, _table(definition).version()
    for version in range(after + 1, newest + 1):
        try:
            actions = log.actions(folder, version)
        except log.DamagedLog as error:
            raise SourceError(
                f"version {version} of the Delta table {folder} cannot be read: {error}. A log that was cleaned up"
                f" before {definition.name} had read it has left a gap, which cannot be closed: rows may be missing."
                " Keep the log for longer than the longest pause between runs (delta.logRetentionDuration), and start"
                " again under another name or warehouse"
            ) from error
        if any(one["remove"].get("dataChange", True) for one in actions if "remove" in one):
            if definition.source.removals == "stop":
                raise SourceError(_removal(definition, log.entry(folder, version)))
            continue
        for add in (one["add"] for one in actions if "add" in one):
            if add.get("dataChange", True):
                path = unquote(add["path"])
                yield Found(path, add["size"], add["modificationTime"] * 1_000_000, (version, path))


def _removal(definition: Definition, by: log.Entry) -> str:
    return (
        f"version {by.version} of {definition.source.path} ({by.operation}, by {by.user or 'unknown'})"
        " removes rows, and a Delta source must be append-only: the events were published. To go on without that"
        f' version, and without what it adds, set source.removals = "skip" in {definition.file}'
    )
