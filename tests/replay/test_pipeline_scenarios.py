"""`windowlib test`: correct scenarios pass, and every difference is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from windowlib.cli.main import app
from windowlib.definition.definition import Definition, load_definition
from windowlib.model.errors import InvalidSpec
from windowlib.replay.pipeline_scenarios import ScenarioOutcome, load_scenario, run_scenario
from windowlib.replay.scenario_events import event_tables

SESSIONS = """
name = "clicks"
aggregates = { events = "count(*)", total = "sum(value)" }
watermark = { out_of_orderness = "5m" }
window = { type = "session", gap = "30m", allowed_lateness = "1h" }
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at"
"""
UNREACHABLE = "abfss://events@nowhere.dfs.core.windows.net"
TUMBLING = SESSIONS.replace('"session", gap = "30m"', '"tumbling", size = "1h"')
STEPS = """
name = "sessions"
[[step]]
batch = [
  { user = "ann", at = 2026-03-02T09:00:00Z, value = 3 },
  { user = "ann", at = 2026-03-02T09:40:00Z, value = 4 },
  { user = "bob", at = 2026-03-02T10:20:00Z, value = 1 },
]
watermark = 2026-03-02T10:14:59.999Z
fires = [{ user = "ann", total = 3 }, { user = "ann", total = 4 }]
in_flight = [{ user = "ann" }, { user = "ann", events = 1 }, { user = "bob" }]
[[step]]
batch = [{ user = "ann", at = 2026-03-02T09:20:00Z, value = 5 }]
fires = [{ user = "ann", window_end = 2026-03-02T10:10:00, total = 12, timing = "late" }]
removes = [{ user = "ann", total = 3 }, { user = "ann", total = 4 }]
in_flight = [{ user = "ann", events = 3 }, { user = "bob" }]
[[step]]
batch = [{ user = "ann", at = 2026-03-02T07:00:00Z, value = 9 }, { at = 2026-03-02T10:20:00Z, value = 1 }]
late = [{ user = "ann", at = 2026-03-02T07:00:00Z }]
quarantined = [{ reason = "null_key", value = 1 }]
in_flight = [{ user = "ann" }, { user = "bob" }]
[[step]]
finish = true
fires = [{ user = "bob", total = 1 }]
"""
# Each takes one thing out of the scenario, or says it wrongly: (what stands there, what instead, what is said).
WRONG = (
    (
        'fires = [{ user = "ann", total = 3 }, { user = "ann", total = 4 }]',
        "fires = []",
        "step 1  fires: not expected: {",
    ),
    ("10:14:59.999Z", "10:14:59Z", "step 1  the watermark is 2026-03-02T10:14:59.999000+00:00, not"),
    ("10:10:00, total", "10:11:00, total", "step 2  fires: not there:"),
    ('removes = [{ user = "ann", total = 3 }, ', "removes = [", "step 2  removes: not expected:"),
    ('{ user = "ann", events = 3 }, ', "", "step 2  in_flight: not expected:"),
    ('late = [{ user = "ann", at = 2026-03-02T07:00:00Z }]', "", "step 3  late: not expected:"),
    ('"null_key"', '"hole"', "step 3  quarantined: not there:"),
    ('user = "bob", total = 1 }]\n', 'user = "bob", total = 2 }]\n', "step 4  fires: not there:"),
)


def definition_of(folder: Path, text: str, engine: str = "spark") -> Definition:
    file = folder / "clicks.toml"
    file.write_text(f'engine = "{engine}"\n{text}')
    return load_definition(file)


@pytest.fixture
def tried(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str, str], ScenarioOutcome]:
    engine = request.config.getoption("--engine")
    spark = request.getfixturevalue("spark")

    def run(definition: str, scenario: str) -> ScenarioOutcome:
        file = tmp_path / "scenario.toml"
        file.write_text(scenario)
        loaded = definition_of(tmp_path, definition, engine)
        return run_scenario(file, load_scenario(file, loaded), loaded, lambda: spark)

    return run


# -- what it runs --------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.embedded
def test_every_difference_is_reported(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The object store of the pipeline, which cannot be reached, is not asked."""
    in_azure = SESSIONS.replace('"incoming"', f'"{UNREACHABLE}/incoming"')
    definition_of(tmp_path, f'warehouse = "{UNREACHABLE}/warehouse"{in_azure}')
    folder = tmp_path / "clicks.scenarios"
    folder.mkdir()
    wrong = STEPS
    for text, instead, _ in WRONG:
        assert text in wrong
        wrong = wrong.replace(text, instead)
    (folder / "wrong.toml").write_text(wrong)
    (folder / "right.toml").write_text(STEPS[: STEPS.index("[[step]]", STEPS.index("in_flight"))])  # its first step
    request.getfixturevalue("spark")
    arguments = ["test", str(tmp_path / "clicks.toml"), "--engine", request.config.getoption("--engine")]
    ended = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert ended.exit_code == 5, ended.output
    assert "1 of 2 scenarios failed" in ended.output
    right, failed = ended.output.split("failed  sessions  (")
    assert right.startswith("passed  sessions  (")
    for _, _, said in WRONG:
        assert said in failed
    assert {one.name for one in tmp_path.iterdir()} == {"clicks.toml", "clicks.scenarios"}  # the rest was elsewhere


