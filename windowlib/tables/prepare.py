"""A publication, fixed before the first table changes: prepared, then rolled forward.

What a batch publishes is decided once. Before its first commit a synced file lists, for every table, the version it
starts from and every file to add and to remove; the ledger's `prepare` row names that file and its checksum. From then
on nothing is computed: the run itself, a retry, another run that takes over, or an operator's approval all roll exactly
that forward, so two attempts cannot be mixed, whatever was edited between them.

Before any table changes, every table is judged:

============  ==========================================================================================================
`AT_START`    at its start version: commit
`DONE`        it holds this publication's commit, known by its identity
`MOVED_ON`    moved by commits that changed no row, all files to remove still in it: commit on top
`COMPACTED`   a file to remove was compacted away: the compaction is undone, if the old files exist
============  ==========================================================================================================

Anything else is a change by someone else (`ForeignChange`), and nothing is touched. Every commit is a compare-and-set,
so of several that roll one publication forward each finds the others' commits, and accepts them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from deltalake import Schema

from windowlib.model.errors import WindowError
from windowlib.tables import delta, disk, log
from windowlib.tables.delta import LoggedFile
from windowlib.tables.opened import Table, Tables

FOLDER = "_prepared"
FORMAT = 1
APP_ID = "windowlib"  # names our transactions in the tables' logs


class ForeignChange(WindowError):
    """A table was changed by another program than windowlib since the newest run."""


class Unreadable(WindowError):
    """The file of a prepared publication is not there, or is not what the ledger says."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """What happens to one table. `start` is the version it was computed from, None where there is no table yet.

    `schema` is the Delta schema, as JSON, of a table to create.
    """

    name: str
    start: int | None
    schema: str | None = None
    partition_by: tuple[str, ...] = ()
    add: tuple[LoggedFile, ...] = ()
    remove: tuple[LoggedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """All that one batch publishes, in commit order; `row` is the ledger's commit row but for `versions`.

    Where nothing was `computed`, the files to add are those of earlier
    versions. `checks` are the outcomes that it was judged by, for the report on the batch.
    """

    identity: str
    batch_id: int
    changes: tuple[TableChange, ...]
    row: Mapping[str, Any]
    checks: tuple[Mapping[str, Any], ...] = ()
    computed: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """Where a publication is written down: a path relative to the pipeline's folder, and the sha256 of the file."""

    path: str
    sha256: str


def write(root: Path, publication: Publication) -> Prepared:
    """Writes a publication down and makes it, and every file that it adds, last.

    Raises OSError where the disk refuses; then the files that were written for it are deleted.
    """
    text = json.dumps({"format": FORMAT, **asdict(publication)}, sort_keys=True).encode()
    file = _file(root, publication)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        disk.sync((root / one.name / added.path for one in publication.changes for added in one.add), root)
        file.write_bytes(text)
        disk.sync([file], root)
    except OSError:
        with suppress(OSError):  # a disk that is read-only keeps them
            drop(root, publication)
        raise
    return Prepared(str(file.relative_to(root)), checksum(text))


def read(root: Path, prepared: Prepared) -> Publication:
    """The publication that a `prepare` row names. Raises `Unreadable`."""
    file = root / prepared.path
    try:
        text = file.read_bytes()
    except OSError as error:
        raise Unreadable(f"{file}, which the ledger's prepare row names, cannot be read: {error}") from error
    if (found := checksum(text)) != prepared.sha256:
        raise Unreadable(f"{file} has sha256 {found}, but the ledger's prepare row says {prepared.sha256}")
    values = json.loads(text)
    if values["format"] > FORMAT:
        raise Unreadable(f"{file} has format {values['format']}: it needs a newer version of windowlib")
    changes = tuple(map(_change, values["changes"]))
    checks, computed = tuple(values["checks"]), values.get("computed", True)
    return Publication(values["identity"], values["batch_id"], changes, values["row"], checks, computed)


def checksum(text: bytes) -> str:
    """The sha256 of a prepare file."""
    return hashlib.sha256(text).hexdigest()


def forget(root: Path, publication: Publication) -> None:
    """Deletes the file of a publication that is committed. Its folder stays: another run may be writing there."""
    _file(root, publication).unlink(missing_ok=True)


def drop(root: Path, publication: Publication) -> None:
    """Deletes a publication that was given up, with every file that it would have added."""
    for change in publication.changes if publication.computed else ():
        for file in change.add:
            (root / change.name / file.path).unlink(missing_ok=True)
    forget(root, publication)


def _file(root: Path, publication: Publication) -> Path:
    return root / FOLDER / f"{publication.identity}.json"


def _change(values: Mapping[str, Any]) -> TableChange:
    files = {name: tuple(LoggedFile(**one) for one in values[name]) for name in ("add", "remove")}
    return TableChange(values["name"], values["start"], values["schema"], tuple(values["partition_by"]), **files)


# -- where each table stands ------------------------------------------------------------------------------------------


class Standing(Enum):
    """Where a table stands with regard to a publication."""

    AT_START = "at its start version"
    DONE = "published"
    MOVED_ON = "moved on without a change of rows"
    COMPACTED = "compacted"


@dataclass(frozen=True, slots=True)
class Judged:
    """One table: where it stands, and the version of its commit (`DONE`) or at which that was seen."""

    change: TableChange
    standing: Standing
    version: int | None


def judge(tables: Tables, publication: Publication) -> list[Judged]:
    """Where every table stands. Touches none of them. Raises `ForeignChange`, `log.DamagedLog`."""
    return [_judge(tables[one.name], one, publication.identity) for one in publication.changes]


