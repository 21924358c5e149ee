"""Raw rows of late and refused events: times without a zone are written without one, and read back unchanged."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import time_of
from windowlib.erasure.forget import ForgetRequest, forget
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

DEFINITION = """
name = "shifts"
engine = "{engine}"
[source]
format = "parquet"
path = "incoming"
key = ["user", "shift"]
timestamp = "at"
max_files_per_run = 1
min_file_age = "0s"
[source.dialect]
time_zone = "Europe/Berlin"
[watermark]
out_of_orderness = "0s"
[window]
type = "tumbling"
size = "1h"
[aggregates]
events = "count(*)"
"""
TIME = pa.timestamp("us")
SCHEMA = pa.schema([("user", pa.string()), ("shift", TIME), ("at", TIME), ("seen", pa.struct([("at", TIME)]))])
DAY, SHIFT, LATE = datetime(2026, 3, 2), datetime(2026, 3, 2, 0, 30), datetime(2026, 3, 2, 1, 58, 54, 120_000)
KEY = ["ann", "2026-03-02 00:30:00"]


def now() -> int:
    return time_of(datetime(2026, 4, 1))


class Shifts:
    """Pipeline whose key has a time without a zone."""

    def __init__(self, folder: Path, spark: SparkSession, engine: str) -> None:
        (folder / "incoming").mkdir()
        (folder / "shifts.toml").write_text(DEFINITION.format(engine=engine), encoding="utf-8")
        self.folder, self.spark = folder, spark

    @property
    def definition(self) -> Definition:
        return load_definition(self.folder / "shifts.toml").model_copy(
            update={"store": Disk(self.folder / "warehouse")}
        )

    def read(self, number: int, *rows: tuple[str, datetime]) -> None:
        path = self.folder / "incoming" / f"{number}.parquet"
        values = [{"user": user, "shift": SHIFT, "at": at, "seen": {"at": at}} for user, at in rows]
        pq.write_table(pa.Table.from_pylist(values, schema=SCHEMA), path)
        os.utime(path, (number, number))
        self.run()

    def run(self, **rerun: Any) -> None:
        """Reads everything new; with arguments, reruns the day."""
        whole = Rerun(time_of(DAY), time_of(DAY) + 86_400_000, "a test", "ann", **rerun) if rerun else None
        advance(self.definition, lambda: self.spark, clock=now, rerun=whole)

    def rows(self, table: str) -> list[dict[str, Any]]:
        return read_table(self.definition, table).to_pylist()

    def events(self) -> dict[tuple[str, datetime], int]:
        return {(row["user"], row["window_start"]): row["events"] for row in self.rows("results")}


@pytest.mark.spark
@pytest.mark.embedded
def test_a_time_without_a_zone_is_read_back_as_it_was(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A late row and a refused row are read; then their day is rerun, and their key is erased."""
    shifts = Shifts(tmp_path, spark, request.config.getoption("--engine"))
    shifts.read(1, ("ann", LATE), ("bob", LATE), ("ann", datetime(2027, 1, 1)), ("bob", datetime(2027, 1, 1)))
    shifts.read(2, ("cid", datetime(2026, 3, 2, 20)))
    shifts.read(3, ("ann", LATE))
    [late] = shifts.rows("late_events")
    text = LATE.isoformat(timespec="microseconds")
    raw = {"user": "ann", "shift": "2026-03-02T00:30:00.000000", "at": text, "seen": {"at": text}}
    assert json.loads(late["raw"]) == raw
    assert late["event_time"] == datetime(2026, 3, 2, 0, 58, 54, 120_000, UTC)
    refused = {json.loads(row["raw"])["at"] for row in shifts.rows("quarantine")}
    assert refused == {"2027-01-01T00:00:00.000000"}
    [window] = explain_window(shifts.definition, KEY, time_of(late["event_time"])).windows
    assert (len(window.events), len(window.excluded)) == (1, 1)

    hour = datetime(2026, 3, 2, 0, tzinfo=UTC)
    for rerun in ({"late_only": True, "key": tuple(KEY)}, {"accept_gap": False}):
        shifts.run(**rerun)
        assert shifts.events() == {("ann", hour): 2, ("bob", hour): 1}
    assert verify(shifts.definition, VerifyRequest(), spark, now).differing == {}

    forget(shifts.definition, lambda: spark, ForgetRequest(key=KEY, who="ann", reason="request 7", clock=now))
    assert [json.loads(row["raw"])["user"] for row in shifts.rows("quarantine")] == ["bob"]
    assert shifts.rows("late_events") == []
    assert shifts.events() == {("bob", hour): 1}
