"""Test of a store before it is trusted: of several writers of one name, exactly one succeeds."""

from __future__ import annotations

import secrets

from windowlib.model.errors import InvalidSpec
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

FOLDER = "_probe"
WRITERS = 4


def require_create_once(store: Store) -> None:
    """Creates one name several times, at once and again. Raises InvalidSpec if more than one writer succeeds.

    >>> import tempfile; from pathlib import Path; from windowlib.storage.disk import Disk
    >>> require_create_once(Disk(Path(tempfile.mkdtemp())))
    """
    path = f"{FOLDER}/{secrets.token_hex(8)}"
    created = at_once(lambda writer: store.create(path, b"%d" % writer), range(WRITERS))
    created.append(store.create(path, b"later"))
    store.delete([path])
    if sum(created) != 1:
        raise InvalidSpec(
            f"{store}: {sum(created)} of {len(created)} writers created the same name: expected one, by conditional"
            " writes (`If-None-Match: *`); use a storage that supports them"
        )
