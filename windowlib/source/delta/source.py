"""A Delta table as a source: files that its versions added, from the version at which the last batch stopped.

Only the log after that version is read, so earlier entries may be cleaned up. If the log no longer reaches back to
version 0, a new pipeline begins with the files that the table holds at its start.

`windowlib.source.delta.removals` handles versions that remove rows (DELETE, UPDATE, MERGE, an overwrite), and files
that OPTIMIZE removed before they were read. VACUUM only deletes files that no later version holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from windowlib.definition.toml.source import Source
from windowlib.delta import log
from windowlib.delta.tables import opened
from windowlib.source.delta.log_values import as_json, values_of_action
from windowlib.source.listed import ListedFile, SourceError, SourceListing, TableVersion
from windowlib.storage.at_once import at_once
from windowlib.storage.store import ObjectInfo, Store

PHYSICAL_NAME = "delta.columnMapping.physicalName"
CURSOR = "source_cursor"  # key in the definition's part of a plan and of a commit
OUTSIDE = re.compile("/|[A-Za-z][A-Za-z0-9+.-]*:/")
"""Start of a path outside of the table's folder: an absolute path or a URI."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Position up to which a Delta table was read.

    version:  all versions up to this version were read
    snapshot: the version whose files are read first, if the log does not reach back to 0; None once all are read
    table:    the id of the table, which changes if the table is created again; None if the cursor has no id
    """

    version: int = -1
    snapshot: int | None = None
    table: str | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Cursor:
        """Restores the cursor from the stored part of a commit."""
        return cls(**stored[CURSOR])

    def to_json(self) -> dict[str, int | str | None]:
        """Converts the cursor to the values that the ledger keeps."""
        return asdict(self)


def delta_files(source: Source, cursor: Cursor | None) -> SourceListing:
    """Lists the versions after a cursor, and the files of the cursor's snapshot. Without a cursor, lists all versions.

    Some of the snapshot's files may have been read. Raises `SourceError` if the table does not exist, was created
    again, uses column mapping or has files outside of its folder, or if its log has a gap after the cursor.
    """
    after = cursor or Cursor()
    table = open_table(source)
    _check_same(source, table, after)
    _check_names(source, table)
    files = [] if after.snapshot is None else _snapshot(source, after.snapshot)
    since = _since(source, _read_up_to(after), table.version())
    _check_inside(source, [*files, *(file for version in since for file in version.added)])
    return SourceListing(files, since, table=_id_of(table))


def _read_up_to(cursor: Cursor) -> int:
    return cursor.version if cursor.snapshot is None else cursor.snapshot


def _check_same(source: Source, table: DeltaTable, cursor: Cursor) -> None:
    """Raises `SourceError` if the cursor belongs to another table."""
    id_read, id_now, read, newest = cursor.table, _id_of(table), _read_up_to(cursor), table.version()
    if newest >= read and (id_read in (None, id_now) or id_now in _ids_since(source, read, newest)):
        return
    raise SourceError(
        f"{source.store} is not the Delta table that {source.pipeline} has read up to version {read}: it was created"
        f" again, and its newest version is {newest}. Its rows may have been read before. Put back the earlier table,"
        " or give the pipeline another name or warehouse to read the new table from its start"
    )


def _ids_since(source: Source, read: int, newest: int) -> set[str]:
    """Table ids in the log after version `read`. `CREATE OR REPLACE TABLE` keeps the log but changes the id."""
    with suppress(log.DamagedLog):  # a gap, which is reported when versions are read
        numbers = range(read + 1, newest + 1)
        actions = [action for some in at_once(partial(log.actions, source.store), numbers) for action in some]
        return {action["metaData"]["id"] for action in actions if "metaData" in action}
    return set()


def _check_names(source: Source, table: DeltaTable) -> None:
    """Raises `SourceError` if the table uses column mapping, so that its columns have other names in the files."""
    for field in table.schema().fields:
        if (own := field.metadata.get(PHYSICAL_NAME, field.name)) != field.name:
            raise SourceError(
                f"{source.store} uses column mapping, which windowlib does not support: its column {field.name!r} is"
                f" {own!r} in the files. Write the table again without delta.columnMapping.mode, or read a copy of it"
            )


def _check_inside(source: Source, files: Iterable[ListedFile]) -> None:
    """Raises `SourceError` for a file outside of the table's folder."""
    if outside := next((file.path for file in files if OUTSIDE.match(file.path)), None):
        raise SourceError(
            f"{source.store} has files outside of its folder, such as {outside}: it is a shallow clone, but only files"
            " below source.path are read. Set source.path to the cloned table, or to a copy of its rows"
        )


