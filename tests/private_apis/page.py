"""The page of private and deep APIs, and how a test says which line of it it holds."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from tests.private_apis.uses import private_names, uses, uses_of_settings

ROOT = Path(__file__).parents[2]
PAGE = "docs/contributing/private-apis.md"
NAME = re.compile(r"`([^`]+)`")
DEEP_MODULE = re.compile(r"(pyspark|airflow|great_expectations|deltalake|sqlglot)\.[\w.]+|pydantic_core")
HELD: dict[str, set[str]] = defaultdict(set)  # by file, what tests of this file hold


@contextmanager
def listed(what: str) -> Iterator[None]:
    """What fails in here fails as: the API `what` has changed, and the page says what to do."""
    try:
        yield
    except Exception as error:
        pytest.fail(f"{what} has changed ({type(error).__name__}: {error}): see {PAGE}")


def holds(file: str, *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The test below breaks when what `file` uses under these names no longer does what `file` needs."""
    HELD[f"windowlib/{file}"] |= set(names)

    def of(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def named(*arguments: Any, **parameters: Any) -> None:
            with listed(f"{', '.join(names)} ({file})"):
                test(*arguments, **parameters)

        return named

    return of


def on_the_page() -> tuple[dict[str, set[str]], set[str]]:
    """The uses of each file, and what counts as public."""
    text, _, public = (ROOT / PAGE).read_text(encoding="utf-8").partition("## Public")
    found = defaultdict(set)
    for line in text.splitlines():
        if line.startswith("| `"):
            files, names, *_ = line.strip("| ").split(" | ")
            for file in NAME.findall(files):
                found[file] |= set(NAME.findall(names))
    return dict(found), set(NAME.findall(public))


def scanned(root: Path, public: set[str]) -> dict[str, set[str]]:
    files = sorted((root / "windowlib").rglob("*.py"))
    own = private_names(files)
    found = {str(file.relative_to(root)): set(uses(file, public, own)) for file in files}
    settings = (root / "windowlib").rglob("*.properties")
    found |= {str(file.relative_to(root)): set(uses_of_settings(file, public)) for file in settings}
    return {file: names for file, names in found.items() if names}


def printed(command: list[str], folder: Path = ROOT, **others: Any) -> str:
    """What a command prints; an AssertionError with its errors where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **others)
    assert done.returncode == 0, done.stderr
    return done.stdout