@pytest.mark.spark
@pytest.mark.embedded
def test_a_pasted_outcome_passes(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Slices of tumbling windows, times as numbers, a key with a quote and a line break."""
    definition_of(tmp_path, TUMBLING.replace('timestamp = "at"', 'timestamp = "at"\ntimestamp_unit = "s"'))
    bare = """
name = "a"
[[step]]
batch = [{ user = "o'\\"\\n", at = 2026-03-02T09:00:00Z, value = 3 }, { user = "b", at = 1772449200, value = -1 }]
"""
    (tmp_path / "one.toml").write_text(bare)
    request.getfixturevalue("spark")
    arguments = ["test", str(tmp_path / "clicks.toml"), "--engine", request.config.getoption("--engine")]
    shown = CliRunner().invoke(app, [*arguments, str(tmp_path / "one.toml"), "--show"], env={"COLUMNS": "200"})
    assert shown.exit_code == 5
    (tmp_path / "one.toml").write_text(bare + shown.output.split("  [[step]]\n")[1].split("error: ")[0])
    again = CliRunner().invoke(app, [*arguments, str(tmp_path / "one.toml"), "--json"], env={"COLUMNS": "200"})
    assert again.exit_code == 0, again.output
    [step] = json.loads(again.output)["steps"]
    assert [row["total"] for row in step["came"]["fires"]] == [3]
    assert {row["user"] for row in step["came"]["in_flight"]} == {"b", "o'\"\n"}


@pytest.mark.spark
@pytest.mark.embedded
def test_a_failed_run_is_the_outcome_of_its_step(tried: Callable[[str, str], ScenarioOutcome]) -> None:
    tested = tried(SESSIONS, 'name = "a"\n[[step]]\nbatch = [{ user = "ann", at = 2026-03-02 09:00:00, value = "x" }]')
    [step] = tested.steps
    assert step.problems[0].startswith("aggregates.total: uses value of type string")


@pytest.mark.spark
@pytest.mark.embedded
def test_the_scenarios_next_to_the_example_pipelines_hold(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("spark")
    pipeline = Path(__file__).parents[2] / "dags" / "pipelines" / "clicks.toml"
    engine = request.config.getoption("--engine")
    ended = CliRunner().invoke(app, ["test", str(pipeline), "--engine", engine])
    assert ended.exit_code == 0, ended.output


# -- what it takes -------------------------------------------------------------------------------------------------


IN_TOKYO = """
engine = "{engine}"
name = "clicks"
aggregates = {{ events = "count(*)", newest = "max(seen)" }}
watermark = {{ out_of_orderness = "5m", max_future_skew = "1m" }}
window = {{ type = "tumbling", size = "1h" }}
[source]
format = "{form}"
path = "incoming"
key = ["user"]
timestamp = "at"
timestamp_unit = "{unit}"
schema = {{ user = "string", at = "{kind}", seen = "timestamp" }}
dialect = {{ time_zone = "Asia/Tokyo", multi_line = true }}
"""
TOKYO_CASES = {
    "instants": ("timestamp", "", "2026-03-02T09:10:00", "2026-03-02T00:00:00Z"),
    "instants with their zone": ("timestamp", "", "2026-03-02T00:10:00Z", "2026-03-02T00:00:00Z"),
    "as clocks show them": ("timestamp_ntz", "", "2026-03-02T09:10:00", "2026-03-02T00:00:00Z"),
    "numbers": ("bigint", "ms", "2026-03-02T00:10:00", "2026-03-02T00:00:00Z"),
}
AT_ONCE = {"csv": ("as clocks show them", "numbers"), "json": ("instants", "instants with their zone")}
OTHER_FORM = pytest.mark.long("such times are in the other format in make test, and those of this one of two kinds")


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    ("form", "case"),
    [
        pytest.param(form, case, id=f"{form}-{case}", marks=() if case in once else OTHER_FORM)
        for form, once in AT_ONCE.items()
        for case in TOKYO_CASES
    ],
)
def test_times_of_a_text_source_are_in_its_zone(
    form: str, case: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The time of the run is that of the event, which else were nine hours in its future."""
    kind, unit, at, starts = TOKYO_CASES[case]
    engine, spark = request.config.getoption("--engine"), request.getfixturevalue("spark")
    text = IN_TOKYO.format(engine=engine, form=form, kind=kind, unit=unit).replace('timestamp_unit = ""\n', "")
    file = tmp_path / "scenario.toml"
    definition_file = tmp_path / "tokyo.toml"
    definition_file.write_text(text)
    fires = f'{{ user = "ann", window_start = {starts}, events = 1, newest = 2026-03-02T00:20:00 }}'
    event = f'{{ user = "ann", at = {at}, seen = 2026-03-02T09:20:00 }}'
    file.write_text(f'name = "a"\n[[step]]\nfinish = true\nbatch = [{event}]\nfires = [{fires}]\n')
    definition = load_definition(definition_file)
    came = run_scenario(file, load_scenario(file, definition), definition, lambda: spark)
    assert not [line for step in came.steps for line in step.problems]
    assert came.passed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "cannot be read as TOML"),
        ('name = "a"', "step: missing"),
        ('name = "a"\n[[step]]\nfire = []', "fire: unknown key, given []; did you mean fires?"),
        (
            'name = "a"\n[[step]]\nfires = [{ usr = "ann" }]',
            "step 1.fires: there is no column 'usr'; did you mean user?",
        ),
        ('name = "a"\n[[step]]\nin_flight = [{ total = 1 }]', "step 1.in_flight: there is no column 'total'"),
        ('name = "a"\n[[step]]\nnow = "today"', "now: "),
    ],
)
def test_a_mistake_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(text)
    with pytest.raises(InvalidSpec) as error:
        load_scenario(tmp_path / "one.toml", definition_of(tmp_path, SESSIONS))
    assert str(tmp_path / "one.toml") in str(error.value)
    assert said in str(error.value)


