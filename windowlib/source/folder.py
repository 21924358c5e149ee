"""Files of a source folder and its subfolders, chosen by their names.

The listing omits unfinished transfers (`windowlib.source.transfers`), and files that `source.exclude` matches or
`source.include` does not match. It refuses two kinds of folders:

* a link to a folder, since one file would have two paths and be read twice
* the folder of a table (Delta, Hudi, Iceberg, output of a Spark stream), since files that the table no longer contains
  would be read too
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from windowlib.contract.tables import LEDGER
from windowlib.definition.toml.source import Source
from windowlib.source.listed import ListedFile, SourceError
from windowlib.source.marker import Marker
from windowlib.source.permissions import denials_named
from windowlib.source.transfers import has_prefix, is_named, suffix_of
from windowlib.storage.disk_scan import UnusableLink
from windowlib.storage.store import ObjectInfo, Store

TABLES = {
    "_delta_log": 'a Delta table, whose log says which of its files count (source.format = "delta" reads it)',
    ".hoodie": "a Hudi table, whose timeline says which of its files count",
    "_spark_metadata": "written by a streaming query of Spark, whose log says which of its files count",
}
"""Entries that mark a folder as a table, each with a description of the table."""
ICEBERG = "an Iceberg table, whose metadata says which of its files count"
METADATA = "metadata"  # folder of an Iceberg table's metadata
ICEBERG_METADATA = (".metadata.json", ".metadata.json.gz")  # name endings in an Iceberg `metadata` folder


def folder_files(source: Source, since: Marker | None = None) -> list[ListedFile]:
    """Lists the chosen files, from a marker on. Raises `SourceError` for a folder, link or name that is refused."""
    folders = set[str]()

    def wanted(path: str) -> bool:
        if not is_chosen(source, path):
            return False
        if not _is_utf8(path):
            raise SourceError(_spelling_message(source, path))
        return True

    files = _scanned(source, wanted, folders, since)
    chosen = [ListedFile.of(file) for file in files if since is None or since.reaches(file.path)]
    _check_tables(source, chosen, folders)
    return chosen


def left_out(source: Source, since: Marker | None = None) -> list[str]:
    """Sorted names of files that the listing omits from a marker on: unfinished transfers and unmatched files."""
    names = list[str]()

    def wanted(path: str) -> bool:
        if not is_chosen(source, path) and (since is None or since.reaches(path)):
            names.append(path)
        return False

    if source.format != "delta":
        with denials_named(source.store):
            for _ in _scanned(source, wanted, set(), since):
                pass  # nothing is wanted: the names are enough
    return sorted(names)


def _scanned(
    source: Source, wanted: Callable[[str], bool], folders: set[str], since: Marker | None
) -> Iterator[ObjectInfo]:
    """Scans the source, and adds the folders that the scan meets to `folders`. Does not enter hidden folders."""

    def enters(folder: str) -> bool:
        folders.add(folder)
        return not has_prefix(folder.rpartition("/")[2])

    try:
        yield from source.store.scan(wanted, enters, since.start if since else "")
    except FileNotFoundError as error:
        raise SourceError(
            f"the source folder {source.store} does not exist; create it or correct source.path in {source.file}"
        ) from error
    except NotADirectoryError as error:
        raise SourceError(f"{source.store} is a file, not a folder; correct source.path in {source.file}") from error
    except UnusableLink as error:
        raise SourceError(_link_message(source, error)) from error


def is_chosen(source: Source, name: str) -> bool:
    """Tests if a file is read, by its name relative to the source folder and by the source's patterns.

    An unfinished transfer is read only if a pattern in `include` ends with its suffix. A pattern without a slash
    matches the file's own name in any folder. A pattern with a slash matches the whole relative name. `*` stands for
    any characters, slashes included.
    """
    if has_prefix(name):
        return False
    own, suffix = name.rpartition("/")[2], suffix_of(name)
    include = [pattern for pattern in source.include if not suffix or is_named(suffix, [pattern])]

    def matches(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(name if "/" in pattern else own, pattern) for pattern in patterns)

    is_included = matches(include) if source.include else not suffix
    return is_included and not matches(source.exclude)


def exists(source: Source) -> bool:
    """Tests if the storage has the source's folder."""
    try:
        next(source.store.scan(lambda path: True, lambda folder: True), None)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # a listing names the reason
    return True


