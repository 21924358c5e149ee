"""What pages cost does not grow with the history."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.golden.make import unpack
from tests.pages.long_history import lengthen
from windowlib.definition.definition import Definition, load_definition
from windowlib.pages.overview import looked
from windowlib.pages.pipeline import pipeline
from windowlib.pages.render import Place, pipeline_page
from windowlib.tables.ledger import Ledger, wall_clock_ms


def cost(definition: Definition) -> tuple[float, int]:
    """Processor seconds, and bytes of the page."""
    commit = Ledger(definition.root, wall_clock_ms).state().commit
    assert commit is not None
    started = time.process_time()
    page = pipeline_page(pipeline(looked(definition, commit.at_ms)), Place(pipeline=lambda name: name, home=None))
    return time.process_time() - started, len(page)


def test_a_long_history_costs_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    found = []
    for runs in (100, 5_000):
        folder = tmp_path / str(runs)
        folder.mkdir()
        definition = load_definition(unpack("tumbling", folder)[0])
        lengthen(definition, runs)
        found.append(cost(definition))
    (_, young_bytes), (old_s, old_bytes) = found
    assert old_s < 10
    assert old_bytes < 1.2 * young_bytes
