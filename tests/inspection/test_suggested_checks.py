"""Bounds that `windowlib checks --suggest` proposes: from eight weeks of figures, as TOML that is pasted as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks
from windowlib.cli.main import app
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.toml.column_tests import ColumnTest
from windowlib.inspection.suggested_checks import suggested_checks
from windowlib.quality.baselines import WEEK_MS
from windowlib.runs.advance import advance


def run_weeks(definition: Definition, spark: SparkSession, folder: Path, weeks: range) -> None:
    """A batch a week, whose users click for a minute; each batch fires the windows of the batch before."""
    for week in weeks:
        start_ms = START_MS + week * WEEK_MS
        events = [
            {"id": f"{week}-{user}-{row}", "user": f"u{user}", "at_ms": start_ms + row * MINUTE_MS, "value": user}
            for user in range(5)
            for row in range(3)
        ]
        arrive(folder, week + 1, events)
        advance(definition, lambda: spark, clock=lambda at_ms=start_ms: at_ms + 60 * MINUTE_MS)


@pytest.mark.spark
@pytest.mark.embedded
def test_eight_weeks_of_figures_give_bounds_to_paste(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0)
    assert suggested_checks(definition).problem == (
        "bounds need the figures of at least 8 weeks, and there are none yet; try again later"
    )
    run_weeks(definition, spark, tmp_path, range(8))
    assert suggested_checks(definition).problem == (
        "bounds need the figures of at least 8 weeks, and there are those of 8 batches over 7 weeks; try again later"
    )
    run_weeks(definition, spark, tmp_path, range(8, 9))
    toml = suggested_checks(definition).toml
    assert toml is not None
    assert toml.splitlines()[0] == "# From 9 batches, 2026-03-02 to 2026-04-27."
    assert "max_late_share = 0.01  # 0 of 9 batches would have failed" in toml
    (tmp_path / "clicks.toml").write_text(f"{CLICKS}\n{toml}\n")
    found = load_definition(tmp_path / "clicks.toml").checks
    assert found.row_count_test is not None
    assert found.row_count_test.low == 1
    bounds = {test.figure: test.bound for test in found.column_tests}
    assert bounds["columns.clicks.min"] == 0
    assert 3 <= bounds["columns.clicks.max"] <= 6
    assert ColumnTest("total", "not_null", True, "warning") in found.column_tests
    shown = CliRunner().invoke(app, ["checks", str(tmp_path / "clicks.toml"), "--suggest"])
    assert shown.stdout.strip() == toml
