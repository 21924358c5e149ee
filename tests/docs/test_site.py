"""The site builds without a warning and without a network, and its pages ask for nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_pages import DOCS

NOWHERE = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*\bhref=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-M", "html", str(DOCS), str(folder), "--fail-on-warning", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **NOWHERE})
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = [one or other for one, other in LOADED.findall(page.read_text(encoding="utf-8"))]
        assert [one for one in loaded if re.match(r"(?:https?:)?//", one)] == [], page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert re.findall(r"url\([\"']?(?:https?:)?//[^)]*\)|@import[^;]*//", text) == [], style


@pytest.mark.slow
def test_the_search_works_in_files(site: Path) -> None:
    """A script, not data to be fetched: browsers fetch nothing for pages that are opened as files."""
    assert (site / "searchindex.js").read_text(encoding="utf-8").startswith("Search.setIndex(")
    assert "searchindex.js" in (site / "search.html").read_text(encoding="utf-8")