def version_of(source: Source, number: int) -> TableVersion | None:
    """Version `number` of the table; None if its log entry is gone."""
    try:
        return _version(number, log.actions(source.store, number))
    except log.DamagedLog:
        return None


def since_removed(source: Source, paths: Collection[str], version: int) -> list[TableVersion]:
    """Versions up to `version`, from the first version that removed a file in `paths` for good. Empty without such a
    version. A removal is not for good if a later version up to `version` added the file again.
    """
    looked_for, versions, first = {*paths}, list[TableVersion](), version + 1
    while looked_for and (entry := version_of(source, version)):
        versions.insert(0, entry)
        first = version if entry.removed & looked_for else first
        looked_for -= entry.touched
        version -= 1
    return [entry for entry in versions if entry.number >= first]


def taken_back(source: Source, listed: SourceListing, paths: Collection[str], cursor: Cursor) -> SourceListing:
    """Adds the unread files at `paths`, which lie before the cursor, to a table's listing.

    If the table has removed such a file since, also adds the versions from the removal on, with the new files.
    """
    versions = [*since_removed(source, paths, cursor.version), *listed.versions]
    gone = {path: version.values.get(path) for version in versions for path in version.removed}
    held = {file.path: file.partition_values for file in _files_of(open_table(source))} if paths else {}
    back = [
        replace(file, partition_values=gone.get(file.path) or held.get(file.path))
        for file in _there(source, paths, cursor.version)
        if file.path in gone or file.modified_ns
    ]
    return replace(listed, files=[*back, *listed.files], versions=versions)


def files_at(source: Source, version: int) -> list[ListedFile]:
    """Files that the table holds at a version, ordered as if that version had added them. If the log before
    the next checkpoint is cleaned up, derives the files backwards from the newest version.
    """
    newest = open_table(source).version()
    with suppress(SourceError):
        return [replace(file, order=(version, file.path)) for file in _snapshot(source, version)]
    held = {file.path: replace(file, order=(version, file.path)) for file in _snapshot(source, newest)}
    for later in reversed(_since(source, version, newest)):
        there = _there(source, later.removed, version)
        removed = {file.path: replace(file, partition_values=later.values.get(file.path)) for file in there}
        held = {path: file for path, file in held.items() if path not in later.touched} | removed
    return [*held.values()]


def _there(source: Source, paths: Collection[str], version: int) -> list[ListedFile]:
    """Looks up the sizes and times of files by their paths. Both are 0 if a file is gone."""
    wanted = [*paths]
    infos = [info or ObjectInfo(path, 0, 0) for path, info in zip(wanted, source.store.infos(wanted), strict=True)]
    return [ListedFile(info.path, info.size_bytes, info.modified_ns, (version, info.path)) for info in infos]


def cursor_after(left: Sequence[ListedFile], up_to: int | None, before: Cursor) -> Cursor:
    """Cursor after a batch: before the first version with an unread file, and at most at `up_to`.

    left:  files that the batch leaves unread
    up_to: the version up to which all files except `left` are read; None without newer versions

    >>> b, c = ListedFile("b", 1, 1, (5, "b")), ListedFile("c", 1, 1, (6, "c"))
    >>> [cursor_after(left, 7, Cursor(3)).version for left in ([b, c], [c], [])]
    [4, 5, 7]
    >>> cursor_after([b], 7, Cursor(snapshot=5))
    Cursor(version=-1, snapshot=5, table=None)
    """
    last = _read_up_to(before) if up_to is None else up_to
    reached = min([last, *(file.order[0] - 1 for file in left)])
    if before.snapshot is not None and reached < before.snapshot:
        return before
    return Cursor(max(reached, before.version), table=before.table)


