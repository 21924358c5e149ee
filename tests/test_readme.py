"""The README does what it says: its files are written, its commands run, its examples executed, in its own order.

What would take minutes is checked for less: `make` says what it would do, and `windowlib demo` and `windowlib bench`
read their arguments only; both have tests of their own.
"""

from __future__ import annotations

import configparser
import contextlib
import doctest
import inspect
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from jobs import exits
from jobs.cli import app
from jobs.definition import DefinitionFile, Section, load_definition
from jobs.durations import parse_duration
from jobs.instants import instant
from jobs.read import read_table
from jobs.tables import TABLES
from windowlib.aggregate_set import FUNCTIONS
from windowlib.aggregates import Count
from windowlib.assigners import Tumbling
from windowlib.batch import advance
from windowlib.elements import Element, Late
from windowlib.plans.admission import REASONS
from windowlib.spec import WindowSpec
from windowlib.state import OperatorState
from windowlib.watermark import WatermarkPolicy

PROJECT = Path(__file__).parent.parent
README = (PROJECT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
ONLY_PARSED = ("demo", "bench")
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Command:
    """A command of the README and the lines that it shows of the output."""

    text: str
    shown: list[str]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    command: Command
    exit_code: int
    output: str


def commands(block: str) -> list[Command]:
    """`$` begins a command, `>` goes on with it, other lines are output."""
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        elif line.startswith("> "):
            found[-1] = Command(f"{found[-1].text}\n{line[2:]}", [])
        else:
            found[-1].shown.append(line)
    return found


def run(command: Command) -> Ended:
    """Runs a command of the README, or what stands for it, in the current folder."""
    match shlex.split(command.text):
        case ["make", target]:
            return ended(command, ["make", "-C", str(PROJECT), "-n", target])
        case [".", script]:
            return Ended(command, int(f"BIN := {Path(script).parent}\n" not in (PROJECT / "Makefile").read_text()), "")
        case ["windowlib", name, *arguments] if name in ONLY_PARSED:
            return Ended(command, 0, parsed(name, arguments))
        case ["windowlib", *arguments]:
            result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
            return Ended(command, result.exit_code, result.output)
        case ["python", "-m", *_]:
            return ended(
                command, ["bash", "-c", f"{shlex.quote(sys.executable)} {command.text.removeprefix('python')}"]
            )
        case [("mkdir" | "echo" | "rm"), *_]:
            return ended(command, ["bash", "-c", command.text])
    raise AssertionError(f"the README has a command that no test knows: {command.text}")


def parsed(name: str, arguments: list[str]) -> str:
    """What the command line makes of arguments; raises click's error where it cannot."""
    group: Any = typer.main.get_command(app)
    return str(group.commands[name].make_context(name, list(arguments)).params)


def ended(command: Command, arguments: list[str]) -> Ended:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return Ended(command, done.returncode, done.stdout + done.stderr)


def table(heading: str, after: str = "") -> list[dict[str, str]]:
    """The rows of the Markdown table whose first line begins with `heading`, by column."""
    lines = README[README.index(after) :].split(f"\n{heading}", 1)[1].split("\n\n", 1)[0].splitlines()
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in (heading + lines[0], *lines[2:])
    ]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def names(rows: list[dict[str, str]], column: str) -> list[str]:
    return [row[column].strip("`") for row in rows]


# -- what is written, beside the code -----------------------------------------------------------------------------


def test_twelve_lines() -> None:
    definition = next(text for language, text in BLOCKS if language == "toml")
    assert len(definition.splitlines()) == 12
    assert tomllib.loads(definition)["name"] == "clicks"


def test_the_other_windows_are_definitions(tmp_path: Path) -> None:
    whole = next(text for language, text in BLOCKS if language == "toml")
    others = [text for language, text in BLOCKS if language == "toml" and "[window]" in text and text != whole]
    assert len(others) == 2
    code = next(text for language, text in BLOCKS if language == "python" and "class Journey" in text)
    (tmp_path / "journeys.py").write_text(code)
    for number, window in enumerate(others):
        left_out = ("window =", "aggregates =") if "function" in window else ("window =",)
        lines = [line for line in whole.splitlines() if not line.startswith(left_out)]
        head = "\n".join(lines).replace('value = "bigint"', 'value = "bigint", page = "string"')
        file = tmp_path / f"{number}.toml"
        file.write_text(f"{head}\n{window}")
        assert load_definition(file).plan == "general"
        assert load_definition(file).spec.keeps_elements


