"""Tests that hold lines of the page of private and deep APIs: each names the page when it fails."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "docs/contributing/private-apis.md"
OF_AIRFLOW = pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated")
HELD: dict[str, set[str]] = defaultdict(set)  # by file, what tests of this file hold


@contextmanager
def listed(what: str) -> Iterator[None]:
    """Reports a failure in the block as a change of the API `what`, with the page that says what to do."""
    try:
        yield
    except Exception as error:
        pytest.fail(f"{what} has changed ({type(error).__name__}: {error}): see {PAGE}")


def holds(file: str, *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Marks a test of the private names that `file` uses: it breaks once they no longer fit the needs of `file`."""
    HELD[f"windowlib/{file}"] |= set(names)

    def of(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def named(*arguments: Any, **parameters: Any) -> None:
            with listed(f"{', '.join(names)} ({file})"):
                test(*arguments, **parameters)

        return named

    return of


def printed(command: list[str], folder: Path = ROOT, **others: Any) -> str:
    """Output of a command; raises an AssertionError with its errors if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **others)
    assert done.returncode == 0, done.stderr
    return done.stdout
