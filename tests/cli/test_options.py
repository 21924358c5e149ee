"""What several commands take means the same in each."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

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
