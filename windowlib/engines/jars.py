"""JARs that windowlib adds to Spark's own, locked in `jars.lock` by coordinates and sha256, like Python packages.

A run works without these JARs. With the local file system for Hadoop (`LOCAL_FILES`) Spark writes files on this machine
faster, because Hadoop's own file system starts a `chmod` process for each file and folder. The other JARs let Spark
itself read and maintain Delta tables. `windowlib setup` fetches all JARs (`windowlib.engines.setup_jars`).
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
    """A JAR is missing from the cache folder, or differs from the locked JAR."""


@dataclass(frozen=True, slots=True)
class Jar:
    """JAR with its Maven coordinates and the required checksum of its content."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """File name of the JAR."""
        return f"{self.name}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"


def locked(lock: Path = LOCK) -> list[Jar]:
    """Reads the JARs of a lock file in order. Lines have the form `organisation:name:version --hash=sha256:SUM`."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [_jar(line) for line in lines if line and not line.startswith("#")]


def _jar(line: str) -> Jar:
    coordinates, _, sha256 = line.partition(" --hash=sha256:")
    organisation, name, version = coordinates.split(":")
    return Jar(organisation, name, version, sha256)


def present(folder: Path, jars: Sequence[Jar]) -> bool:
    """Tests if the folder has files for all these JARs, without reading their content."""
    return all((folder / jar.file).is_file() for jar in jars)


def check(folder: Path, jars: Sequence[Jar]) -> None:
    """Raises `MissingJars` if a JAR is missing from the folder, or its content differs from the locked JAR."""
    for jar in jars:
        file = folder / jar.file
        if not file.is_file():
            raise MissingJars(f"{jar} is not in {folder}: run `windowlib setup`")
        actual = hashlib.sha256(file.read_bytes()).hexdigest()
        if actual != jar.sha256:
            raise MissingJars(
                f"{file} is not the locked {jar}: it has sha256 {actual}, need {jar.sha256}. Delete it, then run"
                " `windowlib setup`"
            )


def delta_jars() -> list[Path]:
    """Paths of the JARs with which Spark can read and maintain Delta tables. Raises `MissingJars` if one is missing."""
    folder, jars = cache_folder(), locked()
    if not present(folder, jars):
        raise MissingJars(f"Delta's JARs are missing or incomplete in {folder}: run `windowlib setup`")
    return [folder / jar.file for jar in jars]


def local_files_jar() -> Path | None:
    """Path of the JAR with the local file system for Hadoop; None if it has not been fetched."""
    files = (cache_folder() / jar.file for jar in locked() if jar.name == LOCAL_FILES)
    return next(filter(Path.is_file, files), None)