def beginning(source: Source) -> Cursor:
    """Cursor of a new pipeline: before version 0 or, if the log was cleaned up, before the table's current files."""
    if log.has(source.store, 0) or not _has_log(source.store):
        return Cursor()
    return Cursor(snapshot=open_table(source).version())


def _has_log(store: Store) -> bool:
    return next(store.list(f"{log.FOLDER}/"), None) is not None


def table_id(source: Source) -> str:
    """Id that the table got when it was created."""
    return _id_of(open_table(source))


def _id_of(table: DeltaTable) -> str:
    return str(table.metadata().id)


def partition_types(source: Source) -> dict[str, str]:
    """Types of a Delta table's partition columns, as in its schema, by column."""
    table = open_table(source)
    partitioned = {*table.metadata().partition_columns}
    fields = [field for field in table.schema().fields if field.name in partitioned]
    return {field.name: str(getattr(field.type, "type", "")) for field in fields}


def open_table(source: Source, version: int | None = None) -> DeltaTable:
    """Opens the table at `version`, or at its newest version. Raises `SourceError` if it cannot be opened."""
    try:
        return opened(source.store, version)
    except DeltaError as error:
        which = "" if version is None else f" at version {version}"
        why = f"the Delta table {source.store}{which} cannot be opened: {error}"
        if not _has_log(source.store):
            why = f"{source.store} is not a Delta table (it has no _delta_log); correct source.path in {source.file}"
        raise SourceError(why) from error


def _snapshot(source: Source, version: int) -> list[ListedFile]:
    """Files that the table holds at a version, oldest first. Raises `SourceError` for deletion vectors."""
    table = open_table(source, version)
    if "deletionVectors" in (table.protocol().reader_features or ()):
        raise SourceError(
            f"{source.store} uses deletion vectors, and its log was cleaned up: deleted rows would be read. Rewrite the"
            " table without deletion vectors: REORG TABLE … APPLY (PURGE), then DROP FEATURE"
        )
    return _files_of(table)


def _files_of(table: DeltaTable) -> list[ListedFile]:
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()
    columns = [actions[name].to_pylist() for name in ("path", "size_bytes", "modification_time")]
    values = actions["partition"].to_pylist() if "partition" in actions.column_names else [{}] * actions.num_rows
    files = sorted(zip(*columns, values, strict=True), key=lambda file: (file[2], file[0]))
    return [
        ListedFile(unquote(path), size_bytes, modified * 1_000_000, (table.version(), f"{number:09}"), as_json(of_file))
        for number, (path, size_bytes, modified, of_file) in enumerate(files)
    ]


def _since(source: Source, after: int, newest: int) -> list[TableVersion]:
    """The versions after `after`, up to `newest`. Raises `SourceError` if the log has a gap."""

    def read(version: int) -> TableVersion:
        try:
            return _version(version, log.actions(source.store, version))
        except log.DamagedLog as error:
            raise SourceError(
                f"version {version} of the Delta table {source.store} cannot be read: {error}. The log was cleaned up"
                f" before {source.pipeline} had read it, so rows may be missing. Start again under another name or"
                " warehouse, and set delta.logRetentionDuration above the longest pause between runs"
            ) from error

    return at_once(read, range(after + 1, newest + 1))


def _version(number: int, actions: Sequence[dict[str, Any]]) -> TableVersion:
    entry = log.entry_of(number, actions)
    paths = [(unquote(action["add"]["path"]), action["add"]) for action in actions if "add" in action]
    return TableVersion(
        number,
        entry.operation,
        entry.user or "unknown",
        entry.removed,
        tuple(
            ListedFile(path, add["size"], add["modificationTime"] * 1_000_000, (number, path), values_of_action(add))
            for path, add in paths
        ),
        changes_rows=entry.changes_data,
        vectors=frozenset(path for path, add in paths if add.get("deletionVector")),
        values={
            unquote(action["remove"]["path"]): values_of_action(action["remove"])
            for action in actions
            if action.get("remove", {}).get("partitionValues") is not None
        },
    )
