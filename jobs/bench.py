"""Sessions over ten files of a million clicks: our runs beside Spark Structured Streaming, as a schedule runs both.

`python -m jobs.bench` makes the files, then, in one Spark session and file by file, times

ours        one run of a session pipeline (`jobs.advance`): plan, windows, checks, commits
streaming   `session_window` with the RocksDB state store and a Delta sink: one `availableNow` query for the file

on the same file with the same watermark delay, compares the published sessions, and prints a Markdown table. The first
file warms both up and is left out of the medians. The files: 200,000 users who click in bursts, a tenth of the clicks
by 200 users who never pause; nothing is late, since streaming has no allowed lateness to compare with.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE_MS = 60_000
BASE_MS = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp()) * 1000
USERS, HOT_USERS, HOT_SHARE, BURST = 200_000, 200, 0.1, 9
DELAY_MINUTES, GAP_MINUTES = 10, 30
TIMESTAMP = pa.timestamp("us", tz="UTC")

DEFINITION = f"""\
name = "bench"
warehouse = "warehouse"

[source]
format = "parquet"
path = "incoming"
key = ["user_id"]
timestamp = "ts"
max_files_per_run = 1

[watermark]
out_of_orderness = "{DELAY_MINUTES}m"

[window]
type = "session"
gap = "{GAP_MINUTES}m"
allowed_lateness = "0s"

[aggregates]
events = "count(*)"
total = "sum(value)"
"""


def make_file(path: Path, number: int, events: int) -> None:
    """Clicks of hour `number`: bursts of nine within ten minutes, hot users evenly, out of order within the file."""
    rng = np.random.default_rng(number)
    hot = int(events * HOT_SHARE)
    bursts = (events - hot) // BURST
    burst_user = rng.integers(HOT_USERS, USERS, bursts)
    burst_start = rng.integers(0, 60 * MINUTE_MS, bursts)
    user = np.concatenate([np.repeat(burst_user, BURST), rng.integers(0, HOT_USERS, events - bursts * BURST)])
    in_burst = np.repeat(burst_start, BURST) + rng.integers(0, 10 * MINUTE_MS, bursts * BURST)
    offset = np.concatenate([in_burst, rng.integers(0, 60 * MINUTE_MS, events - bursts * BURST)])
    order = rng.permutation(events)
    micros = (BASE_MS + number * 60 * MINUTE_MS + offset[order]) * 1000
    columns = [pa.array(user[order]), pa.array(micros).cast(TIMESTAMP), pa.array(rng.integers(1, 1001, events))]
    pq.write_table(pa.table(columns, names=["user_id", "ts", "value"]), path)


def streaming_run(spark: SparkSession, folder: Path) -> None:
    """One query over the files in `folder`/incoming that its checkpoint does not know yet."""
    from pyspark.sql import functions as F

    clicks = spark.readStream.schema("user_id bigint, ts timestamp, value bigint").parquet(str(folder / "incoming"))
    session = F.session_window("ts", f"{GAP_MINUTES} minutes")
    counted = clicks.withWatermark("ts", f"{DELAY_MINUTES} minutes").groupBy("user_id", session.alias("session"))
    sessions = counted.agg(F.count("*").alias("events"), F.sum("value").alias("total"))
    bounds = [F.col("session.start").alias("window_start"), F.col("session.end").alias("window_end")]
    writer = sessions.select("user_id", *bounds, "events", "total").writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.start(str(folder / "streaming")).awaitTermination()
