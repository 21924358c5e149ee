"""Bad input ends with one clear sentence. Nothing is lost, and the next run works after the correction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, SCHEMA, START_MS, arrive, clicks, clock, events, tables
from tests.support.damage import damage_rows
from tests.support.disks import folder_of
from windowlib.batches import figures
from windowlib.batches.planning import ledger_of, plan
from windowlib.cli.exits import REJECTED, USER, exit_code
from windowlib.decisions.verdicts import abandon, approve
from windowlib.definition.definition import Definition, InvalidDefinition
from windowlib.definition.instants import iso_instant, time_of, utc
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.ledger import NothingToDecide, Rejected
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.errors import InvalidSpec, StateMismatch, WindowError
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from windowlib.publication.readers import UnknownTable, read_table
from windowlib.runs.advance import advance
from windowlib.runs.attempt import BatchReport
from windowlib.runs.operation import held
from windowlib.runs.run import RunRequest, next_due
from windowlib.runs.spark_errors import explained
from windowlib.source.listed import SourceError

PLAIN = CLICKS.replace('event_id = "id"\n', "")
TEXT = PLAIN.replace('format = "parquet"', 'format = "{kind}"').replace(
    "[watermark]", '[source.schema]\nuser = "string"\nat_ms = "bigint"\nvalue = "bigint"\n[watermark]'
)
ROW = {"id": "1", "user": "u1", "at_ms": START_MS, "value": 1}


def no_spark() -> NoReturn:
    raise AssertionError("needs no Spark")


@contextmanager
def refused(kind: type[WindowError], *says: str, code: int = USER) -> Iterator[None]:
    """Checks that the block raises `kind`, with a short message that contains these texts and exit code `code`."""
    with pytest.raises(kind) as caught:
        yield
    message = str(caught.value)
    assert not [part for part in says if part not in message], message
    assert exit_code(caught.value) == code
    assert "\tat " not in message
    assert "Exception" not in message
    assert len(message.splitlines()) == 1 or code == REJECTED


def run(definition: Definition, spark: SparkSession) -> list[BatchReport]:
    return advance(definition, lambda: spark, clock=clock)


def with_file(folder: Path, columns: Mapping[str, pa.Array], definition: str = PLAIN) -> tuple[Definition, Path]:
    """A pipeline whose one file has these columns."""
    made, path = clicks(folder, 0, definition), folder / "incoming" / "1.parquet"
    pq.write_table(pa.table(dict(columns)), path)
    return made, path


GOOD = {
    "user": pa.array(["u1"]),
    "at_ms": pa.array([START_MS]),
    "value": pa.array([1]),
}


# -- what a plan refuses, without Spark -----------------------------------------------------------------------------


@pytest.mark.fault("the source folder is missing", "the error names it; nothing is planned")
def test_a_missing_source_folder_is_named(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0)
    (tmp_path / "incoming").rmdir()
    with refused(SourceError, f"the source folder {tmp_path / 'incoming'} does not exist", "clicks.toml"):
        advance(definition, no_spark)
    (tmp_path / "incoming").mkdir()
    assert advance(definition, no_spark) == []


def test_a_file_that_is_not_parquet(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0)
    path = tmp_path / "incoming" / "1.parquet"
    path.write_bytes(b"PAR1 not really")
    with refused(SourceError, f"{path} is not a readable Parquet file", "nothing of this batch"):
        plan(definition, clock)
    assert not folder_of(definition).exists()
    arrive(tmp_path, 1, [ROW])
    assert plan(definition, clock)


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_an_expression_over_the_event_time_of_text(tmp_path: Path, kind: str) -> None:
    named = TEXT.replace("{kind}", kind).replace('total = "sum(value)"', 'newest = "max(timestamp_ms)"')
    assert "max(timestamp_ms)" in named
    definition = clicks(tmp_path, 0, named)
    row = "u1,1,1" if kind == "csv" else '{"user": "u1", "at_ms": 1, "value": 1}'
    (tmp_path / "incoming" / f"1.{kind}").write_text(f"user,at_ms,value\n{row}\n" if kind == "csv" else f"{row}\n")
    assert plan(definition, clock)


def test_a_struct_key_with_the_operator_is_refused(tmp_path: Path) -> None:
    trigger = '[window.trigger]\ntype = "count"\nn = 2\n'
    users = pa.array([{"a": 1}])
    definition, _ = with_file(
        tmp_path, {**GOOD, "user": users}, PLAIN.replace("[aggregates]", f"{trigger}[aggregates]")
    )
    with refused(SourceError, "source.key = 'user' is struct<a", "keys of a primitive type"):
        plan(definition, clock)


@pytest.mark.parametrize(
    ("given", "unit", "says"),
    [
        (pa.array(["2026-03-02"]), None, "'at_ms' is string in the files; need a timestamp"),
        (pa.array([START_MS]), None, "'at_ms' is int64 in the files; need a timestamp"),
        (pa.array([1.5]), "ms", "'at_ms' is double in the files; timestamp_unit = 'ms' needs an integer"),
        (
            pa.array([START_MS], pa.timestamp("ns")),
            "ms",
            "'at_ms' is timestamp[ns] in the files; timestamp_unit = 'ms'",
        ),
    ],
)
@pytest.mark.fault("the time column has another type", "the error names file, column and type")
def test_a_timestamp_of_the_wrong_type(tmp_path: Path, given: pa.Array, unit: str | None, says: str) -> None:
    text = PLAIN.replace('timestamp_unit = "ms"\n', f'timestamp_unit = "{unit}"\n' if unit else "")
    definition, _ = with_file(tmp_path, {**GOOD, "at_ms": given}, text)
    with refused(SourceError, says):
        plan(definition, clock)


@pytest.mark.parametrize(
    "given",
    [
        *(pa.array([[1]]), pa.array([{"a": 1}]), pa.array([1.5]), pa.array([b"1"])),
        pa.array([START_MS], pa.timestamp("ms")),
    ],
    ids=lambda given: str(given.type),
)
def test_an_event_id_of_a_type_without_text_is_refused(tmp_path: Path, given: pa.Array) -> None:
    text = PLAIN.replace("[source]", '[source]\nevent_id = "id"')
    definition, _ = with_file(tmp_path, {**GOOD, "id": given}, text)
    with refused(SourceError, "source.event_id = 'id' is ", "in the files; need a string, an integer, a decimal"):
        plan(definition, clock)


@pytest.mark.parametrize("given", [pa.array([0.5]), pa.array(["5"])], ids=lambda given: str(given.type))
def test_a_gap_that_is_not_a_whole_number(tmp_path: Path, given: pa.Array) -> None:
    text = PLAIN.replace('gap = "10m"', 'gap_column = "gap"')
    definition, _ = with_file(tmp_path, {**GOOD, "gap": given}, text)
    with refused(SourceError, "window.gap_column = 'gap' is ", "in the files; need an integer in ms"):
        plan(definition, clock)


DELTA = 'type = "delta", of = "x", threshold = 1'
SUBTRACTED = {
    "trigger": f"trigger = {{ {DELTA} }}",
    "trigger.of": f'trigger = {{ type = "purging", of = {{ {DELTA} }} }}',
    "evictor": f"evictor = {{ {DELTA} }}",
}
TENTHS = pa.array([Decimal("0.5")], pa.decimal128(9, 1))


@pytest.mark.parametrize("where", SUBTRACTED)
@pytest.mark.parametrize("given", [pa.array(["5"]), TENTHS, pa.array([0.5])], ids=lambda given: str(given.type))
def test_a_column_that_cannot_be_subtracted(tmp_path: Path, given: pa.Array, where: str) -> None:
    """A trigger remembers the value in JSON, which has no decimals; an evictor only compares."""
    text = PLAIN.replace('type = "session"\ngap = "10m"', f'type = "tumbling"\nsize = "10m"\n{SUBTRACTED[where]}')
    definition, _ = with_file(tmp_path, {**GOOD, "x": given}, text)
    if given.type == pa.float64() or (given is TENTHS and where == "evictor"):
        assert plan(definition, clock)
        return
    with refused(SourceError, f"window.{where.partition('.')[0]}: column 'x' is ", "in the files; need a number"):
        plan(definition, clock)


def test_a_map_that_an_aggregate_would_hold(tmp_path: Path) -> None:
    """Spark's own functions hold the first value by its order, and maps have none."""
    maps = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    definition, _ = with_file(tmp_path, {**GOOD, "tags": maps}, PLAIN.replace("count(*)", "first(tags)", 1))
    with refused(SourceError, "orders tags of type map<", "in FIRST(tags); maps have no order, use map_entries(tags)"):
        plan(definition, clock)
    definition, _ = with_file(tmp_path, {**GOOD, "tags": maps}, PLAIN.replace("count(*)", "count(tags)", 1))
    assert plan(definition, clock)


