"""Command line: its output for people and for programs, and its exit codes. No test here starts a JVM."""

from __future__ import annotations

import csv
import json
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import windowlib.batches.planning
import windowlib.decisions.verdicts
import windowlib.publication.readers
import windowlib.runs.start
from windowlib.cli.exits import UNEXPECTED, USER
from windowlib.cli.main import app
from windowlib.engines.connect import EngineLost
from windowlib.ledger.ledger import Rejected, Superseded, wall_clock_ms
from windowlib.ledger.rows import Plan, SourceFile
from windowlib.model.errors import StateMismatch, WatermarkRegression
from windowlib.quality.check import CheckResult
from windowlib.runs.attempt import BatchReport
from windowlib.runs.run import RunRequest
from windowlib.runs.together import RunOutcome
from windowlib.storage.disk import Disk

COMMANDS = ("run", "plan", "read", "status", "report", "approve", "abandon", "demo", "replay")
DEFINITION = """
name = "clicks"
[source]
format = "parquet"
path = "incoming"
key = ["user_id"]
timestamp = "ts"
[watermark]
out_of_orderness = "5m"
[window]
type = "session"
gap = "30m"
[aggregates]
events = "count(*)"
"""
WARNING = CheckResult("events", "late_share", "warning", "Few events are late.", False, "0.5", "at most 0.1")
FIGURES = {
    "batch_id": 7,
    "rows_read": 1200,
    "rows_admitted": 1100,
    "rows_late": 3,
    "rows_quarantined": 100,
    "quarantined_duplicate": 90,
    "quarantined_null_key": 10,
    "quarantined_future": 0,
    "windows_fired_on_time": 40,
    "windows_fired_late": 2,
    "windows_open": 500,
}
REPORT = BatchReport(7, FIGURES, 1_772_420_098_087, 1.26, [WARNING])
ROWS = pa.table(
    {
        "user_id": ["ä", None],
        "window_start": pa.array([datetime(2026, 3, 2, 1, 2, 3, 4000, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
        "total": pa.array([Decimal("1.50"), None]),
        "replaced": [[{"start": 1}], []],
    }
)


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    file = tmp_path / "clicks.toml"
    file.write_text(DEFINITION)
    (tmp_path / "incoming").mkdir()
    return file


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    return fail


def test_help_names_every_command_and_exit_code() -> None:
    shown = call("--help")
    assert shown.exit_code == 0
    assert all(command in shown.stdout for command in COMMANDS)
    assert "Exit codes: 0 done, 2 your mistake, 3 refused by its checks, 4 another run" in shown.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_an_example(command: str) -> None:
    assert f"windowlib {command} " in call(command, "--help").stdout.replace("windowlib demo\n", "windowlib demo \n")


def test_version() -> None:
    shown = call("--version")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("windowlib ")


def test_wrong_usage_is_the_users_mistake(pipeline: Path) -> None:
    assert call("nonsense").exit_code == 2
    assert call("run").exit_code == 2
    assert call("run", pipeline, "--max-batches", "0").exit_code == 2
    assert call("approve", pipeline).exit_code == 2


@pytest.mark.parametrize("command", ["run", "plan", "status", "report"])
def test_a_broken_definition_names_all_mistakes(pipeline: Path, command: str) -> None:
    pipeline.write_text(DEFINITION.replace("gap =", "gpa =").replace("count(*)", "mean(x)"))
    shown = call(command, pipeline)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "window.gpa: unknown key" in shown.stderr
    assert "aggregates.events: uses the unknown function mean()" in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Superseded("another run is in progress"), 4),
        (Rejected("batch 3 was refused"), 3),
        (StateMismatch("written by another definition"), 2),
        (WatermarkRegression("time would fall"), 1),
        (EngineLost("the engine ended in the middle of a batch"), 1),
        (RuntimeError("disk full\nand more"), 1),
    ],
)
def test_each_error_of_a_run_has_its_exit_code(
    pipeline: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    monkeypatch.setattr(windowlib.runs.start, "run", raising(error))
    shown = call("run", pipeline)
    assert shown.exit_code == code
    assert str(error).splitlines()[0] in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_an_interrupted_run_says_what_the_next_run_does(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windowlib.runs.start, "run", raising(KeyboardInterrupt()))
    shown = call("run", pipeline)
    assert shown.exit_code == 130
    (said,) = shown.stderr.splitlines()
    assert said.startswith("interrupted: ")
    assert "the next run finishes what was begun" in said


def test_an_unexpected_error_says_where_its_traceback_is(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windowlib.batches.planning, "plan", raising(RuntimeError("disk full")))
    Disk(pipeline.parent / "warehouse" / "clicks").put("ledger/_delta_log/_last_checkpoint", b"")
    shown = call("plan", pipeline)
    (log,) = (pipeline.parent / "warehouse" / "clicks" / "logs").iterdir()
    assert shown.stderr == f"error: RuntimeError: disk full (full traceback: {log})\n"
    assert "Traceback (most recent call last)" in log.read_text()


def one_batch(asked: RunRequest, *, on_batch: Any, max_batches: int | None) -> list[BatchReport]:
    assert (max_batches, asked.finish) == (None, False)
    on_batch(REPORT)
    return [REPORT]


def test_run_prints_a_line_for_each_batch(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windowlib.runs.start, "run", one_batch)
    shown = call("run", pipeline)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "batch 7  fired 42 (late 2)  late 3  watermark 2026-03-02 02:54:58.087 UTC"
        "  read 1,200  admitted 1,100  quarantined 100 (duplicate 90, null_key 10)  in flight 500  1.3 s",
        "  failed check (warning): Few events are late. Observed 0.5.",
    ]


