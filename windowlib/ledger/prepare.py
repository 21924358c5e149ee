"""Prepared publication of a batch, written before the first table changes.

The outcome of a batch is decided once. Before the first commit, a synced file lists for every table the start version
and every file to add and to remove. The `prepare` row of the ledger names that file and its checksum.

From then on nothing is computed. The run itself, a retry, a run that takes over and an operator's approval all roll
exactly that publication forward (`windowlib.publication.roll_forward`). Two attempts therefore cannot mix, even if
files are edited between them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from windowlib.definition.commands import THIS, WHY, to_paste
from windowlib.delta import data_files
from windowlib.delta.table_change import LoggedFile
from windowlib.model.errors import StateMismatch, WindowError
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

FOLDER = "_prepared"
NOTHING: Mapping[str, bytes] = MappingProxyType({})
FORMAT = 5
"""Format of the file. Each change of it raises the number."""
APP_ID = "windowlib"  # names our transactions in the tables' logs


class Unreadable(WindowError):
    """The file of a prepared publication is missing, or its checksum differs from the ledger's."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """Change of one table. `start` is the table version that the change builds on, None if there is no table yet.

    `schema` is the Delta schema, as JSON, of a table to create. `columns` is the new Delta schema of an existing table,
    None if it keeps its own. `quiet` are the paths of added and removed files that readers of changes skip.
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
    """Everything that one batch publishes, in commit order. `row` is the ledger's commit row without `versions`.

    `computed` is False if the batch wrote no new files: the files to add come from earlier versions. `checks` are the
    outcomes of the batch's checks, for its report. `of_rows` is False if no row changes and only the files differ.
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
    """File of a prepared publication: its path relative to the pipeline's folder, and its sha256."""

    path: str
    sha256: str


def write(store: Store, publication: Publication, contents: Mapping[str, bytes] = NOTHING) -> Prepared:
    """Writes a publication and the `contents` of small files that it adds, by path, and syncs all files that it adds.

    All this happens at once. If the storage refuses a write, deletes the publication and the files that it adds, and
    raises OSError.
    """
    text = json.dumps({"format": FORMAT, **asdict(publication)}, sort_keys=True).encode()
    by_engine = [path for path in _added(publication) if path not in contents]
    puts = [partial(data_files.put, store, path, content) for path, content in contents.items()]
    puts.append(partial(store.put, _path(publication), text))
    try:
        at_once(lambda step: step(), [partial(store.sync, by_engine), *puts])
    except OSError:
        with suppress(OSError):  # on a read-only disk the files stay
            drop(store, publication)
        raise
    return Prepared(_path(publication), checksum(text))


def _way_on() -> str:
    return f"Restore it from a backup, or abandon the batch: `{to_paste('abandon', THIS, *WHY)}`"


def read(store: Store, prepared: Prepared) -> Publication:
    """Reads the publication that a `prepare` row names. Raises `Unreadable`, and `StateMismatch` for another format."""
    file = f"{store.url}/{prepared.path}"
    try:
        text = store.get(prepared.path)
    except OSError as error:
        raise Unreadable(f"the prepared publication {file} cannot be read: {error}. {_way_on()}") from error
    if text is None:
        raise Unreadable(f"the prepared publication {file} cannot be read: it does not exist. {_way_on()}")
    if (sha256 := checksum(text)) != prepared.sha256:
        raise Unreadable(
            f"the prepared publication {file} is damaged: it has sha256 {sha256}, need {prepared.sha256}. {_way_on()}"
        )
    values = json.loads(text)
    if values["format"] != FORMAT:
        raise StateMismatch(
            f"{file} has format {values['format']}, but this version reads format {FORMAT}. Another version"
            " prepared the batch: use that version"
        )
    changes = tuple(map(_change, values["changes"]))
    about = {name: values[name] for name in ("identity", "batch_id", "row", "computed", "of_rows")}
    return Publication(changes=changes, checks=tuple(values["checks"]), **about)


def checksum(text: bytes) -> str:
    """Returns the sha256 of a prepare file."""
    return hashlib.sha256(text).hexdigest()


def forget(store: Store, publication: Publication) -> None:
    """Deletes the file of a committed publication."""
    store.delete([_path(publication)])


def drop(store: Store, publication: Publication) -> None:
    """Deletes an abandoned publication and every file that it would have added."""
    store.delete([*(_added(publication) if publication.computed else ()), _path(publication)])


def _added(publication: Publication) -> Iterator[str]:
    """Paths of the files that a publication adds, relative to the pipeline."""
    for change in publication.changes:
        yield from (f"{change.name}/{file.path}" for file in change.add)


def _path(publication: Publication) -> str:
    return f"{FOLDER}/{publication.identity}.json"


def _change(values: Mapping[str, Any]) -> TableChange:
    add, remove = (tuple(LoggedFile(**file) for file in values[name]) for name in ("add", "remove"))
    partition_by, quiet = tuple(values["partition_by"]), tuple(values["quiet"])
    return TableChange(
        values["name"], values["start"], values["schema"], partition_by, add, remove, values["columns"], quiet
    )
