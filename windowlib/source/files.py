"""The source: which files are new, in which order they arrived, and whether they are what the definition says.

A source is a sequence of files, numbered 1, 2, 3, … in *arrival order*: modification time, then name, among those a
plan finds new; for a Delta source, version, then name. A file is read once and must not change afterwards. Folders and
files whose name begins with `_` or `.` are not looked at: write there, then rename.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.definition.definition import Definition
from windowlib.model.errors import StateMismatch, WindowError
from windowlib.plans.partitions import folder_values
from windowlib.tables import delta
from windowlib.tables.ledger import SourceFile
from windowlib.tables.meaning import SOURCE_FILES
from windowlib.tables.opened import Tables


class SourceError(WindowError):
    """The source cannot be read as the definition says."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file in the source folder, not yet numbered. `order` sorts by arrival."""

    path: str
    size_bytes: int
    modified_ns: int
    order: tuple[int, str]


def found_files(definition: Definition) -> list[Found]:
    """Every file that is there now."""
    return _delta_files(definition) if definition.source.format == "delta" else _folder_files(definition)


Look = Callable[[Definition], list[Found]]


def new_files(
    definition: Definition,
    known: Mapping[str, tuple[int, int]],
    after_sequence: int,
    at_most: int = 0,
    look: Look = found_files,
    *,
    check: bool = True,
) -> list[SourceFile]:
    """The files no batch has read, in arrival order, numbered from `after_sequence` + 1; `at_most` so many (0: all).

    `known` are those that were read (`known_files`); `look` finds the files that are there. Raises
    `SourceError` when the folder is missing or, with `check`, a file that was read has changed since.
    """
    found = look(definition)
    for file in found if check else ():
        if (before := known.get(file.path)) and before != (file.size_bytes, file.modified_ns):
            raise SourceError(
                f"{definition.source.path / file.path} has changed since it was read (was {before[0]} bytes, is"
                f" {file.size_bytes}). A file is read once: put new events into a new file and restore this one,"
                f" or rerun its time range: windowlib rerun {definition.file} --from … --to …"
            )
    fresh = sorted((f for f in found if f.path not in known), key=lambda f: f.order)
    if at_most:
        fresh = fresh[:at_most]
    return [
        SourceFile(f.path, f.size_bytes, f.modified_ns, number) for number, f in enumerate(fresh, after_sequence + 1)
    ]


def check_unchanged(definition: Definition, files: Sequence[SourceFile]) -> None:
    """Raises `SourceError` when a planned file is gone or is not the one that was planned."""
    for file in files:
        path = definition.source.path / file.path
        if is_unchanged(definition, path, file.size_bytes, file.modified_ns):
            continue
        raise SourceError(
            f"{path} {'has changed' if path.is_file() else 'has gone'} since its batch was planned. Restore it, or drop"
            f" the batch with `windowlib abandon {definition.file}`: the next run makes a new plan."
        )


def is_unchanged(definition: Definition, path: Path, size_bytes: int, modified_ns: int) -> bool:
    """Whether a file of the source is there as it was known."""
    if not path.is_file():
        return False
    stat = path.stat()
    # A Delta log has a time of its own for a file, which never changes under its name.
    same_time = definition.source.format == "delta" or stat.st_mtime_ns == modified_ns
    return stat.st_size == size_bytes and same_time


def known_files(tables: Tables, at: int | None) -> dict[str, tuple[int, int]]:
    """Path → (size, modification time) of the files read up to version `at` of `source_files`."""
    table = tables[SOURCE_FILES.name]
    known: dict[str, tuple[int, int]] = {}
    for file in delta.files(table, at):
        known |= _read_in(table.folder / file.path)
    return known


@lru_cache(maxsize=4096)
def _read_in(file: Path) -> Mapping[str, tuple[int, int]]:
    """The same of one of the table's files, which never change."""
    table = delta.read_parquet(file, SOURCE_FILES.columns)
    columns = (table[name].to_pylist() for name in ("path", "size_bytes", "modified_ns"))
    return {path: (size, modified) for path, size, modified in zip(*columns, strict=True)}


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


def check_readable(
    definition: Definition, files: Sequence[SourceFile], pinned: Mapping[str, str] | None
) -> dict[str, str]:
    """The types of the columns in use, by the files' own word; raises when a file cannot be read or does not fit.

    `pinned` are the types that earlier batches saw: `StateMismatch` when they have changed. For json and csv the
    declared types count.
    """
    if definition.source.format == "csv":
        for file in files:
            _check_header(definition, definition.source.path / file.path)
    if definition.source.format in ("json", "csv"):
        return {name: definition.source.columns[name] for name in used_columns(definition)}
    seen = dict(pinned or {})
    for file in files:
        path = definition.source.path / file.path
        try:
            schema = pq.read_schema(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise SourceError(
                f"{path} is not a readable Parquet file ({_first_line(error)}). Remove or repair it, then run again;"
                " nothing of this batch has been committed."
            ) from error
        if unreadable := [f"{f.name!r} is {f.type}" for f in schema if "[ns" in str(f.type)]:
            raise SourceError(
                f"{path}: {', '.join(unreadable)}, which Spark does not read. Write timestamps in microseconds:"
                ' coerce_timestamps="us" in pandas and pyarrow.'
            )
        types = {f.name: str(f.type) for f in schema} | dict.fromkeys(folder_values(file.path), "partition")
        for name in used_columns(definition):
            if name not in types:
                raise StateMismatch(f"{path} has no column {name!r}; it has {', '.join(sorted(types))}")
            before = seen.setdefault(name, types[name])
            if not _same_type(before, types[name]):
                raise StateMismatch(
                    f"column {name!r} of {path} is {types[name]}, but was {before} in earlier files. Convert the file,"
                    " or start a new pipeline for the new type."
                )
    _check_types(definition, seen)
    return seen


def _check_header(definition: Definition, path: Path) -> None:
    """Raises `StateMismatch` when a CSV file's first line does not name the declared columns in their order."""
    with pa.input_stream(path, compression="detect") as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        header = next(csv.reader(lines), None)
    declared = list(definition.source.columns)
    if header is not None and [name.casefold() for name in header] != [name.casefold() for name in declared]:
        raise StateMismatch(
            f"{path} begins with the columns {', '.join(header)}; need those of [source.schema] in {definition.file}:"
            f" {', '.join(declared)}, in that order"
        )


def _same_type(a: str, b: str) -> bool:
    return a.removeprefix("large_") == b.removeprefix("large_")


def _check_types(definition: Definition, types: Mapping[str, str]) -> None:
    source = definition.source
    given = types.get(source.timestamp)
    if given is None:
        return
    is_time = given.startswith(("timestamp", "date"))
    if source.timestamp_unit is None and not is_time:
        raise SourceError(
            f"source.timestamp = {source.timestamp!r} is {given} in the files; need a timestamp, or an integer with"
            ' timestamp_unit = "s", "ms" or "us"'
        )
    if source.timestamp_unit is not None and not given.startswith(("int", "uint", "bigint", "long")):
        raise SourceError(
            f"source.timestamp = {source.timestamp!r} is {given} in the files; timestamp_unit ="
            f" {source.timestamp_unit!r} needs an integer"
        )


def used_columns(definition: Definition) -> list[str]:
    """The source columns that the definition names, in order, once each."""
    source = definition.source
    columns = (*definition.reads, *sorted(definition.aggregates.columns_used))
    names = [*source.key, source.timestamp, source.event_id, *columns]
    return list(dict.fromkeys(name for name in names if name))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
