"""Definitions: values read, and all mistakes reported at once in the author's terms."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.disks import folder_of
from tests.support.strategies import examples
from windowlib import DynamicSession, InvalidSpec, Session, Sliding, Tumbling
from windowlib.definition.definition import InvalidDefinition, load_definition
from windowlib.definition.mistakes import mistakes_of
from windowlib.definition.rules import across_keys
from windowlib.definition.toml.durations import LONGEST_MS, format_duration, parse_duration
from windowlib.definition.toml.file import DefinitionFile

GOOD: dict[str, dict[str, Any]] = {
    "": {"name": '"clicks"', "warehouse": '"warehouse"'},
    "source": {"format": '"parquet"', "path": '"incoming"', "key": '["user_id"]', "timestamp": '"ts"'},
    "source.schema": {},
    "watermark": {"out_of_orderness": '"5m"'},
    "window": {"type": '"session"', "gap": '"30m"', "allowed_lateness": '"1h"'},
    "aggregates": {"events": '"count(*)"', "total": '"sum(value)"'},
    "airflow": {"schedule": '"*/10 * * * *"'},
}
TUMBLING = {"window.type": '"tumbling"', "window.gap": None, "window.size": '"1h"'}
SLIDING = {"window.type": '"sliding"', "window.gap": None, "window.size": '"10m"', "window.slide": '"5m"'}
CSV = {
    "source.format": '"csv"',
    "source.schema.user_id": '"string"',
    "source.schema.ts": '"timestamp"',
    "source.schema.value": '"decimal(10, 2)"',
}


def write(folder: Path, changes: dict[str, str | None]) -> Path:
    """A definition with some keys set (to TOML text) or taken away (None)."""
    sections = {name: dict(keys) for name, keys in GOOD.items()}
    for dotted, value in changes.items():
        section, _, key = dotted.rpartition(".")
        sections.setdefault(section, {})[key] = value
    lines = []
    for name, keys in sections.items():
        present = {key: value for key, value in keys.items() if value is not None}
        lines += [f"[{name}]"] if name and present else []
        lines += [f"{key} = {value}" for key, value in present.items()]
    file = folder / "clicks.toml"
    file.write_text("\n".join(lines))
    return file


def mistakes(folder: Path, changes: dict[str, str | None]) -> list[str]:
    file = write(folder, changes)
    with pytest.raises(InvalidDefinition) as caught:
        load_definition(file)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{file}: ") for line in lines)
    return [line.removeprefix(f"{file}: ") for line in lines]


def test_a_definition_says_everything_in_memory(tmp_path: Path) -> None:
    definition = load_definition(write(tmp_path, {"source.event_id": '"event_id"'}))
    assert definition.name == "clicks"
    assert folder_of(definition) == tmp_path / "warehouse" / "clicks"
    assert definition.source.path == tmp_path / "incoming"
    assert definition.source.key == ("user_id",)
    assert definition.dedup_horizon_ms == parse_duration("1d")
    assert definition.watermark.out_of_orderness_ms == 300_000
    assert definition.watermark.idle_timeout_ms is None
    assert definition.spec.assigner == Session(gap_ms=1_800_000)
    assert definition.window.allowed_lateness_ms == 3_600_000
    assert [column.name for column in definition.aggregates.columns] == ["events", "total"]
    assert definition.airflow.schedule == "*/10 * * * *"
    assert definition.storage.state_partition_ms == 3_600_000


@pytest.mark.parametrize(
    ("changes", "assigner"),
    [
        (TUMBLING, Tumbling(3_600_000)),
        ({**TUMBLING, "window.offset": '"-15m"'}, Tumbling(3_600_000, -900_000)),
        (SLIDING, Sliding(600_000, 300_000)),
        ({**SLIDING, "window.slide": '"20m"', "window.offset": '"15m"'}, Sliding(600_000, 1_200_000, 900_000)),
        ({"window.gap": None, "window.gap_column": '"gap_ms"'}, DynamicSession("gap_ms")),
    ],
)
def test_window_types(tmp_path: Path, changes: dict[str, str | None], assigner: object) -> None:
    assert load_definition(write(tmp_path, changes)).spec.assigner == assigner


def test_the_environment_moves_the_warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", str(tmp_path / "elsewhere"))
    assert folder_of(load_definition(write(tmp_path, {}))) == tmp_path / "elsewhere" / "clicks"


def test_source_and_warehouse_may_be_in_object_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"warehouse": '"s3://tables/shop/"', "source.path": '"gs://events/clicks/"'}
    definition = load_definition(write(tmp_path, {**addresses, "source.moved_from": '"/data/clicks"'}))
    assert (definition.store.url, definition.source.store.url) == ("s3://tables/shop/clicks", "gs://events/clicks")
    assert definition.source.moved_from == Path("/data/clicks")
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", "s3://others")
    assert load_definition(definition.file).store.url == "s3://others/clicks"
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", "s3://Others")
    with pytest.raises(InvalidDefinition, match=r"^the variable WINDOWLIB_WAREHOUSE: s3://Others: no bucket can have"):
        load_definition(definition.file)


def test_credentials_in_an_address_are_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="expected a bucket without credentials") as caught:
        load_definition(write(tmp_path, {"warehouse": '"s3://key:SECRET@events/a"'}))
    assert "SECRET" not in str(caught.value)


def test_a_file_in_the_place_of_the_warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, {"warehouse": '"clicks.toml/tables"'})
    with pytest.raises(InvalidDefinition) as refused:
        load_definition(file)
    assert str(refused.value) == f"{file}: warehouse: {file} is a file, but tables need a folder"
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", str(file))
    with pytest.raises(InvalidDefinition, match=rf"^the variable WINDOWLIB_WAREHOUSE: {file} is a file"):
        load_definition(file)


def test_no_key_means_windows_over_all_events(tmp_path: Path) -> None:
    assert load_definition(write(tmp_path, {"source.key": "[]"})).source.key == ()


def test_csv_with_a_schema(tmp_path: Path) -> None:
    assert load_definition(write(tmp_path, CSV)).source.columns == {
        "user_id": "string",
        "ts": "timestamp",
        "value": "decimal(10, 2)",
    }


def test_a_field_of_an_object_is_a_column_where_the_advice_is_followed(tmp_path: Path) -> None:
    schema = '{ device = "struct<id: string, at: timestamp>", ts = "timestamp" }'
    json = {"source.format": '"json"', "source.schema": schema}
    wrong: dict[str, str | None] = {**json, "source.key": '["device.id"]', "source.timestamp": '"device.at"'}
    wrong["aggregates.total"] = None
    for key, called in (("key", "device_id"), ("timestamp", "device_at")):
        with pytest.raises(InvalidDefinition) as error:
            load_definition(write(tmp_path, wrong))
        [said, *_] = [line for line in str(error.value).splitlines() if f": source.{key}" in line]
        advised = re.search(r"source\.nested = \{ (\w+) = (\"[\w.]+\") \}", said)
        assert advised
        assert advised[1] == called
        wrong[f"source.nested.{called}"] = advised[2]
        wrong[f"source.{key}"] = f'["{called}"]' if key == "key" else f'"{called}"'
    assert load_definition(write(tmp_path, wrong)).source.nested == {"device_id": "device.id", "device_at": "device.at"}
    with pytest.raises(InvalidDefinition, match=r"source\.rename = \{ .ts\.id. = .ts_id. \}"):
        load_definition(write(tmp_path, {**wrong, "source.key": '["ts.id"]'}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": '"Clicks"'}, 'name: has the wrong form, given "Clicks"; allowed: a-z, 0-9 and _'),
        ({"name": None}, "name: missing; allowed: a-z"),
        ({"warehose": '"w"'}, 'warehose: unknown key, given "w"; did you mean warehouse?; allowed: name, warehouse'),
        ({"warehouse": '"file:///tables"'}, "warehouse: must be a path on this machine"),
        ({"warehouse": '"hdfs://tables/a"'}, "warehouse: hdfs:// is no known kind of storage: expected a path, `s3://"),
        ({"source.path": '"s3:/events"'}, "source.path: s3:/ begins no address: expected two slashes"),
        ({"source.moved_from": '"s3://Events"'}, "source.moved_from: s3://Events: no bucket can have the name"),
        ({"source.format": '"parqet"'}, 'source.format: given "parqet"; did you mean parquet?; allowed: "parquet"'),
        ({"airflow.approval": '"x"'}, 'airflow.approval: given "x"; allowed: "asked", "required", "another user"'),
        ({**CSV, "source.dialect.encoding": '"latin1"'}, 'given "latin1"; allowed: "UTF-8", "ISO-8859-1", "US-ASCII"'),
        ({"source.path": "3"}, "source.path: must be a string, given 3"),
        ({"source.path": None}, "source.path: missing; allowed: the folder of the events"),
        ({"source.key": '"user_id"'}, 'source.key: must be a list, given "user_id"; allowed: a list of columns'),
        ({"source.key": '["a b"]'}, "source.key.0: cannot name a column of a Delta table"),
        ({"source.key": '["a", "a"]'}, 'source.key: names "a" twice'),
        ({"source.key": '["Window_Start"]'}, 'source.key: "Window_Start" is a column that windowlib adds itself'),
        ({"source.key": '["p0_sum"]'}, 'source.key: "p0_sum" is a column that windowlib adds itself'),
        ({"source.timestmp": '"t"'}, 'source.timestmp: unknown key, given "t"; did you mean timestamp?'),
        (
            {"source.timestamp_unit": '"ns"'},
            "source.timestamp_unit: nanoseconds are not supported: write microseconds, with timestamp_unit ="
            ' "us", or cast the column to a timestamp and leave timestamp_unit out, given "ns"; allowed: "s", "ms"',
        ),
        ({"source.timestamp_unit": '"sec"'}, 'source.timestamp_unit: given "sec"; allowed: "s", "ms", "us"'),
        (
            {"source.max_files_per_run": "-1"},
            "source.max_files_per_run: must be at least 0, given -1; allowed: greatest number of files",
        ),
        ({"source.max_files_per_run": '"2"'}, 'source.max_files_per_run: must be a whole number, given "2"'),
        ({"source.max_files_per_run": "true"}, "source.max_files_per_run: must be a whole number, given true"),
        ({"source.dedup_horizon": '"1d"'}, 'source.dedup_horizon: has no meaning without event_id = "column"'),
        ({"source.format": '"json"'}, "source.schema: missing, and needed for json"),
        ({**CSV, "source.schema.ts": '"timestmp"'}, 'source.schema.ts: unknown type, given "timestmp"; did you mean'),
        ({**CSV, "source.schema.ts": '"Text"'}, 'source.schema.ts: unknown type, given "Text"; did you mean string?'),
        ({**CSV, "source.schema.ts": '"varchar(20)"'}, 'given "varchar(20)"; did you mean string?'),
        ({**CSV, "source.schema.ts": '"object"'}, 'source.schema.ts: unknown type, given "object"; allowed: string'),
        (
            {**CSV, "source.timestamp": '"stop"'},
            'source.timestamp: column "stop" is not in source.schema; columns: user',
        ),
        (
            {**CSV, "source.rename.value": '"ts"'},
            'source.rename.value: source.rename maps "value" to "ts", but a column "ts" already exists;',
        ),
        ({"window.gap": "45m"}, '(at line 12, column 9); durations are strings: gap = "45m"'),
        ({"window": '{ type = "session", gap = 1h 30m }'}, '; durations are strings: gap = "1h 30m"'),
        ({**CSV, "source.schema.ts": "3"}, "source.schema.ts: must be a string, given 3"),
        ({**CSV, "source.schema.ts": '"bigint"'}, "source.timestamp_unit: missing, and needed as the timestamp is big"),
        (
            {"source.dialect": '{time_zone = "Europe/Berlin"}', "source.timestamp_unit": '"ms"'},
            "source.dialect.time_zone: numbers count from 1970 in UTC, without a zone; leave it out",
        ),
        ({"source.dialect": '{time_zone = "localtime"}'}, "source.dialect.time_zone: must be the name of a time zone"),
        (
            {"source.dialect": '{delimiter = ";"}'},
            "source.dialect.delimiter: has a meaning only for json and csv; leave it out",
        ),
        ({**CSV, "source.timestamp_unit": '"ms"'}, 'source.timestamp_unit: given "ms", but the timestamp is timestamp'),
        ({**CSV, "source.key": '["user"]'}, 'source.key: column "user" is not in source.schema; did you mean user_id?'),
        (
            {**CSV, "source.key": '["User_id"]'},
            'source.key: column "User_id" is not in source.schema; did you mean user_',
        ),
        (
            {**CSV, "aggregates.n": '"sum(Value)"'},
            'aggregates.n: column "Value" is not in source.schema; did you mean v',
        ),
        (
            {**CSV, "source.schema.ts": '"string"'},
            "source.timestamp: column is string; need timestamp (for strings",
        ),
        ({**CSV, "source.schema.ts": '"boolean"'}, "source.timestamp: column is boolean; need timestamp"),
        ({**CSV, "source.event_id": '"id"'}, 'source.event_id: column "id" is not in source.schema'),
        ({**CSV, "aggregates.n": '"sum(vale)"'}, 'aggregates.n: column "vale" is not in source.schema; did you mean v'),
        (
            {**CSV, "source.event_id": '"ts"'},
            "source.event_id: column is timestamp; need a string, an integer, a decimal, a date or a boolean",
        ),
        (
            {**CSV, "window.gap": None, "window.gap_column": '"user_id"'},
            "window.gap_column: column is string; need an integer in ms",
        ),
        (
            {"watermark.out_of_orderness": "5"},
            "watermark.out_of_orderness: not a duration, given 5; allowed: usual delay",
        ),
        ({"watermark.out_of_orderness": '"-5m"'}, 'watermark.out_of_orderness: must not be negative, given "-5m"'),
        ({"watermark.out_of_orderness": None}, "watermark: missing; allowed: [watermark] with out_of_orderness"),
        ({"watermark.idle_timeot": '"1h"'}, 'watermark.idle_timeot: unknown key, given "1h"; did you mean idle_timeou'),
        ({"watermark.idle_timeout": '"0s"'}, 'watermark.idle_timeout: must be greater than 0, given "0s"'),
        ({"watermark.max_future_skew": '"soon"'}, 'watermark.max_future_skew: not a duration, given "soon"'),
        ({"window.type": '"sesion"'}, 'window.type: unknown type "sesion"; did you mean session?; allowed: "tumbling"'),
        ({"window.type": None}, 'window.type: missing; allowed: "tumbling", "sliding", "cumulating"'),
        ({"window.gap": None}, "window.gap: given neither; need either gap or gap_column"),
        ({"window.gap_column": '"g"'}, "window.gap: given both; need either gap or gap_column"),
        ({"window.size": '"1h"'}, 'window.size: unknown key, given "1h"; allowed: type, gap, gap_column, allowed_late'),
        ({"window.allowed_latenes": '"1h"'}, "window.allowed_latenes: unknown key, given"),
        ({**TUMBLING, "window.size": '"0s"'}, 'window.size: must be greater than 0, given "0s"'),
        ({**TUMBLING, "window.size": '"99999d"'}, 'window.size: longer than 36500d, given "99999d"'),
        ({**TUMBLING, "window.offset": '"1h"'}, "window.offset: 1h is not inside size (1h)"),
        ({**TUMBLING, "window.slide": '"1h"'}, "window.slide: unknown key"),
        ({**SLIDING, "window.slide": None}, "window.slide: missing; allowed: time between starts of windows"),
        ({**SLIDING, "window.offset": '"-5m"'}, "window.offset: -5m is not inside slide (5m)"),
        (
            {**SLIDING, "window.size": '"1d"', "window.slide": '"1ms"'},
            "window.slide: an event would be in 86,400,000 windows, each of them a result of its key; slide by more, or"
            " allow it: checks.max_windows_per_event = 86400000 (now 10,000)",
        ),
        (
            {**TUMBLING, "window.size": '"1d"', "window.trigger": '{type = "continuous_event_time", interval = "1ms"}'},
            "window.trigger.interval: a window would fire 86,400,000 times, each time a result of its key; let it fire"
            " less often, or allow it: checks.max_windows_per_event = 86400000 (now 10,000)",
        ),
        (
            {
                "window.trigger": '{type = "purging", of = {type = "continuous_processing_time", interval = "30ms"}}',
            },
            "window.trigger.of.interval: a window would fire 60,000 times",
        ),
        ({**SLIDING, "checks.max_windows_per_event": "1"}, "each of them a result of its key; slide by more, or allow"),
        ({"aggregates": "3"}, "aggregates: must be a table, given 3"),
        ({"aggregates.events": None, "aggregates.total": None}, "aggregates: missing; allowed: [aggregates] with"),
        ({"aggregates.n": "3"}, "aggregates.n: must be a string, given 3"),
        ({"aggregates.n": '"sum(value"'}, "aggregates.n: is not a SQL expression: Expecting ) at character 9"),
        ({"aggregates.n": '"value"'}, "aggregates.n: uses the column value outside an aggregate"),
        ({"aggregates.n": '"sum(distinct v)"'}, "only count(distinct …) and collect_set work on distinct"),
        ({'aggregates."a b"': '"count(*)"'}, "aggregates.a b: cannot name an output column"),
        ({"aggregates.user_id": '"count(*)"'}, 'aggregates.user_id: "user_id" is a key column already'),
        ({"aggregates.Total": '"count(*)"'}, 'aggregates.Total: differs from "total" only in case'),
        (
            {"aggregates.window_end": '"count(*)"'},
            'aggregates.window_end: "window_end" is a column that windowlib adds',
        ),
        (
            {"airflow.schedule": '"*/10 * * *"'},
            'airflow.schedule: must have five fields, given "*/10 * * *"; allowed: a cron',
        ),
        ({"airflow.retries": "1.5"}, "airflow.retries: must be a whole number, given 1.5"),
        ({"checks.max_late_share": "2"}, "checks.max_late_share: must be at most 1, given 2"),
        ({"checks.figures_suite": "1"}, "checks.figures_suite: must be a string, given 1; allowed: a JSON file"),
        ({"storage.state_partition": '"0s"'}, "storage.state_partition: must be greater than 0"),
        ({"spark.conf": "3"}, "spark.conf: must be a table, given 3"),
        ({"sorce.path": '"x"'}, 'sorce: unknown key, given {path = "x"}; did you mean source?'),
    ],
)
def test_each_mistake_is_named(tmp_path: Path, changes: dict[str, str | None], message: str) -> None:
    if "aggregates" in changes:
        changes = {**changes, "aggregates.events": None, "aggregates.total": None}
    assert any(message in line for line in mistakes(tmp_path, changes))


def test_a_number_without_a_unit_is_one_mistake_not_a_slide_of_milliseconds(tmp_path: Path) -> None:
    found = mistakes(tmp_path, {**SLIDING, "window.size": '"1d"', "window.slide": "6"})
    assert ["window.slide: not a duration, given 6" in line for line in found] == [True]


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    lines = mistakes(
        tmp_path,
        {
            "nam": '"x"',
            "source.format": '"jsn"',
            "source.dedup_horizon": '"1d"',
            "watermark.out_of_orderness": "5",
            "window.gap_column": '"g"',
            "aggregates.a": '"skewness(x)"',
            "aggregates.b": '"kurtosis(x)"',
        },
    )
    keys = [line.partition(":")[0] for line in lines]
    assert keys == [
        "source.format",
        "watermark.out_of_orderness",
        "aggregates.a",
        "aggregates.b",
        "nam",
        "source.dedup_horizon",
        "window.gap",
    ]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("name = ", r"is not TOML: Invalid value \(at end of document\)"),
        ('name = "a"\nname = "b"\n', r"is not TOML: Cannot overwrite a value \(at line 2, column 11\)"),
        (f"n = {'9' * 5000}", "is not TOML: Exceeds the limit"),
        ("", "source: missing"),
    ],
)
def test_text_that_is_not_a_definition(tmp_path: Path, contents: str, message: str) -> None:
    file = tmp_path / "clicks.toml"
    file.write_text(contents)
    with pytest.raises(InvalidDefinition, match=message):
        load_definition(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="no such file"):
        load_definition(tmp_path / "none.toml")
    with pytest.raises(InvalidSpec, match="is a folder"):
        load_definition(tmp_path)
    os.mkfifo(tmp_path / "pipe.toml")  # it would be waited for
    with pytest.raises(InvalidSpec, match="is a pipe or a device"):
        load_definition(tmp_path / "pipe.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(InvalidSpec, match="cannot be read as UTF-8"):
        load_definition(tmp_path / "latin.toml")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    with pytest.raises(InvalidSpec, match=r"loop\.toml: cannot be read \(Too many levels of symbolic links\)$"):
        load_definition(tmp_path / "loop.toml")
    (tmp_path / "large.toml").write_text("#" * 300_000)
    with pytest.raises(InvalidSpec, match=r"^\S+large\.toml: has 300,000 bytes"):
        load_definition(tmp_path / "large.toml")


def test_a_definition_may_begin_with_the_mark_of_utf_8(tmp_path: Path) -> None:
    file = write(tmp_path, {})
    plain = load_definition(file).fingerprint
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert load_definition(file).fingerprint == plain


@pytest.mark.parametrize("key", ["checks.suites", "source.path", "warehouse"])
def test_a_path_that_no_file_can_have(key: str, tmp_path: Path) -> None:
    said = "no such folder" if key == "checks.suites" else "must be a path; no file's name has more than 255 bytes"
    with pytest.raises(InvalidDefinition, match=f"{key}: {said}"):
        load_definition(write(tmp_path, {key: f'"a/{"x" * 256}"'}))


def test_the_fingerprint_follows_what_the_state_depends_on(tmp_path: Path) -> None:
    def fingerprint(changes: dict[str, str | None]) -> str:
        return load_definition(write(tmp_path, changes)).fingerprint

    same = fingerprint({})
    assert len(same) == 16
    assert fingerprint({"window.gap": '"1800s"', "aggregates.total": '"SUM( value )"'}) == same
    assert fingerprint({"airflow.schedule": None, "source.path": '"elsewhere"'}) == same
    changed = [
        {"window.gap": '"31m"'},
        {"source.key": '["user_id", "city"]'},
        {"source.timestamp": '"t"'},
        {"aggregates.total": '"sum(value) filter (where value > 0)"'},
        {"aggregates.total": '"sum(value) + 1"'},
        TUMBLING,
    ]
    assert len({same, *map(fingerprint, changed)}) == len(changed) + 1


@given(st.integers(-LONGEST_MS, LONGEST_MS))
def test_durations_keep_their_written_form(duration_ms: int) -> None:
    assert parse_duration(format_duration(duration_ms)) == duration_ms


@pytest.mark.parametrize("text", ["", " ", "-", "5", 5, None, "5 minutes", "1.5h", "30m 1h", "1h 1h", "1h -5m", "٣s"])
def test_texts_that_are_no_durations_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@examples(12, 50)
@given(
    st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=5), st.lists(st.text(max_size=3))))
)
def test_no_content_makes_it_crash(keys: dict[str, Any]) -> None:
    """Any value under any key gives a list of mistakes."""
    for section in ("", "source", "window", "watermark", "aggregates", "airflow"):
        raw = {section: keys} if section else keys
        with pytest.raises(ValidationError) as caught:
            DefinitionFile.model_validate(raw, context={"folder": Path()})
        assert [*mistakes_of(caught.value, DefinitionFile), *across_keys(raw)]
