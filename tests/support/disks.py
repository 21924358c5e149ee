"""Real disks for tests: a file system in memory, and one in a file whose state can be copied at any moment.

Both are mounted, which takes the rights of root. A test without them says so in the summary (`without_rights`).
"""

from __future__ import annotations

import gc
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from windowlib.storage.store import Store

PAGE_BYTES = 4096
COPIES = 200  # of a disk that is written to while it is copied


class Stored(Protocol):
    """Whatever lies in a store: a definition's tables, a ledger, a table."""

    @property
    def store(self) -> Store: ...


def folder_of(stored: Stored) -> Path:
    """Folder of the disk in which something is stored."""
    return Path(stored.store.url)


def may_mount(folder: Path) -> str | None:
    """Reason why nothing can be mounted here, or None."""
    try:
        with in_memory(folder / "may-mount", size_mb=8) as memory, _made_and_mounted(memory):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return str(getattr(error, "stderr", None) or error).strip()


def _made_and_mounted(folder: Path) -> AbstractContextManager[Path]:
    return ImageDisk.made(folder / "disk.img", size_mb=4).mounted(folder / "disk")


def shared_memory(free_mb: int) -> Path | None:
    """Folder in memory that every Linux has; None if it is missing, forbidden or too small."""
    folder = Path("/dev/shm")
    if not (folder.is_mount() and os.access(folder, os.W_OK | os.X_OK)):
        return None
    found = os.statvfs(folder)
    return folder if found.f_bavail * found.f_frsize >= free_mb * 1024 * 1024 else None


@contextmanager
def in_memory(folder: Path, size_mb: int) -> Iterator[Path]:
    """A file system in memory, mounted on a folder; it ends when no process has a file of it open any more."""
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size_mb}m", "none", end=("umount", "--lazy")):
        yield folder


@contextmanager
def filled(folder: Path, leaving_kb: int) -> Iterator[None]:
    """Fills the disk within the block, except for the given number of bytes."""
    ballast = folder / "ballast"
    found = os.statvfs(folder)
    ballast.write_bytes(bytes(found.f_bavail * found.f_frsize - 1024 * leaving_kb))
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Makes the file system mounted on a folder read-only within the block."""
    _run("mount", "-o", "remount,ro", str(folder))
    try:
        yield
    finally:
        _run("mount", "-o", "remount,rw", str(folder))


@dataclass(frozen=True, slots=True)
class ImageDisk:
    """A disk in a file. The file has only data that the file system has flushed."""

    image: Path

    @classmethod
    def made(cls, image: Path, size_mb: int) -> ImageDisk:
        """An empty ext4. Any flush of a file takes its journal to the disk, but not the contents of other files."""
        with image.open("wb") as file:
            file.truncate(size_mb << 20)
        _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        return cls(image)

    @contextmanager
    def mounted(self, folder: Path) -> Iterator[Path]:
        """The disk, mounted on a folder; its journal is replayed, as after a power cut."""
        with _mounted(folder, "-o", "loop,data=ordered,commit=300", str(self.image)):
            yield folder

    def copy(self, mounted_on: Path, image: Path) -> ImageDisk:
        """Copies the disk as after a power cut: all of it at one moment, without a flush."""
        counters = Path(f"/sys/dev/block/{_device(mounted_on)}/stat")
        for _ in range(COPIES):
            before = counters.read_text(encoding="ascii")
            _run("cp", "--sparse=always", str(self.image), str(image))
            if _in_flight(before) == 0 and counters.read_text(encoding="ascii") == before:
                return ImageDisk(image)
            time.sleep(0.005)
        raise AssertionError("the disk is written to all the time")


def _device(mounted_on: Path) -> str:
    number = mounted_on.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def _in_flight(counters: str) -> int:
    return int(counters.split()[8])


@contextmanager
def _mounted(folder: Path, *what: str, end: tuple[str, ...] = ("umount",)) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", *what, str(folder))
    try:
        yield
    finally:
        gc.collect()  # files that an error left open
        _run(*end, str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def flushed(*paths: Path) -> None:
    """Makes files and folders last."""
    for path in paths:
        number = os.open(path, os.O_RDONLY)
        os.fsync(number)
        os.close(number)