def _judge(table: Table, change: TableChange, identity: str) -> Judged:
    newest, folder = delta.version(table), table.folder
    if newest is None or newest == change.start:
        _check_there(folder, change)
        if newest != change.start:
            raise ForeignChange(f"table {folder.name} no longer exists: it was at version {change.start}")
        return Judged(change, Standing.AT_START, newest)
    since = list(log.entries(folder, -1 if change.start is None else change.start, newest))
    if change.start is None:
        since = since[1:]  # its creation: by this publication or by another that rolls it forward
    ours = [one for one in since if one.identity == identity]
    if done := [one.version for one in ours if APP_ID in one.transactions]:
        return Judged(change, Standing.DONE, done[-1])
    _check_there(folder, change)
    changed = changed_since(table, change.start, since)
    check_adoptable(folder, [one for one in changed if one not in ours])
    live = frozenset(file.path for file in delta.files(table, newest))
    lost = frozenset(one.path for one in change.remove) - live
    if not lost:
        standing = Standing.AT_START if not since else Standing.MOVED_ON
        return Judged(change, standing, newest)
    if missing := sorted(path for path in lost if not (folder / path).exists()):
        raise ForeignChange(
            f"table {folder.name} was compacted while a batch was waiting to be published, and {missing[0]} is deleted"
            f" ({len(missing)} such files): `windowlib abandon` drops the batch, and the next run computes it again"
        )
    return Judged(change, Standing.COMPACTED, newest)


def _check_there(folder: Path, change: TableChange) -> None:
    """Raises `Unreadable` where a file to be published is deleted: no log names it yet, so VACUUM may."""
    if gone := [one.path for one in change.add if not (folder / one.path).exists()]:
        raise Unreadable(
            f"{folder / gone[0]}, which the prepared batch would publish, is deleted ({len(gone)} such files):"
            " VACUUM with a short retention does that. Restore it from a backup, or drop the batch with `windowlib"
            " abandon`, and the next run computes it again"
        )


def changed_since(table: Table, start: int | None, since: Sequence[log.Entry]) -> list[log.Entry]:
    """Those of the commits `since` version `start` by which the table's files, or its columns, differ from then.

    A change of its settings, or one of columns that was taken back, changes no columns here.
    """
    if any(one.changes_columns for one in since) and delta.columns(table, start or 0) == delta.columns(table):
        since = [replace(one, changes_columns=False) for one in since]
    return log.since_last_at((file.path for file in delta.files(table, start)), since)


def check_adoptable(folder: Path, since: Iterable[log.Entry]) -> None:
    """Raises `ForeignChange` unless the commits changed no row and no column."""
    for one in since:
        if one.changes_data or one.changes_columns:
            way_back = (
                f"Its columns changed. {takes_columns_back(folder, one)}"
                if one.changes_columns
                else "`windowlib restore` takes that back, `windowlib adopt` keeps it; with --dry-run each shows what"
                " it would do"
            )
            raise ForeignChange(
                f"table {folder.name} was changed by another program: version {one.version}, {one.operation}, by"
                f" {one.user or 'unknown'}. Nothing was touched. {way_back}"
            )


def takes_columns_back(folder: Path, changed: log.Entry) -> str:
    """How a change of a table's columns is taken back."""
    before = changed.version - 1
    return f"Spark can take that back: RESTORE TABLE delta.`{folder}` TO VERSION AS OF {before}"


# -- rolling forward --------------------------------------------------------------------------------------------------


def roll_forward(tables: Tables, publication: Publication, judged: Sequence[Judged]) -> dict[str, int]:
    """Commits what is not committed yet, table by table, and makes the log entries last; gives every table's version.

    `judged` is what `judge` said just before. A commit that another run of the same publication made meanwhile is as
    good as ours. Raises `delta.Conflict` where a table was moved by anyone else, `ForeignChange`.
    """
    versions: dict[str, int] = {}
    for one in judged:
        table = tables[one.change.name]
        version = one.version if one.standing is Standing.DONE else _publish(table, one, publication)
        if version is not None:
            versions[one.change.name] = version
    disk.sync(_entries(tables, publication, versions), tables.root)
    return versions


def _entries(tables: Tables, publication: Publication, versions: Mapping[str, int]) -> Iterator[Path]:
    """All that the logs have gained since the publication was computed, by any writer."""
    for change in publication.changes:
        after, up_to = -1 if change.start is None else change.start, versions.get(change.name, -1)
        for version in range(after + 1, up_to + 1):
            yield from log.written_by(tables[change.name].folder, version)


def _publish(table: Table, judged: Judged, publication: Publication) -> int | None:
    change = judged.change
    if not (change.add or change.remove):
        return judged.version
    try:
        version = _ready(table, judged)
        transaction = (APP_ID, publication.batch_id)
        moved = delta.Change(change.add, change.remove)
        return delta.commit_logged(table, version, moved, publication.identity, transaction)
    except delta.Conflict:
        again = _judge(table, change, publication.identity)
        if again.standing is Standing.DONE:
            return again.version
        raise


def created(table: Table, change: TableChange) -> int:
    """The version of the empty table that this makes. Raises `delta.Conflict`."""
    assert change.schema is not None, "a table to create has a schema"
    return delta.create(table, Schema.from_json(change.schema), change.partition_by)


def _ready(table: Table, judged: Judged) -> int:
    """The version to commit on: the table exists, and holds the files that are to be removed."""
    change, version = judged.change, judged.version
    if version is None:
        version = created(table, change)
    if judged.standing is Standing.COMPACTED:
        assert change.start is not None, "only what existed can have been compacted"
        restored = delta.restore(table, version, change.start, of_rows=False)
        assert restored is not None, "the table exists"
        version = restored
    return version