def _check_tables(source: Source, chosen: Sequence[ListedFile], folders: set[str]) -> None:
    """Raises `SourceError` if a chosen file is in the folder of a table, or below it."""
    if not chosen:
        return
    tables = {folder: what for at in sorted(folders) for folder, what in _tables_by(source.store, at)}
    within = _iceberg_above(source.store) if "" not in tables else None
    if within is not None:
        raise SourceError(_table_message(source, str(within), ICEBERG))
    for file in chosen if tables else ():
        parts = file.path.split("/")[:-1]
        folder = next((at for end in range(len(parts) + 1) if (at := "/".join(parts[:end])) in tables), None)
        if folder is not None:
            place = f"{source.store}/{folder}".rstrip("/")
            raise SourceError(_table_message(source, place, tables[folder], _to_leave_out(folder, folders)))


def _tables_by(store: Store, folder: str) -> Iterator[tuple[str, str]]:
    """Yields the table whose log or metadata is in a folder, with a description."""
    above, _, name = folder.rpartition("/")
    if name in TABLES:
        yield above, TABLES[name]
    elif name == METADATA and _has_iceberg_metadata(store, f"{folder}/"):
        yield above, ICEBERG


def _to_leave_out(folder: str, folders: set[str]) -> str:
    """Folder to leave out with a table: the folder of the whole pipeline for a table of windowlib."""
    above = folder.rpartition("/")[0]
    return above if f"{above}/{LEDGER.name}".lstrip("/") in folders else folder


def _table_message(source: Source, place: str, what: str, folder: str = "") -> str:
    leave_out = f'leave it out: source.exclude = ["{folder}/*"] in {source.file}' if folder else "read another folder"
    return f"{place} is {what}, so rows that it no longer has would be read with the others. Export it, or {leave_out}"


def _iceberg_above(store: Store) -> Store | None:
    """The Iceberg table above the source, whose files are in its folder `data`; None if there is no such table."""
    here: Store = store
    while (up := here.above()) is not None:
        here, name = up
        if name == "data" and _has_iceberg_metadata(here, f"{METADATA}/"):
            return here
    return None


def _has_iceberg_metadata(store: Store, folder: str) -> bool:
    with suppress(PermissionError):
        return any(file.path.endswith(ICEBERG_METADATA) for file in store.list(folder))
    return False


def _is_utf8(name: str) -> bool:
    """Tests if a name is UTF-8. Python represents other bytes of a name as surrogates."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def _spelling_message(source: Source, path: str) -> str:
    shown = os.fsencode(f"{source.store}/{path}").decode("utf-8", errors="backslashreplace")
    pattern = "".join(letter if _is_utf8(letter) else "?" for letter in path)
    return (
        f"the name of {shown} is not UTF-8, so it cannot be stored. Rename the file, or leave it out:"
        f' source.exclude = ["{pattern}"] in {source.file}'
    )


def _link_message(source: Source, link: UnusableLink) -> str:
    place, leave_out = f"{source.store}/{link.path}", f'source.exclude = ["{link.path}"] in {source.file}'
    if link.read_as:
        return (
            f"{place} is a link to {link.to}, but that file is also read as {link.read_as}: its rows would count twice."
            f" Leave it out: {leave_out}"
        )
    if link.is_broken:
        return f"{place} is a broken link: {link.to} does not exist. Restore that file, or leave it out: {leave_out}"
    return (
        f"{place} is a link to the folder {link.to}, but runs do not follow links to folders."
        f" Mount or move the folder there, let source.path name it, or leave it out: {leave_out}"
    )
