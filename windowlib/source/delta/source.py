"""A Delta table as a source: the files that its versions added, from the version that the last batch left off at.

The table's log is read from there on, so what comes before may be cleaned up. Where a pipeline begins with a table
whose log no longer reaches back to version 0, its first files are those that the table holds then.

A version that removes rows (DELETE, UPDATE, MERGE, an overwrite) is not an arriving event:
`windowlib.source.delta.removals` says what becomes of it. OPTIMIZE changes no row; of files that it removed before they
were read that says it, too. VACUUM deletes files that no later version holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from windowlib.definition.toml.source import Source
from windowlib.delta import log
from windowlib.source.delta.log_values import as_json, values_of_action
from windowlib.source.listed import ListedFile, SourceError, SourceListing, TableVersion

PHYSICAL_NAME = "delta.columnMapping.physicalName"
CURSOR = "source_cursor"  # where a plan and a commit keep it: next to what the state depends on
OUTSIDE = re.compile("/|[A-Za-z][A-Za-z0-9+.-]*:/")
"""How the path of a file begins that does not lie below its table's folder."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a Delta table was read: every version up to `version`.

    `snapshot`: the version whose files come first, where the log did not reach back to 0; until all of them are read.
    `table`: the id that the table had, by which one that was created again is another; None where it was not kept.
    """

    version: int = -1
    snapshot: int | None = None
    table: str | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Cursor:
        """Returns the cursor that a commit keeps."""
        return cls(**stored[CURSOR])

    def to_json(self) -> dict[str, int | str | None]:
        """For the ledger."""
        return asdict(self)


def delta_files(source: Source, cursor: Cursor | None) -> SourceListing:
    """What the versions after a cursor (None: the log's beginning) did, and the files that came before them.

    Some of the files may be read.

    Raises `SourceError` where there is no table, or another one than was read, where its log does not reach back to the
    cursor, where its files lie elsewhere, and where they call columns otherwise than it does.
    """
    if not _log_of(source).is_dir():
        raise SourceError(
            f"{source.path} is not a Delta table (it has no _delta_log); correct source.path in {source.file}"
        )
    after = cursor or Cursor()
    table = open_table(source)
    _check_same(source, table, after)
    _check_names(source, table)
    found = [] if after.snapshot is None else _snapshot(source, after.snapshot)
    since = [*_since(source, _read_up_to(after), table.version())]
    _check_inside(source, [*found, *(file for version in since for file in version.added)])
    return SourceListing(found, since, table=_id_of(table))


def _read_up_to(cursor: Cursor) -> int:
    return cursor.version if cursor.snapshot is None else cursor.snapshot


def _check_same(source: Source, table: DeltaTable, cursor: Cursor) -> None:
    """Raises `SourceError` for another table than the one that was read so far."""
    known, now, read, newest = cursor.table, _id_of(table), _read_up_to(cursor), table.version()
    if newest >= read and (known in (None, now) or now in _ids_since(source, read, newest)):
        return
    raise SourceError(
        f"{source.path} is another Delta table than the one that {source.pipeline} has read up to version {read}: it"
        f" was created again, and its newest version is {newest}. What of it was read before cannot be known. Put"
        " back the table that was there; or give the pipeline another name or warehouse, to read this from its start"
    )


def _ids_since(source: Source, read: int, newest: int) -> set[str]:
    """The ids that a table was given by the versions after one: it may be replaced within its log."""
    with suppress(log.DamagedLog):  # a gap, which is named where versions are read
        actions = [one for version in range(read + 1, newest + 1) for one in log.actions(source.path, version)]
        return {one["metaData"]["id"] for one in actions if "metaData" in one}
    return set()


def _check_names(source: Source, table: DeltaTable) -> None:
    """Raises `SourceError` where a column's name is not the one that it has in the files."""
    for field in table.schema().fields:
        if (own := field.metadata.get(PHYSICAL_NAME, field.name)) != field.name:
            raise SourceError(
                f"{source.path} calls a column {field.name!r} that is {own!r} in its files (column mapping): the files"
                " are read, so values of another column might be taken for it. Write the table again without"
                " delta.columnMapping.mode, or read a copy of it"
            )


def _check_inside(source: Source, files: Iterable[ListedFile]) -> None:
    """Raises `SourceError` for a file that does not lie in the table's folder."""
    if outside := next((file.path for file in files if OUTSIDE.match(file.path)), None):
        raise SourceError(
            f"{source.path} has files that lie elsewhere, such as {outside}: it is a shallow clone, and files below the"
            " folder of a source are read. Name in source.path the table that it is a clone of, or a copy of its rows"
        )


def version_of(source: Source, number: int) -> TableVersion | None:
    """What a version did; None where its log entry is gone."""
    try:
        return _version(number, log.actions(source.path, number))
    except log.DamagedLog:
        return None


def since_removed(source: Source, paths: Collection[str], version: int) -> list[TableVersion]:
    """The versions up to one, from the first that has removed one of some files for good; none without such a one."""
    looked_for, found, first = {*paths}, list[TableVersion](), version + 1
    while looked_for and (one := version_of(source, version)):
        found.insert(0, one)
        first = version if one.removed & looked_for else first
        looked_for -= one.touched
        version -= 1
    return [one for one in found if one.number >= first]


def taken_back(source: Source, listed: SourceListing, paths: Collection[str], cursor: Cursor) -> SourceListing:
    """What a table lists after a cursor, with some files before it that were not read.

    Where it has removed them since, with the versions from there on: they say what these files have become.
    """
    versions = [*since_removed(source, paths, cursor.version), *listed.versions]
    gone = {path: version.values.get(path) for version in versions for path in version.removed}
    held = {file.path: file.partition_values for file in _held(source)} if paths else {}
    back = [
        _there(source, one, cursor.version, gone.get(one) or held.get(one))
        for one in paths
        if one in gone or (source.path / one).is_file()
    ]
    return replace(listed, files=[*back, *listed.files], versions=versions)


def files_at(source: Source, version: int) -> list[ListedFile]:
    """The files that the table holds at a version, each as if that version had added it.

    Where its log is cleaned up before the next checkpoint, later versions say it, of what the table holds now.
    """
    newest = open_table(source).version()
    with suppress(SourceError):
        return [replace(file, order=(version, file.path)) for file in _snapshot(source, version)]
    held = {file.path: replace(file, order=(version, file.path)) for file in _snapshot(source, newest)}
    for later in reversed([*_since(source, version, newest)]):
        removed = {path: _there(source, path, version, later.values.get(path)) for path in later.removed}
        held = {path: file for path, file in held.items() if path not in later.touched} | removed
    return [*held.values()]


def _there(source: Source, path: str, version: int, values: str | None) -> ListedFile:
    """A file that is known by its name alone; it may be gone."""
    with suppress(FileNotFoundError):
        stat = (source.path / path).stat()
        return ListedFile(path, stat.st_size, stat.st_mtime_ns, (version, path), values)
    return ListedFile(path, 0, 0, (version, path), values)


def cursor_after(left: Sequence[ListedFile], up_to: int | None, before: Cursor) -> Cursor:
    """The cursor of a batch that takes files and leaves others: before those, and never after `up_to`.

    `up_to`: the version up to which nothing is left but files; None where no version has come since.

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
    """Where a new pipeline begins: at version 0, or, where the log was cleaned up, with what the table holds now."""
    if log.file_of(source.path, 0).exists() or not _log_of(source).is_dir():
        return Cursor()
    return Cursor(snapshot=open_table(source).version())


def _log_of(source: Source) -> Path:
    return source.path / "_delta_log"


def table_id(source: Source) -> str:
    """The id that a table was given when it was created."""
    return _id_of(open_table(source))


def _id_of(table: DeltaTable) -> str:
    return str(table.metadata().id)


def partition_types(source: Source) -> dict[str, str]:
    """Returns the types of the columns by which a Delta table is partitioned, as its schema names them."""
    table = open_table(source)
    partitioned = {*table.metadata().partition_columns}
    return {one.name: str(getattr(one.type, "type", "")) for one in table.schema().fields if one.name in partitioned}


def open_table(source: Source, version: int | None = None) -> DeltaTable:
    """The table, at its newest version or another. Raises `SourceError` where it cannot be opened."""
    try:
        return DeltaTable(str(source.path), version=version)
    except DeltaError as error:
        which = "" if version is None else f" at version {version}"
        raise SourceError(f"the Delta table {source.path}{which} cannot be opened: {error}") from error


def _snapshot(source: Source, version: int) -> list[ListedFile]:
    """The files that the table holds at a version, in the order in which they were written."""
    table = open_table(source, version)
    if "deletionVectors" in (table.protocol().reader_features or ()):
        raise SourceError(
            f"{source.path} uses deletion vectors, and its log was cleaned up: which rows of its files are"
            " deleted is not read. Rewrite the table without them: REORG TABLE … APPLY (PURGE), then DROP FEATURE"
        )
    return _files_of(table, version)


def _held(source: Source) -> list[ListedFile]:
    """Returns the files that the table holds now."""
    table = open_table(source)
    return _files_of(table, table.version())


def _files_of(table: DeltaTable, version: int) -> list[ListedFile]:
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()
    columns = [actions[name].to_pylist() for name in ("path", "size_bytes", "modification_time")]
    values = actions["partition"].to_pylist() if "partition" in actions.column_names else [{}] * actions.num_rows
    files = sorted(zip(*columns, values, strict=True), key=lambda file: (file[2], file[0]))
    return [
        ListedFile(unquote(path), size_bytes, modified * 1_000_000, (version, f"{number:09}"), as_json(of_file))
        for number, (path, size_bytes, modified, of_file) in enumerate(files)
    ]


def _since(source: Source, after: int, newest: int) -> Iterator[TableVersion]:
    """What the versions after one, up to another, have done to the rows of the table."""
    folder = source.path
    for version in range(after + 1, newest + 1):
        try:
            actions = log.actions(folder, version)
        except log.DamagedLog as error:
            raise SourceError(
                f"version {version} of the Delta table {folder} cannot be read: {error}. A log that was cleaned up"
                f" before {source.pipeline} had read it has left a gap, which cannot be closed: rows may be missing."
                " Keep the log for longer than the longest pause between runs (delta.logRetentionDuration), and start"
                " again under another name or warehouse"
            ) from error
        yield _version(version, actions)


def _version(number: int, actions: Sequence[dict[str, Any]]) -> TableVersion:
    entry = log.entry_of(number, actions)
    paths = [(unquote(one["add"]["path"]), one["add"]) for one in actions if "add" in one]
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
            unquote(one["remove"]["path"]): values_of_action(one["remove"])
            for one in actions
            if one.get("remove", {}).get("partitionValues") is not None
        },
    )