def test_missing_scenarios_are_reported(tmp_path: Path) -> None:
    definition_of(tmp_path, SESSIONS)
    ended = CliRunner().invoke(app, ["test", str(tmp_path / "clicks.toml")])
    assert (ended.exit_code, "clicks.scenarios has no scenarios: write one" in ended.output) == (2, True)


CSV = SESSIONS.replace(
    '"parquet"',
    '"csv"\nschema = { user = "string", at = "bigint", value = "decimal(10,2)", n = "long", l = "array<int>" }',
)


def batches(file: Path, definition: Definition) -> list[list[dict[str, Any]]]:
    """The events of each step of a scenario."""
    return [step.batch for step in load_scenario(file, definition).step]


def test_events_have_the_types_of_the_schema(tmp_path: Path) -> None:
    definition = definition_of(tmp_path, CSV.replace('timestamp = "at"', 'timestamp = "at"\ntimestamp_unit = "ms"'))
    file = tmp_path / "one.toml"
    file.write_text(
        'name = "a"\n[[step]]\nbatch = [{ at = 1970-01-01T00:00:01Z, value = 1.1, n = 3, l = [1] }]\n[[step]]\n'
    )
    [table, nothing] = event_tables(file, batches(file, definition), definition)
    assert nothing is None
    assert table is not None
    kinds = {"user": "string", "at": "int64", "value": "decimal128(10, 2)", "n": "int64", "l": "list<item: int64>"}
    assert {one.name: str(one.type) for one in table.schema} == kinds
    [row] = table.to_pylist()
    assert (row["user"], row["at"], str(row["value"]), row["n"], row["l"]) == (None, 1000, "1.10", 3, [1])


def test_events_have_the_names_of_the_files_or_of_the_definition(tmp_path: Path) -> None:
    text = CSV.replace("{ user =", '{ "User #" =').replace(
        "[source]", '[source]\ntimestamp_unit = "s"\nrename = { "User #" = "user" }'
    )
    definition, file = definition_of(tmp_path, text), tmp_path / "one.toml"
    for named in ("user", '"User #"'):
        file.write_text(f'name = "a"\n[[step]]\nbatch = [{{ {named} = "ann", n = 3 }}]')
        [table] = event_tables(file, batches(file, definition), definition)
        assert table is not None
        assert table.column_names == ["User #", "at", "value", "n", "l"]
        assert table.column("User #").to_pylist() == ["ann"]
    file.write_text('name = "a"\n[[step]]\nbatch = [{ vlaue = 3 }]')
    with pytest.raises(InvalidSpec, match=r"no column .vlaue. in source\.schema; did you mean value"):
        load_scenario(file, definition)


def test_values_of_no_type_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text('name = "a"\n[[step]]\nbatch = [{ value = 1 }, { value = "x" }]')
    definition: Any = definition_of(tmp_path, SESSIONS)
    with pytest.raises(InvalidSpec, match="the events' column 'value' does not hold one type"):
        event_tables(file, batches(file, definition), definition)
