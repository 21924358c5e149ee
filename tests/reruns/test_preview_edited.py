"""A preview made before the definition was edited is applied as shown, or refused in a sentence."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, MORE, START_MS, arrive, clicks, clock, without
from tests.support.live_pipeline import run
from windowlib.definition.definition import Definition
from windowlib.ledger.rerun_request import Rerun, RerunRefused
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.switch import build, switch
from windowlib.publication.readers import read_table
from windowlib.reruns.dry_run import dry_run

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

DEFINITION = without(CLICKS, *MORE)
WHOLE = Rerun(START_MS, START_MS + 240 * MINUTE_MS, "repaired", "ann")


def at(folder: Path, text: str) -> Definition:
    return clicks(folder, 0, text)


def written(folder: Path, number: int, value: int, changed: int = 0) -> None:
    rows = [{"id": "a", "user": "ann", "at_ms": START_MS + (number * 30) * MINUTE_MS, "value": value}]
    os.utime(arrive(folder, number, rows), ns=(number + changed, number + changed))


OTHERS = pytest.mark.long("another key, in make test, has other columns too")


@pytest.mark.parametrize(
    ("edit", "migrates"),
    [
        (("[aggregates]", '[aggregates]\nmost = "max(value)"'), False),
        pytest.param(("total =", "sum_of ="), True, marks=OTHERS),
        pytest.param(('total = "sum(value)"', ""), True, marks=OTHERS),
        (('["user"]', '["id"]'), True),
        pytest.param(('["user"]', '["user", "id"]'), True, marks=OTHERS),
    ],
    ids=["a column added", "a column renamed", "a column removed", "another key", "a longer key"],
)
def test_a_preview_of_other_columns_is_refused(
    spark: SparkSession, tmp_path: Path, edit: tuple[str, str], migrates: bool
) -> None:
    at(tmp_path, DEFINITION)
    for number in (1, 4):
        written(tmp_path, number, 5)
    run(at(tmp_path, DEFINITION), spark)
    if migrates:
        written(tmp_path, 1, 6, 100)
    else:
        written(tmp_path, 2, 6)  # late
        run(at(tmp_path, DEFINITION), spark)
    shown = dry_run(at(tmp_path, DEFINITION), WHOLE, clock).preview(spark)
    now = at(tmp_path, DEFINITION.replace(*edit))
    if migrates:
        asked = MigrationRequest("ann", "other columns", clock)
        switch(now, build(now, lambda: spark, asked), lambda: spark, asked)
        written(tmp_path, 1, 7, 200)  # so that there is something to correct
    else:
        written(tmp_path, 5, 5)
        run(now, spark)
    before = read_table(now, "results").to_pylist()
    with pytest.raises(RerunRefused, match="another key or other columns now"):
        run(now, spark, replace(WHOLE, preview_id=shown.preview_id))
    assert read_table(now, "results").to_pylist() == before
    run(now, spark, WHOLE)
