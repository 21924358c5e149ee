"""Copies of all objects of a store to another store, compared byte by byte.

Both sides of each object are read, so all copies are equal when this returns, also those of an earlier process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from windowlib.definition.plurals import counted
from windowlib.model.errors import TryAgain
from windowlib.runs.run import Say
from windowlib.storage.at_once import THREADS, at_once
from windowlib.storage.object_file import PIECE_BYTES, pieces
from windowlib.storage.store import UNFINISHED, ObjectInfo, Store

LARGE_AT_ONCE = 2  # objects of more than `PIECE_BYTES`
TRIES = 3  # copies of an object that another program replaces meanwhile


class KeepsChanging(TryAgain):
    """Another program replaces an object as often as it is copied."""


@dataclass(frozen=True, slots=True)
class Copied:
    """Number and total size of the objects that are equal in both stores."""

    objects: int
    size_bytes: int


def copy(source: Store, target: Store, wanted: Callable[[str], bool], keep: Callable[[str], bool], say: Say) -> Copied:
    """Makes `target` hold exactly the wanted objects of `source`. Writes only what differs.

    Deletes other objects, which an earlier attempt has left, unless `keep` is true for their path.

    >>> import tempfile; from pathlib import Path; from windowlib.storage.disk import Disk
    >>> old, new = Disk(Path(tempfile.mkdtemp())), Disk(Path(tempfile.mkdtemp()))
    >>> old.put("a", b"1"), old.put("b", b"2"), new.put("a", b"0"), new.put("c", b"3"), new.put("d", b"4")
    (None, None, None, None, None)
    >>> copy(old, new, lambda path: path != "b", lambda path: path == "d", lambda step: None)
    Copied(objects=1, size_bytes=1)
    >>> [file.path for file in new.list()], new.get("a")
    (['a', 'd'], b'1')
    """
    files = [file for file in source.list() if wanted(file.path) and not file.path.endswith(UNFINISHED)]
    there = {file.path for file in target.list()}
    target.delete({path for path in there if not keep(path)} - {file.path for file in files})
    done = list[int]()
    say(lambda: f"copying and comparing, {len(done):,} of {counted(len(files), 'object')}")

    def small(file: ObjectInfo) -> None:
        done.append(_small(source, target, file.path, is_there=file.path in there))

    def large(file: ObjectInfo) -> None:
        done.append(_large(source, target, file.path))

    at_once(small, [file for file in files if file.size_bytes <= PIECE_BYTES], THREADS)
    at_once(large, [file for file in files if file.size_bytes > PIECE_BYTES], LARGE_AT_ONCE)
    return Copied(len(files), sum(done))


def create(source: Store, target: Store, paths: Sequence[str]) -> str | None:
    """Copies small objects one after another, in this order. Never replaces an object.

    Returns the first path at which the target has another object; None if all are equal.
    """
    for path in paths:
        content = source.get(path)
        if content is not None and not target.create(path, content):
            return path
    return None


def _small(source: Store, target: Store, path: str, *, is_there: bool) -> int:
    """Copies an object unless both stores have the same. Returns its size in bytes, 0 if it is gone."""
    if (content := source.get(path)) is None:
        target.delete([path])
        return 0
    if not is_there:
        target.create(path, content)
    for _ in range(TRIES):
        if target.get(path) == content:
            return len(content)
        target.put(path, content)
    raise _changing(target, path)


def _large(source: Store, target: Store, path: str) -> int:
    """Copies an object piece by piece, as `_small`."""
    for _ in range(TRIES):
        size_bytes, copied_bytes = source.sizes([path])[0], target.sizes([path])[0]
        if size_bytes is None:
            target.delete([path])
            return 0
        if copied_bytes == size_bytes and _is_equal(source, target, path, size_bytes):
            return size_bytes
        target.put(path, pieces(source, path, size_bytes))
    raise _changing(target, path)


def _is_equal(source: Store, target: Store, path: str, size_bytes: int) -> bool:
    both = (pieces(store, path, size_bytes) for store in (source, target))
    return all(original == copied for original, copied in zip(*both, strict=True))


def _changing(target: Store, path: str) -> KeepsChanging:
    return KeepsChanging(
        f"{target.url}/{path} differs from its original after {TRIES} copies: end the program that writes one of them,"
        " then start again. Nothing is lost, and the next attempt copies only what differs"
    )
