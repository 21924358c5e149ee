"""Files by the URIs that engines have for them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit


def file_of(uri: str) -> Path:
    """The file of a URI.

    >>> file_of("file:///data/a%20b.json").as_posix()
    '/data/a b.json'
    """
    return Path(unquote(urlsplit(uri).path))


def spellings(uri: str) -> tuple[str, str]:
    """A URI as Spark's `inputFiles` has it, and as its `_metadata.file_path` has it, with one slash."""
    return uri, uri.replace("file:///", "file:/", 1)
