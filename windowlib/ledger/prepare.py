"""A publication, fixed before the first table changes: what is written down of it, and read again.

What a batch publishes is decided once. Before its first commit a synced file lists, for every table, the version it
starts from and every file to add and to remove; the ledger's `prepare` row names that file and its checksum. From then
on nothing is computed: the run itself, a retry, another run that takes over, or an operator's approval all roll exactly
that forward (`windowlib.publication.roll_forward`), so two attempts cannot be mixed, whatever was edited between them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from windowlib.delta import disk
from windowlib.delta.table_change import LoggedFile
from windowlib.model.errors import StateMismatch, WindowError

FOLDER = "_prepared"
FORMAT = 5
"""Format of the file. Each change of it raises the number."""
APP_ID = "windowlib"  # names our transactions in the tables' logs


class Unreadable(WindowError):
    """The file of a prepared publication is not there, or is not what the ledger says."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """What happens to one table. `start` is the version it was computed from, None where there is no table yet.

    `schema` is the Delta schema, as JSON, of a table to create; `columns` that of one which is there and changes it.
    `quiet` are the paths, of those to add and to remove, that readers of changes skip.
    """

    name: str
    start: int | None
    schema: str | None = None
    partition_by: tuple[str, ...] = ()
    add: tuple[LoggedFile, ...] = ()
    remove: tuple[LoggedFile, ...] = ()
    columns: str | None = None
    quiet: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """All that one batch publishes, in commit order; `row` is the ledger's commit row but for `versions`.

    Where nothing was `computed`, the files to add are those of earlier versions. `checks` are the outcomes that it was
    judged by, for the report on the batch. `of_rows` is false where no row changes: the same ones in other files.
    """

    identity: str
    batch_id: int
    changes: tuple[TableChange, ...]
    row: Mapping[str, Any]
    checks: tuple[Mapping[str, Any], ...] = ()
    computed: bool = True
    of_rows: bool = True


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
    """The publication that a `prepare` row names. Raises `Unreadable`, `StateMismatch` for one of a newer version."""
    file = root / prepared.path
    try:
        text = file.read_bytes()
    except OSError as error:
        raise Unreadable(f"{file}, which the ledger's prepare row names, cannot be read: {error}") from error
    if (found := checksum(text)) != prepared.sha256:
        raise Unreadable(f"{file} has sha256 {found}, but the ledger's prepare row says {prepared.sha256}")
    values = json.loads(text)
    if values["format"] != FORMAT:
        raise StateMismatch(
            f"{file} has format {values['format']}, this version reads {FORMAT}: another version has"
            " prepared the batch. Use that version"
        )
    changes = tuple(map(_change, values["changes"]))
    about = {name: values[name] for name in ("identity", "batch_id", "row", "computed", "of_rows")}
    return Publication(changes=changes, checks=tuple(values["checks"]), **about)


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
    add, remove = (tuple(LoggedFile(**one) for one in values[name]) for name in ("add", "remove"))
    partition_by, quiet = tuple(values["partition_by"]), tuple(values["quiet"])
    return TableChange(
        values["name"], values["start"], values["schema"], partition_by, add, remove, values["columns"], quiet
    )