def test_run_prints_json(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windowlib.runs.start, "run", one_batch)
    (line,) = call("run", pipeline, "--json").stdout.splitlines()
    record = json.loads(line)
    assert {name: record[name] for name in FIGURES} == FIGURES
    assert record["watermark"] == "2026-03-02T02:54:58.087Z"
    assert record["seconds"] == 1.26
    assert [check["expectation"] for check in record["failed_checks"]] == ["late_share"]


def test_several_pipelines_are_named_and_the_worst_exit_code_wins(
    pipeline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("clicks", "hours", "days")
    for name in names[1:]:
        (pipeline.parent / f"{name}.toml").write_text(DEFINITION.replace('"clicks"', f'"{name}"'))
    errors = [None, Rejected("batch 3 was refused"), Superseded("another run is in progress")]

    def three(runs: list[RunRequest], spark: object, *, on_batch: Any, max_batches: int | None, on_lost: object) -> Any:
        assert max_batches is None
        assert {(run.finish, run.ledger.clock) for run in runs} == {(False, wall_clock_ms)}
        on_batch(runs[0].definition, REPORT)
        runs[0].note("clicks and hours differ")
        reports: list[list[BatchReport]] = [[REPORT], [], []]
        return [RunOutcome(run.definition, *one) for run, *one in zip(runs, reports, errors, strict=True)]

    monkeypatch.setattr(windowlib.runs.start, "advance_together", three)
    files = [pipeline.parent / f"{name}.toml" for name in names]
    shown = call("run", *files)
    assert shown.exit_code == 3
    assert shown.stdout.splitlines()[0].startswith("clicks  batch 7  fired 42 (late 2)  late 3")
    assert shown.stderr.splitlines() == [
        "note: clicks and hours differ",
        "error: hours: batch 3 was refused",
        "error: days: another run is in progress",
    ]
    records = [json.loads(line) for line in call("run", *files, "--json").stdout.splitlines()]
    assert (records[0]["pipeline"], records[0]["batch_id"]) == ("clicks", 7)
    assert records[1:] == [
        {"pipeline": "clicks", "batches": 1, "exit_code": 0},
        {"pipeline": "hours", "batches": 0, "exit_code": 3},
        {"pipeline": "days", "batches": 0, "exit_code": 4},
    ]


def test_several_pipelines_without_new_input(pipeline: Path) -> None:
    other = pipeline.parent / "hours.toml"
    other.write_text(DEFINITION.replace('"clicks"', '"hours"'))
    nothing = "nothing new: there is nothing left to read"
    shown = call("run", pipeline, other)
    assert (shown.exit_code, shown.stdout.splitlines()) == (0, [f"clicks  {nothing}", f"hours  {nothing}"])
    twice = call("run", pipeline, pipeline)
    assert (twice.exit_code, twice.stdout) == (2, "")
    assert "are the same pipeline, clicks; name it once" in twice.stderr


@pytest.mark.parametrize(("count", "wait"), [(1, "1 file is {} and waits"), (2, "2 files are {} and wait")])
def test_files_that_are_too_young_wait(pipeline: Path, count: int, wait: str) -> None:
    pipeline.write_text(DEFINITION.replace("[source]", '[source]\nmin_file_age = "1h"'))
    for number in range(count):
        (pipeline.parent / "incoming" / f"{number}.parquet").write_bytes(b"")
    said = wait.format("younger than source.min_file_age (1h)")
    assert call("run", pipeline).stdout == f"nothing new: {said}\n"
    other = pipeline.parent / "hours.toml"
    other.write_text(pipeline.read_text().replace('"clicks"', '"hours"'))
    assert call("run", pipeline, other).stdout.splitlines() == [
        f"{n}  nothing new: {said}" for n in ("clicks", "hours")
    ]
    planned = call("plan", pipeline).stdout
    assert planned.startswith(f"nothing to do: {said}, and no window that the watermark has passed\n")
    assert json.loads(call("plan", pipeline, "--json").stdout)["files_waiting"] == count


def test_control_characters_of_values_are_printed_as_text(pipeline: Path) -> None:
    name = "\x1b[31mred\x9b2J.parquet"
    (pipeline.parent / "incoming" / name).write_bytes(b"")
    decide = ("set-aside", pipeline, name, "--who", "\x1b]0;ann", "--reason", "[bold]no")
    for command in (decide, decide, ("status", pipeline), ("read", pipeline, "set_aside")):
        shown = call(*command)
        assert "\\x1b[31mred\\x9b2J.parquet" in shown.output
        assert not {*"\x1b\x9b\r"} & {*shown.output}
    assert "([bold]no)" in call("status", pipeline).stdout
    [aside] = json.loads(call("status", pipeline, "--json").stdout)["set_aside"]
    assert (aside["path"], aside["reason"]) == (name, "[bold]no")


def test_nothing_new(pipeline: Path) -> None:
    assert call("run", pipeline).stdout == "nothing new: there is nothing left to read\n"
    assert call("run", pipeline, "--json").stdout == ""
    assert call("plan", pipeline).stdout.startswith("nothing to do")
    assert json.loads(call("plan", pipeline, "--json").stdout) == {
        "batch_id": None,
        "files": 0,
        "max_future_skew": "1d",
    }


def test_a_first_run_says_what_patterns_leave_out(pipeline: Path) -> None:
    """Patterns that match no file leave nothing to read."""
    for number in (1, 2):
        (pipeline.parent / "incoming" / f"{number}.parquet").write_bytes(b"")
    pipeline.write_text(DEFINITION.replace("[watermark]", 'include = ["*.csv"]\n[watermark]'))
    left_out = "2 files left out by source.include and source.exclude: 1.parquet, 2.parquet"
    assert call("run", pipeline).stdout == f"nothing new: there is nothing left to read; {left_out}\n"
    assert f"  {left_out}" in call("plan", pipeline).stdout.splitlines()


def test_plan(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = Plan(3, 1_500, 0, 4, (), "f", "{}")
    monkeypatch.setattr(windowlib.batches.planning, "plan", lambda definition: frozen)
    assert call("plan", pipeline).stdout.splitlines() == [
        "batch 3: no new file, but time advances, watermark 1970-01-01 00:00:00 UTC",
        "  events more than 1d ahead of the clock go to quarantine (watermark.max_future_skew)",
    ]
    assert json.loads(call("plan", pipeline, "--json").stdout) == {
        "batch_id": 3,
        "files": 0,
        "plan_time": "1970-01-01T00:00:01.500Z",
        "watermark": "1970-01-01T00:00:00Z",
        "max_future_skew": "1d",
    }


@pytest.mark.parametrize(
    ("window", "note"),
    [
        (
            'type = "sliding"\nsize = "1h"\nslide = "1s"',
            "an event is in 3,600 windows, each of them a result of its key",
        ),
        (
            'type = "tumbling"\nsize = "1h"\ntrigger = { type = "continuous_event_time", interval = "2s" }',
            "a window fires 1,800 times, each time a result of its key",
        ),
    ],
)
def test_a_plan_says_that_an_event_becomes_many_results(pipeline: Path, window: str, note: str) -> None:
    before, rest = pipeline.read_text().split("[window]")
    pipeline.write_text(f"{before}[window]\n{window}\n[aggregates]{rest.split('[aggregates]')[1]}")
    assert note in call("plan", pipeline).stdout
    assert json.loads(call("plan", pipeline, "--json").stdout)["notes"][0].startswith(note)


def test_a_plan_says_that_more_files_may_wait(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline.write_text(pipeline.read_text().replace("[source]", "[source]\nmax_files_per_run = 1", 1))
    frozen = Plan(1, 1_500, None, 0, (SourceFile("a.parquet", 9, 1, 1),), "f", "{}")
    monkeypatch.setattr(windowlib.batches.planning, "plan", lambda definition: frozen)
    said = "batch 1: 1 new file (a batch takes no more: source.max_files_per_run), watermark none yet"
    assert call("plan", pipeline).stdout.splitlines()[0] == said


def test_read_shows_the_first_rows(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        windowlib.publication.readers, "read_table", lambda definition, table: pa.concat_tables([ROWS] * 15)
    )
    lines = call("read", pipeline, "results").stdout.splitlines()
    assert lines[0].split() == ["user_id", "window_start", "total", "replaced"]
    assert "2026-03-02 01:02:03.004 UTC" in lines[1]
    assert len(lines) == 1 + 20 + 1
    assert lines[-1] == "30 rows, of which the first 20 are shown (--out FILE.csv for all)"


def test_read_prints_json(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windowlib.publication.readers, "read_table", lambda definition, table: ROWS)
    first, second = map(json.loads, call("read", pipeline, "results", "--json").stdout.splitlines())
    time = "2026-03-02T01:02:03.004000Z"
    assert first == {"user_id": "ä", "window_start": time, "total": "1.50", "replaced": [{"start": 1}]}
    assert second == {"user_id": None, "window_start": time, "total": None, "replaced": []}


def test_read_writes_files(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windowlib.publication.readers, "read_table", lambda definition, table: ROWS)
    folder = pipeline.parent
    for ending in ("csv", "json", "parquet"):
        shown = call("read", pipeline, "results", "--out", folder / f"out.{ending}")
        assert shown.stdout == f"2 rows written to {folder / 'out'}.{ending}\n"
    assert pq.read_table(folder / "out.parquet").equals(ROWS)
    assert [row["total"] for row in json.loads((folder / "out.json").read_text())] == ["1.50", None]
    rows = list(csv.DictReader((folder / "out.csv").read_text().splitlines()))
    assert [row["replaced"] for row in rows] == ['[{"start": 1}]', "[]"]
    assert [row["total"] for row in rows] == ["1.50", ""]


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_an_unwritable_output_path_is_named(pipeline: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(windowlib.publication.readers, "read_table", lambda definition, table: ROWS)
    nowhere, folder = pipeline / f"out.{ending}", pipeline.parent / f"folder.{ending}"
    folder.mkdir()
    before = [*pipeline.parent.iterdir()]
    for place, why in ((nowhere, "Not a directory"), (folder, "Is a directory")):
        ended = call("read", pipeline, "results", "--out", place)
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert ended.stderr == f"error: --out {place}: cannot be written ({why})\n"
    assert [*pipeline.parent.iterdir()] == before


def test_a_port_that_no_engine_can_have_is_refused_at_once() -> None:
    assert call("engine", "start", "--port", "99999").exit_code == 2


def test_pages_do_not_replace_a_file(pipeline: Path) -> None:
    ended = call("report", pipeline, "--out", pipeline)
    assert ended.exit_code == 2
    assert ended.stderr == f"error: --out {pipeline}: cannot be written (Not a directory)\n"


def test_numbers_that_json_lacks_are_texts(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [math.nan, math.inf, -math.inf, 1.5]
    rows = pa.table({"total": numbers, "all": [numbers] * 4, "by": [{"x": number} for number in numbers]})
    monkeypatch.setattr(windowlib.publication.readers, "read_table", lambda definition, table: rows)
    texts = ["NaN", "Infinity", "-Infinity", 1.5]
    expected = [{"total": text, "all": texts, "by": {"x": text}} for text in texts]

    def no_json(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    shown = call("read", pipeline, "results", "--json").stdout
    assert [json.loads(line, parse_constant=no_json) for line in shown.splitlines()] == expected
    call("read", pipeline, "results", "--out", pipeline.parent / "out.json")
    assert json.loads((pipeline.parent / "out.json").read_text(), parse_constant=no_json) == expected
    assert "NaN       " in call("read", pipeline, "results").stdout  # on the screen without quotes


@pytest.mark.parametrize(
    ("window", "plan", "slices"),
    [
        ('type = "session"\ngap = "30m"', "sessions", "bucket of 30m"),
        ('type = "session"\ngap_column = "gap_ms"', "sessions", "the longest of their gaps"),
        ('type = "tumbling"\nsize = "5m"', "aligned", "one window of 5m"),
        ('type = "sliding"\nsize = "1h"\nslide = "25m"', "aligned", "in 5m, shared by up to 3 windows"),
    ],
)
def test_explain_plan_says_how_windows_are_computed(tmp_path: Path, window: str, plan: str, slices: str) -> None:
    file = tmp_path / "p.toml"
    source = '[source]\nformat = "parquet"\npath = "in"\nkey = []\ntimestamp = "ts"\n'
    aggregates = '[aggregates]\nn = "count(*)"\nlast = "last(value)"\n'
    file.write_text(f'name = "p"\n{source}[watermark]\nout_of_orderness = "1m"\n[window]\n{window}\n{aggregates}')
    found = json.loads(call("explain-plan", file, "--json").stdout)
    assert (found["pipeline"], found["plan"]) == ("p", plan)
    assert slices in found["slices"]
    assert any("first and last" in note for note in found["notes"])
    assert any("without a key" in note for note in found["notes"])
    shown = call("explain-plan", file).stdout
    assert slices in shown
    assert "the windows use event time" in shown


def test_read_refuses_unknown_tables_and_endings(pipeline: Path) -> None:
    wrong_ending = call("read", pipeline, "results", "--out", "results.xls")
    assert wrong_ending.exit_code == 2
    assert ".xls is not supported; need a name that ends in .csv, .json, .parquet" in wrong_ending.stderr
    assert "no table 'reslts'" in call("read", pipeline, "reslts").stderr
    assert "no batch is committed" in call("read", pipeline, "results").stderr


@pytest.mark.parametrize("decision", ["approve", "abandon"])
def test_decisions_are_recorded(pipeline: Path, monkeypatch: pytest.MonkeyPatch, decision: str) -> None:
    asked: list[tuple[str, str, int | None]] = []

    def decide(definition: object, who: str, reason: str, *, batch_id: int | None) -> int:
        asked.append((who, reason, batch_id))
        return 4

    monkeypatch.setattr(windowlib.decisions.verdicts, decision, decide)
    shown = call(decision, pipeline, "--reason", "it is right", "--who", "ada", "--batch", "4", "--json")
    assert asked == [("ada", "it is right", 4)]
    assert json.loads(shown.stdout) == {"batch_id": 4, "decision": decision, "who": "ada", "reason": "it is right"}
    assert call(decision, pipeline, "--reason", "x").stdout.startswith("batch 4 is ")


RECORDING = {
    "window": {"type": "tumbling", "size_ms": 10},
    "allowed_lateness_ms": 0,
    "batches": [{"events": [["k", 3, 5, "a"], ["k", 12, 7, "b"]], "watermark_after": 9}],
}


@pytest.mark.parametrize("option", ["--key", "--timestamp"])
def test_the_demo_refuses_column_options_without_files(tmp_path: Path, option: str) -> None:
    """Without the check the demo would ignore the option and run over generated events."""
    ended = call("demo", option, "client", "--folder", tmp_path / "demo", "--engine", "sail")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"{option} names a column of your own files: give their folder too, as in" in ended.stderr
    assert not (tmp_path / "demo").exists()


def test_replay_of_batches(tmp_path: Path) -> None:
    file = tmp_path / "recording.json"
    file.write_text(json.dumps(RECORDING))
    shown = call("replay", "--batches", file)
    assert json.loads(shown.stdout) == {
        "batches": [{"results": [["k", 0, 10, 1, 5]], "late": [], "in_flight": [["k", 10, 20]]}]
    }


@pytest.mark.parametrize(
    ("contents", "options", "message"),
    [
        (None, ["--batches"], "no such file"),
        ("{", ["--batches"], "cannot be read as JSON"),
        ("[]", ["--batches"], 'got list; need an object with "batches" (--batches)'),
        ("{}", [], "got dict; need an array of scenarios (a recording needs --batches)"),
        ("{}", ["--batches"], "not a recording: KeyError 'window'"),
        ("{}", ["--engine", "spark"], "got dict; need an array of scenarios (a recording needs --batches)"),
    ],
)
def test_an_invalid_recording_is_refused(
    tmp_path: Path, contents: str | None, options: list[str], message: str
) -> None:
    file = tmp_path / "recording.json"
    if contents is not None:
        file.write_text(contents)
    shown = call("replay", *options, file)
    assert shown.exit_code == 2
    assert message in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], {"pyspark", "great_expectations", "numpy", "pyarrow", "pydantic", "deltalake"}),
        (["status", "clicks.toml"], {"pyspark", "great_expectations", "pandas"}),
    ],
)
def test_quick_commands_import_nothing_heavy(pipeline: Path, arguments: list[str], unwanted: set[str]) -> None:
    look = (
        "import sys, atexit, json\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        "from windowlib.cli.main import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", look, *arguments]
    root = Path(__file__).parents[2]
    ended = subprocess.run(command, cwd=pipeline.parent, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert ended.returncode == 0
    assert unwanted & set(json.loads(ended.stderr.splitlines()[-1])) == set()


STARTS_READING = """
import windowlib.cli.commands.look
from windowlib.cli.main import main

def read(lines: int) -> None:
    for number in range(lines):
        print(number)

windowlib.cli.commands.look.read = read
main()
"""


def test_an_output_pipe_that_closes_early_is_no_error() -> None:
    """For example `windowlib read sessions.toml results --json | head -1`."""
    command = [sys.executable, "-c", STARTS_READING, "read", "200000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (UNEXPECTED, "")


FULL_ALIKE = pytest.mark.long("text without a buffer, and --version with one, meet a full output in make test")


@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        (["plan", "clicks.toml"], "1"),
        pytest.param(["plan", "clicks.toml", "--json"], "", marks=FULL_ALIKE),
        (["--version"], ""),
        pytest.param(["plan", "clicks.toml"], "", marks=FULL_ALIKE),
        pytest.param(["plan", "clicks.toml", "--json"], "1", marks=FULL_ALIKE),
        pytest.param(["--version"], "1", marks=FULL_ALIKE),
    ],
)
def test_a_full_output_is_not_reported_as_a_full_warehouse(
    pipeline: Path, arguments: list[str], unbuffered: str
) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "windowlib", *arguments],
            cwd=pipeline.parent,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ended.returncode == UNEXPECTED
    (said,) = ended.stderr.splitlines()
    assert said.startswith("error: standard output cannot be written to: No space left on device.")


@pytest.mark.parametrize("arguments", [["run", "missing.toml"], ["nonsense"]])
@pytest.mark.parametrize("to", ["2>/dev/full", pytest.param("2> >(exec true)", marks=FULL_ALIKE)])
def test_an_error_that_cannot_be_printed_keeps_its_exit_code(pipeline: Path, arguments: list[str], to: str) -> None:
    command = f"{shlex.join([sys.executable, '-P', '-m', 'windowlib', *arguments])} {to}"
    ended = subprocess.run(["bash", "-c", command], cwd=pipeline.parent, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (USER, "")


HANGS = """
import time
import windowlib.cli.commands.plan
from windowlib.cli.main import main
from windowlib.runs import deadline

deadline.GRACE_S = 1

def plan():
    with deadline.within(100, "planning"):
        while True:
            try:
                time.sleep(60)
            except BaseException:
                pass

windowlib.cli.commands.plan.plan = plan
main()
"""


def test_a_hanging_command_ends_even_without_an_output() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-c", HANGS, "plan"], stderr=full, timeout=60)
    assert ended.returncode == UNEXPECTED


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        pytest.param(
            {"PYTHONIOENCODING": "latin-1"}, marks=pytest.mark.long("ASCII, in make test, lacks these characters too")
        ),
    ],
)
def test_characters_that_the_encoding_lacks_are_escaped(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-P", "-m", "windowlib", "status", str(tmp_path / "日本.toml")]
    ended = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert (ended.returncode, "\\u65e5\\u672c.toml" in ended.stderr) == (USER, True), ended.stderr


def test_a_locale_without_utf_8_is_refused(pipeline: Path) -> None:
    """Without the check Python and the engines would look for files of different names."""
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-P", "-m", "windowlib", "plan", str(pipeline)]
    ended = subprocess.run(command, env=ascii_only, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (USER, "")
    assert "file names as ascii here, but the engines read them as UTF-8: set PYTHONUTF8=1" in ended.stderr


ALL_CLOSED = pytest.mark.long("all three streams are closed in make test, these two of them")


@pytest.mark.parametrize(
    "closed", [pytest.param(">&-", marks=ALL_CLOSED), pytest.param("2>&-", marks=ALL_CLOSED), ">&- 2>&- <&-"]
)
def test_a_command_works_with_closed_streams(pipeline: Path, closed: str) -> None:
    """A scheduler may start a command so. The first opened file must not get the number of the output."""
    command = f"{shlex.quote(sys.executable)} -P -m windowlib plan {shlex.quote(str(pipeline))} {closed}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
