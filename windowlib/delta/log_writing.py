"""Entries of a table's transaction log, as bytes to store under the next version.

An entry has a JSON object on each line, as the Delta protocol specifies. windowlib writes entries itself: one request
instead of the five of a transaction of delta-rs. In return it must keep the rules of the protocol. It writes only to
tables that need no more of a writer than the tables which it creates (`check_can_write`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from deltalake import Schema

from windowlib.delta import indexed_columns as indexed
from windowlib.delta.log import ACTIONS, IDENTITY
from windowlib.delta.table_change import FileChange
from windowlib.delta.table_state import PROGRAM, Description
from windowlib.model.errors import WindowError

# VACUUM of other programs must keep old versions this long, so that runs can be rolled back and inspected. A process
# that opens a table reads the entries after its last checkpoint, about 0.2 ms each. Only maintenance shortens logs,
# because it knows the versions to keep.
CONFIGURATION = {
    "delta.deletedFileRetentionDuration": "interval 30 days",
    "delta.logRetentionDuration": "interval 365 days",
    "delta.checkpointInterval": "10",
    "delta.enableExpiredLogCleanup": "false",
}
NTZ = "timestampNtz"  # feature of tables with times without a zone
IMPLIED = ("appendOnly", "invariants")  # features of writer version 2
UNUSED_UNLESS_SET = (
    *(*IMPLIED, "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping", "identityColumns"),
    "deletionVectors",
)
"""Features that demand nothing of a writer until a setting, a rule of a column, or a deletion vector uses them."""
IN_PATHS = "/=:@!$&'()*+,;~"  # written as they are in paths


class RefusedCommit(WindowError):
    """A commit that cannot succeed: because of the table's settings, or because other writers are always faster."""


def configuration(table: str, schema: Schema) -> dict[str, str]:
    """The settings of a new table with this name and these columns."""
    return {**CONFIGURATION, **indexed.properties(table, schema)}


def creation(name: str, schema: Schema, partition_by: Sequence[str], now_ms: int) -> bytes:
    """The entry of version 0 of an empty table."""
    settings = configuration(name, schema)
    table = Description(schema, tuple(partition_by), settings, frozenset(), str(uuid.uuid4()), now_ms)
    info = {"commitInfo": _commit_info("CREATE TABLE", now_ms)}
    return _lines([info, {"protocol": _protocol(schema)}, {"metaData": _metadata(table)}])


def entry(
    before: Description,
    change: FileChange,
    identity: str | None,
    transaction: tuple[str, int] | None,
    now_ms: int,
) -> bytes:
    """Log entry of a commit.

    `before` is the table's description before the commit. `transaction` is (application id, batch id).
    """
    files = len(change.add) + len(change.remove)
    named = {ACTIONS: str(files + bool(transaction)), **({IDENTITY: identity} if identity else {})}
    actions = [{"commitInfo": {**_commit_info("WRITE", now_ms), **named}}]
    if transaction:
        application, batch = transaction
        actions.append({"txn": {"appId": application, "version": batch, "lastUpdated": now_ms}})
    if change.columns and change.columns != before.schema:
        if _needs_ntz(change.columns) and NTZ not in before.features:
            actions.append({"protocol": _protocol(change.columns)})
        actions.append({"metaData": _metadata(replace(before, schema=change.columns))})
    return _lines([*actions, *_files(change, now_ms)])


def _files(change: FileChange, now_ms: int) -> Iterator[dict[str, Any]]:
    for file in change.remove:
        yield {
            "remove": {
                "path": quote(file.path, safe=IN_PATHS),
                "deletionTimestamp": now_ms,
                "dataChange": change.is_data_change(file),
                "extendedFileMetadata": True,
                "partitionValues": dict(file.partition),
                "size": file.size_bytes,
            }
        }
    for file in change.add:
        yield {
            "add": {
                "path": quote(file.path, safe=IN_PATHS),
                "partitionValues": dict(file.partition),
                "size": file.size_bytes,
                "modificationTime": now_ms,
                "dataChange": change.is_data_change(file),
                "stats": file.statistics,
            }
        }


def check_can_write(table: Description, name: str) -> None:
    """Raises `RefusedCommit` unless an entry with files keeps all that this table demands of its writers."""
    allowed = {*CONFIGURATION, indexed.PROPERTY}
    settings = table.settings.items()
    beyond = [f"{key} = {value}" for key, value in settings if key.startswith("delta.") and key not in allowed]
    beyond += [f"the feature {feature}" for feature in table.features - {NTZ, *UNUSED_UNLESS_SET}]
    rules = ((column["name"], key) for column in table.columns for key in column["metadata"])
    beyond += [f"the rule {key} of column {column}" for column, key in rules if key.startswith("delta.")]
    if beyond:
        more = f" and {len(beyond) - 5} more" if len(beyond) > 5 else ""
        raise RefusedCommit(
            f"another program gave table {name} {', '.join(sorted(beyond)[:5])}{more}. windowlib writes only to tables"
            " as it creates them, so it changed nothing. Undo the change with that program, for example by ALTER TABLE"
            " … UNSET TBLPROPERTIES or DROP FEATURE in Spark, and run again"
        )


def _commit_info(operation: str, now_ms: int) -> dict[str, Any]:
    return {
        "timestamp": now_ms,
        "operation": operation,
        "operationParameters": {"mode": "ErrorIfExists" if operation == "CREATE TABLE" else "Append"},
        "engineInfo": _program(),
    }


@cache
def _program() -> str:
    return f"{PROGRAM}{version('windowlib')}"


def _protocol(schema: Schema) -> dict[str, Any]:
    """The protocol that a table with these columns needs. Times without a zone need a feature of their own."""
    if not _needs_ntz(schema):
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [NTZ], "writerFeatures": [NTZ, *IMPLIED]}


def _needs_ntz(schema: Schema) -> bool:
    return '"timestamp_ntz"' in schema.to_json()


def _metadata(table: Description) -> dict[str, Any]:
    return {
        "id": table.table_id,
        "name": table.name,
        "description": table.comment,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema.to_json(),
        "partitionColumns": [*table.partition_by],
        "configuration": dict(table.settings),
        "createdTime": table.created_ms,
    }


def _lines(actions: Iterable[Mapping[str, Any]]) -> bytes:
    texts = (json.dumps(action, separators=(",", ":"), ensure_ascii=False) for action in actions)
    return "".join(f"{text}\n" for text in texts).encode()
