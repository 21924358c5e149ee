"""What must be on the disk before the next thing may be written.

A file that was written is in the machine's memory; after a power cut it may be empty, or gone. Here a file, and the
folders that name it, are made to last. The order in which a run does so is its promise: data files, then the prepare
file and its row, then the log entries, then the commit row (`windowlib.ledger.prepare`).

A disk that is full or read-only, or a folder of another user, answers in the words of the library that wrote: Python,
delta-rs, Spark. `refusals_named` says it once, in ours.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from windowlib.model.errors import TryAgain

FULL, READ_ONLY, DENIED = (errno.ENOSPC, errno.EDQUOT), (errno.EROFS,), (errno.EACCES, errno.EPERM)
TOO_LARGE = (errno.EFBIG,)
ENTER = os.R_OK | os.X_OK  # what a folder needs, so that its files are found
_NUMBERED = re.compile(r"\b(?:os error|[Ee]rrno):? (\d+)")
PLENTY_BYTES = 1 << 20  # so much is free only where another disk is full, or a file was too large and is gone again
AT_ONCE = 8  # a disk answers several flushes together in little more time than one


class CannotWrite(TryAgain):
    """The disk is full or read-only, or this user may not write there, or not even read.

    What was committed is whole, and the next run finishes what was not.
    """


def put(file: Path, text: str) -> Path:
    """Puts a text into a file in one step: readers see the earlier one until then. It need not last.

    Gives the file. Raises OSError.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)
    return file


@contextmanager
def refusals_named(root: Path, batch_id: int | None = None) -> Iterator[None]:
    """Raises `CannotWrite` for any error of the block that says so of a disk; `root` is where the tables are.

    `batch_id` is the batch that the block works on.
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
    """What an error says of the disk; None where it says something else.

    `free_before` is how many bytes were free when the work on `batch_id` began.
    """
    then = f", and the next run finishes batch {batch_id}" if batch_id else " and run again"
    whole = "Nothing is lost, and nothing half done is visible by the ledger"
    match _reason(error, root):
        case None:
            return None
        case number if number in READ_ONLY:
            return CannotWrite(f"{root} is on a disk that is read-only. {whole}: make it writable{then}")
        case number if number in DENIED:
            where = next(_below(root, error), root)
            unreadable = first_unreadable(Path(where))
            denied = f"read {unreadable}" if unreadable else f"write to {where}"
            return CannotWrite(
                f"this user may not {denied}. {whole}: every user that runs this pipeline must"
                f" own or share all of {root}. Give it the right{then}"
            )
        case number if number in TOO_LARGE:
            return CannotWrite(
                f"a file in {root} would be larger than its file system, or `ulimit -f` of this process, lets it be."
                f" {whole}: raise the limit{then}"
            )
    free, needed = free_bytes(root), ""
    if batch_id and free_before is not None:
        needed = f"; batch {batch_id} needs more than the {in_kb(free_before)} that were free when it began"
    elsewhere = ", or in the engine's folder for temporary files" if free is None or free >= PLENTY_BYTES else ""
    left = "" if free is None else f" ({in_kb(free)} free{needed})"
    return CannotWrite(f"no space is left for {root}{left}{elsewhere}. {whole}: make room{then}")


def _reason(error: BaseException, root: Path) -> int | None:
    """The number of the system's error by which a disk has refused, in this error or what it came from.

    That something is not allowed counts where it was done below `root`: a source may be denied, too.
    """
    ours = any(_below(root, error))
    wanted: tuple[int, ...] = (*FULL, *READ_ONLY, *TOO_LARGE, *(DENIED if ours else ()))
    return _first_of(wanted, error)


def _first_of(wanted: tuple[int, ...], error: BaseException) -> int | None:
    """The first of these numbers that an error, or what it came from, says or puts in words."""
    for seen in linked_errors(error):
        numbers = numbers_in(seen) | {number for number in wanted if os.strerror(number) in str(seen)}
        if found := [number for number in wanted if number in numbers]:
            return found[0]
    return None


def is_denied(error: BaseException) -> bool:
    """Whether the system did not allow something to this user.

    >>> is_denied(PermissionError(13, "Permission denied")), is_denied(OSError(5, "Input/output error"))
    (True, False)
    """
    return _first_of(DENIED, error) is not None


def numbers_in(error: BaseException) -> set[int]:
    """The numbers of the system's errors that an error says.

    >>> numbers_in(OSError(5, "Input/output error")), numbers_in(RuntimeError("No entry (os error 2)"))
    ({5}, {2})
    """
    said = {*map(int, _NUMBERED.findall(str(error)))}
    return {*said, error.errno} if isinstance(error, OSError) and error.errno is not None else said


def linked_errors(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it came from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def first_unreadable(place: Path) -> Path | None:
    """The first folder on the way to a place that this user may not enter, or the place itself; None where it may be
    read, or is not there.
    """
    for above in reversed(place.parents):
        if os.path.isdir(above) and not os.access(above, os.X_OK):
            return above
    needed = ENTER if os.path.isdir(place) else os.R_OK
    return place if os.path.lexists(place) and not os.access(place, needed) else None


def _below(root: Path, error: BaseException) -> Iterator[str]:
    """The paths at or below `root` that an error names."""
    for seen in linked_errors(error):
        for path in re.findall(rf"{re.escape(str(root))}(?:/[^\s'\"#:]*)?", str(seen)):
            yield path.rstrip(".,;")


def free_bytes(folder: Path) -> int | None:
    """How much may still be written below a folder that may not exist yet; None where the system does not say.

    >>> free_bytes(Path("/")) > 0, free_bytes(Path("/no/such/folder")) == free_bytes(Path("/"))
    (True, True)
    """
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    try:
        found = os.statvfs(there)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def in_kb(size_bytes: int) -> str:
    """
    >>> in_kb(0), in_kb(12_345_678)
    ('0 KB', '12,056 KB')
    """
    return f"{size_bytes // 1024:,} KB"


def sync(files: Iterable[Path], root: Path) -> None:
    """Makes files, and every folder between them and `root`, last. Raises OSError where the disk cannot."""
    chosen = sorted(set(files))
    folders = {folder for file in chosen for folder in _up_to(root, file)}
    if len(chosen) < AT_ONCE:
        for file in chosen:
            _flush(file)
    else:
        with ThreadPoolExecutor(AT_ONCE, "windowlib-sync") as pool:
            list(pool.map(_flush, chosen))
    for folder in sorted(folders, key=lambda one: -len(one.parts)):
        _flush(folder)


def make_lasting(folder: Path) -> None:
    """Makes a folder and those above it, as far as they are missing, and makes them last, up to where the disk begins.

    Those that were there, too: one may be of a run that died before it was on the disk. Ends below a folder that
    this process may not write to, as no entry there is new. Raises OSError where the disk cannot, and `CannotWrite`
    where it takes no folders at all.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:  # for one that could be made those above it are made, too
        raise CannotWrite(f"{folder} cannot be made: its file system takes no folders; put it elsewhere") from error
    for one in (folder.absolute(), *folder.absolute().parents):
        if not os.access(one, os.R_OK | os.W_OK):
            return
        _flush(one)
        if one.is_mount():
            return


def _up_to(root: Path, file: Path) -> Iterable[Path]:
    for folder in file.parents:
        yield folder
        if folder == root:
            return


def _flush(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
