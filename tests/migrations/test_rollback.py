"""A rollback across migrations is refused with advice that works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, arrive, clicks, clock, events
from windowlib.decisions.rollback import rollback
from windowlib.definition.definition import Definition
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.switch import build, switch
from windowlib.migrations.undo import undo
from windowlib.publication.foreign_changes import CannotUndo
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

ASKED = MigrationRequest("ann", "sessions were cut too early", clock)
GAP = CLICKS.replace('gap = "10m"', 'gap = "25m"')


def refused(definition: Definition) -> str:
    with pytest.raises(CannotUndo, match="a rollback cannot cross it") as caught:
        rollback(definition, 1, "ann", "why", clock)
    return str(caught.value)


def test_a_rollback_across_migrations_advises_what_can_be_done(spark: SparkSession, tmp_path: Path) -> None:
    old, new = clicks(tmp_path, 1), clicks(tmp_path, 0, GAP)
    advance(clicks(tmp_path, 0), lambda: spark, clock=clock)
    switch(new, build(new, lambda: spark, ASKED), lambda: spark, ASKED)
    assert "--undo" in refused(new)
    undo(new, lambda: spark, ASKED)
    old = clicks(tmp_path, 0)
    arrive(tmp_path, 2, events(2))
    advance(old, lambda: spark, clock=clock)
    said = refused(old)
    assert "--undo" not in said  # it is undone
    [back] = re.findall(r"--to-batch (\d+)", said)
    rollback(old, int(back), "ann", "why", clock)  # across one that is kept, test_migrate asks for a rollback
