"""Advice for a batch without usable rows: the advised command works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.clicks import arrive, clicks, clock, events
from windowlib.batches.planning import plan
from windowlib.cli.main import app
from windowlib.cli.unusable import without_usable_rows
from windowlib.decisions.verdicts import abandon
from windowlib.runs.advance import advance


@pytest.mark.spark
@pytest.mark.embedded
def test_the_advised_batch_was_committed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch 2 was abandoned and batch 3 was unusable. The advice once named batch 2."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = clicks(tmp_path, 1)
    assert len(advance(definition, lambda: spark, clock=clock)) == 1
    arrive(tmp_path, 2, [{**one, "user": None} for one in events(2)])
    plan(definition, clock)
    abandon(definition, "ann", "the checks refused it", clock)
    [unusable] = advance(definition, lambda: spark, clock=clock)
    advice = without_usable_rows(unusable, definition.file, definition.store)
    assert unusable.batch_id == 3
    assert advice is not None
    [command] = [line.partition(", then: ")[2] for line in advice.splitlines() if ", then: " in line]
    _, *arguments = shlex.split(command)
    assert arguments[:4] == ["rollback", str(definition.file), "--to-batch", "1"]
    done = CliRunner().invoke(app, [*arguments, "--who", "ann", "--yes"])
    assert done.exit_code == 0, done.output
