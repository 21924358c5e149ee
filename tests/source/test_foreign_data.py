"""Definitions of the page about other data, compared with plain Python over files of the same form."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.source.arriving import source_file
from tests.support.doc_pages import DOCS, Page
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

START = datetime(2026, 3, 2, tzinfo=UTC)
NOW_MS = int(START.timestamp() * 1000) + 86_400_000
QUARTER, HOUR = timedelta(minutes=15), timedelta(hours=1)


def pipeline(name: str, folder: Path, engine: str = "spark") -> Definition:
    """The page's definition of that name, in a folder of its own."""
    page = Page(DOCS / "guides" / "other-data.md")
    [text] = [block.text for block in page.blocks if block.about == f"{name}.toml"]
    file = folder / f"{name}.toml"
    file.write_text(f'engine = "{engine}"\n{text}')
    loaded = load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / name)})
    loaded.source.path.mkdir(exist_ok=True)
    return loaded


def arrive(definition: Definition, name: str, content: bytes | pa.Table) -> None:
    """A file arrives, after those before it."""
    path, number = definition.source.path / name, len([*definition.source.path.iterdir()])
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        pq.write_table(content, path)
    os.utime(path, ns=(number, number))


def published(
    definition: Definition, spark: SparkSession, columns: Sequence[str], now_ms: int = NOW_MS
) -> list[tuple[Any, ...]]:
    """The results after a run to the end of the source, by these columns."""
    advance(definition, lambda: spark, clock=lambda: now_ms, finish=True)
    rows = read_table(definition, "results").to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in rows)


def reasons(definition: Definition) -> list[str]:
    return sorted(row["reason"] for row in read_table(definition, "quarantine").to_pylist())


# -- taxi trips ----------------------------------------------------------------------------------------------------


def trips(chance: random.Random, first: datetime, count: int) -> list[dict[str, Any]]:
    rows = []
    for _ in range(count):
        at = first + timedelta(seconds=chance.randrange(4 * 3600))
        fare, passengers = chance.randrange(1, 9000) / 100, chance.choice((1, 2, None))
        rows.append({"at": at, "place": chance.randrange(3), "fare": fare, "miles": fare / 7, "passengers": passengers})
    return sorted(rows, key=lambda row: row["at"])


def month(rows: Sequence[Mapping[str, Any]], places: pa.DataType, passengers: pa.DataType, fee: str) -> pa.Table:
    """Files in the published form: local times, with types and spellings that differ by year."""
    kinds = {
        "VendorID": places,
        "tpep_pickup_datetime": pa.timestamp("us"),
        "tpep_dropoff_datetime": pa.timestamp("us"),
        "passenger_count": passengers,
        "trip_distance": pa.float64(),
        "store_and_fwd_flag": pa.large_string() if fee == "Airport_fee" else pa.string(),
        "PULocationID": places,
        "fare_amount": pa.float64(),
        fee: pa.float64(),
    }
    columns = {
        "VendorID": 1, "tpep_dropoff_datetime": None, "store_and_fwd_flag": "N", fee: None,
        "tpep_pickup_datetime": "at", "passenger_count": "passengers", "trip_distance": "miles",
        "PULocationID": "place",
        "fare_amount": "fare",
    }  # fmt: skip
    made = [{**row, "at": row["at"].astimezone(ZoneInfo("America/New_York")).replace(tzinfo=None)} for row in rows]
    values = {name: [row.get(of, of) for row in made] for name, of in columns.items()}
    return pa.table({name: pa.array(values[name], kind) for name, kind in kinds.items()})


