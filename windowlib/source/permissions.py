"""Errors about files and folders of the source that this user may not read. No file is damaged or lost.

Python, Arrow, delta-rs and the engines word the system's refusal differently. If an error names the source, this module
searches for the file or folder that is not readable. The message names an unreadable folder instead of a file within
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from windowlib.source.listed import SourceError
from windowlib.storage.refusals import is_denied, linked_errors
from windowlib.storage.store import Store


@contextmanager
def denials_named(store: Store, within: str | None = None) -> Iterator[None]:
    """Turns a permission error of the block into a `SourceError` that names the unreadable file or folder.

    within: path of the file or folder that the block reads, if it is known
    """
    try:
        yield
    except Exception as error:
        if denied := denial_of(error, store, within):
            raise denied from error
        raise


def denial_of(error: BaseException, store: Store, within: str | None = None) -> SourceError | None:
    """Error for a source that may not be read; None if the given error has another cause."""
    if not is_denied(error):
        return None
    wanted = next(_named(error, store), None) if within is None else within
    if wanted is None or (place := store.unreadable(wanted)) is None:
        return None
    return SourceError(
        f"this user may not read {place}. Nothing is lost, and nothing was changed. Give the user the right to read"
        f" {store} with everything in it, and run the command again"
    )


def _named(error: BaseException, store: Store) -> Iterator[str]:
    """Yields paths in a source that an error names: the file of an `OSError`, or "" if the message has the source."""
    for linked in linked_errors(error):
        place = linked.filename if isinstance(linked, OSError) else None
        if isinstance(place, str) and place.startswith(f"{store.url}/"):
            yield place.removeprefix(f"{store.url}/")
        if store.url in unquote(str(linked)):
            yield ""