def test_nanoseconds_inside_a_column(tmp_path: Path) -> None:
    nested = pa.array([[1]], pa.list_(pa.timestamp("ns")))
    definition, path = with_file(tmp_path, {**GOOD, "seen": nested}, PLAIN.replace("count(*)", "count(seen)", 1))
    with refused(SourceError, f"{path}: 'seen' is list<element: timestamp[ns]>", 'coerce_timestamps="us"'):
        plan(definition, clock)
    unnamed, _ = with_file(tmp_path / "unnamed", {**GOOD, "seen": nested})
    assert plan(unnamed, clock)
    pq.write_table(pq.read_table(path), path, coerce_timestamps="us", allow_truncated_timestamps=True)
    assert plan(definition, clock)


def test_decimals_beyond_sparks_precision(tmp_path: Path) -> None:
    long = pa.array([Decimal(1)], pa.decimal256(60, 0))
    unnamed, _ = with_file(tmp_path / "unnamed", {**GOOD, "price": long})
    assert plan(unnamed, clock)
    definition, path = with_file(tmp_path, {**GOOD, "price": long}, PLAIN.replace("count(*)", "max(price)", 1))
    with refused(SourceError, f"{path}: 'price' is decimal256(60, 0), but Spark reads decimals of at most 38 digits"):
        plan(definition, clock)


