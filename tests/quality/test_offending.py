"""Names of rows that a check found wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.check_samples import stored
from windowlib.quality.offending import rows_at


def test_a_key_that_is_a_time_after_the_year_9999_is_named(tmp_path: Path) -> None:
    keys = pa.array([2**62, 0], pa.timestamp("us"))
    starts = pa.array([datetime(2026, 3, 5, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"until": keys, "window_start": starts}), tmp_path / "1.parquet")
    start = "2026-03-05T00:00:00+00:00"
    assert rows_at([stored(tmp_path / "1.parquet")], [0, 1], ["until", "window_start"]) == [
        {"until": "1970-01-01 and 4,611,686,018,427,387,904 us", "window_start": start},
        {"until": "1970-01-01T00:00:00", "window_start": start},
    ]
