"""Columns of a scenario's events: missing values are null; numbers in texts and misspelt names are reported."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from windowlib.definition.definition import Definition, load_definition
from windowlib.model.errors import InvalidSpec
from windowlib.replay.pipeline_scenarios import ScenarioOutcome, load_scenario, run_scenario
from windowlib.replay.scenario_events import event_tables
from windowlib.replay.trial import Trial

PAYMENTS = """
engine = "{engine}"
name = "payments"
watermark = {{ out_of_orderness = "5m" }}
window = {{ type = "session", gap = "30m" }}
[aggregates]
currencies = "count(distinct currency)"
fees = "sum(fee)"
refunds = "sum(case when refunded then share * amount end)"
last_seen = "max(seen)"
total = "sum(amount)"
[source]
format = "parquet"
path = "incoming"
key = ["account"]
timestamp = "at"
event_id = "payment"
rename = {{ "the note" = "note" }}
"""
AT = "at = 2026-03-02T09:00:00Z"


def payments(folder: Path, engine: str = "spark", more: str = "") -> Definition:
    file = folder / "payments.toml"
    file.write_text(PAYMENTS.format(engine=engine) + more)
    return load_definition(file)


def scenario(folder: Path, batch: str, more: str = "") -> Path:
    file = folder / "one.toml"
    file.write_text(f'name = "a"\n[[step]]\nfinish = true\nbatch = [{batch}]\n{more}')
    return file


def tried(file: Path, definition: Definition, request: pytest.FixtureRequest) -> ScenarioOutcome:
    spark = request.getfixturevalue("spark")
    return run_scenario(file, load_scenario(file, definition), definition, lambda: spark)


def made(file: Path, definition: Definition) -> pa.Table:
    loaded = load_scenario(file, definition)
    [table] = event_tables(file, [step.batch for step in loaded.step], definition)
    assert table is not None
    return table


@pytest.mark.spark
@pytest.mark.embedded
def test_a_column_that_no_event_has_is_null(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    definition = payments(tmp_path, request.config.getoption("--engine"))
    event = f'{{ account = "ann", payment = "p1", {AT}, amount = 1.5 }}'
    file = scenario(tmp_path, event, 'fires = [{ account = "ann", currencies = 0, total = 1.5 }]')
    tested = tried(file, definition, request)
    assert tested.passed, tested
    [row] = tested.steps[0].rows["fires"]
    assert [row[name] for name in ("fees", "refunds", "last_seen")] == [None, None, None]


def test_messages_of_a_run_are_shown_for_its_step(tmp_path: Path) -> None:
    trial = Trial(payments(tmp_path), tmp_path / "trial", lambda: pytest.fail("nothing is computed"))
    said = (
        f"{trial.incoming}/000012.parquet has no column 'a.b', but x names it; nothing of this batch has been"
        " committed. It has c. Write the file with it, or set it aside: `windowlib set-aside /pipelines/payments.toml"
        " 000012.parquet`"
    )
    assert trial.step_message(said) == "step 12 has no column 'a.b', but x names it. It has c"
    assert trial.step_message("use `try_cast`; see b.") == "use `try_cast`; see b"
    assert trial.step_message("`windowlib run a.toml` does") == "`windowlib run a.toml` does"  # rather than nothing


def test_nested_types_follow_the_schema(tmp_path: Path) -> None:
    text = (
        PAYMENTS.replace('"parquet"', '"json"').replace('rename = {{ "the note" = "note" }}', "").format(engine="spark")
    )
    schema = 'account = "string", payment = "string", at = "timestamp", amount = "double", currency = "array<int>"'
    rest = 'fee = "double", refunded = "boolean", share = "double", seen = "map<string,struct<a: date>>"'
    (tmp_path / "payments.toml").write_text(f"{text}schema = {{ {schema}, {rest} }}\n")
    table = made(scenario(tmp_path, f"{{ {AT} }}"), load_definition(tmp_path / "payments.toml"))
    assert table.schema.field("currency").type == pa.list_(pa.int32())
    assert table.schema.field("seen").type == pa.map_(pa.string(), pa.struct([("a", pa.date32())]))


@pytest.mark.parametrize("values", [('"3.50"',), ('"3.50"', "3.5"), ("3", '"12345678901.125"')])
def test_numbers_in_texts_need_a_type(values: tuple[str, ...], tmp_path: Path) -> None:
    """The advice of the message works."""
    definition = payments(tmp_path)
    file = scenario(tmp_path, ", ".join(f"{{ {AT}, amount = {value} }}" for value in values))
    with pytest.raises(InvalidSpec, match=r"column 'amount' has numbers as strings. .* source.schema = (.*)$") as error:
        made(file, definition)
    schema = str(error.value).rpartition("source.schema = ")[2]
    table = made(file, payments(tmp_path, more=f"schema = {schema}\n"))
    assert [float(str(one)) for one in table.column("amount").to_pylist()] == [float(one.strip('"')) for one in values]


def test_texts_not_used_as_numbers_stay_texts(tmp_path: Path) -> None:
    table = made(scenario(tmp_path, f'{{ {AT}, currency = "978", account = "1" }}'), payments(tmp_path))
    assert table.schema.field("currency").type == pa.string()


def test_a_misspelt_column_is_refused_unless_an_event_has_both(tmp_path: Path) -> None:
    definition = payments(tmp_path)
    for named, meant in (("acount", "account"), ("amounts", "amount"), ("notes", "note")):
        batch = f"{{ {AT} }}, {{ {AT}, {named} = 1 }}"
        wanted = f"step 1.batch: no key of the definition names the column '{named}'; did you mean {meant}?"
        if meant == "note":  # which nothing reads: it may be called anything
            load_scenario(scenario(tmp_path, batch), definition)
            continue
        with pytest.raises(InvalidSpec) as error:
            load_scenario(scenario(tmp_path, batch), definition)
        assert wanted in str(error.value)
        load_scenario(scenario(tmp_path, f"{batch}, {{ {AT}, {named} = 1, {meant} = 1 }}"), definition)
    load_scenario(scenario(tmp_path, f'{{ {AT}, place = "here", "the note" = "" }}'), definition)
