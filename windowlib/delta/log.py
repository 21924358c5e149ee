"""Transaction log of a table, entry by entry: the commits since a version, with their writers and changes.

delta-rs reads the *content* of a version. Only the log entries tell the changes between two versions. An entry has a
JSON object on each line, as the Delta protocol specifies. A power failure can leave an empty or truncated entry.
delta-rs ignores such an entry silently. Here it is an error that names the file and the repair.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from windowlib.contract.record_tables import ERASURES, MAINTENANCE, PREVIEWS, SET_ASIDE, VERIFICATIONS
from windowlib.model.errors import WindowError
from windowlib.storage.store import UNFINISHED, ObjectInfo, Store

FOLDER = "_delta_log"
HINT = f"{FOLDER}/_last_checkpoint"
IDENTITY = "windowlib"  # key in a commit's metadata: the publication that it belongs to
ACTIONS = "windowlib_actions"  # key in the metadata of our commits: the number of files and transactions
OF_COMMANDS = (MAINTENANCE.name, PREVIEWS.name, SET_ASIDE.name, VERIFICATIONS.name)  # written by commands, not by runs
ADDED = ("num_added_files", "numFilesAdded", "numAddedFiles")  # keys of delta-rs and Spark for the number of files
REMOVED = ("num_removed_files", "numFilesRemoved", "numRemovedFiles")


class DamagedLog(WindowError):
    """A table's log cannot be read: an entry or a checkpoint is empty, truncated, missing or of unknown form."""


class CutLog(WindowError):
    """A version can no longer be opened: the log was shortened, and its entries were deleted."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A commit. `added` and `removed` are paths in the table's folder.

    `vectors` are the added files that have a deletion vector, which marks rows as deleted.
    """

    version: int
    operation: str
    user: str | None
    identity: str | None
    transactions: Mapping[str, int]
    added: frozenset[str]
    removed: frozenset[str]
    changes_data: bool
    changes_columns: bool
    vectors: frozenset[str] = frozenset()
    at_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if the commit changed nothing except the version."""
        return not (self.added or self.removed or self.changes_columns)

    @property
    def beyond_files(self) -> str:
        """Changes of the commit other than files, as a string. Empty if the commit has no such changes."""
        if self.changes_columns:
            return "columns"
        return "deletion vectors (which windowlib does not read)" if self.vectors else ""


def path_of(version: int) -> str:
    """Path of the log entry of a version, relative to its table."""
    return f"{FOLDER}/{version:020}.json"


def checkpoint_of(version: int) -> str:
    """Path of the checkpoint of a version, relative to its table, if the checkpoint is a single file."""
    return f"{FOLDER}/{version:020}.checkpoint.parquet"


def has(store: Store, *versions: int) -> bool:
    """Tests if the log entries of all versions exist."""
    return None not in store.sizes([path_of(version) for version in versions])


def written_by(store: Store, version: int) -> list[str]:
    """The log files of the commit of a version: its entry, and a checkpoint if one was due.

    The file that names the newest checkpoint is written after the checkpoint. It may still be missing.
    """
    checkpoint_size, hint_size = store.sizes([checkpoint_of(version), HINT])
    if checkpoint_size is None:
        return [path_of(version)]
    return [path_of(version), checkpoint_of(version), *([] if hint_size is None else [HINT])]


def oldest_version(store: Store) -> int:
    """The oldest version that can be opened: 0, or the version of a checkpoint if the log was shortened."""
    if has(store, 0):
        return 0
    return min((version for version, kind, _ in numbered(store) if kind.startswith("checkpoint")), default=0)


def numbered(store: Store, first: int = 0) -> Iterator[tuple[int, str, ObjectInfo]]:
    """The files of a log from version `first` on: version, kind ("json" for an entry), and description."""
    for file in store.list(f"{FOLDER}/", after=f"{FOLDER}/{max(first, 0):020}"):
        number, _, kind = file.path.removeprefix(f"{FOLDER}/").partition(".")
        if number.isdigit():
            yield int(number), "unfinished" if kind.endswith(UNFINISHED) else kind, file


def last_checkpoint(store: Store) -> int | None:
    """Version of the newest checkpoint. Reads it from the file that names the checkpoint, so that a long log is not
    listed.

    None if that file is missing or damaged, or if it names no checkpoint that exists as a single file.
    """
    hint = store.get(HINT)
    version = None if hint is None else hinted(hint)
    return None if version is None or store.sizes([checkpoint_of(version)]) == [None] else version


def check_can_open(store: Store, version: int) -> None:
    """Raises `CutLog` if a version is older than the oldest version that can be opened."""
    newest = last_checkpoint(store)
    if newest is not None and newest <= version:
        return
    if version < (oldest := oldest_version(store)):
        raise CutLog(
            f"version {version} of table {name_of(store)} can no longer be opened: its log now begins at version"
            f" {oldest}, as after `windowlib maintain`. This process has waited too long: start it again"
        )


def check_not_cut(store: Store, version: int) -> int | None:
    """Raises `CutLog` if the log was shortened past a version whose next entry was just created.

    A checkpoint of a later version is written before entries are deleted. So the next entry had existed before. Returns
    the version of the newest checkpoint, by the file that names it.
    """
    hint, first = store.get_many([HINT, path_of(0)])
    newest = None if hint is None else hinted(hint)
    if (newest is not None and newest > version) or (newest is None and first is None):
        check_can_open(store, version)
    return newest


def entries(store: Store, after: int, up_to: int) -> Iterator[LogEntry]:
    """The commits of versions ``(after, up_to]``, oldest first. Raises `DamagedLog`."""
    for version in range(after + 1, up_to + 1):
        yield entry(store, version)


def entry(store: Store, version: int) -> LogEntry:
    """The commit of a version. Raises `DamagedLog`."""
    return entry_of(version, actions(store, version))


def actions(store: Store, version: int) -> list[dict[str, Any]]:
    """The actions of a version's entry. Raises `DamagedLog`."""
    return actions_in(store.get(path_of(version)), store, version)


