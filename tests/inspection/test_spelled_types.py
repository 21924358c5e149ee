"""`windowlib explain` reads every file that a run reads, for any spelling of its column types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, START_MS, clicks, clock
from windowlib.inspection.lineage.explain_window import explain_window
from windowlib.publication.key import CannotLook
from windowlib.runs.advance import advance

PLAIN = CLICKS.replace('event_id = "id"\n', "").replace("max_files_per_run = 1\n", "")
BIGINT = PLAIN.replace("[watermark]", '[source.schema]\nuser = "bigint"\n[watermark]')
NUMBERS = pa.array([5_000_000_000])
VIEWS = pa.array(["a"], pa.string_view())
MICROS = pa.array([1_001], pa.timestamp("us"))


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    ("text", "user", "later", "key", "timestamp"),
    [
        (BIGINT, NUMBERS, pa.array([7], pa.int32()), "5000000000", pa.array([START_MS])),
        (PLAIN, MICROS, pa.array([1], pa.timestamp("ms")), "1970-01-01T00:00:00.001001", pa.array([START_MS])),
        (PLAIN, VIEWS, VIEWS, "a", pa.array([START_MS])),
        (PLAIN, VIEWS.cast(pa.string()), VIEWS, "a", pa.array([str(START_MS)]).dictionary_encode()),
    ],
    ids=["narrower", "coarser", "views", "dictionary"],
)
def test_a_key_is_looked_for_in_the_types_of_each_file(
    text: str, user: pa.Array, later: pa.Array, key: str, timestamp: pa.Array, spark: SparkSession, tmp_path: Path
) -> None:
    definition = clicks(tmp_path, 0, text)
    for number, of_file in enumerate((user, later), 1):
        rows = pa.table({"user": of_file, "at_ms": timestamp, "value": [number]})
        pq.write_table(rows, tmp_path / "incoming" / f"{number}.parquet")
    advance(definition, lambda: spark, clock=clock)
    [window] = explain_window(definition, [key], START_MS).windows
    expected = [1, 2] if key == "a" else [1]
    assert [event.values["value"] for event in window.events] == expected
    if text == BIGINT:
        with pytest.raises(CannotLook, match="is not a value of column user of type int64"):
            explain_window(definition, ["x"], START_MS)
