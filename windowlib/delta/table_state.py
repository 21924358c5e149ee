"""State of a table at a version, read from its newest checkpoint and the entries after it, or carried forward.

Opening a table by delta-rs takes most of the time of a small commit. An entry that windowlib has written is short and
of known form, so its files are added and removed here. Large checkpoints, entries of other programs, and tables with
unusual features or statistics are left to delta-rs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema

from windowlib.delta import indexed_columns as indexed
from windowlib.delta import log
from windowlib.delta.data_files import DataFile, rows_of
from windowlib.storage.store import Store

Action = Mapping[str, Any]
AT_MOST = 32  # entries that are read one by one; delta-rs reads more of them faster
MOST_BYTES = 1 << 18  # of a checkpoint, about 1,000 files; delta-rs reads a larger one faster
PLAIN_READERS = {1: frozenset[str](), 3: frozenset({"timestampNtz"})}  # reader features by version of the protocol
IN_CHECKPOINT = ("metaData", "protocol", "add")
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
    "decimal": Decimal,
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
    def types(self) -> dict[str, str]:
        """Delta type of each column, of decimals without their digits. Nested columns are missing."""
        kinds = ((column["name"], column["type"]) for column in self.columns)
        return {name: kind.partition("(")[0] for name, kind in kinds if isinstance(kind, str)}


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at a version. `files` is None if they are not known yet."""

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


def read(store: Store, version: int, checkpoint: int | None, known: Mapping[int, bytes]) -> TableState | None:
    """The state of a version; None if delta-rs must read it. Has no files if only delta-rs can read these.

    `checkpoint` is the version of the newest checkpoint. `known` are entries that were read already. Raises
    `log.DamagedLog`.
    """
    base = None if checkpoint is None or checkpoint > version else checkpoint
    versions = range(0 if base is None else base + 1, version + 1)
    if len(versions) > AT_MOST or (entries := log_entries(store, versions, known)) is None:
        return None
    start = [] if base is None else _checkpointed(store, base)
    if start is None:
        return None
    newest = {kind: action[kind] for actions in [start, *entries] for action in actions for kind in action}
    try:
        if not _is_plain(newest["protocol"]):
            return None
        description = _description(newest["metaData"], newest["protocol"])
        return TableState(version, description, _files(description, start, entries))
    except (KeyError, TypeError, ValueError):  # of another program; delta-rs reads it, or names the reason
        return None


def log_entries(store: Store, versions: Sequence[int], known: Mapping[int, bytes]) -> list[Sequence[Action]] | None:
    """Actions of some versions, read in one round unless `known`; None if an entry is missing. Raises `DamagedLog`."""
    unread = [number for number in versions if number not in known]
    contents = {**known, **dict(zip(unread, store.get_many([log.path_of(number) for number in unread]), strict=True))}
    if any(contents[number] is None for number in versions):
        return None
    return [log.actions_in(contents[number], store, number) for number in versions]


def _files(
    description: Description, start: Sequence[Action], entries: Sequence[Sequence[Action]]
) -> list[DataFile] | None:
    """The files of a checkpoint and of the entries after it; None if delta-rs must read them."""
    files = _files_added(start, description)
    for entry in entries:
        files = None if files is None else _files_after(files, entry, description)
    return files


def _checkpointed(store: Store, version: int) -> list[Action] | None:
    """Actions of a checkpoint: protocol, metadata and added files. None if it is large or has an unknown form."""
    try:
        content = store.get_range(log.checkpoint_of(version), 0, MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(content) > MOST_BYTES:
        return None
    file = pq.ParquetFile(pa.BufferReader(content))
    if not {*IN_CHECKPOINT} <= {*file.schema_arrow.names}:
        return None
    rows = rows_of(file.read(columns=[*IN_CHECKPOINT]))
    return [{kind: _action(action)} for row in rows for kind, action in row.items() if action]


def _action(fields: Mapping[str, Any]) -> Action:
    """An action as in an entry: the maps of a checkpoint are lists of pairs."""
    maps = ("partitionValues", "configuration")
    return {name: dict(value) if name in maps and value is not None else value for name, value in fields.items()}


def _is_plain(protocol: Action) -> bool:
    """Tests if a reader of Parquet files and log entries reads the table correctly."""
    features = PLAIN_READERS.get(protocol["minReaderVersion"])
    return features is not None and {*(protocol.get("readerFeatures") or ())} <= features


def _description(metadata: Action, protocol: Action) -> Description:
    return Description(
        Schema.from_json(metadata["schemaString"]),
        tuple(metadata["partitionColumns"]),
        dict(metadata.get("configuration") or {}),
        frozenset({*(protocol.get("writerFeatures") or ()), *(protocol.get("readerFeatures") or ())}),
        metadata["id"],
        metadata.get("createdTime"),
        metadata.get("name"),
        metadata.get("description"),
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
    if not _is_own(entry) or (added := _files_added(entry, description)) is None:
        return None
    removed = {unquote(action["remove"]["path"]) for action in entry if "remove" in action}
    removed |= {file.path for file in added}  # a file that is added again replaces itself
    return [*(file for file in files if file.path not in removed), *added]


def _files_added(actions: Sequence[Action], description: Description) -> list[DataFile] | None:
    """The files that actions add; None if delta-rs must read them."""
    if indexed.PROPERTY in description.settings:
        return None
    files = [_file(action["add"], description) for action in actions if "add" in action]
    return None if None in files else [file for file in files if file]


def _is_own(actions: Iterable[Action]) -> bool:
    info: Action = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    return str(info.get("engineInfo", "")).startswith(PROGRAM)


def _file(add: Action, description: Description) -> DataFile | None:
    """An added file; None if its statistics are not known as delta-rs knows them."""
    types, statistics = description.types, json.loads(add.get("stats") or "{}", parse_float=Decimal)
    if {"numRecords", "minValues", "maxValues", "nullCount"} - statistics.keys():
        return None
    bounds = [statistics["minValues"], statistics["maxValues"]]
    if add.get("deletionVector") or any(types.get(name) not in READ_BOUND for bound in bounds for name in bound):
        return None
    low, high = ({name: READ_BOUND[types[name]](value) for name, value in bound.items()} for bound in bounds)
    texts = {name: add["partitionValues"].get(name) for name in description.partition_by}
    values = {name: None if text is None else READ_BOUND[types[name]](text) for name, text in texts.items()}
    rows = statistics["numRecords"]
    return DataFile(unquote(add["path"]), add["size"], rows, values, low, high, statistics["nullCount"])