def actions_in(content: bytes | None, store: Store, version: int) -> list[dict[str, Any]]:
    """The actions in the content of a version's entry, one object for each line. Raises `DamagedLog`.

    Only a line feed ends a line: bounds of strings may hold other line ends of Python, such as U+2028.
    """
    file = f"{store.url}/{path_of(version)}"
    if content is None:
        raise DamagedLog(f"{file} is missing: {way_back(store, version)}")
    try:
        actions = [json.loads(line) for line in content.split(b"\n") if line.strip()]
    except ValueError as error:
        raise DamagedLog(f"{file} is cut off or not JSON ({error}): {way_back(store, version)}") from error
    if not all(
        isinstance(action, dict) and all(isinstance(value, dict | None) for value in action.values())
        for action in actions
    ):
        raise DamagedLog(f"{file} is not an entry of a Delta log: {way_back(store, version)}")
    if not any(actions):
        raise DamagedLog(f"{file} is empty: {way_back(store, version)}")
    if why := _incomplete(version, actions):
        raise DamagedLog(f"{file} is cut off: {why}: {way_back(store, version)}")
    return actions


def _incomplete(version: int, actions: list[dict[str, Any]]) -> str | None:
    """Reason why an entry has fewer actions than it states, because it was truncated after a line. None if complete."""
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    metrics = info.get("operationMetrics") or {}
    adds, removes, transactions = (sum(kind in action for action in actions) for kind in ("add", "remove", "txn"))
    if version == 0 and not {"metaData", "protocol"} <= {kind for action in actions for kind in action}:
        return "it does not define the table"
    for count, stated in (
        (adds, [metrics.get(name) for name in ADDED]),
        (removes, [metrics.get(name) for name in REMOVED]),
        (adds + removes + transactions, [info.get(ACTIONS)]),
    ):
        if any(str(number).isdigit() and count < int(number) for number in stated if number is not None):
            return "it names fewer files than it states"
    return None


def removed(store: Store) -> frozenset[str]:
    """The paths removed by the entries that still exist."""
    versions = [version for version, kind, _ in numbered(store) if kind == "json"]
    return frozenset(path for version in versions for path in entry(store, version).removed)


def files_of(store: Store, entries: Iterable[LogEntry]) -> Iterator[str]:
    """Paths of the existing files that some commits wrote: their entries, checkpoints and data files."""
    for commit in entries:
        yield from written_by(store, commit.version)
        added = [*commit.added]
        yield from (path for path, size in zip(added, store.sizes(added), strict=True) if size is not None)


def hinted(hint: bytes) -> int | None:
    """The version in the content of the file that names the newest checkpoint; None if the file is damaged."""
    try:
        return int(json.loads(hint)["version"])
    except (ValueError, KeyError, TypeError):
        return None


def entry_of(version: int, actions: Sequence[dict[str, Any]]) -> LogEntry:
    """The commit of a version, from the actions of its entry."""
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    adds = [action["add"] for action in actions if "add" in action]
    removes = [action["remove"] for action in actions if "remove" in action]
    return LogEntry(
        version=version,
        operation=str(info.get("operation", "unknown")),
        user=info.get("userName") or info.get("userId") or info.get("engineInfo"),
        identity=info.get(IDENTITY),
        transactions={action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action},
        added=frozenset(unquote(file["path"]) for file in adds),
        removed=frozenset(unquote(file["path"]) for file in removes),
        changes_data=any(file.get("dataChange", True) for file in (*adds, *removes)),
        changes_columns=any("metaData" in action or "protocol" in action for action in actions),
        vectors=frozenset(unquote(file["path"]) for file in adds if file.get("deletionVector")),
        at_ms=info.get("timestamp"),
    )


def way_back(store: Store, version: int) -> str:
    """Advice for a lost version of a table."""
    then = "the next run writes that version again"
    if name_of(store) == ERASURES.name:
        then = "repeat the newest `windowlib forget` before any run, which would read the erased key again"
    elif name_of(store) in OF_COMMANDS:
        then = "repeat the command that wrote it"
    return (
        f"version {version} of table {name_of(store)} was lost, as after a power cut. Restore the file from a backup"
        f" of the warehouse. If there is no backup and no later version, delete it, and {then}"
    )


def name_of(store: Store) -> str:
    """Name of the table in a store."""
    return store.url.rpartition("/")[2]
