"""Conversion between source files and the URIs that engines use."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit


def file_of(uri: str) -> Path:
    """Path of the file that a URI names.

    >>> file_of("file:///data/a%20b.json").as_posix()
    '/data/a b.json'
    """
    return Path(unquote(urlsplit(uri).path))


def spellings(uri: str) -> tuple[str, str]:
    """Returns a URI as Spark spells it in `inputFiles`, and with one slash as in `_metadata.file_path`."""
    return uri, uri.replace("file:///", "file:/", 1)
