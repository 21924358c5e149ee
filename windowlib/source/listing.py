"""Which files of the source are new, and whether those that were read are still what they were.

A source is a sequence of files, numbered 1, 2, 3, … in *arrival order*: modification time, then name, among those a
plan finds new; for a Delta source, version, then name. A file is read once and must not change afterwards. Folders and
files whose name begins with `_` or `.` are not looked at: write there, then rename.

What a file *is* is its content. A file that was copied back or unpacked again (another time, the same content) has not
changed; one that was renamed (the old name gone, the same content under a new one) is not new
(`windowlib.source.contents`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from windowlib.definition.definition import Definition
from windowlib.model.errors import TryAgain, WindowError
from windowlib.source.contents import Contents, FileState
from windowlib.tables import delta
from windowlib.tables.ledger import SourceFile
from windowlib.tables.meaning import SOURCE_FILES
from windowlib.tables.opened import Tables
from windowlib.tables.set_aside import files_set_aside

WAITS_MS = 5_000  # a longer `min_file_age` is not waited out: the next run takes the file


class SourceError(WindowError):
    """The source cannot be read as the definition says."""


class FilesChanged(SourceError, TryAgain):
    """A file was changed or removed between its plan and its commit: the batch is planned again."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file in the source folder, not yet numbered. `order` sorts by arrival."""

    path: str
    size_bytes: int
    modified_ns: int
    order: tuple[int, str]

    @property
    def state(self) -> FileState:
        """What tells it from a changed one at first sight."""
        return FileState(self.path, self.size_bytes, self.modified_ns)


def found_files(definition: Definition) -> list[Found]:
    """Every file that is there now."""
    return _delta_files(definition) if definition.source.format == "delta" else _folder_files(definition)


Look = Callable[[Definition], list[Found]]


