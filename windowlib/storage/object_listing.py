"""Listings of an object store, a thousand names at a time, and the names that all stores can hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from windowlib.storage.answers import StorageFailed
from windowlib.storage.repeats import Requests
from windowlib.storage.store import ObjectInfo

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

PAGE = 1000  # names
UNFIT = re.compile(r"(^|/)(\.{0,2})(/|$)|[\x00-\x1f\\]")  # Azure stores a backslash as a slash


def listed(requests: Requests, root: str, folder: str, after: str) -> Iterator[ObjectInfo]:
    """Objects below a folder with a path greater than `after`. Paths are relative to `root`, and so is the folder.

    After a failure, goes on after the last object. Raises OSError if the storage lists in another order.
    """
    start, last, place = below(root, folder) if folder else root, after, f"{requests.bucket}/{below(root, folder)}"
    pages: Iterator[Sequence[ObjectMeta]] | None = None
    previous = ""  # in this answer, which may begin before `last` if the storage ignores it

    def step(store: ObjectStore) -> Sequence[ObjectMeta]:
        nonlocal pages, previous
        if pages is None:
            pages, previous = store.list(start or None, offset=_offset(root, last), chunk_size=PAGE), ""
        try:
            return next(pages, ())
        except Exception:
            pages = None
            raise

    while page := requests.repeated(place, step):
        for found in (described(entry, root) for entry in page):
            if found.path <= previous:
                if not found.size_bytes:
                    continue  # the marker `a/` of a folder is listed as `a`, after `a-b`
                raise StorageFailed(
                    f"{place} lists names in another order: expected them sorted by bytes; use a bucket of another kind"
                )
            previous = found.path
            if found.path > last:
                last = found.path
                yield found


def described(found: ObjectMeta, root: str) -> ObjectInfo:
    """Description of an object, with its path relative to `root`.

    The time is in whole seconds, because the answer to a HEAD has no parts of seconds.
    """
    path = found["path"][len(root) + 1 :] if root else found["path"]
    return ObjectInfo(path, found["size"], int(found["last_modified"].timestamp()) * 10**9)


def below(root: str, path: str) -> str:
    """Name of an object in its bucket.

    >>> below("shop/results", "1.parquet"), below("", "1.parquet")
    ('shop/results/1.parquet', '1.parquet')
    """
    return f"{root}/{path}" if root else path


def _offset(root: str, after: str) -> str | None:
    """Name after which a listing may begin: `after`, or its beginning if no object can have that name."""
    unfit = UNFIT.search(after)
    begin = after[: unfit.start()] if unfit else after
    return below(root, begin) if begin else None
