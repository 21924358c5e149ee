"""A folder or a file of the source that this user may not read: no damage, and no loss.

The system's refusal comes in the words of the library that read: Python, Arrow, delta-rs, an engine. Where it names the
source, what may not be read is looked for, so that the sentence names that and not what was wanted in it.
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
    """Raises `SourceError` where the block may not read what it needs of the source in `folder`, a file or folder
    `within` it.
    """
    try:
        yield
    except Exception as error:
        if denied := denial_of(error, folder, within):
            raise denied from error
        raise


def denial_of(error: BaseException, folder: Path, within: Path | None = None) -> SourceError | None:
    """What an error says of a source that may not be read; None where it says something else."""
    if not is_denied(error):
        return None
    wanted = within or next(_named(error, folder), None)
    if wanted is None or (found := first_unreadable(wanted) or _unreadable_in(wanted)) is None:
        return None
    return SourceError(
        f"this user may not read {found}. Nothing is lost, and nothing was changed: give it the right to read {folder},"
        " with all that is in it, and give the command again"
    )


def _named(error: BaseException, folder: Path) -> Iterator[Path]:
    """The places in a source that an error names: one that Python names, or all of it where a text does."""
    for seen in linked_errors(error):
        if isinstance(seen, OSError) and isinstance(seen.filename, str) and Path(seen.filename).is_relative_to(folder):
            yield Path(seen.filename)
        if str(folder) in unquote(str(seen)):
            yield folder


def _unreadable_in(folder: Path) -> Path | None:
    """The first file or folder below a folder that may not be read; links are left out."""
    for at, folders, files in os.walk(folder):
        folders.sort()
        places = (Path(at, name) for name in (*folders, *sorted(files)))
        if found := next(filter(None, (first_unreadable(one) for one in places if not one.is_symlink())), None):
            return found
    return None
