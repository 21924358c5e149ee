"""Errors about files and folders of the source that this user may not read. No file is damaged or lost.

Python, Arrow, delta-rs and the engines word the system's refusal differently. If an error names the source, this module
searches for the file or folder that is not readable. The message names an unreadable folder instead of a file within
it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from windowlib.delta.disk import first_unreadable, is_denied, linked_errors
from windowlib.source.listed import SourceError


@contextmanager
def denials_named(folder: Path, within: Path | None = None) -> Iterator[None]:
    """Turns a permission error of the block into a `SourceError` that names the unreadable file or folder.

    within: the file or folder that the block reads, if it is known
    """
    try:
        yield
    except Exception as error:
        if denied := denial_of(error, folder, within):
            raise denied from error
        raise


def denial_of(error: BaseException, folder: Path, within: Path | None = None) -> SourceError | None:
    """Error for a source that may not be read; None if the given error has another cause."""
    if not is_denied(error):
        return None
    wanted = within or next(_named(error, folder), None)
    if wanted is None or (place := first_unreadable(wanted) or _unreadable_in(wanted)) is None:
        return None
    return SourceError(
        f"this user may not read {place}. Nothing is lost, and nothing was changed. Give the user the right to read"
        f" {folder} with everything in it, and run the command again"
    )


def _named(error: BaseException, folder: Path) -> Iterator[Path]:
    """Yields paths in a source that an error names: the file of an `OSError`, or the folder if the message has it."""
    for linked in linked_errors(error):
        place = linked.filename if isinstance(linked, OSError) else None
        if isinstance(place, str) and Path(place).is_relative_to(folder):
            yield Path(place)
        if str(folder) in unquote(str(linked)):
            yield folder


def _unreadable_in(folder: Path) -> Path | None:
    """First unreadable file or folder below a folder. Links are skipped."""
    for at, folders, files in os.walk(folder):
        folders.sort()
        places = (Path(at, name) for name in (*folders, *sorted(files)))
        unreadable = (first_unreadable(place) for place in places if not place.is_symlink())
        if first := next(filter(None, unreadable), None):
            return first
    return None