@pytest.mark.spark
@pytest.mark.embedded  # types that widen and times of a zone are read by Spark in test_widening and test_time_zone
def test_taxi_trips(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    definition = pipeline("taxi", tmp_path, request.config.getoption("--engine"))
    chance = random.Random(1)
    first, second = trips(chance, START, 60), trips(chance, START + 2 * HOUR, 60)
    future = [{**second[0], "at": START.replace(year=2098)}]
    old = [{**second[0], "at": START.replace(year=2008)}]
    arrive(definition, "trips_2026-03.parquet", month(first, pa.int64(), pa.float64(), "airport_fee"))
    arrive(definition, "trips_2026-04.parquet", month(second + future + old, pa.int32(), pa.int64(), "Airport_fee"))
    expected = []
    of_window = defaultdict(list)
    for row in first + second:
        start = START + (row["at"] - START) // QUARTER * QUARTER
        for back in range(4):
            of_window[row["place"], start - back * QUARTER].append(row)
    for (place, start), rows in of_window.items():
        passengers = [row["passengers"] for row in rows if row["passengers"] is not None]
        mean = pytest.approx(sum(row["fare"] for row in rows) / len(rows))
        longest = max(row["miles"] for row in rows)
        expected.append((place, start, len(rows), sum(passengers) if passengers else None, mean, longest))
    columns = ("PULocationID", "window_start", "trips", "passengers", "mean_fare", "longest")
    found = published(definition, spark, columns)
    assert [row[:2] for row in found] == sorted(row[:2] for row in expected)
    assert found == sorted(expected, key=lambda row: row[:2])
    assert reasons(definition) == ["future"]
    assert [row["event_time"].year for row in read_table(definition, "late_events").to_pylist()] == [2008]


# -- activity of a code host -----------------------------------------------------------------------------------------


def activity(chance: random.Random, number: int) -> dict[str, Any]:
    kind = chance.choice(("PushEvent", "WatchEvent", "IssuesEvent"))
    payload: dict[str, Any] = {"PushEvent": {"size": 1, "commits": [{"sha": "a"}]}, "IssuesEvent": {"issue": {"id": 1}}}
    at = START + timedelta(seconds=chance.randrange(6 * 3600))
    return {
        "id": str(10**9 + number),
        "type": kind,
        "actor": {"id": 1, "login": chance.choice(("ann", "bob[bot]")), "url": "…"},
        "repo": {"id": number, "name": f"o/{chance.randrange(4)}"},
        "payload": payload.get(kind, {}),
        "public": True,
        "created_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


@pytest.mark.spark
@pytest.mark.classic
def test_activity_of_a_code_host(spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline("activity", tmp_path)
    chance = random.Random(2)
    events = sorted((activity(chance, number) for number in range(60)), key=lambda one: one["created_at"])
    ghost = {**events[-1], "id": "0", "actor": None}
    for hour, rows in enumerate((events[:40], [*events[38:], ghost])):  # two events come in both files
        lines = "\n".join(map(json.dumps, rows)) + "\n"
        arrive(definition, f"2026-03-02-{hour}.json.gz", gzip.compress(lines.encode()))
    sessions: dict[str, list[list[dict[str, Any]]]] = defaultdict(list)
    for event in events:
        of_login = sessions[event["actor"]["login"]]
        at = datetime.fromisoformat(event["created_at"])
        if not of_login or at - datetime.fromisoformat(of_login[-1][-1]["created_at"]) > timedelta(minutes=30):
            of_login.append([])
        of_login[-1].append(event)
    expected = [
        (
            login,
            datetime.fromisoformat(one[0]["created_at"]),
            len(one),
            sum(event["type"] == "PushEvent" for event in one),
            len({event["repo"]["name"] for event in one}),
        )
        for login, found in sessions.items()
        for one in found
    ]
    columns = ("login", "window_start", "events", "pushes", "repositories")
    assert published(definition, spark, columns) == sorted(expected)
    assert reasons(definition) == ["duplicate", "duplicate", "null_key"]


# -- a spreadsheet's export ------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.classic
def test_a_spreadsheet_of_another_country(spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline("sales", tmp_path)
    content = """Filiale Nr.;Verkauft am;Artikel;Betrag (EUR)\r
01;28.03.2026 23:59;"Müsli; 500 g";1.234,50\r
01;29.03.2026 00:00;Brötchen;-0,25\r
01;29.03.2026 03:30;Brötchen;2,00\r
Köln;29.03.2026 23:59;;10\r
;30.03.2026 00:00;;1,00\r
01;30.03.2026 00:00;Brötchen;7,00\r
Summe;;;1.254,25\r
"""
    arrive(definition, "Verkäufe März.csv", content.encode("latin-1"))
    berlin = ZoneInfo("Europe/Berlin")
    day = datetime(2026, 3, 28, tzinfo=berlin).astimezone(UTC)
    columns = ("shop", "window_start", "receipts", "turnover")
    found = published(definition, spark, columns, now_ms=NOW_MS + 30 * 86_400_000)
    late_evening = datetime(2026, 3, 30, tzinfo=berlin).astimezone(UTC)
    assert late_evening == day + timedelta(days=1, hours=23)  # so the first hour of the 30th is in the window before
    expected = [
        ("01", day, 1, Decimal("1234.50")),
        ("01", day + timedelta(days=1), 3, Decimal("8.75")),
        ("Köln", day + timedelta(days=1), 1, Decimal("10.00")),
    ]
    assert found == expected
    assert reasons(definition) == ["null_key", "null_timestamp"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("timestamp_format", '"DD.MM.JJJJ"', "has letters without a meaning: J"),
        ("timestamp_format", '"HH:mm"', "lacks year, month or day; need"),
        ("time_zone", '"Berlin"', 'such as "Europe/Berlin"'),
        ("locale", '"german"', 'such as "de-DE"'),
    ],
)
def test_a_contradictory_dialect_is_refused(key: str, value: str, said: str, tmp_path: Path) -> None:
    file = pipeline("sales", tmp_path).file
    file.write_text("\n".join(line for line in file.read_text().splitlines() if not line.startswith(f"{key} = ")))
    file.write_text(file.read_text().replace("[source.dialect]", f"[source.dialect]\n{key} = {value}"))
    with pytest.raises(InvalidDefinition, match=f"source.dialect.{key}: .*{said}"):
        load_definition(file)


@pytest.mark.parametrize(
    ("nested", "said"),
    [
        ('{ login = "actor" }', "need a path into a struct"),
        ('{ login = "actor.name" }', "need a path into a struct"),
        ('{ login = "id.login" }', "need a path into a struct"),
        ('{ type = "actor.login" }', "is a column of source.schema"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(nested: str, said: str, tmp_path: Path) -> None:
    file = pipeline("activity", tmp_path).file
    text = file.read_text().replace('{ login = "actor.login", repository = "repo.name" }', nested)
    file.write_text(text.replace("distinct repository", "distinct type"))
    with pytest.raises(InvalidDefinition, match=said):
        load_definition(file)


# -- sensors -------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.classic
@pytest.mark.long("taxi trips of the past and of the future, and lines of JSON that are cut off, are in make test")
def test_sensors_with_restarting_clocks(spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline("sensors", tmp_path)
    chance, start = random.Random(3), NOW_MS // 1000 - 4 * 3600
    readings = [
        {"device": f"d{chance.randrange(3)}", "ts": start + second, "celsius": chance.randrange(-400, 900) / 10}
        for second in sorted(chance.randrange(4 * 3600) for _ in range(120))
    ]
    for number in (1, 2):
        rows = [*readings[60 * (number - 1) : 60 * number]]
        chance.shuffle(rows)
        wrong = (
            [{**rows[0], "ts": chance.randrange(900)}, {**rows[1], "ts": NOW_MS // 1000 + 3600}] if number == 2 else []
        )
        lines = [
            *map(json.dumps, rows[:30] + wrong + rows[30:]),
            '{"device": "d1", "ts": 17',
        ]  # cut off as it was written
        arrive(definition, f"{number}.jsonl", "\n".join(lines).encode())
    of_window = defaultdict(list)
    for row in readings:
        of_window[row["device"], START + timedelta(seconds=row["ts"] // 300 * 300 - START.timestamp())].append(row)
    expected = [
        (device, at, len(rows), max(row["celsius"] for row in rows)) for (device, at), rows in of_window.items()
    ]
    found = published(definition, spark, ("device", "window_start", "readings", "highest"))
    late = read_table(definition, "late_events").to_pylist()
    assert found == sorted(expected)
    assert [row["event_time"].year for row in late] == [1970]
    assert reasons(definition) == ["future", "malformed", "malformed"]


# -- what the author says of Parquet ----------------------------------------------------------------------------------


def test_a_declared_type_is_kept(tmp_path: Path) -> None:
    from windowlib.source.columns.check import check_readable

    definition = pipeline("taxi", tmp_path)
    rows = trips(random.Random(1), START, 2)
    arrive(definition, "1.parquet", month(rows, pa.int32(), pa.int64(), "fee"))
    files = [source_file(definition.source.path, "1.parquet")]
    assert check_readable(definition.source, definition.uses, files, None)["PULocationID"] == "int64"
    with pytest.raises(
        StateMismatch, match="declares the column 'PULocationID' as bigint, but it was recorded as int32"
    ):
        check_readable(definition.source, definition.uses, files, {"PULocationID": "int32"})
    undeclared = definition.model_copy(update={"source": definition.source.model_copy(update={"columns": {}})})
    with pytest.raises(StateMismatch, match=r'schema = \{ "PULocationID" = "bigint" \}'):
        check_readable(undeclared.source, undeclared.uses, files, {"PULocationID": "int64"})
