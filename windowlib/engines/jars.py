"""The JARs that windowlib adds to Spark's own, locked in `jars.lock` as Python packages are: coordinates and sha256.

A run needs none of them. With the local file system for Hadoop (`LOCAL_FILES`) Spark writes files faster on this
machine: Hadoop's own starts a `chmod` process for every file and folder. The others let Spark itself read and maintain
Delta tables. `windowlib setup` fetches them (`windowlib.engines.setup_jars`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windowlib.engines.cache import cache_folder
from windowlib.model.errors import WindowError

LOCK = Path(__file__).with_name("jars.lock")
LOCAL_FILES = "hadoop-bare-naked-local-fs"


class MissingJars(WindowError):
    """A JAR is not in the cache folder, or is not the one that is locked."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A JAR by its Maven coordinates, and the sum that its content must have."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"


def locked(lock: Path = LOCK) -> list[Jar]:
    """The JARs of a lock file, in its order: a line `organisation:name:version --hash=sha256:SUM` for each."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [_jar(line) for line in lines if line and not line.startswith("#")]


def _jar(line: str) -> Jar:
    coordinates, _, sha256 = line.partition(" --hash=sha256:")
    organisation, name, version = coordinates.split(":")
    return Jar(organisation, name, version, sha256)


def present(folder: Path, jars: Sequence[Jar]) -> bool:
    """Whether the folder has each of them; their content is not read."""
    return all((folder / jar.file).is_file() for jar in jars)


def check(folder: Path, jars: Sequence[Jar]) -> None:
    """Raises `MissingJars` when one of them is not in the folder, or has another content than the locked one."""
    for jar in jars:
        file = folder / jar.file
        if not file.is_file():
            raise MissingJars(f"{jar} is not in {folder}: run `windowlib setup`")
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != jar.sha256:
            raise MissingJars(f"{file} is not the locked {jar}: need sha256 {jar.sha256}, it has {found}; delete it")


def for_delta() -> list[Path]:
    """The files that let Spark read and maintain Delta tables. Raises `MissingJars` when one is missing."""
    folder, jars = cache_folder(), locked()
    if not present(folder, jars):
        raise MissingJars(f"need Delta's JARs in {folder}, which is incomplete: run `windowlib setup`")
    return [folder / jar.file for jar in jars]


def for_local_files() -> Path | None:
    """The file of the local file system for Hadoop; None where it has not been fetched."""
    files = (cache_folder() / jar.file for jar in locked() if jar.name == LOCAL_FILES)
    return next(filter(Path.is_file, files), None)
