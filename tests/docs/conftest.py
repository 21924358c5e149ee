"""One reader for all tests of pages: each page is followed once."""

from __future__ import annotations

import pytest

from tests.support.doc_pages import Reader


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Reader:
    """Follows pages in folders of their own, with the Spark session that tests share."""
    request.getfixturevalue("spark")
    return Reader(tmp_path_factory.mktemp("pages"))
