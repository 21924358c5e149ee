"""What the tests that import Airflow share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Airflow makes a home folder wherever it is imported: not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        yield
