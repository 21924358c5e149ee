"""Migration from fixed days to days of a calendar and back, across a change of the clock."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, SCHEMA, clicks, clock
from windowlib.definition.definition import Definition
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.switch import build, switch
from windowlib.migrations.undo import finish
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]

ASKED = MigrationRequest("ann", "days of Berlin", clock)
FIRST_MS = 1_774_605_600_000  # 2026-03-27 11:00 in Berlin, two days before a day of 23 hours
TIMES = range(FIRST_MS, FIRST_MS + 96 * 3_600_000, 1_800_000)
FIXED = CLICKS.partition("[window]")[0] + (
    '[window]\ntype = "tumbling"\nsize = "1d"\n[aggregates]\nclicks = "count(*)"\n'
)
CALENDAR = FIXED.replace('size = "1d"', 'every = "1 day"\ntime_zone = "Europe/Berlin"')


def pipeline(folder: Path, text: str) -> Definition:
    incoming = folder / "incoming"
    incoming.mkdir(exist_ok=True, parents=True)
    rows = [{"id": f"{at_ms}", "user": "ann", "at_ms": at_ms, "value": 1} for at_ms in TIMES]
    if not [*incoming.iterdir()]:
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), incoming / "0.parquet")
    return clicks(folder, 0, text)


def outcome(definition: Definition) -> list[str]:
    names = "results", "open_windows"
    rows = [row for name in names for row in read_table(definition, name).to_pylist()]
    return sorted(str({name: row[name] for name in row if name != "batch_id"}) for row in rows)


def test_fixed_days_become_calendar_days_and_fixed_days_again(spark: SparkSession, tmp_path: Path) -> None:
    fresh = {}
    for name, text in (("fixed", FIXED), ("calendar", CALENDAR)):
        definition = pipeline(tmp_path / name, text)
        advance(definition, lambda: spark, clock=clock)
        fresh[name] = outcome(definition)
    assert not {*fresh["fixed"]} & {*fresh["calendar"]}
    for name, text in (("calendar", CALENDAR), ("fixed", FIXED)):
        definition = pipeline(tmp_path / "fixed", text)
        switch(definition, build(definition, lambda: spark, ASKED), lambda: spark, ASKED)
        finish(definition, ASKED)
        assert outcome(definition) == fresh[name]
        assert verify(definition, VerifyRequest(), spark, clock).differing == {}
