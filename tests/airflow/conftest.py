"""Fixtures of the tests that import Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def _airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Gives Airflow its own home folder, because it creates one when it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        yield


@pytest.fixture(scope="session")
def after_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the pipeline of clicks, after a batch on Sail that was run by hand."""
    from tests.airflow.by_hand import run_by_hand

    folder = tmp_path_factory.mktemp("after") / "one"
    run_by_hand(folder)
    return folder