def test_nanoseconds_of_a_key(tmp_path: Path) -> None:
    given = {"user": pa.array([1], pa.timestamp("ns")), **{name: of for name, of in GOOD.items() if name != "user"}}
    definition, _ = with_file(tmp_path, given)
    with refused(StateMismatch, "has 1 ns, but is read in microseconds; ", "Write the file with timestamp[us],"):
        plan(definition, clock)


@pytest.mark.fault("a column is missing", "the error names it and the existing ones")
def test_a_missing_column_is_named(tmp_path: Path) -> None:
    definition, path = with_file(tmp_path, GOOD, PLAIN.replace("sum(value)", "sum(valeu)"))
    said = f"{path} has no column 'valeu', but aggregates.total in {definition.file} names it; nothing"
    with refused(StateMismatch, said, "It has at_ms, user, value; did you mean value? Correct the definition"):
        plan(definition, clock)


def test_a_text_time_in_parquet(tmp_path: Path) -> None:
    definition, _path = with_file(tmp_path, {**GOOD, "at_ms": pa.array(["2026-03-02T00:00:00Z"])}, without_unit(PLAIN))
    said = f"source.timestamp in {definition.file}: 'at_ms' is string in the files; need a timestamp, or Unix"
    with refused(SourceError, said, "Only JSON and CSV files may hold times as strings"):
        plan(definition, clock)
    declaring = without_unit(PLAIN).replace("[watermark]", '[source.schema]\nat_ms = "timestamp"\n[watermark]')
    with refused(StateMismatch, "is string, but source.schema declares timestamp"):
        plan(clicks(tmp_path, 0, declaring), clock)


def without_unit(text: str) -> str:
    return text.replace('timestamp_unit = "ms"\n', "")


