"""Files of a source folder and its subfolders, chosen by their names.

The listing omits unfinished transfers (`windowlib.source.transfers`), and files that `source.exclude` matches or
`source.include` does not match. It refuses two kinds of folders:

* a link to a folder, since one file would have two paths and be read twice
* the folder of a table (Delta, Hudi, Iceberg, output of a Spark stream), since files that the table no longer contains
  would be read too
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from windowlib.contract.tables import LEDGER
from windowlib.definition.toml.source import Source
from windowlib.source.listed import ListedFile, SourceError
from windowlib.source.marker import Marker
from windowlib.source.permissions import denials_named
from windowlib.source.transfers import has_prefix, is_named, suffix_of

TABLES = {
    "_delta_log": 'a Delta table, whose log says which of its files count (source.format = "delta" reads it)',
    ".hoodie": "a Hudi table, whose timeline says which of its files count",
    "_spark_metadata": "written by a streaming query of Spark, whose log says which of its files count",
}
"""Entries that mark a folder as a table, each with a description of the table."""
ICEBERG = "an Iceberg table, whose metadata says which of its files count"
ICEBERG_METADATA = (".metadata.json", ".metadata.json.gz")  # name endings in an Iceberg `metadata` folder


def folder_files(source: Source, since: Marker | None = None) -> list[ListedFile]:
    """Lists the chosen files, from a marker on. Raises `SourceError` for a folder, link or name that is refused."""
    chosen = [(name, entry) for name, entry in _entries(source, since) if is_chosen(source, name)]
    _check_links(source, chosen)
    return [
        ListedFile(name, stat.st_size, stat.st_mtime_ns, (stat.st_mtime_ns, name))
        for name, entry in chosen
        if (stat := entry.stat())
    ]


def _check_links(source: Source, chosen: Sequence[tuple[str, os.DirEntry[str]]]) -> None:
    """Raises `SourceError` for a link to a file that is also read under another name."""
    links = [(name, os.path.realpath(entry.path)) for name, entry in chosen if entry.is_symlink()]
    folder, read_as = os.path.realpath(source.path) if links else "", dict[str, str]()
    for name, to in sorted(links):
        inside = to.removeprefix(folder + os.sep) if to.startswith(folder + os.sep) else None
        if inside is not None and is_chosen(source, inside):
            read_as[to] = inside
        if (other := read_as.setdefault(to, name)) != name:
            raise SourceError(
                f"{source.path / name} is a link to {to}, but that file is also read as {other}: its rows would count"
                f' twice. Leave it out: source.exclude = ["{name}"] in {source.file}'
            )


def left_out(source: Source, since: Marker | None = None) -> list[str]:
    """Sorted names of files that the listing omits from a marker on: unfinished transfers and unmatched files."""
    if source.format == "delta":
        return []
    with denials_named(source.path):
        return sorted(name for name, _ in _entries(source, since) if not is_chosen(source, name))


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


def _entries(source: Source, since: Marker | None) -> Iterator[tuple[str, os.DirEntry[str]]]:
    folder = source.path
    if not folder.is_dir():
        if folder.exists():
            raise SourceError(f"{folder} is a file, not a folder; correct source.path in {source.file}")
        raise SourceError(
            f"the source folder {folder} does not exist; create it or correct source.path in {source.file}"
        )
    return _below(source, str(folder), "", since)


def _below(
    source: Source, folder: str, above: str, since: Marker | None, table: str | None = None
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yields the files of a folder and its subfolders. Names before the marker cost no further system call.

    above: path of the folder relative to the source, with a slash at its end
    table: the reason why files in or below a table's folder may not be read; None outside of tables
    """
    depth = above.count("/")
    first = since.parts[depth] if since and depth < len(since.parts) else ""
    table = table or _why_a_table(source, folder, above)
    with os.scandir(folder) as entries:
        for entry in entries:
            name = above + entry.name
            if entry.name < first:
                continue
            if entry.is_dir(follow_symlinks=False):
                if has_prefix(entry.name):
                    continue
                yield from _below(source, entry.path, f"{name}/", since if entry.name == first else None, table)
            elif since and not since.reaches(name) and not entry.is_symlink():  # a link may lead to a folder
                continue
            elif table and is_chosen(source, name):
                raise SourceError(table)
            elif _is_file(entry):
                if not _is_utf8(name) and is_chosen(source, name):
                    raise SourceError(_spelling_message(source, entry, name))
                yield name, entry
            elif entry.is_symlink() and is_chosen(source, name) and not _is_pipe_or_device(entry):
                raise SourceError(_link_message(source, entry, name))


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return False  # a link to itself


def _is_pipe_or_device(entry: os.DirEntry[str]) -> bool:
    """Tests if an entry that is not a file is a pipe or device: it exists and is no folder.

    The listing ignores such entries.
    """
    return os.path.exists(entry.path) and not os.path.isdir(entry.path)


def _why_a_table(source: Source, folder: str, above: str) -> str | None:
    what = next((what for log, what in TABLES.items() if os.path.lexists(os.path.join(folder, log))), None)
    if what is None and (iceberg := _iceberg_table(folder, look_above=not above)):
        folder, what = iceberg, ICEBERG
    if what is None:
        return None
    if above and os.path.lexists(os.path.join(os.path.dirname(folder), LEDGER.name)):  # leave out the whole pipeline
        above = above[: above.rstrip("/").rfind("/") + 1]
    leave_out = f'leave it out: source.exclude = ["{above}*"] in {source.file}' if above else "read another folder"
    return f"{folder} is {what}, so rows that it no longer has would be read with the others. Export it, or {leave_out}"


def _iceberg_table(folder: str, *, look_above: bool) -> str | None:
    """Folder of the Iceberg table that contains a folder; None if there is no such table.

    The table is the folder itself or, with `look_above`, the parent of a folder `data` on the path to it.
    """
    if _has_iceberg_metadata(folder):
        return folder
    place = os.path.realpath(folder) if look_above else os.sep
    while (above := os.path.dirname(place)) != place:
        if os.path.basename(place) == "data" and _has_iceberg_metadata(above):
            return above
        place = above
    return None


def _has_iceberg_metadata(folder: str) -> bool:
    metadata = os.path.join(folder, "metadata")
    if not os.path.isdir(metadata) or not os.access(metadata, os.R_OK):
        return False
    with os.scandir(metadata) as entries:
        return any(entry.name.endswith(ICEBERG_METADATA) for entry in entries)


def _is_utf8(name: str) -> bool:
    """Tests if a name is UTF-8. Python represents other bytes of a name as surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _spelling_message(source: Source, entry: os.DirEntry[str], name: str) -> str:
    shown = os.fsencode(entry.path).decode("utf-8", errors="backslashreplace")
    pattern = "".join(letter if _is_utf8(letter) else "?" for letter in name)
    return (
        f"the name of {shown} is not UTF-8, so it cannot be stored. Rename the file, or leave it out:"
        f' source.exclude = ["{pattern}"] in {source.file}'
    )


def _link_message(source: Source, entry: os.DirEntry[str], name: str) -> str:
    to, leave_out = os.readlink(entry.path), f'leave it out: source.exclude = ["{name}"] in {source.file}'
    if not os.path.exists(entry.path):
        return f"{entry.path} is a broken link: {to} does not exist. Restore that file, or {leave_out}"
    return (
        f"{entry.path} is a link to the folder {to}, but runs do not follow links to folders."
        f" Mount or move the folder there, let source.path name it, or {leave_out}"
    )
