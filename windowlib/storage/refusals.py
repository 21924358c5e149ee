"""Errors of a storage that refuses a write or a read: a full, read-only or denied disk.

Python, delta-rs and engines report a full or read-only disk, or a folder of another user, in different words.
`refusals_named` turns these errors into one error with one text.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windowlib.model.errors import TryAgain
from windowlib.storage.credentials import AccessDenied
from windowlib.storage.disk_scan import first_unreadable
from windowlib.storage.store import Store

FULL, READ_ONLY, DENIED = (errno.ENOSPC, errno.EDQUOT), (errno.EROFS,), (errno.EACCES, errno.EPERM)
TOO_LARGE = (errno.EFBIG,)
_NUMBERED = re.compile(r"\b(?:os error|[Ee]rrno):? (\d+)")
PLENTY_BYTES = 1 << 20  # with this much free, another disk is full, or a file was too large and is already deleted


class CannotWrite(TryAgain):
    """The disk is full or read-only, or this user may not write or read there.

    Committed batches are complete, and the next run finishes the unfinished one.
    """


@contextmanager
def refusals_named(store: Store, batch_id: int | None = None) -> Iterator[None]:
    """Raises `CannotWrite` for an error in the block that a full, read-only or denied disk has caused.

    `store` holds the tables, `batch_id` the batch of the block.
    """
    free_before = store.free_bytes()
    try:
        yield
    except Exception as error:
        if isinstance(error, CannotWrite) and batch_id is None:
            raise
        if refusal := refusal_of(error, store, batch_id, free_before):
            raise refusal from error
        raise


def refusal_of(
    error: BaseException, store: Store, batch_id: int | None = None, free_before: int | None = None
) -> CannotWrite | None:
    """The `CannotWrite` for an error that the disk has caused; None for other errors.

    `free_before` is the number of bytes that were free when the work on `batch_id` began.
    """
    if isinstance(error, AccessDenied):
        return None  # of an object store, with a sentence of its own
    then = f", and the next run finishes batch {batch_id}" if batch_id else " and run again"
    whole = "Nothing is lost, and no unfinished work is visible to readers"
    match _reason(error, store):
        case None:
            return None
        case number if number in READ_ONLY:
            return CannotWrite(f"{store} is on a read-only disk. {whole}: make it writable{then}")
        case number if number in DENIED:
            path = next(_below(store, error), store.url)
            unreadable = first_unreadable(Path(path))
            denied = f"read {unreadable}" if unreadable else f"write to {path}"
            return CannotWrite(
                f"this user may not {denied}. {whole}. Every user of this pipeline needs the right to read and write"
                f" all of {store}: grant it{then}"
            )
        case number if number in TOO_LARGE:
            return CannotWrite(
                f"a file in {store} exceeds the size limit of its file system, or of `ulimit -f` for this process."
                f" {whole}: raise the limit{then}"
            )
    free, needed = store.free_bytes(), ""
    if batch_id and free_before is not None:
        needed = f"; batch {batch_id} needs more than the {in_kb(free_before)} that were free when it began"
    elsewhere = ", or in the engine's folder for temporary files" if free is None or free >= PLENTY_BYTES else ""
    left = "" if free is None else f" ({in_kb(free)} free{needed})"
    return CannotWrite(f"no space is left for {store}{left}{elsewhere}. {whole}: make room{then}")


def _reason(error: BaseException, store: Store) -> int | None:
    """The system error number with which a disk has refused, in this error or its causes.

    A denied access counts only below `store`, because a source may be denied too.
    """
    ours = any(_below(store, error))
    wanted: tuple[int, ...] = (*FULL, *READ_ONLY, *TOO_LARGE, *(DENIED if ours else ()))
    return _first_of(wanted, error)


def _first_of(wanted: tuple[int, ...], error: BaseException) -> int | None:
    """First of the `wanted` numbers in an error or its causes, as a number or as the system's message."""
    for linked in linked_errors(error):
        numbers = numbers_in(linked) | {number for number in wanted if os.strerror(number) in str(linked)}
        if matches := [number for number in wanted if number in numbers]:
            return matches[0]
    return None


def is_denied(error: BaseException) -> bool:
    """Tests if the system has denied this user an access.

    >>> is_denied(PermissionError(13, "Permission denied")), is_denied(OSError(5, "Input/output error"))
    (True, False)
    """
    return _first_of(DENIED, error) is not None


def numbers_in(error: BaseException) -> set[int]:
    """Values of `errno` that an error carries or that its message names.

    >>> numbers_in(OSError(5, "Input/output error")), numbers_in(RuntimeError("No entry (os error 2)"))
    ({5}, {2})
    """
    numbers = {*map(int, _NUMBERED.findall(str(error)))}
    return {*numbers, error.errno} if isinstance(error, OSError) and error.errno is not None else numbers


def linked_errors(error: BaseException) -> Iterator[BaseException]:
    """An error, then its causes."""
    linked: BaseException | None = error
    while linked is not None:
        yield linked
        linked = linked.__cause__ or linked.__context__


def _below(store: Store, error: BaseException) -> Iterator[str]:
    """The paths at or below `store` that an error names."""
    for linked in linked_errors(error):
        for path in re.findall(rf"{re.escape(str(store))}(?:/[^\s'\"#:]*)?", str(linked)):
            yield path.rstrip(".,;")


def in_kb(size_bytes: int) -> str:
    """A size as text.

    >>> in_kb(0), in_kb(12_345_678)
    ('0 KB', '12,056 KB')
    """
    return f"{size_bytes // 1024:,} KB"
