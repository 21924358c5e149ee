"""Data from elsewhere: an access log in eight arrival files, against DuckDB where nothing is late, else the oracle.

Sessions per client (30 minutes) and sliding counts per status (6 hours, every hour).
"""

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.access_log import Request, cut, made_up_log, parse, write_json
from tests.support.window_oracle import Assign, Event, Outcome, Results, run, session, sliding
from windowlib.definition.definition import Definition, load_definition
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
FILES, FILES_PER_RUN = 8, 4

DEFINITION = """\
name = "log"

[source]
format = "json"
path = "incoming"
key = ["{key}"]
timestamp = "timestamp_ms"
timestamp_unit = "ms"
event_id = "id"
max_files_per_run = {files_per_run}

[source.schema]
id = "string"
client = "string"
status = "int"
timestamp_ms = "bigint"
size = "bigint"

[watermark]
out_of_orderness = "{out_of_orderness}ms"

[window]
{window}
allowed_lateness = "{lateness}ms"

[aggregates]
requests = "count(*)"
bytes = "sum(size)"
"""

# Windows whose end the watermark has passed, of all requests: right where no request is late.
SESSIONS_SQL = """
with fresh as (
    select *, timestamp_ms - lag(timestamp_ms) over by_time > 1800000 as begins from requests
    window by_time as (partition by client order by timestamp_ms)
), numbered as (
    select *, count(*) filter (where begins) over (partition by client order by timestamp_ms) as session from fresh
)
select client, min(timestamp_ms), max(timestamp_ms) + 1800000 as window_end, count(*), sum(size)
from numbered group by client, session having window_end - 1 <= $watermark
"""
SLIDING_SQL = """
select status::varchar, start, start + 21600000 as window_end, count(*), sum(size)
from requests, unnest(range(timestamp_ms // 3600000 * 3600000 - 18000000, timestamp_ms + 1, 3600000)) as starts(start)
group by all having window_end - 1 <= $watermark
"""


class Case(NamedTuple):
    """One kind of window: in the definition, for the oracle, in SQL."""

    key: str
    window: str
    assign: Assign
    merges: bool
    sql: str


SESSIONS = Case("client", 'type = "session"\ngap = "30m"', session(30 * MINUTE_MS), True, SESSIONS_SQL)
SLIDING = Case(
    "status", 'type = "sliding"\nsize = "6h"\nslide = "1h"', sliding(6 * HOUR_MS, HOUR_MS), False, SLIDING_SQL
)
CASES = pytest.mark.parametrize(
    "case", [pytest.param(SESSIONS, id=SESSIONS.key), pytest.param(SLIDING, id=SLIDING.key)]
)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> list[list[Request]]:
    return cut(list(parse(made_up_log(600, seed=5))), FILES)


def define(folder: Path, case: Case, out_of_orderness_ms: int, lateness_ms: int, files_per_run: int) -> Definition:
    """A definition next to `folder`/incoming."""
    file = folder / "log.toml"
    times = {"out_of_orderness": out_of_orderness_ms, "lateness": lateness_ms}
    file.write_text(DEFINITION.format(key=case.key, window=case.window, files_per_run=files_per_run, **times))
    return load_definition(file)


def expected(
    pieces: list[list[Request]], case: Case, out_of_orderness_ms: int, lateness_ms: int, at_once: int
) -> Outcome:
    """Expected rows from the oracle, with `at_once` pieces per batch."""
    batches = [
        [Event(f"r{r.number}", str(getattr(r, case.key)), r.timestamp_ms, r.size) for piece in batch for r in piece]
        for batch in (pieces[n : n + at_once] for n in range(0, len(pieces), at_once))
    ]
    return run(batches, case.assign, case.merges, out_of_orderness_ms, lateness_ms)


def found(definition: Definition) -> Results:
    """Rows of `results` in the form of the oracle."""
    return {
        (str(row[definition.source.key[0]]), _ms(row["window_start"]), _ms(row["window_end"])): (
            row["requests"],
            row["bytes"],
        )
        for row in read_table(definition, "results").to_pylist()
    }


def by_duckdb(pieces: list[list[Request]], sql: str, watermark_ms: int) -> Results:
    rows = pa.Table.from_pylist([request._asdict() for piece in pieces for request in piece])
    with duckdb.connect() as connection:
        connection.register("requests", rows)
        answer = connection.execute(sql, {"watermark": watermark_ms}).fetchall()
    return {(key, start, end): (requests, size) for key, start, end, requests, size in answer}


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


@CASES
def test_oracle_and_duckdb_agree(pieces: list[list[Request]], case: Case) -> None:
    outcome = expected(pieces, case, 40 * HOUR_MS, 0, 1)
    assert outcome.late == set()
    assert len(outcome.results) > 20
    assert by_duckdb(pieces, case.sql, outcome.watermark_ms) == outcome.results


@pytest.mark.spark
@pytest.mark.long("in make test test_foreign_data reads sessions in JSON, next to plain Python")
@CASES
def test_a_log_without_late_requests(
    pieces: list[list[Request]], case: Case, tmp_path: Path, spark: SparkSession
) -> None:
    write_json(pieces, tmp_path / "incoming")
    definition = define(tmp_path, case, 40 * HOUR_MS, 0, FILES_PER_RUN)
    reports = advance(definition, lambda: spark)
    assert len(reports) == FILES / FILES_PER_RUN
    assert found(definition) == by_duckdb(pieces, case.sql, reports[-1].watermark_out_ms)
    assert sum(report.figures["rows_late"] or 0 for report in reports) == 0


@pytest.mark.spark
@pytest.mark.long(
    "in make test test_foreign_data reads sessions in JSON, and test_conformance late events by this oracle"
)
@CASES
def test_a_log_with_late_requests(pieces: list[list[Request]], case: Case, tmp_path: Path, spark: SparkSession) -> None:
    write_json(pieces, tmp_path / "incoming")
    definition = define(tmp_path, case, MINUTE_MS, HOUR_MS, FILES_PER_RUN)
    advance(definition, lambda: spark)
    outcome = expected(pieces, case, MINUTE_MS, HOUR_MS, FILES_PER_RUN)
    assert len(outcome.late) > 5
    assert found(definition) == outcome.results
    assert set(read_table(definition, "late_events")["event_id"].to_pylist()) == outcome.late
