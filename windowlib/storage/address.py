"""Addresses of storage as text: given by a user, or passed to another process.

An address is the path of a folder or a file of this machine.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from windowlib.storage.disk import Disk
from windowlib.storage.store import Store


def store_at(address: str) -> Store:
    """Storage at an address.

    >>> store_at("warehouse/clicks").url
    'warehouse/clicks'
    """
    return Disk(Path(address))


def object_at(address: str) -> tuple[Store, str]:
    """Storage and path of the object at an address.

    >>> store, path = object_at("exports/results.csv")
    >>> store.url, path, object_at("/results.csv")[0].url, object_at("results.csv")[0].url
    ('exports', 'results.csv', '/', '.')
    """
    place = PurePath(address)
    return store_at(str(place.parent)), place.name


def path_below(address: str, store: Store) -> str | None:
    """Path of an address in a storage, empty for the storage's own address; None if it lies elsewhere. Follows links.

    >>> tables = store_at("/warehouse/clicks")
    >>> path_below("/warehouse/clicks/results/1.csv", tables), path_below("/warehouse/1.csv", tables)
    ('results/1.csv', None)
    """
    place, root = PurePath(os.path.realpath(address)), PurePath(os.path.realpath(store.url))
    if not place.is_relative_to(root):
        return None
    path = place.relative_to(root).as_posix()
    return "" if path == "." else path


def uri_of(address: str) -> str:
    """An address as a URI.

    >>> uri_of("/warehouse/my clicks/results")
    'file:///warehouse/my%20clicks/results'
    """
    return PurePath(address).as_uri()
