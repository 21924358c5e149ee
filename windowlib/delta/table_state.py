"""State of a table at a version, carried forward entry by entry without opening the table again.

Opening a table, or updating an open one by delta-rs, takes most of the time of a small commit. An entry that windowlib
has written is short and of known form, so its files are added and removed here. Entries of other programs, of changed
columns and of tables with unusual statistics are left to delta-rs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable, Schema

from windowlib.delta import indexed_columns as indexed
from windowlib.delta.data_files import DataFile

Action = Mapping[str, Any]
PROGRAM = "windowlib/"  # prefix of the program that an entry of windowlib names
FILES_ONLY = frozenset({"commitInfo", "txn", "add", "remove"})


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


READ_BOUND: Mapping[str, Callable[[Any], Any]] = {
    "string": str,
    "long": int,
    "integer": int,
    "timestamp": _time,
    "timestamp_ntz": lambda text: _time(text).replace(tzinfo=None),
    "date": date.fromisoformat,
}
"""By Delta type, how a bound in the log becomes a Python value. Other types have no bounds in entries of windowlib."""


@dataclass(frozen=True)
class Description:
    """Columns, settings and protocol of a table at a version."""

    schema: Schema
    partition_by: tuple[str, ...]
    settings: Mapping[str, str]
    features: frozenset[str]
    table_id: str
    created_ms: int | None
    name: str | None = None
    comment: str | None = None

    @cached_property
    def columns(self) -> list[dict[str, Any]]:
        """The columns as in the JSON of the log."""
        return [*json.loads(self.schema.to_json())["fields"]]

    @cached_property
    def types(self) -> dict[str, Any]:
        """Delta type of each column, as in the JSON of the log."""
        return {column["name"]: column["type"] for column in self.columns}


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at a version. `files` is None until they are needed."""

    version: int
    description: Description
    files: list[DataFile] | None = None


def describe(table: DeltaTable) -> Description:
    """The description of an open table."""
    metadata, protocol = table.metadata(), table.protocol()
    return Description(
        table.schema(),
        tuple(metadata.partition_columns),
        dict(metadata.configuration),
        frozenset({*(protocol.writer_features or ()), *(protocol.reader_features or ())}),
        str(metadata.id),
        metadata.created_time,
        metadata.name,
        metadata.description,
    )


def carried(state: TableState, version: int, entries: Sequence[Sequence[Action]]) -> TableState | None:
    """The state at another version. `entries` are the entries between the two versions, oldest first.

    None if an entry changes more than files. Has no files if these are unknown, or `version` is older than the state.
    """
    if any(action.keys() - FILES_ONLY for entry in entries for action in entry):
        return None
    files = state.files if version > state.version else None
    for entry in entries:
        files = None if files is None else _files_after(files, entry, state.description)
    return TableState(version, state.description, files)


def _files_after(files: list[DataFile], entry: Sequence[Action], description: Description) -> list[DataFile] | None:
    """The files after an entry; None if delta-rs must read it."""
    if not _is_own(entry) or indexed.PROPERTY in description.settings:
        return None
    removed = {unquote(action["remove"]["path"]) for action in entry if "remove" in action}
    added = [_file(action["add"], description) for action in entry if "add" in action]
    known = [file for file in added if file]
    if len(known) < len(added):
        return None
    removed |= {file.path for file in known}  # a file that is added again replaces itself
    return [*(file for file in files if file.path not in removed), *known]


def _is_own(actions: Iterable[Action]) -> bool:
    info: Action = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    return str(info.get("engineInfo", "")).startswith(PROGRAM)


def _file(add: Action, description: Description) -> DataFile | None:
    """An added file; None if its statistics are not known as delta-rs knows them."""
    types, statistics = description.types, json.loads(add["stats"])
    bounds = [statistics["minValues"], statistics["maxValues"]]
    if add.get("deletionVector") or any(types.get(name) not in READ_BOUND for bound in bounds for name in bound):
        return None
    low, high = ({name: READ_BOUND[types[name]](value) for name, value in bound.items()} for bound in bounds)
    texts = {name: add["partitionValues"].get(name) for name in description.partition_by}
    values = {name: None if text is None else READ_BOUND[types[name]](text) for name, text in texts.items()}
    rows = statistics["numRecords"]
    return DataFile(unquote(add["path"]), add["size"], rows, values, low, high, statistics["nullCount"])