def test_every_key_of_a_definition_with_its_default() -> None:
    described = {row["key"].strip("`"): default(row["key"], row["default"]) for row in table("| key |")}
    assert described == dict(definition_keys(DefinitionFile))


def default(key: str, cell: str) -> Any:
    """The value of a cell of the column `default`: None where there is none, `...` where one is required."""
    if cell == "*required*":
        return ...
    value = None if cell == "none" else json.loads(cell.strip("`"))
    return parse_duration(value) if isinstance(value, str) and re.fullmatch(r"[0-9]+[a-z]+", value) else value


def definition_keys(model: type[Section], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        sections = [one for one in (field.annotation, *get_args(field.annotation)) if inspect.isclass(one)]
        sections = [one for one in sections if issubclass(one, Section)]
        key = f"{prefix}{field.alias or name.removesuffix('_ms')}"
        for section in sections:
            yield from definition_keys(section, f"{key}.")
        if not sections:
            yield key, ... if field.is_required() else field.default or (0 if field.default == 0 else None)


def test_every_table_command_reason_and_function_is_there() -> None:
    assert sorted(names(table("| table |"), "table")) == sorted(TABLES)
    group: Any = typer.main.get_command(app)
    assert names(table("| command |"), "command") == list(group.commands)
    assert [reason for reason in REASONS if f"`{reason}`" not in README] == []
    assert [function for function in FUNCTIONS if f"`{function}`" not in README] == []


def test_exit_codes() -> None:
    known = {0, exits.USER, exits.REJECTED, exits.SUPERSEDED, exits.UNEXPECTED}
    assert {int(code) for code in names(table("| exit code |"), "exit code")} == known


def test_what_stands_beside_flink_s_names_exists() -> None:
    keys = {part for key, _ in definition_keys(DefinitionFile) for part in key.split(".")}
    known = keys | set(TABLES) | {"windowlib", "rows_late", "tumbling", "sliding", "session", "global"}
    known |= {"tumbling_count", "sliding_count", "processing"}
    for row in table("| Flink |"):
        assert {word for code in re.findall("`([^`]+)`", row["here"]) for word in re.findall("[a-z_]+", code)} <= (
            known | {"run"}
        ), row


def test_links_lead_somewhere() -> None:
    headings = {
        re.sub(r"[^\w -]", "", line.strip("# ").lower()).replace(" ", "-")
        for line in README.splitlines()
        if line[:1] == "#"
    }
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (
            link.removeprefix("#") in headings if link.startswith("#") else (PROJECT / link.partition("#")[0]).exists()
        ), link


def test_the_event_that_is_one_millisecond_too_late() -> None:
    """The table of late data, by the reference: window 09:00 to 10:00, lateness 1 h, out of order by 5 min."""
    spec = WindowSpec(Tumbling(HOUR_MS), Count(), allowed_lateness_ms=HOUR_MS)
    found = []
    for row in table("| newest event"):
        watermark_ms = WatermarkPolicy(5 * 60_000).candidate_ms(at(row["newest event of the batches before"]))
        assert instant(watermark_ms).split()[1] == row["watermark (UTC)"]
        state = OperatorState()
        advance(spec, state, [Element("a", 9 * HOUR_MS, None, 0)], watermark_ms)
        firings, late = advance(spec, state, [Element("a", 9 * HOUR_MS + HOUR_MS // 2, None, 1)], watermark_ms)
        assert [isinstance(one, Late) for one in late] == [True] * len(late)
        found.append(([firing.timing.value for firing in firings], len(late)))
    assert found == [([], 0), (["late"], 0), (["late"], 0), ([], 1)]


def at(time: str) -> int:
    hours, minutes, seconds = time.split(":")
    return int(hours) * HOUR_MS + int(minutes) * 60_000 + round(float(seconds) * 1000)


# -- what is run --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Path, list[Ended]]:
    """The folder in which the README was followed from its first line to its last, and how each command ended."""
    request.getfixturevalue("spark")
    folder = tmp_path_factory.mktemp("readme")
    (folder / "jobs").symlink_to(PROJECT / "jobs")
    outcomes: list[Ended] = []
    namespace: dict[str, Any] = {}
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
        patch.setenv("WINDOWLIB_ENGINE_DIR", str(folder / "engine"))
        for language, text in BLOCKS:
            match language:
                case "console":
                    outcomes += map(run, commands(text))
                case "bash":
                    outcomes.append(ended(Command(text, []), ["bash", "-ec", text]))
                case "toml" if "[window]" not in text:  # the others are parts of definitions
                    with Path("clicks.toml").open("a") as file:
                        file.write(text)
                case "json":
                    Path("figures.json").write_text(text)
                case "python" if "spark" in text:
                    outcomes.append(ended(Command(text, []), [sys.executable, "-c", text]))
                case "python":
                    printed = io.StringIO()
                    with contextlib.redirect_stdout(printed):
                        exec(compile(text, "README.md", "exec"), namespace)
                    outcomes.append(Ended(Command(text, []), 0, printed.getvalue()))
    return folder, outcomes


@pytest.mark.spark
@pytest.mark.slow
def test_every_command_ends_as_printed(played: tuple[Path, list[Ended]]) -> None:
    for one in played[1]:
        expected = 3 if one.command.shown and one.command.shown[0].startswith("error: ") else 0
        assert one.exit_code == expected, f"{one.command.text}\n{one.output}"
        lines = iter([without_seconds(line) for line in one.output.splitlines()])
        for line in one.command.shown:
            assert without_seconds(line) in lines, f"{one.command.text} does not print: {line}\n{one.output}"


def without_seconds(line: str) -> str:
    return re.sub(r"  \d+\.\d s$", "", line.rstrip())


@pytest.mark.spark
@pytest.mark.slow
def test_the_results_are_those_of_the_table(played: tuple[Path, list[Ended]]) -> None:
    printed = table("| user |")
    rows = read_table(load_definition(played[0] / "clicks.toml"), "results").to_pylist()
    found = [{name: cell(row[name]) for name in printed[0]} for row in rows if row["batch_id"] <= 5]
    assert sorted(found, key=str) == sorted(printed, key=str)


def cell(value: Any) -> str:
    return str(value).removesuffix("+00:00")


@pytest.mark.spark
@pytest.mark.slow
def test_what_the_commands_have_made(played: tuple[Path, list[Ended]]) -> None:
    folder, outcomes = played
    assert (folder / "sessions.svg").read_text() == (PROJECT / "jobs" / "pictures" / "sessions.svg").read_text()
    replayed = [json.loads(one.output) for one in outcomes if "windowlib replay" in one.command.text]
    assert len(replayed) == 4  # scenarios and batches, each by the reference and by Spark
    assert replayed[0] == replayed[1]
    assert replayed[2] == replayed[3]
    assert "ann" in next(one.output for one in outcomes if "duckdb" in one.command.text)
    assert "window_start" in next(one.output for one in outcomes if "versionAsOf" in one.command.text)


def test_the_example_of_the_core() -> None:
    [example] = [text for language, text in BLOCKS if language == "pycon"]
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", None, None)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_service_runs_commands_that_exist() -> None:
    [unit] = [text for language, text in BLOCKS if language == "ini"]
    service = configparser.ConfigParser()
    service.read_string(unit)
    group: Any = typer.main.get_command(app)
    engine = group.commands["engine"]
    for key, expected in (("ExecStart", "start"), ("ExecStop", "stop")):
        program, name, command, *arguments = shlex.split(service["Service"][key])
        assert (Path(program).name, name, command) == ("windowlib", "engine", expected)
        engine.commands[command].make_context(command, arguments)


def test_every_block_is_looked_at() -> None:
    assert {language for language, _ in BLOCKS} == {"bash", "console", "toml", "json", "python", "pycon", "ini"}
    assert README.count("\n```") == 2 * len(BLOCKS)
