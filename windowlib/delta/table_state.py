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


@dataclass(frozen=True, slots=True)
class Description:
    """Columns, settings and protocol of a table at a version."""

    schema: Schema
    partition_by: tuple[str, ...]
    settings: Mapping[str, str]
    features: frozenset[str]
    identity: str
    name: str | None
    comment: str | None
    created_ms: int | None

    @property
    def types(self) -> dict[str, Any]:
        """Delta type of each column, as in the JSON of the log."""
        return {column["name"]: column["type"] for column in json.loads(self.schema.to_json())["fields"]}

    @property
    def column_rules(self) -> list[tuple[str, str]]:
        """Rules that the protocol attaches to columns, such as invariants and generated values: (column, rule)."""
        columns = json.loads(self.schema.to_json())["fields"]
        return [(column["name"], key) for column in columns for key in column["metadata"] if key.startswith("delta.")]


def describe(table: DeltaTable) -> Description:
    """The description of an open table."""
    metadata, protocol = table.metadata(), table.protocol()
    return Description(
        table.schema(),
        tuple(metadata.partition_columns),
        dict(metadata.configuration),
        frozenset({*(protocol.writer_features or ()), *(protocol.reader_features or ())}),
        str(metadata.id),
        metadata.name,
        metadata.description,
        metadata.created_time,
    )


def changes_files_only(actions: Iterable[Action]) -> bool:
    """Tests if an entry leaves the columns, the settings and the protocol as they are."""
    return all(action.keys() <= FILES_ONLY for action in actions)


def files_after(
    files: Sequence[DataFile], actions: Sequence[Action], description: Description
) -> list[DataFile] | None:
    """The files of the next version; None if delta-rs must read the entry."""
    if not (_is_own(actions) and changes_files_only(actions)) or indexed.PROPERTY in description.settings:
        return None
    types = description.types
    removed = {unquote(action["remove"]["path"]) for action in actions if "remove" in action}
    added = [_file(action["add"], types, description.partition_by) for action in actions if "add" in action]
    if any(file is None for file in added):
        return None
    again = {file.path for file in added if file}
    return [*(file for file in files if file.path not in removed | again), *(file for file in added if file)]


def _is_own(actions: Iterable[Action]) -> bool:
    info: Action = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    return str(info.get("engineInfo", "")).startswith(PROGRAM)


def _file(add: Action, types: Mapping[str, Any], partition_by: Sequence[str]) -> DataFile | None:
    """An added file; None if its statistics are not known as delta-rs knows them."""
    statistics = json.loads(add["stats"])
    bounds = [statistics["minValues"], statistics["maxValues"]]
    if add.get("deletionVector") or any(types.get(name) not in READ_BOUND for bound in bounds for name in bound):
        return None
    low, high = ({name: READ_BOUND[types[name]](value) for name, value in bound.items()} for bound in bounds)
    texts = {name: add["partitionValues"].get(name) for name in partition_by}
    values = {name: None if text is None else READ_BOUND[types[name]](text) for name, text in texts.items()}
    rows = statistics["numRecords"]
    return DataFile(unquote(add["path"]), add["size"], rows, values, low, high, statistics["nullCount"])
