"""What several commands take means the same in each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.clicks import clicks
from windowlib.cli.main import app
from windowlib.inspection.lineage.cuts import asked_range
from windowlib.publication.key import CannotLook

KEYS = ("explain", "late readmit")


@pytest.mark.parametrize("command", [["approve"], ["adopt"], ["rerun"], ["late", "readmit"]])
@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("r" * 2_001, "it has 2,001 characters: need at most 2,000"),
        ("one\ntwo", "it has the control character '\\n': need one line of text"),
    ],
)
def test_a_reason_is_a_line_that_can_be_kept(tmp_path: Path, command: list[str], reason: str, says: str) -> None:
    given = [*command, str(tmp_path / "clicks.toml"), "--reason", reason]
    ended = CliRunner().invoke(app, given, env={"COLUMNS": "200"})
    assert ended.exit_code == 2
    assert f"Invalid value for '--reason': {says}" in ended.output


def test_a_user_without_a_name_decides_by_number(tmp_path: Path, unnamed: tuple[str, ...]) -> None:
    clicks(tmp_path)
    decide = ["set-aside", "clicks.toml", "4.parquet", "--reason", "cut off", "--json"]
    command = [*unnamed, sys.executable, "-P", "-m", "windowlib", *decide]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["who"] == "user 54321"


@pytest.mark.parametrize("command", [["explain", "--at", "2026-03-02T00:00Z"], ["late", "readmit"], ["forget"]])
def test_a_key_is_text(tmp_path: Path, command: list[str]) -> None:
    ended = CliRunner().invoke(
        app, [*command, str(tmp_path / "clicks.toml"), "--key", "a\udcff"], env={"COLUMNS": "200"}
    )
    assert ended.exit_code == 2
    assert "Invalid value for '--key': a\\xff is not UTF-8, as every value of a key is" in ended.output


@pytest.mark.parametrize("option", ["--from", "--to"])
@pytest.mark.parametrize("command", [["late", "list"], ["late", "what-if"]])
def test_a_range_has_a_time_that_an_event_can_have(tmp_path: Path, command: list[str], option: str) -> None:
    file = clicks(tmp_path, files=1).file
    time = {"--from": "9999-12-31T23:59:59.999999Z", "--to": "0001-06-01T00:00Z"}[option]
    with pytest.raises(CannotLook, match=r"leaves no time that an event can have: those are from 000\d-") as caught:
        asked_range(*((time, None) if option == "--from" else (None, time)))
    ended = CliRunner().invoke(app, [*command, str(file), option, time])
    assert (ended.exit_code, str(caught.value) in ended.stderr or "no batch" in ended.stderr) == (2, True)


@pytest.mark.parametrize("option", [["run", "--wait"], ["maintain", "--wait"], ["late", "what-if", "--allow"]])
def test_a_duration_is_not_below_zero(tmp_path: Path, option: list[str]) -> None:
    file = clicks(tmp_path, files=1).file
    *command, name = option
    ended = CliRunner().invoke(app, [*command, str(file), name, "-1d"])
    assert (ended.exit_code, f'{name} "-1d" is below 0: need a duration such as' in ended.stderr) == (2, True)


def test_a_key_is_needed_to_explain_a_window() -> None:
    """Other commands do not require the key."""
    shown = {name: CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"}).output for name in KEYS}
    assert {name for name, text in shown.items() if "required with key columns" in text} == {"explain"}
    assert all("--key" in text for text in shown.values())
