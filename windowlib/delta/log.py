"""A table's transaction log, entry by entry: who changed the table since a version, and how.

delta-rs reads what a table *holds*; what became of it between two versions stands in the entries alone. An entry is
one JSON object on each line, as the Delta protocol specifies. An empty or cut entry is damage (a power cut leaves such
files), which delta-rs passes over in silence: here it is an error that names the file and the way back.
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
IDENTITY = "windowlib"  # the key of a commit's metadata that names the publication it belongs to
ACTIONS = "windowlib_actions"  # the key of how many files and transactions a commit of ours names
OF_COMMANDS = (MAINTENANCE.name, PREVIEWS.name, SET_ASIDE.name, VERIFICATIONS.name)  # no run writes to them
ADDED = ("num_added_files", "numFilesAdded", "numAddedFiles")  # how many files others name: delta-rs, Spark
REMOVED = ("num_removed_files", "numFilesRemoved", "numRemovedFiles")


class DamagedLog(WindowError):
    """A table's log cannot be read: an entry or a checkpoint is empty, cut, or not there, or another program's."""


class CutLog(WindowError):
    """A version's entries were deleted when the log was shortened: no process can open it any more."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit. `added` and `removed` are paths in the table's folder; of `vectors`, which are among those added, a
    deletion vector marks some rows as deleted."""

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
        """Whether the commit only moved the version on."""
        return not (self.added or self.removed or self.changes_columns)

    @property
    def beyond_files(self) -> str:
        """What it changed that is not taken back, or kept, by naming files; "" where that is nothing."""
        if self.changes_columns:
            return "columns"
        return "deletion vectors (which windowlib does not read)" if self.vectors else ""


def file_of(folder: Path, version: int) -> Path:
    """Where the entry of a version lies."""
    return folder / "_delta_log" / f"{version:020}.json"


def written_by(folder: Path, version: int) -> list[Path]:
    """The files of the log that the commit of a version wrote: its entry, and a checkpoint where one was due.

    The file that names the checkpoint comes a moment after it: another process may be about to write it.
    """
    entry, checkpoint = file_of(folder, version), file_of(folder, version).with_suffix(".checkpoint.parquet")
    if not checkpoint.exists():
        return [entry]
    hint = entry.with_name(HINT)
    return [entry, checkpoint, hint] if hint.exists() else [entry, checkpoint]


def oldest_version(folder: Path) -> int:
    """The first version that the log can still be opened at: 0, or where it was shortened that of a checkpoint."""
    if file_of(folder, 0).exists():
        return 0
    names = (path.name.partition(".")[0] for path in (folder / "_delta_log").glob("*.checkpoint*"))
    return min((int(number) for number in names if number.isdigit()), default=0)


def last_checkpoint(folder: Path) -> int | None:
    """The version of the newest checkpoint, by the file that names it, so that a long log is not listed.

    None where that file is not there or does not say it, or where it names one that is not there, as one file.
    """
    try:
        version = _hinted(folder / "_delta_log" / HINT)
    except OSError:
        return None
    there = version is not None and file_of(folder, version).with_suffix(".checkpoint.parquet").exists()
    return version if there else None


def check_can_open(folder: Path, version: int) -> None:
    """Raises `CutLog` where a version lies before what is left of the log."""
    newest = last_checkpoint(folder)
    if newest is not None and newest <= version:
        return
    if version < (oldest := oldest_version(folder)):
        raise CutLog(
            f"version {version} of table {folder.name} can no longer be opened: its log was shortened, as `windowlib"
            f" maintain` does, and begins at version {oldest}. A process that has slept since it saw that version must"
            " start again"
        )


def entries(folder: Path, after: int, up_to: int) -> Iterator[LogEntry]:
    """The commits of versions ``(after, up_to]``, oldest first. Raises `DamagedLog`."""
    for version in range(after + 1, up_to + 1):
        yield entry(folder, version)


def entry(folder: Path, version: int) -> LogEntry:
    """The commit that made a version. Raises `DamagedLog`."""
    return entry_of(version, actions(folder, version))


def actions(folder: Path, version: int) -> list[dict[str, Any]]:
    """The same as it is written: one object for each action. Raises `DamagedLog`.

    Only a line feed ends a line: the bounds of texts may hold other characters that end one for Python, such as U+2028.
    """
    file = file_of(folder, version)
    try:
        found = [json.loads(line) for line in file.read_bytes().split(b"\n") if line.strip()]
    except FileNotFoundError as error:
        raise DamagedLog(f"{file} is not there: {_way_back(folder, version)}") from error
    except ValueError as error:
        raise DamagedLog(f"{file} is cut off or not JSON ({error}): {_way_back(folder, version)}") from error
    if not all(
        isinstance(one, dict) and all(isinstance(value, dict | None) for value in one.values()) for one in found
    ):
        raise DamagedLog(f"{file} holds what no entry of a Delta log is: {_way_back(folder, version)}")
    if not any(found):
        raise DamagedLog(f"{file} is empty: {_way_back(folder, version)}")
    _check_complete(file, version, found)
    return found


def _check_complete(file: Path, version: int, found: list[dict[str, Any]]) -> None:
    """Raises `DamagedLog` where an entry names fewer files than it says: it was cut exactly after a line."""
    info: dict[str, Any] = next((one["commitInfo"] for one in found if "commitInfo" in one), {})
    metrics = info.get("operationMetrics") or {}
    adds, removes, transactions = (sum(kind in one for one in found) for kind in ("add", "remove", "txn"))
    if version == 0 and not {"metaData", "protocol"} <= {kind for one in found for kind in one}:
        raise DamagedLog(f"{file} is cut off: it does not say what the table is: {_way_back(file.parents[1], version)}")
    for there, said in (
        (adds, [metrics.get(name) for name in ADDED]),
        (removes, [metrics.get(name) for name in REMOVED]),
        (adds + removes + transactions, [info.get(ACTIONS)]),
    ):
        if any(str(number).isdigit() and there < int(number) for number in said if number is not None):
            raise DamagedLog(
                f"{file} is cut off: it says how many files it adds and removes, and does not name them all:"
                f" {_way_back(file.parents[1], version)}"
            )


def removed(folder: Path) -> frozenset[str]:
    """The paths that the entries which are still there have removed."""
    files = (folder / "_delta_log").glob("*.json")
    return frozenset(path for file in files if file.stem.isdigit() for path in entry(folder, int(file.stem)).removed)


def files_of(folder: Path, entries: Iterable[LogEntry]) -> Iterator[Path]:
    """All that some commits wrote, as far as it is there: their entries, checkpoints and data files."""
    for one in entries:
        yield from written_by(folder, one.version)
        yield from filter(Path.exists, (folder / path for path in one.added))


def check_entries(folder: Path) -> None:
    """Raises `DamagedLog` where the newest checkpoint is cut, or an entry after it is empty or not there.

    Reads none of them, but the end of the checkpoint: one that is empty is to delta-rs a table without files.
    """
    found, checkpoints = dict[int, os.DirEntry[str]](), dict[int, list[Path]]()
    first = f"{last_checkpoint(folder) or 0:020}"
    with os.scandir(folder / "_delta_log") as names:
        for one in names:
            if one.name < first:
                continue
            number, _, kind = one.name.partition(".")
            if number.isdigit() and kind == "json":
                found[int(number)] = one
            elif number.isdigit() and kind.startswith("checkpoint"):
                checkpoints.setdefault(int(number), []).append(Path(one.path))
    checkpoint = max(checkpoints, default=-1)
    for path in checkpoints.get(checkpoint, ()):
        _check_whole(path)
    for version in range(checkpoint + 1, max(found, default=-1) + 1):
        if version not in found and not file_of(folder, version).exists():  # made since, where others are at work
            raise DamagedLog(f"{file_of(folder, version)} is not there: {_way_back(folder, version)}")
        if version in found and found[version].stat().st_size == 0:
            raise DamagedLog(f"{found[version].path} is empty: {_way_back(folder, version)}")


def check_later(folder: Path, after: int) -> None:
    """The same of the entries after a version, one by one."""
    while (file := file_of(folder, after + 1)).exists():
        after += 1
        if file.stat().st_size == 0:
            raise DamagedLog(f"{file} is empty: {_way_back(folder, after)}")


def check(folder: Path) -> None:
    """Raises `DamagedLog` for the newest entry or checkpoint that is damaged, if one is."""
    for file in sorted((folder / "_delta_log").glob("*.json"), reverse=True):
        if file.stem.isdigit():
            entry(folder, int(file.stem))
    for file in (folder / "_delta_log").glob("*.checkpoint*"):
        _check_whole(file)
    _check_hint(folder / "_delta_log" / HINT)


def _hinted(hint: Path) -> int | None:
    """The version in the file that says which checkpoint is the newest; None where it does not say it."""
    try:
        return int(json.loads(hint.read_text(encoding="utf-8"))["version"])
    except (ValueError, KeyError, TypeError):
        return None


def _check_hint(hint: Path) -> None:
    """Raises `DamagedLog` where the file that says which checkpoint is the newest is cut, or that one is not there."""
    if not hint.exists():
        return
    version = _hinted(hint)
    if version is None or not any(hint.parent.glob(f"{version:020}.checkpoint*")):
        raise DamagedLog(
            f"{hint} is damaged, or names a checkpoint that is not there, as a power cut leaves it. It only says where"
            " to begin to read, and the entries are there: delete it"
        )


def _check_whole(checkpoint: Path) -> None:
    """Raises `DamagedLog` where a checkpoint is cut off."""
    with checkpoint.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - len(END_OF_PARQUET), 0))
        is_whole = file.read() == END_OF_PARQUET if checkpoint.suffix == ".parquet" else size > 0
    if not is_whole:
        raise DamagedLog(
            f"{checkpoint} is cut off, as a power cut leaves it. It repeats the log's entries: if they are there from"
            " version 0, or from an earlier checkpoint on, delete it and _last_checkpoint next to it; else restore both"
            " from a backup"
        )


def entry_of(version: int, actions: Sequence[dict[str, Any]]) -> LogEntry:
    """The commit that made a version, of what its entry holds."""
    info: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
    adds = [one["add"] for one in actions if "add" in one]
    removes = [one["remove"] for one in actions if "remove" in one]
    return LogEntry(
        version=version,
        operation=str(info.get("operation", "unknown")),
        user=info.get("userName") or info.get("userId") or info.get("engineInfo"),
        identity=info.get(IDENTITY),
        transactions={one["txn"]["appId"]: one["txn"]["version"] for one in actions if "txn" in one},
        added=frozenset(unquote(one["path"]) for one in adds),
        removed=frozenset(unquote(one["path"]) for one in removes),
        changes_data=any(one.get("dataChange", True) for one in (*adds, *removes)),
        changes_columns=any("metaData" in one or "protocol" in one for one in actions),
        vectors=frozenset(unquote(one["path"]) for one in adds if one.get("deletionVector")),
        at_ms=info.get("timestamp"),
    )


def _way_back(folder: Path, version: int) -> str:
    then = "the next run writes that version again"
    if folder.name == ERASURES.name:
        then = "give the newest `windowlib forget` again before any run, which would read the key that it erased"
    elif folder.name in OF_COMMANDS:
        then = "give the command again that wrote it"
    return (
        f"version {version} of table {folder.name} was lost, as after a power cut. Restore the file from a backup"
        f" of the warehouse; or, if no later version exists, delete it, and {then}"
    )