def test_columns_of_parquet_are_renamed_next_to_a_schema_of_others(tmp_path: Path) -> None:
    """The schema names some columns only. A key that no table can have gets a name that a table can have."""
    text = PLAIN.replace("[watermark]", '[source.schema]\nvalue = "bigint"\n[watermark]')
    with pytest.raises(InvalidDefinition, match=r"source.key.*: source.rename = \{ \"the user\" = \"the_user\" \} and"):
        clicks(tmp_path, 0, text.replace('"user"', '"the user"'))
    renamed = text.replace("[watermark]", '[source.rename]\n"the user" = "user"\n[watermark]')
    given = {"the user" if name == "user" else name: column for name, column in GOOD.items()}
    definition, _ = with_file(tmp_path, given, renamed)
    assert plan(definition, clock)


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, PLAIN)
    (tmp_path / "incoming" / "README.md").write_text("about these files")
    with refused(
        SourceError, "README.md is not a readable Parquet file", 'source.include = ["*.parquet"] skips all files'
    ):
        plan(definition, clock)


def test_a_link_to_itself_and_a_user_who_is_not_there(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, PLAIN)
    (tmp_path / "incoming" / "2.parquet").symlink_to("2.parquet")
    with refused(SourceError, "2.parquet is a broken link: 2.parquet", 'source.exclude = ["2.parquet"]'):
        plan(definition, clock)
    with refused(SourceError, "/~no-such-user/incoming does not exist", "source.path"):
        plan(clicks(tmp_path, 0, PLAIN.replace('"incoming"', '"~no-such-user/incoming"')), clock)


def test_two_files_that_disagree(tmp_path: Path) -> None:
    definition, path = with_file(tmp_path, GOOD, PLAIN.replace("max_files_per_run = 1\n", ""))
    pq.write_table(pa.table({**GOOD, "value": pa.array(["1"])}), path.with_name("2.parquet"))
    with refused(StateMismatch, "column 'value' of", "is string, but was recorded as int64"):
        plan(definition, clock)


@pytest.mark.fault(
    "a file changes or disappears after it was planned", "the batch is planned again, or abandoned if no file is left"
)
def test_a_file_that_changes_after_its_plan_is_planned_again(tmp_path: Path) -> None:
    """The run plans the batch again under the same id. A batch without files is abandoned."""
    definition, notes = clicks(tmp_path, 1), list[str]()
    stale = plan(definition, clock)
    path = arrive(tmp_path, 1, [ROW])
    asked = RunRequest.of(definition, clock, note=notes.append)
    with held(asked.ledger, asked.note) as pipeline:
        due = next_due(asked, pipeline.claim)
        assert (stale, due) != (None, None)
        assert (due.plan.batch_id, due.plan.files[0].size_bytes) == (1, path.stat().st_size)
        assert due.plan.files != stale.files
    assert notes == [
        f"clicks: batch 1 cannot be read as it was planned ({path} has changed since its batch was planned):"
        " it is planned again"
    ]
    path.unlink()
    assert advance(definition, no_spark, clock=clock, on_note=notes.append) == []
    assert notes[1].endswith(
        f"({path} has gone since its batch was planned): it is abandoned, as nothing is left to do"
    )
    assert ledger_of(definition).state().plan is None


def test_an_edited_definition_keeps_its_plan_until_a_run_replaces_it(tmp_path: Path) -> None:
    frozen = plan(clicks(tmp_path, 1), clock)
    other = clicks(tmp_path, 0, CLICKS.replace("10m", "20m"))
    assert plan(other, clock) == frozen
    abandon(other, "ann", "another gap", clock)
    again = plan(other, clock)
    assert (again and again.batch_id) == 2


def test_nothing_to_decide(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1)
    with refused(NothingToDecide, "no batch of this pipeline is planned"):
        abandon(definition, "ann", "why", clock)
    plan(definition, clock)
    with refused(NothingToDecide, "no batch of this pipeline waits for approval"):
        approve(definition, "ann", "why", clock)
    with refused(UnknownTable, "no batch is committed in"):
        read_table(definition, "results")


def test_a_delta_source_without_a_table(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, PLAIN.replace('"parquet"', '"delta"').replace("incoming", "events"))
    with refused(SourceError, f"{tmp_path / 'events'} is not a Delta table"):
        plan(definition, clock)