def next_files(
    definition: Definition, tables: Tables, at: int | None, now_ms: int, look: Look = found_files
) -> list[Found]:
    """The files that the next batch may read, in arrival order; `at` is the version of `source_files`.

    Left out is what is younger than `source.min_file_age`. Where nothing else is new, that age is waited for, at most
    `WAITS_MS`; a file that changed meanwhile is left out. Raises as `new_files`.
    """
    fresh, least_ms = new_files(definition, tables, at, look), definition.source.min_file_age_ms
    settled = [file for file in fresh if abs(now_ms - file.modified_ns // 1_000_000) >= least_ms]
    if settled or not fresh or least_ms > WAITS_MS:
        return settled
    time.sleep(least_ms / 1000)
    return [
        file
        for file in fresh
        if is_unchanged(definition, definition.source.path / file.path, file.size_bytes, file.modified_ns)
    ]


def new_files(
    definition: Definition, tables: Tables, at: int | None, look: Look = found_files, *, check: bool = True
) -> list[Found]:
    """The files no batch has read, in arrival order; `at` is the version of `source_files`.

    Left out is what an operator has set aside, and what was read under another name that is gone. Raises `SourceError`
    when the folder is missing or, with `check`, the content of a file that was read has changed since.
    """
    found, known = look(definition), known_files(tables, at)
    with Contents.of(definition) as contents:
        for file in found if check else ():
            before = known.get(file.path)
            if before and before != file.state and not contents.same(file.state, before):
                raise SourceError(
                    f"{definition.source.path / file.path} has changed since it was read (was {before.size_bytes}"
                    f" bytes, is {file.size_bytes}). A file is read once: put new events into a new file and restore"
                    f" this one, or rerun its time range: windowlib rerun {definition.file} --from … --to …"
                )
        aside = files_set_aside(tables.root)
        fresh = sorted((f for f in found if f.path not in known and f.path not in aside), key=lambda f: f.order)
        moved = {file.path for file in renamed(contents, found, known.values()).values()}
    return [file for file in fresh if file.path not in moved]


def renamed(contents: Contents, found: Sequence[Found], known: Collection[FileState]) -> dict[str, Found]:
    """Of files that were read and are gone, by their old path: the file that is there now with the same content."""
    there, read = {file.path for file in found}, {file.path for file in known}
    gone = sorted((file for file in known if file.path not in there and file.sha256), key=lambda file: file.path)
    sizes = {file.size_bytes for file in gone}
    candidates = [file for file in found if file.path not in read and file.size_bytes in sizes]
    moved: dict[str, Found] = {}
    for file in sorted(candidates, key=lambda file: file.order):
        match = next((one for one in gone if one.path not in moved and contents.same(file.state, one)), None)
        if match:
            moved[match.path] = file
    return moved


def numbered(files: Sequence[Found], after_sequence: int, at_most: int = 0) -> list[SourceFile]:
    """The first files, `at_most` so many (0: all), numbered from `after_sequence` + 1."""
    chosen = files[:at_most] if at_most else files
    return [
        SourceFile(f.path, f.size_bytes, f.modified_ns, number) for number, f in enumerate(chosen, after_sequence + 1)
    ]


def check_unchanged(definition: Definition, files: Sequence[SourceFile]) -> None:
    """Raises `FilesChanged` when a planned file is gone or is not the one that was planned."""
    if change := change_of(definition, files):
        raise FilesChanged(f"{change}, and again each time it was planned anew; run again when its writer has finished")


def change_of(definition: Definition, files: Sequence[SourceFile]) -> str | None:
    """What has become of the first planned file that is gone or not the one that was planned; None without one."""
    for file in files:
        path = definition.source.path / file.path
        if not is_unchanged(definition, path, file.size_bytes, file.modified_ns):
            return f"{path} {'has changed' if path.is_file() else 'has gone'} since its batch was planned"
    return None


def is_unchanged(definition: Definition, path: Path, size_bytes: int, modified_ns: int) -> bool:
    """Whether a file of the source is there as it was known."""
    if not path.is_file():
        return False
    stat = path.stat()
    # A Delta log has a time of its own for a file, which never changes under its name.
    same_time = definition.source.format == "delta" or stat.st_mtime_ns == modified_ns
    return stat.st_size == size_bytes and same_time


def known_files(tables: Tables, at: int | None) -> dict[str, FileState]:
    """The files read up to version `at` of `source_files`, by path."""
    table = tables[SOURCE_FILES.name]
    known: dict[str, FileState] = {}
    for file in delta.files(table, at):
        known |= _read_in(table.folder / file.path)
    return known


@lru_cache(maxsize=4096)
def _read_in(file: Path) -> Mapping[str, FileState]:
    """The same of one of the table's files, which never change."""
    table = delta.read_parquet(file, SOURCE_FILES.columns)
    columns = (table[name].to_pylist() for name in ("path", "size_bytes", "modified_ns", "sha256"))
    return {state[0]: FileState(*state) for state in zip(*columns, strict=True)}


def _folder_files(definition: Definition) -> list[Found]:
    folder = definition.source.path
    if not folder.is_dir():
        raise SourceError(
            f"the source folder {folder} does not exist; create it or correct source.path in {definition.file}"
        )
    found = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if any(part.startswith(("_", ".")) for part in name.parts) or not path.is_file():
            continue
        stat = path.stat()
        found.append(Found(str(name), stat.st_size, stat.st_mtime_ns, (stat.st_mtime_ns, str(name))))
    return found


def _delta_files(definition: Definition) -> list[Found]:
    folder = definition.source.path
    log = folder / "_delta_log"
    if not log.is_dir():
        raise SourceError(
            f"{folder} is not a Delta table (it has no _delta_log); correct source.path in {definition.file}"
        )
    commits = sorted(log.glob("*.json"))
    if not commits or int(commits[0].stem) != 0:
        raise SourceError(
            f"the log of {folder} no longer begins at version 0, so files may be missing; keep its log longer"
        )
    found: dict[str, Found] = {}
    for commit in commits:
        version = int(commit.stem)
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if (remove := action.get("remove")) and remove.get("dataChange", True):
                raise SourceError(
                    f"version {version} of {folder} removes rows ({remove['path']}); a Delta source must be append-only"
                )
            add = action.get("add")
            if add and add.get("dataChange", True):
                if add.get("deletionVector"):
                    raise SourceError(
                        f"version {version} of {folder} uses deletion vectors; a Delta source must be append-only"
                    )
                path = unquote(add["path"])
                found[path] = Found(path, add["size"], add["modificationTime"] * 1_000_000, (version, path))
    return list(found.values())
