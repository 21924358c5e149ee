"""Durable writes, and errors of a full, read-only or denied disk.

A written file is first only in memory: after a power failure it may be empty or missing. `sync` flushes files and the
folders that name them. A run flushes in this order: data files, the prepare file and its row, the log entries, the
commit row (`windowlib.ledger.prepare`).

Python, delta-rs and Spark report a full or read-only disk, or a folder of another user, in different words.
`refusals_named` turns these errors into one error with one text.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from windowlib.model.errors import TryAgain
from windowlib.storage import disk as storage_disk
from windowlib.storage.disk import Disk

FULL, READ_ONLY, DENIED = (errno.ENOSPC, errno.EDQUOT), (errno.EROFS,), (errno.EACCES, errno.EPERM)
TOO_LARGE = (errno.EFBIG,)
ENTER = os.R_OK | os.X_OK  # rights needed to list a folder
_NUMBERED = re.compile(r"\b(?:os error|[Ee]rrno):? (\d+)")
PLENTY_BYTES = 1 << 20  # with this much free, another disk is full, or a file was too large and is already deleted


class CannotWrite(TryAgain):
    """The disk is full or read-only, or this user may not write or read there.

    Committed batches are complete, and the next run finishes the unfinished one.
    """


def put(file: Path, text: str) -> Path:
    """Replaces the content of a file atomically. Does not sync the file. Returns the file. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)
    return file


@contextmanager
def refusals_named(root: Path, batch_id: int | None = None) -> Iterator[None]:
    """Raises `CannotWrite` for an error in the block that a full, read-only or denied disk has caused.

    `root` is the folder of the tables, `batch_id` the batch of the block.
    """
    free_before = free_bytes(root)
    try:
        yield
    except Exception as error:
        if isinstance(error, CannotWrite) and batch_id is None:
            raise
        if refusal := refusal_of(error, root, batch_id, free_before):
            raise refusal from error
        raise


def refusal_of(
    error: BaseException, root: Path, batch_id: int | None = None, free_before: int | None = None
) -> CannotWrite | None:
    """The `CannotWrite` for an error that the disk has caused; None for other errors.

    `free_before` is the number of bytes that were free when the work on `batch_id` began.
    """
    then = f", and the next run finishes batch {batch_id}" if batch_id else " and run again"
    whole = "Nothing is lost, and no unfinished work is visible to readers"
    match _reason(error, root):
        case None:
            return None
        case number if number in READ_ONLY:
            return CannotWrite(f"{root} is on a read-only disk. {whole}: make it writable{then}")
        case number if number in DENIED:
            path = next(_below(root, error), root)
            unreadable = first_unreadable(Path(path))
            denied = f"read {unreadable}" if unreadable else f"write to {path}"
            return CannotWrite(
                f"this user may not {denied}. {whole}. Every user of this pipeline needs the right to read and write"
                f" all of {root}: grant it{then}"
            )
        case number if number in TOO_LARGE:
            return CannotWrite(
                f"a file in {root} exceeds the size limit of its file system, or of `ulimit -f` for this process."
                f" {whole}: raise the limit{then}"
            )
    free, needed = free_bytes(root), ""
    if batch_id and free_before is not None:
        needed = f"; batch {batch_id} needs more than the {in_kb(free_before)} that were free when it began"
    elsewhere = ", or in the engine's folder for temporary files" if free is None or free >= PLENTY_BYTES else ""
    left = "" if free is None else f" ({in_kb(free)} free{needed})"
    return CannotWrite(f"no space is left for {root}{left}{elsewhere}. {whole}: make room{then}")


def _reason(error: BaseException, root: Path) -> int | None:
    """The system error number with which a disk has refused, in this error or its causes.

    A denied access counts only below `root`, because a source may be denied too.
    """
    ours = any(_below(root, error))
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


def first_unreadable(place: Path) -> Path | None:
    """The topmost folder above `place` that this user may not enter, or an unreadable `place` itself.

    None if the place can be read or does not exist.
    """
    for above in reversed(place.parents):
        if os.path.isdir(above) and not os.access(above, os.X_OK):
            return above
    needed = ENTER if os.path.isdir(place) else os.R_OK
    return place if os.path.lexists(place) and not os.access(place, needed) else None


def _below(root: Path, error: BaseException) -> Iterator[str]:
    """The paths at or below `root` that an error names."""
    for linked in linked_errors(error):
        for path in re.findall(rf"{re.escape(str(root))}(?:/[^\s'\"#:]*)?", str(linked)):
            yield path.rstrip(".,;")


def free_bytes(folder: Path) -> int | None:
    """Free bytes below a folder, which may not exist yet; None if the system does not report them.

    >>> free_bytes(Path("/")) > 0, free_bytes(Path("/no/such/folder")) == free_bytes(Path("/"))
    (True, True)
    """
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        space = os.statvfs(existing)
    except OSError:
        return None
    return space.f_bavail * space.f_frsize


def in_kb(size_bytes: int) -> str:
    """A size as text.

    >>> in_kb(0), in_kb(12_345_678)
    ('0 KB', '12,056 KB')
    """
    return f"{size_bytes // 1024:,} KB"


def sync(files: Iterable[Path], root: Path) -> None:
    """Flushes files, and every folder between them and `root`, to the disk. Raises OSError if that fails."""
    Disk(root).sync(str(file.relative_to(root)) for file in files)


def create_folder(folder: Path) -> None:
    """Creates a folder with its missing parents, and flushes it and all parents up to the disk's mount point.

    Existing parents are flushed too: a run may have created one and died before its flush. The flush stops at the first
    folder that this process may not write to, because nothing there is new. Raises OSError if the disk fails, and
    `CannotWrite` if its file system has no folders.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:  # not for a missing parent, which mkdir creates
        raise CannotWrite(
            f"folder {folder} cannot be created: its file system allows no new folders. Set another `warehouse`"
        ) from error
    for path in (folder.absolute(), *folder.absolute().parents):
        if not os.access(path, os.R_OK | os.W_OK):
            return
        storage_disk.flush(path)
        if path.is_mount():
            return
