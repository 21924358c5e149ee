"""Formulas over the same aggregates may change on a live pipeline; stored values keep their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from tests.support.disks import folder_of
from windowlib.batches.may_run import formulas_changed
from windowlib.batches.planning import ledger_of, plan
from windowlib.cli.main import app
from windowlib.definition.definition import Definition
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.errors import StateMismatch, WindowError
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

HEAD = CLICKS.partition("[aggregates]")[0].replace('event_id = "id"\n', "")


def defined(folder: Path, aggregates: Mapping[str, str]) -> Definition:
    lines = "".join(f'{name} = "{sql}"\n' for name, sql in aggregates.items())
    return clicks(folder, 0, f"{HEAD}[aggregates]\n{lines}")


def events(*minutes: int, value: int, user: str = "a") -> list[dict[str, Any]]:
    return [{"id": None, "user": user, "at_ms": START_MS + m * MINUTE_MS, "value": value} for m in minutes]


def run(definition: Definition, spark: SparkSession, rerun: Rerun | None = None) -> None:
    advance(definition, lambda: spark, clock=clock, rerun=rerun)


def results(definition: Definition, *columns: str) -> list[tuple[Any, ...]]:
    rows = read_table(definition, "results").to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in rows)


SHARE = "sum(value) / count(*) filter (where value > 0)"
CORRECTED = "case when count(*) filter (where value > 0) > 0 then sum(value) / count(*) filter (where value > 0) end"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Sail's own, when a task of it fails
@pytest.mark.fault("a formula fails when windows fire", "nothing is published; runs continue once it is corrected")
def test_a_formula_that_fails_when_windows_fire_is_corrected(spark: SparkSession, tmp_path: Path) -> None:
    """The corrected formula names its aggregates in another order than the stored one."""
    broken = {"n": "count(*)", "mean": SHARE}
    definition = defined(tmp_path, broken)
    arrive(tmp_path, 1, [*events(0, 1, value=6), *events(30, value=-1), *events(31, value=1)])
    run(definition, spark)
    assert results(definition, "n", "mean") == [(2, 6.0)]
    arrive(tmp_path, 2, [*events(31, value=-1, user="b"), *events(120, value=1)])
    with pytest.raises(WindowError, match=r"[Dd]ivision by zero"):
        run(definition, spark)

    corrected = defined(tmp_path, {"mean": CORRECTED, "n": "count(*)"})
    [said] = formulas_changed(corrected, ledger_of(corrected).state().commit)
    assert said.startswith("aggregates.mean was ")
    run(corrected, spark)
    expected = [(1, None), (2, 0.0), (2, 6.0)]
    assert sorted(results(corrected, "n", "mean"), key=str) == sorted(expected, key=str)
    assert formulas_changed(corrected, ledger_of(corrected).state().commit) == []
    compared = verify(corrected, VerifyRequest(), spark, clock)
    assert not compared.differs
    assert any("mean: its formula was changed with batch 2" in what for what in compared.not_compared)
    run(corrected, spark, Rerun(START_MS - 60 * MINUTE_MS, START_MS + 90 * MINUTE_MS, "a test", "ann"))
    assert sorted(results(corrected, "n", "mean"), key=str) == sorted(expected, key=str)


@pytest.mark.spark
@pytest.mark.embedded
def test_a_formula_of_another_type_is_refused_and_what_helps_is_said(spark: SparkSession, tmp_path: Path) -> None:
    definition = defined(tmp_path, {"n": "count(*)", "total": "sum(value)"})
    arrive(tmp_path, 1, events(0, 100, value=5))
    run(definition, spark)
    assert results(definition, "n", "total") == [(1, 5)]
    arrive(tmp_path, 2, events(200, value=7))
    said = r'table results has .* total is "long", now "double"\. A column of results keeps its type: cast the formula'
    with pytest.raises(StateMismatch, match=said):
        run(defined(tmp_path, {"n": "count(*)", "total": "sum(value) / count(*)"}), spark)
    assert results(definition, "n", "total") == [(1, 5)]
    run(defined(tmp_path, {"n": "count(*)", "total": "cast(sum(value) / count(*) as bigint)"}), spark)
    assert results(definition, "n", "total") == [(1, 5), (1, 5)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("above, in make test, a corrected formula comes before a column that it came after")
def test_lines_in_another_order_mean_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """A window in flight stores its sums by number. They still belong to the same column."""
    definition = defined(tmp_path, {"total": "sum(value)", "late": "sum(at_ms)"})
    arrive(tmp_path, 1, events(0, value=5))
    run(definition, spark)
    swapped = defined(tmp_path, {"late": "sum(at_ms)", "total": "sum(value)"})
    arrive(tmp_path, 2, [*events(1, value=2), *events(60, value=1)])
    run(swapped, spark)
    assert results(swapped, "total", "late") == [(7, 2 * START_MS + MINUTE_MS)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_another_aggregate_is_another_definition(spark: SparkSession, tmp_path: Path) -> None:
    definition = defined(tmp_path, {"n": "count(*)", "total": "sum(value)"})
    arrive(tmp_path, 1, events(0, value=5))
    run(definition, spark)
    for other in ({"n": "count(*)", "total": "max(value)"}, {"n": "count(*)", "sum": "sum(value)"}):
        with pytest.raises(StateMismatch, match="was written by another definition: aggregates"):
            plan(defined(tmp_path, other), clock)
    other = defined(tmp_path, {"n": "sum(value) * 0 + count(*)", "total": "sum(value)"})
    said = CliRunner().invoke(app, ["plan", str(other.file)], env={"WINDOWLIB_WAREHOUSE": str(folder_of(other).parent)})
    assert said.exit_code == 0
    assert 'aggregates.n was "count(*)", is "sum(`value`) * 0 + count(*)", from this batch on' in said.output
