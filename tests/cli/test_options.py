"""What several commands take means the same in each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.clicks import clicks
from windowlib.cli.main import app


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


@pytest.mark.parametrize("option", [["run", "--wait"], ["maintain", "--wait"], ["late", "what-if", "--allow"]])
def test_a_duration_is_not_below_zero(tmp_path: Path, option: list[str]) -> None:
    file = clicks(tmp_path, files=1).file
    *command, name = option
    ended = CliRunner().invoke(app, [*command, str(file), name, "-1d"])
    assert (ended.exit_code, f'{name} "-1d" is below 0: need a duration such as' in ended.stderr) == (2, True)
