"""Sample pipelines and their pages, built once for the tests of this folder, and a browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import browser, page_samples
from tests.support.page_samples import AS_OF_MS, NAMES, definition
from windowlib.pages.site import site
from windowlib.storage.disk import Disk


@pytest.fixture(scope="session")
def samples(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("samples") / "a folder"
    if page_samples.has_sail(request):
        page_samples.all_of_them(made)
    else:
        subprocess.run([sys.executable, "-m", "tests.support.page_samples", str(made)], check=True)
    return made


@pytest.fixture(scope="session")
def pages(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = site([definition(samples, name) for name in NAMES], Disk(tmp_path_factory.mktemp("a site")), AS_OF_MS)
    assert made.errors == []
    return Path(made.pages[0]).parent


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    with browser.browser() as found:
        yield found


@pytest.fixture
def _has_browser(without_rights: list[str]) -> None:
    """A machine without Chromium is named in the summary."""
    if browser.installed() is None:
        without_rights.append("pages in a browser (no Chromium)")
        pytest.skip("needs Chromium")
