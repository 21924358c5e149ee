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
    """A URI as in Spark's `inputFiles`, and as in its `_metadata.file_path`, with one slash."""
    return uri, uri.replace("file:///", "file:/", 1)
