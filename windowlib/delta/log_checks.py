"""Checks of a table's log as a whole: entries and checkpoints that are missing, empty or truncated."""

from __future__ import annotations

from collections.abc import Container

from windowlib.delta.log import (
    FOLDER,
    HINT,
    DamagedLog,
    checkpoint_of,
    entry,
    has,
    hinted,
    numbered,
    path_of,
    way_back,
)
from windowlib.storage.at_once import both
from windowlib.storage.store import ObjectInfo, Store

END_OF_PARQUET = b"PAR1"


def check_entries(store: Store) -> tuple[int, int | None] | None:
    """The newest version, and that of the newest checkpoint if it is a single file; None if there is no log.

    Raises `DamagedLog` for a truncated newest checkpoint, or an empty or missing entry after it. It reads only the end
    of the checkpoint. delta-rs takes an empty checkpoint for a table without files.
    """
    entries, checkpoints = _listed(store)
    checkpoint = max(checkpoints, default=-1)
    for file in checkpoints.get(checkpoint, ()):
        _check_whole(store, file)
    for version in range(checkpoint + 1, max(entries, default=-1) + 1):
        if version not in entries and not has(store, version):  # another process may have added it since
            raise DamagedLog(f"{store.url}/{path_of(version)} is missing: {way_back(store, version)}")
        if version in entries and not entries[version].size_bytes:
            raise DamagedLog(f"{store.url}/{path_of(version)} is empty: {way_back(store, version)}")
    if not entries and not checkpoints:
        return None
    is_single = checkpoint_of(checkpoint) in {file.path for file in checkpoints.get(checkpoint, ())}
    return max((checkpoint, *entries)), checkpoint if is_single else None


def _listed(store: Store) -> tuple[dict[int, ObjectInfo], dict[int, list[ObjectInfo]]]:
    """Entries and checkpoints by version, from the checkpoint on that the file of the newest checkpoint names.

    If that file is missing, is damaged, or names no checkpoint that exists as a single file: all of the log.
    """
    hint, oldest = both(lambda: store.get(HINT), lambda: next(store.list(f"{FOLDER}/"), None))
    if oldest is None:
        return {}, {}
    first = None if hint is None else hinted(hint)
    while True:
        entries, checkpoints = dict[int, ObjectInfo](), dict[int, list[ObjectInfo]]()
        for version, kind, file in numbered(store, first or 0):
            if kind == "json":
                entries[version] = file
            elif kind.startswith("checkpoint"):
                checkpoints.setdefault(version, []).append(file)
        if first is None or checkpoint_of(first) in {file.path for file in checkpoints.get(first, ())}:
            return entries, checkpoints
        first = None


def check(store: Store) -> None:
    """Raises `DamagedLog` for the newest damaged entry. If no entry is damaged, for a damaged checkpoint."""
    files = list(numbered(store))
    for version, kind, _ in reversed(files):
        if kind == "json":
            entry(store, version)
    checkpoints = [(version, file) for version, kind, file in files if kind.startswith("checkpoint")]
    for _, file in checkpoints:
        _check_whole(store, file)
    _check_hint(store, {version for version, _ in checkpoints})


def _check_hint(store: Store, checkpoints: Container[int]) -> None:
    """Raises `DamagedLog` if the file that names the newest checkpoint is damaged, or if that checkpoint is missing."""
    hint = store.get(HINT)
    if hint is not None and hinted(hint) not in checkpoints:
        raise DamagedLog(
            f"{store.url}/{HINT} is damaged, or names a missing checkpoint, as after a power cut. It is only a hint for"
            " readers, and all entries exist: delete it"
        )


def _check_whole(store: Store, checkpoint: ObjectInfo) -> None:
    """Raises `DamagedLog` if a checkpoint is truncated."""
    size, length = checkpoint.size_bytes, len(END_OF_PARQUET)
    is_whole = size > 0
    if checkpoint.path.endswith(".parquet"):
        is_whole = store.get_range(checkpoint.path, max(size - length, 0), size) == END_OF_PARQUET
    if not is_whole:
        raise DamagedLog(
            f"{store.url}/{checkpoint.path} is cut off, as after a power cut. If the log has all entries since version"
            " 0 or since an earlier checkpoint, delete this checkpoint and _last_checkpoint next to it: readers do not"
            " need them. Otherwise restore both files from a backup"
        )
