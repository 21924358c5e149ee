"""Transaction log of a table, entry by entry: the commits since a version, with their writers and changes.

delta-rs reads the *content* of a version. Only the log entries tell the changes between two versions. An entry has a
JSON object on each line, as the Delta protocol specifies. A power failure can leave an empty or truncated entry.
delta-rs ignores such an entry silently. Here it is an error that names the file and the repair.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from windowlib.contract.record_tables import ERASURES, MAINTENANCE, PREVIEWS, SET_ASIDE, VERIFICATIONS
from windowlib.model.errors import WindowError

HINT = "_last_checkpoint"
END_OF_PARQUET = b"PAR1"
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
    return f"_delta_log/{version:020}.json"


def file_of(folder: Path, version: int) -> Path:
    """Path of the log entry of a version."""
    return folder / path_of(version)


def written_by(folder: Path, version: int) -> list[Path]:
    """The log files of the commit of a version: its entry, and a checkpoint if one was due.

    The file that names the newest checkpoint is written after the checkpoint. It may still be missing.
    """
    entry, checkpoint = file_of(folder, version), file_of(folder, version).with_suffix(".checkpoint.parquet")
    if not checkpoint.exists():
        return [entry]
    hint = entry.with_name(HINT)
    return [entry, checkpoint, hint] if hint.exists() else [entry, checkpoint]


def oldest_version(folder: Path) -> int:
    """The oldest version that can be opened: 0, or the version of a checkpoint if the log was shortened."""
    if file_of(folder, 0).exists():
        return 0
    names = (path.name.partition(".")[0] for path in (folder / "_delta_log").glob("*.checkpoint*"))
    return min((int(number) for number in names if number.isdigit()), default=0)


def last_checkpoint(folder: Path) -> int | None:
    """Version of the newest checkpoint. Reads it from the file that names the checkpoint, so that a long log is not
    listed.

    None if that file is missing or damaged, or if it names no checkpoint that exists as a single file.
    """
    try:
        version = _hinted(folder / "_delta_log" / HINT)
    except OSError:
        return None
    exists = version is not None and file_of(folder, version).with_suffix(".checkpoint.parquet").exists()
    return version if exists else None


def check_can_open(folder: Path, version: int) -> None:
    """Raises `CutLog` if a version is older than the oldest version that can be opened."""
    newest = last_checkpoint(folder)
    if newest is not None and newest <= version:
        return
    if version < (oldest := oldest_version(folder)):
        raise CutLog(
            f"version {version} of table {folder.name} can no longer be opened: its log now begins at version {oldest},"
            " as after `windowlib maintain`. This process has waited too long: start it again"
        )


def entries(folder: Path, after: int, up_to: int) -> Iterator[LogEntry]:
    """The commits of versions ``(after, up_to]``, oldest first. Raises `DamagedLog`."""
    for version in range(after + 1, up_to + 1):
        yield entry(folder, version)


def entry(folder: Path, version: int) -> LogEntry:
    """The commit of a version. Raises `DamagedLog`."""
    return entry_of(version, actions(folder, version))


def actions(folder: Path, version: int) -> list[dict[str, Any]]:
    """The actions of a version's entry, one object for each line. Raises `DamagedLog`.

    Only a line feed ends a line: bounds of strings may hold other line ends of Python, such as U+2028.
    """
    file = file_of(folder, version)
    try:
        actions = [json.loads(line) for line in file.read_bytes().split(b"\n") if line.strip()]
    except FileNotFoundError as error:
        raise DamagedLog(f"{file} is missing: {_way_back(folder, version)}") from error
    except ValueError as error:
        raise DamagedLog(f"{file} is cut off or not JSON ({error}): {_way_back(folder, version)}") from error
    if not all(
        isinstance(action, dict) and all(isinstance(value, dict | None) for value in action.values())
        for action in actions
    ):
        raise DamagedLog(f"{file} is not an entry of a Delta log: {_way_back(folder, version)}")
    if not any(actions):
        raise DamagedLog(f"{file} is empty: {_way_back(folder, version)}")
    _check_complete(file, version, actions)
    return actions


def _check_complete(file: Path, version: int, actions: list[dict[str, Any]]) -> None:
    """Raises `DamagedLog` if an entry has fewer actions than it states: it was truncated after a line."""
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    metrics = info.get("operationMetrics") or {}
    adds, removes, transactions = (sum(kind in action for action in actions) for kind in ("add", "remove", "txn"))
    if version == 0 and not {"metaData", "protocol"} <= {kind for action in actions for kind in action}:
        raise DamagedLog(f"{file} is cut off: it does not define the table: {_way_back(file.parents[1], version)}")
    for count, stated in (
        (adds, [metrics.get(name) for name in ADDED]),
        (removes, [metrics.get(name) for name in REMOVED]),
        (adds + removes + transactions, [info.get(ACTIONS)]),
    ):
        if any(str(number).isdigit() and count < int(number) for number in stated if number is not None):
            raise DamagedLog(
                f"{file} is cut off: it names fewer files than it states: {_way_back(file.parents[1], version)}"
            )


def removed(folder: Path) -> frozenset[str]:
    """The paths removed by the entries that still exist."""
    files = (folder / "_delta_log").glob("*.json")
    return frozenset(path for file in files if file.stem.isdigit() for path in entry(folder, int(file.stem)).removed)


def files_of(folder: Path, entries: Iterable[LogEntry]) -> Iterator[Path]:
    """The existing files that some commits wrote: their entries, checkpoints and data files."""
    for commit in entries:
        yield from written_by(folder, commit.version)
        yield from filter(Path.exists, (folder / path for path in commit.added))


def check_entries(folder: Path) -> int:
    """The newest version. Raises `DamagedLog` for a truncated newest checkpoint, or an empty or missing entry after it.

    It reads only the end of the checkpoint. delta-rs takes an empty checkpoint for a table without files.
    """
    files, checkpoints = dict[int, os.DirEntry[str]](), dict[int, list[Path]]()
    first = f"{last_checkpoint(folder) or 0:020}"
    with os.scandir(folder / "_delta_log") as listing:
        for file in listing:
            if file.name < first:
                continue
            number, _, kind = file.name.partition(".")
            if number.isdigit() and kind == "json":
                files[int(number)] = file
            elif number.isdigit() and kind.startswith("checkpoint"):
                checkpoints.setdefault(int(number), []).append(Path(file.path))
    checkpoint = max(checkpoints, default=-1)
    for path in checkpoints.get(checkpoint, ()):
        _check_whole(path)
    for version in range(checkpoint + 1, max(files, default=-1) + 1):
        if version not in files and not file_of(folder, version).exists():  # another process may have added it since
            raise DamagedLog(f"{file_of(folder, version)} is missing: {_way_back(folder, version)}")
        if version in files and files[version].stat().st_size == 0:
            raise DamagedLog(f"{files[version].path} is empty: {_way_back(folder, version)}")
    return max(checkpoint, *files)


def newest_version(folder: Path, known: int) -> int:
    """The newest version, by the entries after a known version. Raises `DamagedLog` if one of them is empty."""
    while (file := file_of(folder, known + 1)).exists():
        known += 1
        if file.stat().st_size == 0:
            raise DamagedLog(f"{file} is empty: {_way_back(folder, known)}")
    return known


def check(folder: Path) -> None:
    """Raises `DamagedLog` for the newest damaged entry. If no entry is damaged, for a damaged checkpoint."""
    for file in sorted((folder / "_delta_log").glob("*.json"), reverse=True):
        if file.stem.isdigit():
            entry(folder, int(file.stem))
    for file in (folder / "_delta_log").glob("*.checkpoint*"):
        _check_whole(file)
    _check_hint(folder / "_delta_log" / HINT)


def _hinted(hint: Path) -> int | None:
    """The version in the file that names the newest checkpoint; None if the file is damaged."""
    try:
        return int(json.loads(hint.read_text(encoding="utf-8"))["version"])
    except (ValueError, KeyError, TypeError):
        return None


def _check_hint(hint: Path) -> None:
    """Raises `DamagedLog` if the file that names the newest checkpoint is damaged, or if that checkpoint is missing."""
    if not hint.exists():
        return
    version = _hinted(hint)
    if version is None or not any(hint.parent.glob(f"{version:020}.checkpoint*")):
        raise DamagedLog(
            f"{hint} is damaged, or names a missing checkpoint, as after a power cut. It is only a hint for readers,"
            " and all entries exist: delete it"
        )


def _check_whole(checkpoint: Path) -> None:
    """Raises `DamagedLog` if a checkpoint is truncated."""
    with checkpoint.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - len(END_OF_PARQUET), 0))
        is_whole = file.read() == END_OF_PARQUET if checkpoint.suffix == ".parquet" else size > 0
    if not is_whole:
        raise DamagedLog(
            f"{checkpoint} is cut off, as after a power cut. If the log has all entries since version 0 or since an"
            " earlier checkpoint, delete this checkpoint and _last_checkpoint next to it: readers do not need them."
            " Otherwise restore both files from a backup"
        )


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


def _way_back(folder: Path, version: int) -> str:
    then = "the next run writes that version again"
    if folder.name == ERASURES.name:
        then = "repeat the newest `windowlib forget` before any run, which would read the erased key again"
    elif folder.name in OF_COMMANDS:
        then = "repeat the command that wrote it"
    return (
        f"version {version} of table {folder.name} was lost, as after a power cut. Restore the file from a backup"
        f" of the warehouse. If there is no backup and no later version, delete it, and {then}"
    )
