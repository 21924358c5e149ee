"""Several pipelines in one run: the same tables as each alone makes, for one read of the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.advance import advance
from jobs.together import Ended, advance_together
from tests.clicks import COMPARED, clock, tables
from tests.streams import arrives, pipelines

pytestmark = pytest.mark.spark

OWN = tuple(name for name in COMPARED if name != "seen_ids")


def together(definitions, spark: SparkSession, **options) -> list[Ended]:
    notes: list[str] = []
    ends = advance_together(definitions, lambda: spark, clock=clock, on_note=notes.append, **options)
    assert notes == []
    return ends


def test_together_as_alone(tmp_path: Path, spark: SparkSession) -> None:
    for folder in ("alone", "together"):
        (tmp_path / folder / "incoming").mkdir(parents=True)
        arrives(tmp_path / folder, 1, 2, 3)
    alone = pipelines(tmp_path / "alone")
    for definition in alone:
        advance(definition, lambda: spark, clock=clock)
    ends = together(pipelines(tmp_path / "together"), spark)
    assert [[report.batch_id for report in end.reports] for end in ends] == [[1, 2, 3]] * len(ends)
    for one, end in zip(alone, ends, strict=True):
        assert end.error is None
        assert tables(end.definition, OWN) == tables(one, OWN), one.name
