"""Existing tests of pipelines, run once more over Spark Connect: they compare with references that know no engine.

One process cannot have a classic session and a remote one, so each module runs in a process of its own, whose fixture
`spark` is a session on a server.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.connect_server import ConnectServer

PROJECT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """Server of this module."""
    server = ConnectServer(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.end()


def _at_length(module: str, chosen: str, at_least: int, id: str) -> Any:
    mark = pytest.mark.long("thin clients of a server give a run's tables in make test")
    return pytest.param(module, chosen, at_least, id=id, marks=mark)


@pytest.mark.parametrize(
    ("module", "chosen", "at_least"),
    [
        _at_length("batches/test_general_pipeline.py", "ones_own or key", 4, id="own code by value"),
        _at_length("batches/test_general_pipeline.py", "not dies", 12, id="the general plan"),
        _at_length("source/test_access_log.py", "log", 2, id="sessions and sliding windows, late updates"),
        _at_length("source/test_bad_input.py", "not approved", 8, id="json, csv, delta, duplicates, Spark's errors"),
        _at_length("plans/test_counts.py", "reference or aggregate", 2, id="count windows"),
    ],
)
def test_the_same_over_connect(server: ConnectServer, module: str, chosen: str, at_least: int) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "spark", "-k", chosen, f"tests/{module}"]
    environment = {**server.environment, "WINDOWLIB_TEST_REMOTE": server.address}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) >= at_least
    assert "skipped" not in done.stdout
