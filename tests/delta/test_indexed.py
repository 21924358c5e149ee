"""Tables with more columns than a log has statistics for: files are found by the indexed columns or by footers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks
from tests.support.clicks import clock as now
from tests.support.disks import folder_of
from tests.support.named_columns import EXPECTED, pipeline, play
from windowlib.definition.definition import Definition
from windowlib.delta import indexed_columns as indexed
from windowlib.delta import log_writing
from windowlib.delta.tables import Table
from windowlib.maintenance.maintain import maintain
from windowlib.pages.site import report
from windowlib.runs.advance import advance

WIDE = CLICKS + "".join(f'sum_{number} = "sum(value + {number})"\n' for number in range(40))
NAMED = {
    "open_windows": "window_start_ms,window_end_ms,state_window_start_ms,state_window_end_ms,elements,last_event_ms",
    "results": "window_start,window_end,last_event_time,timing,batch_id",
    "result_changes": "window_start,window_end,last_event_time,timing,batch_id",
}


def named(definition: Definition) -> dict[str, str | None]:
    configurations = {name: DeltaTable(folder_of(definition) / name).metadata().configuration for name in NAMED}
    return {name: one.get(indexed.PROPERTY) for name, one in configurations.items()}


def bounded(definition: Definition, name: str) -> set[str]:
    """Columns of a table with known bounds for each file."""
    table = Table(definition.store.below(name))
    return set.intersection(*({*file.low} for file in table.files(table.version())))


@pytest.mark.spark
@pytest.mark.embedded
def test_a_wide_table_indexes_the_columns_of_its_filters(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 4, WIDE)
    advance(definition, lambda: spark, clock=now)
    assert named(definition) == NAMED
    assert bounded(definition, "results") == {*NAMED["results"].split(",")}
    assert bounded(definition, "open_windows") == {*NAMED["open_windows"].split(",")}


def test_a_user_column_with_an_internal_name_is_indexed_if_its_type_has_bounds() -> None:
    ours = {"window_start_ms": pa.int64(), "elements": pa.int64()}
    authors = {f"sum_{number}": pa.int64() for number in range(40)}
    for kind, is_named in ((pa.bool_(), False), (pa.string(), True)):
        schema = Schema.from_arrow(pa.schema({"state": kind, **ours, **authors}))
        named = indexed.properties("open_windows", schema)[indexed.PROPERTY].split(",")
        assert named == [*(["state"] if is_named else []), *ours]


@pytest.mark.spark
@pytest.mark.embedded
def test_an_old_wide_table_is_read_by_footers_until_maintenance_indexes_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has no bounds of `batch_id`. Pages of warnings, and maintenance after an erasure, need them."""
    definition = clicks(tmp_path, 3, WIDE)
    with monkeypatch.context() as patch:
        patch.setattr(log_writing, "configuration", lambda *_: {**log_writing.CONFIGURATION})
        advance(definition, lambda: spark, clock=now)
    assert set(named(definition).values()) == {None}
    assert bounded(definition, "results") > {"batch_id", "sum_39"}
    assert Path(report(definition, now())).exists()
    maintain(definition, "ann", clock=now)
    assert named(definition) == NAMED
    assert "sum_39" not in bounded(definition, "results") >= {"batch_id"}


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize("window", ["sessions", "tumbling"])
def test_sixty_keys_come_before_the_columns_of_time(spark: SparkSession, tmp_path: Path, window: str) -> None:
    """Files of windows in flight had no bounds in time, and an expression of all keys was nested too deeply."""
    definition = pipeline(tmp_path, window, [f"key_{number}" for number in range(60)], ["total"])
    assert play(spark, tmp_path, definition) == EXPECTED[window]
