"""Folders of this machine that other programs write: sorted walks, symbolic links, and missing permissions."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path

from windowlib.storage.store import ObjectInfo

ENTER = os.R_OK | os.X_OK  # rights needed to list a folder


class UnusableLink(OSError):
    """A symbolic link that gives no file of its own: it leads to a folder, to nothing, or to a file that is listed.

    path:    path of the link, relative to its store
    to:      path that the link leads to
    read_as: other path under which the file is listed, if there is one
    """

    def __init__(self, path: str, to: str, *, is_broken: bool = False, read_as: str | None = None) -> None:
        super().__init__(errno.EINVAL, "not a link to a file of its own", path)
        self.path, self.to, self.is_broken, self.read_as = path, to, is_broken, read_as


def walk(
    root: str, folder: str, after: str, enters: Callable[[str], bool], *, through_links: bool
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yields paths greater than `after` below a folder, with their entries, sorted by their bytes. Omits folders.

    Folders without such a path are not listed. A folder that does not exist has no paths.

    enters: tests the path of a folder
    """
    try:
        with os.scandir(os.path.join(root, folder)) as listing:
            entries = [*_chosen(listing, f"{folder}/" if folder else "", after, enters, through_links)]
    except (FileNotFoundError, NotADirectoryError):
        return
    for path, entry in sorted(entries, key=itemgetter(0)):  # code points sort like the bytes of UTF-8
        if path.endswith("/"):
            yield from walk(root, path[:-1], after, enters, through_links=through_links)
        else:
            yield path, entry


def _chosen(
    listing: Iterator[os.DirEntry[str]], above: str, after: str, enters: Callable[[str], bool], through_links: bool
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yields the entries of a folder to visit. The path of a folder ends with a slash."""
    for entry in listing:
        path = above + entry.name
        if entry.is_dir(follow_symlinks=through_links):
            inside = f"{path}/"
            if enters(path) and (inside > after or after.startswith(inside)):
                yield inside, entry
        elif path > after:
            yield path, entry


def scan(
    root: str, wanted: Callable[[str], bool], enters: Callable[[str], bool], after: str = ""
) -> Iterator[ObjectInfo]:
    """Yields wanted files below a folder, as in `windowlib.storage.store.Store.scan`. Omits pipes and devices."""
    if not stat.S_ISDIR(os.stat(root).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), root)
    links: list[str] = []
    for path, entry in walk(root, "", after, enters, through_links=False):
        if _is_file(entry):
            if wanted(path):
                if entry.is_symlink():
                    links.append(path)
                try:
                    about = entry.stat()
                except FileNotFoundError:  # deleted meanwhile
                    continue
                yield ObjectInfo(path, about.st_size, about.st_mtime_ns)
        elif entry.is_symlink() and not _is_pipe_or_device(entry) and wanted(path):
            raise UnusableLink(path, os.readlink(entry.path), is_broken=not os.path.exists(entry.path))
    _check_links(root, links, wanted)


def _check_links(root: str, links: list[str], wanted: Callable[[str], bool]) -> None:
    """Raises `UnusableLink` for a link to a file that is also listed under another path."""
    folder, read_as = os.path.realpath(root) + os.sep, dict[str, str]()
    for path in sorted(links):
        to = os.path.realpath(os.path.join(root, path))
        inside = to.removeprefix(folder)
        if inside != to and wanted(inside):
            read_as[to] = inside
        if (other := read_as.setdefault(to, path)) != path:
            raise UnusableLink(path, to, read_as=other)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return False  # a link to itself


def _is_pipe_or_device(entry: os.DirEntry[str]) -> bool:
    """Tests if a link that leads to no file leads to a pipe or device: to something that is no folder."""
    return os.path.exists(entry.path) and not os.path.isdir(entry.path)


def first_unreadable(place: Path) -> Path | None:
    """The topmost folder above `place` that this user may not enter, or an unreadable `place` itself.

    None if the place can be read or does not exist.
    """
    for above in reversed(place.parents):
        if os.path.isdir(above) and not os.access(above, os.X_OK):
            return above
    needed = ENTER if os.path.isdir(place) else os.R_OK
    return place if os.path.lexists(place) and not os.access(place, needed) else None


def first_unreadable_below(folder: Path) -> Path | None:
    """First unreadable file or folder below a folder. Links are skipped."""
    for at, folders, files in os.walk(folder):
        folders.sort()
        places = (Path(at, name) for name in (*folders, *sorted(files)))
        unreadable = (first_unreadable(place) for place in places if not place.is_symlink())
        if first := next(filter(None, unreadable), None):
            return first
    return None