@pytest.mark.parametrize("header", ["at_ms,user,value", "user,at,value", "user,at_ms"])
def test_a_csv_file_with_other_columns(tmp_path: Path, header: str) -> None:
    definition = clicks(tmp_path, 0, TEXT.replace("{kind}", "csv"))
    path = tmp_path / "incoming" / "1.csv"
    path.write_text(f"{header}\nu1,1,1\n")
    with refused(
        StateMismatch, f"{path} begins with the columns {header.replace(',', ', ')}; need", "user, at_ms, value"
    ):
        plan(definition, clock)
    path.write_text("user;at_ms;value\nu1;1;1\n")
    with refused(StateMismatch, "separated by ';': set source.dialect = { delimiter = \";\" }"):
        plan(definition, clock)
    path.write_text('\ufeffUser,"at_ms",value\nu1,1,1\n')
    assert plan(definition, clock)


# -- what shows only when Spark reads -------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize(
    ("expression", "value", "says"),
    [
        ("sum(value)", 2**62, ["a number grows beyond its type", "total = 'sum(value)'", "decimal(38, 0)"]),
        ("sum(cast(user as int))", 1, ["The value 'u1'", 'cannot be cast to "INT"', "try_cast"]),
        ("sum(value) / (count(*) - count(*))", 1, ["Division by zero", "try_divide"]),
        ("sum(value.x)", 1, ['Can\'t extract a value from "value"', "total = 'sum(value.x)'"]),
    ],
)
def test_an_expression_that_does_not_fit(
    spark: SparkSession, tmp_path: Path, expression: str, value: int, says: list[str]
) -> None:
    definition = clicks(tmp_path, 0, PLAIN.replace("sum(value)", expression))
    minutes = (0, 1, 60)
    arrive(tmp_path, 1, [{**ROW, "at_ms": START_MS + minute * MINUTE_MS, "value": value} for minute in minutes])
    with refused(InvalidSpec, str(definition.file), *says, "windowlib abandon"):
        run(definition, spark)
    assert ledger_of(definition).state().commit is None
    assert [log.parent.name for log in folder_of(definition).glob("*/_delta_log")] == ["ledger"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_batch_that_cannot_be_computed_is_dropped_and_planned_again(spark: SparkSession, folder: Path) -> None:
    definition = clicks(folder, 0)
    before = tables(definition)
    tomorrow_ms = START_MS + 24 * 60 * MINUTE_MS
    path = arrive(folder, 4, [{**ROW, "id": n, "at_ms": tomorrow_ms, "value": 2**62} for n in "1234"])
    with refused(InvalidSpec, "a number grows beyond its type"):
        run(definition, spark)
    assert tables(definition) == before
    path.unlink()
    arrive(folder, 5, events(4))
    abandon(definition, "ann", "too large", clock)
    assert [report.batch_id for report in run(definition, spark)] == [5]
    assert read_table(definition, "source_files").num_rows == 4


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.fault(
    "a Parquet file is damaged behind an intact footer",
    "the run names it and how to continue without it; nothing is committed",
)
@pytest.mark.parametrize("text", [CLICKS, PLAIN], ids=["with ids", "by footers"])
def test_a_file_with_unreadable_rows_is_named(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """The engine finds the damage, or the search for the newest event does."""
    definition = clicks(tmp_path, 1, text)
    run(definition, spark)
    before, broken = tables(definition), arrive(tmp_path, 2, events(2))
    content = damage_rows(broken)
    with refused(
        SourceError, "cannot be read", str(broken), "set it aside: `", "windowlib set-aside", "plans the batch"
    ):
        run(definition, spark)
    assert tables(definition) == before
    broken.write_bytes(content)
    assert [report.batch_id for report in run(definition, spark)] == [2]
    before = read_table(definition, "results").to_pylist()
    damage_rows(broken)
    day_ms = 24 * 60 * MINUTE_MS
    with refused(SourceError, "cannot be read", str(broken), "Nothing was changed. Restore the file as it was"):
        advance(definition, lambda: spark, clock=clock, rerun=Rerun(START_MS, START_MS + day_ms, "a test", "ann"))
    with (
        refused(SourceError, "cannot be read", str(broken), "Nothing was changed"),
        explained(definition.file, definition.expressions, definition.spark.master, of_a_batch=False),
    ):
        verify(definition, VerifyRequest(), spark, clock)
    assert read_table(definition, "results").to_pylist() == before
    broken.write_bytes(content)
    assert run(definition, spark) == []  # the rerun was given up


@pytest.mark.spark
@pytest.mark.embedded
def test_rows_of_another_type_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    """The plan checks values that must fit the recorded type."""
    definition = clicks(tmp_path, 0)
    arrive(tmp_path, 1, events(1), SCHEMA.set(SCHEMA.get_field_index("value"), pa.field("value", pa.int32())))
    run(definition, spark)
    broken = arrive(tmp_path, 2, events(2))
    damage_rows(broken)
    with refused(SourceError, f"{broken} is not a readable Parquet file (", "set it aside"):
        run(definition, spark)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.fault("a file changes while Spark reads it", "the batch is not published")
def test_a_file_that_changes_while_it_is_read_stops_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1)
    run(definition, spark)
    before = tables(definition)
    path = tmp_path / "incoming" / "1.parquet"

    arrive(tmp_path, 1, events(1)[:-5])
    [known] = read_table(definition, "source_files").to_pylist()
    first, end = iso_instant(known["min_timestamp_ms"]), iso_instant(known["max_timestamp_ms"] + 1)
    command = f"rerun {definition.file} --from {first} --to {end}"
    with refused(SourceError, f"{path} has changed since it was read", f"from {first} to {end}", command):
        plan(definition, clock)
    arrive(tmp_path, 1, events(1))

    text = pa.schema([SCHEMA.field(name) for name in ("id", "user", "at_ms")] + [("value", pa.string())])
    second = arrive(tmp_path, 2, [{**ROW, "value": "one"}], text)
    with refused(StateMismatch, f"column 'value' of {second} is string, but was recorded as int64: the types are inc"):
        plan(definition, clock)

    with refused(
        StateMismatch, "was written by another definition: window.", ' was "10m", is "20m"', "windowlib migrate"
    ):
        plan(clicks(tmp_path, 0, CLICKS.replace("10m", "20m")), clock)
    assert tables(clicks(tmp_path, 0)) == before

    arrive(tmp_path, 2, [])  # a file of no rows is a file
    [report] = run(definition, spark)
    assert (report.batch_id, report.figures["rows_read"]) == (2, 0)
    assert {row["path"]: row["rows"] for row in read_table(definition, "source_files").to_pylist()} == {
        "1.parquet": 82,
        "2.parquet": 0,
    }

    arrive(tmp_path, 3, [{**ROW, "user": None}, {**ROW, "at_ms": None}])  # a file of no use
    watermark_ms = report.watermark_out_ms
    [report] = run(definition, spark)
    assert (report.figures["rows_read"], report.figures["rows_admitted"]) == (2, 0)
    assert report.watermark_out_ms == watermark_ms
    reasons = [row["reason"] for row in read_table(definition, "quarantine").to_pylist() if row["batch_id"] == 3]
    assert sorted(reasons) == ["null_key", "null_timestamp"]
    assert tables(definition, ["results"]) == {"results": before["results"]}


LINES = {
    "json": [
        '{"user": "u1", "at_ms": 1772409600000, "value": 1}',
        '{"user": "u1", "at_ms": 17724',
        '{"user": "u1", "at_ms": "noon", "value": 2}',
        '{"user": null, "at_ms": 1772409600000, "value": 3}',
    ],
    "csv": ["user,at_ms,value", "u1,1772409600000,1", "u1,17724,2,3,4", "u1,noon,2", ",1772409600000,3"],
}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["json", pytest.param("csv", marks=pytest.mark.long("test_text refuses such lines of CSV, in make test"))]
)
@pytest.mark.fault("lines of JSON or CSV are malformed", "they are in `quarantine`, unchanged")
def test_malformed_lines_are_quarantined_unchanged(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    definition = clicks(tmp_path, 0, TEXT.replace("{kind}", kind))
    (tmp_path / "incoming" / f"1.{kind}").write_text("\n".join(LINES[kind]) + "\n")
    [report] = run(definition, spark)
    assert (report.figures["rows_read"], report.figures["rows_admitted"]) == (4, 1)
    kept = {row["raw"]: row["reason"] for row in read_table(definition, "quarantine").to_pylist()}
    [without_key] = [raw for raw, reason in kept.items() if reason == "null_key"]
    assert json.loads(without_key) == {"at_ms": START_MS, "value": 3}
    assert {raw for raw, reason in kept.items() if reason == "malformed"} == set(LINES[kind][-3:-1])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.fault("event times at the ends of the calendar", "exact, or in `quarantine`")
def test_times_at_the_ends_of_the_calendar(spark: SparkSession, tmp_path: Path) -> None:
    sliding = 'type = "sliding"\nsize = "30d"\nslide = "20d"\noffset = "-7d"'
    definition = clicks(tmp_path, 0, PLAIN.replace('type = "session"\ngap = "10m"', sliding))
    first_ms, last_ms = MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS
    times = (-(2**63), first_ms - 1, first_ms, -1, 0, last_ms, last_ms + 1, 2**63 - 1)
    arrive(tmp_path, 1, [{**ROW, "at_ms": at_ms} for at_ms in times])
    advance(definition, lambda: spark, clock=lambda: MAX_TIMESTAMP_MS, finish=True)
    last_events = {row["last_event_time"] for row in read_table(definition, "results").to_pylist()}
    assert {utc(first_ms), utc(last_ms)} < last_events
    refused_times = [json.loads(row["raw"])["at_ms"] for row in read_table(definition, "quarantine").to_pylist()]
    assert sorted(refused_times) == [-(2**63), first_ms - 1, last_ms + 1, 2**63 - 1]


@pytest.mark.spark
@pytest.mark.embedded
def test_lateness_of_an_event_before_1970_after_the_end(spark: SparkSession, tmp_path: Path) -> None:
    """The watermark is the greatest 64-bit number, from which no negative number can be subtracted."""
    definition = clicks(tmp_path, 0, PLAIN.replace('type = "session"\ngap = "10m"', 'type = "tumbling"\nsize = "10s"'))
    arrive(tmp_path, 1, [ROW])
    advance(definition, lambda: spark, clock=clock, finish=True)
    arrive(tmp_path, 2, [{**ROW, "at_ms": -50_000}])
    [report] = advance(definition, lambda: spark, clock=clock)
    [row] = read_table(definition, "late_events").to_pylist()
    assert row["late_by_ms"] == report.figures["late_by_max_ms"] == MAX_TIMESTAMP_MS + 40_001
    assert row["watermark"] == utc(MAX_TIMESTAMP_MS)


BEGINS_LATER = pytest.mark.long("no session begins before its event; windows that may are in make test, by both")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize(
    ("window", "whole"),
    [
        pytest.param('type = "tumbling"\nsize = "36500d"', True, id="tumbling, by footers"),
        pytest.param('type = "tumbling"\nsize = "36500d"', False, id="tumbling, by rows"),
        pytest.param('type = "session"\ngap = "36500d"', True, id="session, by footers", marks=BEGINS_LATER),
        pytest.param('type = "session"\ngap = "36500d"', False, id="session, by rows", marks=BEGINS_LATER),
    ],
)
def test_windows_of_a_century_near_the_first_year(
    window: str, whole: bool, spark: SparkSession, tmp_path: Path
) -> None:
    """A window that would begin before the year 1 is unreadable, so its event is malformed."""
    text = PLAIN.replace('type = "session"\ngap = "10m"', window)
    definition = clicks(tmp_path, 0, text)
    times = (MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS + 36_500 * 86_400_000, 0)
    arrive(tmp_path, 1, [{**ROW, "at_ms": at_ms, "user": "u1" if whole or at_ms else None} for at_ms in times])
    advance(definition, lambda: spark, clock=clock, finish=True)
    shown = read_table(definition, "results").to_pylist()
    refused_times = [json.loads(row["raw"])["at_ms"] for row in read_table(definition, "quarantine").to_pylist()]
    is_shown = "session" in window
    assert sorted(refused_times) == [*([] if is_shown else times[:1]), *([] if whole else times[2:])]
    assert sum(row["clicks"] for row in shown) == len(times) - len(refused_times)
    assert all(row["window_start"] <= row["last_event_time"] < row["window_end"] for row in shown)
    from_ms = time_of(datetime(1, 1, 1)) - 1  # as in 0001-01-01T00:00+14:00
    [report] = advance(definition, lambda: spark, clock=clock, rerun=Rerun(from_ms, times[1], "a test", "ann"))
    assert report.figures["windows_added"] == report.figures["windows_removed"] == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("test_delta_source and test_removals append, compact and delete in make test")
def test_a_delta_source_is_read_by_ranges_of_versions(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, PLAIN.replace('"parquet"', '"delta"').replace("max_files_per_run = 1\n", ""))
    source = str(tmp_path / "incoming")

    def append(number: int) -> None:
        write_deltalake(source, pa.Table.from_pylist(events(number), schema=SCHEMA), mode="append")

    append(1)
    append(2)
    [report] = run(definition, spark)
    assert report.figures["rows_read"] == len(events(1)) + len(events(2))
    append(3)
    [report] = run(definition, spark)
    assert report.figures["rows_read"] == len(events(3))
    DeltaTable(source).optimize.compact()  # the same rows in other files
    assert advance(definition, no_spark, clock=clock) == []
    DeltaTable(source).delete("value = 7")
    with refused(SourceError, "removes rows", "windowlib rerun"):
        plan(definition, clock)
    assert read_table(definition, "source_files").num_rows == 3


# -- what the checks refuse -----------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.fault("a critical check fails", "nothing is published until an operator decides")
def test_a_refused_batch_waits_until_it_is_approved_or_abandoned(spark: SparkSession, tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1)
    run(definition, spark)
    before = tables(definition)
    arrive(tmp_path, 2, events(2))
    with pytest.MonkeyPatch.context() as patch:
        batch_figures = figures.batch_figures
        patch.setattr(figures, "batch_figures", lambda *given: {**batch_figures(*given), "windows_touching": 1})
        with refused(Rejected, "batch 2 was refused by its checks", "Expected 0, observed 1", code=REJECTED):
            run(definition, spark)
        assert tables(definition) == before
        with refused(Rejected, "windowlib approve", code=REJECTED):
            advance(definition, no_spark, clock=clock)  # asked again, it answers without work

        assert abandon(definition, "ann", "look first", clock) == 2
        assert not list((folder_of(definition) / "results").rglob("2-*.parquet"))
        assert tables(definition) == before
        with refused(Rejected, "batch 3 was refused", code=REJECTED):
            run(definition, spark)
        assert approve(definition, "ann", "they may touch", clock) == 3
        [report] = run(definition, spark)
    assert report.batch_id == 3
    assert [check.success for check in report.checks if check.severity == "critical"].count(False) == 1
    decisions = [row for row in read_table(definition, "ledger").to_pylist() if row["who"]]
    decided = [(row["kind"], row["batch_id"], row["who"]) for row in sorted(decisions, key=lambda row: row["sequence"])]
    assert decided == [("abandon", 2, "ann"), ("approve", 3, "ann")]
    assert read_table(definition, "source_files").num_rows == 2


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.fault(
    "a text in a Parquet file is not UTF-8",
    "the run names the file before any table has rows of it; once repaired, it is read",
)
@pytest.mark.parametrize("column", ["user", "id"])
def test_a_file_with_text_that_is_not_utf8_is_named(spark: SparkSession, tmp_path: Path, column: str) -> None:
    """In a table such texts would stop every later run and every reader."""
    definition = clicks(tmp_path, 1)
    run(definition, spark)
    before = tables(definition)
    rows = pa.Table.from_pylist(events(2), schema=SCHEMA)
    latin = pa.array([None if one is None else f"{one}é".encode("latin-1") for one in rows[column].to_pylist()])
    texts = pa.Array.from_buffers(pa.string(), len(latin), latin.buffers())
    path = tmp_path / "incoming" / "2.parquet"
    pq.write_table(rows.set_column(rows.schema.get_field_index(column), column, texts), path)
    with refused(
        SourceError, f"{path} cannot be read (column '{column}' has a string that is not UTF-8)", "set it aside"
    ):
        run(definition, spark)
    assert tables(definition) == before
    pq.write_table(rows, path)
    assert [report.batch_id for report in run(definition, spark)] == [2]
