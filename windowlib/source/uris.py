"""Conversion between files in a store and the URIs that engines use."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from windowlib.storage.store import Store


def uri_of(store: Store, path: str) -> str:
    """URI of a file in a store.

    >>> from pathlib import Path; from windowlib.storage.disk import Disk
    >>> uri_of(Disk(Path("/data")), "a b.json")
    'file:///data/a%20b.json'
    """
    if "://" in store.url:
        return f"{store.url}/{quote(path)}"
    return PurePosixPath(store.url, path).as_uri()


def path_in(store: Store, uri: str) -> str | None:
    """Path in a store of the file that a URI names; None if the file is not in the store.

    >>> from pathlib import Path; from windowlib.storage.disk import Disk
    >>> [path_in(Disk(Path("/data")), uri) for uri in ("file:///data/a%20b.json", "file:/data/a", "file:///other/a")]
    ['a b.json', 'a', None]
    """
    own = urlsplit(store.url).path if "://" in store.url else store.url
    place, folder = unquote(urlsplit(uri).path), f"{own.rstrip('/')}/"
    return place.removeprefix(folder) if place.startswith(folder) else None


def spellings(uri: str) -> tuple[str, str]:
    """Returns a URI as Spark spells it in `inputFiles`, and with one slash as in `_metadata.file_path`."""
    return uri, uri.replace("file:///", "file:/", 1)
