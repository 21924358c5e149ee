"""An edited definition without a migration: commands refuse, in a sentence, questions that its tables cannot answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from windowlib.cli.main import app

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
KEY = 'key = ["user"]', 'key = ["account"]', 'key was ["user"], is ["account"]'
MORE = 'key = ["user"]', 'key = ["user", "id"]', 'key was ["user"], is ["user", "id"]'
COUNT = 'clicks = "count(*)"', 'n = "count(*)"', 'aggregates.n was not given, is "count(*)"'
LATER = 'timestamp = "at_ms"', 'timestamp = "value"', 'timestamp was "at_ms", is "value"'
SESSION = 'type = "session"\ngap = "10m"'
GAP = SESSION, 'type = "session"\ngap = "20m"', 'window.gap was "10m", is "20m"'
TUMBLING = SESSION, 'type = "tumbling"\nsize = "10m"', 'window.type was "session", is "tumbling"'
AT = "2026-03-02T03:00Z"


def asked(folder: Path, edit: tuple[str, str, str] | None, command: str, *options: str) -> Result:
    """Runs a command on a pipeline with three batches after an edit of its definition."""
    file = folder / "clicks.toml"
    if edit:
        file.write_text(file.read_text(encoding="utf-8").replace(*edit[:2]), encoding="utf-8")
    given = [*command.split(), str(file), *options]
    return CliRunner().invoke(app, given, env={"WINDOWLIB_WAREHOUSE": "", "COLUMNS": "500"})


@pytest.mark.parametrize(
    "edit",
    [KEY, MORE, COUNT, LATER, GAP, TUMBLING],
    ids=["key", "another key column", "count", "time", "gap", "windows"],
)
def test_explain_names_the_edit(folder: Path, edit: tuple[str, str, str]) -> None:
    found = asked(folder, edit, "explain", "--key", "u1", "--at", AT)
    assert found.exit_code == 2
    assert isinstance(found.exception, SystemExit)
    assert "was written by another definition" in found.stderr
    assert edit[2] in found.stderr
    assert "windowlib migrate" in found.stderr
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.parametrize("edit", [KEY, MORE], ids=["key", "another key column"])
@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("late list", ()),
        ("late list", ("--by", "key")),
        ("late list", ("--json",)),
        ("late what-if", ("--allow", "3h")),
    ],
)
def test_late_events_of_another_key_are_refused_alike(
    folder: Path, edit: tuple[str, str, str], command: str, options: tuple[str, ...]
) -> None:
    found = asked(folder, edit, command, *options)
    assert found.exit_code == 2
    assert edit[2] in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_a_renamed_aggregate_does_not_stop_late_list(folder: Path) -> None:
    assert asked(folder, COUNT, "late list").exit_code == 0


def test_explain_works_before_the_batch_that_adds_a_column(folder: Path) -> None:
    more = 'total = "sum(value)"', 'total = "sum(value)"\nmost = "max(value)"', ""
    found = asked(folder, more, "explain", "--key", "u1", "--at", AT)
    assert found.exit_code == 0, found.output


SOME_HOURS = ("--from", "2026-03-02T00:00Z", "--to", "2026-03-02T09:00Z", "--dry-run")


@pytest.mark.parametrize(
    ("edit", "command", "options"),
    [(GAP, "verify", ()), (GAP, "rerun", SOME_HOURS), (("", "", "needs no migration"), "migrate", ("--dry-run",))],
    ids=["verify", "rerun", "migrate"],
)
def test_a_refused_command_starts_no_engine(
    folder: Path, edit: tuple[str, str, str], command: str, options: tuple[str, ...]
) -> None:
    file = folder / "clicks.toml"
    no_server = '[spark]\nmaster = "sc://127.0.0.1:9"\n'
    text = file.read_text(encoding="utf-8").replace('engine = "sail"\n', "")
    file.write_text(text + no_server, encoding="utf-8")
    found = asked(folder, edit, command, *options)
    assert (found.exit_code, edit[2] in found.stderr) == (2, True), found.stderr
