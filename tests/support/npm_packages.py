"""Packages of npm for tests. The first test that needs a package fetches it into `.servers` of the project."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FETCHED = Path(__file__).parents[2] / ".servers"
COMMAND = ("npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")


class NoPackages(Exception):
    """This machine cannot fetch the packages."""


def npm_packages(name: str, locked: Path, file: str) -> Path:
    """Path of a file of the packages that `package.json` and `package-lock.json` in the folder `locked` name.

    `name` is the name of the folder below `.servers`. Raises `NoPackages`.
    """
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise NoPackages("found no npm and node on PATH")
    folder = FETCHED / name
    path = folder / "node_modules" / file
    with alone():
        if not path.is_file():
            folder.mkdir(exist_ok=True)
            for listed in ("package.json", "package-lock.json"):
                shutil.copy(locked / listed, folder)
            done = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NoPackages(f"npm could not fetch it: {done.stderr.strip()[-300:]}")
    return path


@contextmanager
def alone() -> Iterator[None]:
    """Lets one process of the tests at a time fetch."""
    FETCHED.mkdir(exist_ok=True)
    with (FETCHED / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
