"""State of a pipeline on the home page and on its own page, also after errors."""

from __future__ import annotations

import contextlib
import html
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.support.clicks import SCHEMA, arrive, clicks, events
from tests.support.disks import folder_of
from windowlib.batches.planning import plan
from windowlib.cli.main import app
from windowlib.cli.notifying import TRIES_LEFT, notifying
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import instant
from windowlib.ledger import last_error
from windowlib.ledger.ledger import Ledger, Rejected, Superseded, wall_clock_ms
from windowlib.ledger.notices import reported
from windowlib.ledger.prepare import Prepared
from windowlib.ledger.rows import prepare_row
from windowlib.pages.overview import overview
from windowlib.pages.pipeline_state import State, observe_pipeline
from windowlib.pages.site import report


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """A pipeline whose warehouse does not come from the environment."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    return load_definition(clicks(tmp_path, files=0).file)


def state_and_why(definition: Definition, now_ms: int | None = None) -> tuple[State, str]:
    found = overview(observe_pipeline(definition, now_ms or wall_clock_ms()))
    return found.state, found.why


def said(definition: Definition) -> str:
    """NumericOutput of `windowlib status`."""
    ended = CliRunner().invoke(app, ["status", str(definition.file)], env={"COLUMNS": "1000"})
    assert ended.exit_code == 0, ended.output
    return ended.output


def planned(file: Path, *, by_scheduler: bool = True) -> int:
    """The exit code of a plan, as a task of Airflow starts it or as a person does in a shell."""
    env = {TRIES_LEFT: "0" if by_scheduler else None}
    return CliRunner().invoke(app, ["plan", str(file)], env=env).exit_code


def unreadable(definition: Definition) -> Path:
    file = definition.source.path / "1.parquet"
    file.write_bytes(b"PAR1 and no more")
    return file


def without_key(definition: Definition) -> Path:
    file = definition.source.path / "1.parquet"
    pq.write_table(pa.Table.from_pylist(events(1), schema=SCHEMA).drop_columns(["user"]), file)
    return file


@pytest.mark.parametrize("mistake", [unreadable, without_key])
def test_a_failed_plan_is_shown_until_one_succeeds(made: Definition, mistake) -> None:
    file = mistake(made)
    assert planned(made.file) != 0
    kept = last_error.last(made.store)
    assert kept is not None
    assert (kept.command, kept.file) == ("plan", str(made.file))
    state, why = state_and_why(made)
    assert state is State.FAILING
    assert kept.sentence in why
    assert "1.parquet" in why
    page = Path(report(made, wall_clock_ms())).read_text(encoding="utf-8")
    assert kept.sentence.replace("`", "") in re.sub("</?code>", "", html.unescape(page))  # commands as code
    assert "<title>clicks: failing</title>" in page
    when = instant(kept.at_ms // 1000 * 1000)
    assert f"the last plan of {made.file} ended at {when} with: {kept.sentence}" in said(made)
    file.unlink()
    assert planned(made.file) == 0
    assert last_error.last(made.store) is None
    assert state_and_why(made)[0] is State.NEW
    assert "ended at" not in said(made)


@pytest.mark.parametrize("mistake", [unreadable, without_key])
def test_a_plan_in_a_shell_leaves_the_state_of_the_pipeline_as_it_is(
    made: Definition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake
) -> None:
    """Only its own output shows its error; a success does not hide an error of production."""
    monkeypatch.setenv("HOOK", "http://127.0.0.1:9/")
    text = made.file.read_text(encoding="utf-8") + '[notify]\nwebhook_variable = "HOOK"\n'
    made.file.write_text(text, encoding="utf-8")
    copy = tmp_path / "mine.toml"
    copy.write_text(text, encoding="utf-8")
    file = mistake(made)
    assert planned(copy, by_scheduler=False) != 0
    assert last_error.last(made.store) is None
    assert reported(made.store).newest == {}
    before = state_and_why(made)
    assert planned(made.file) != 0
    failing = state_and_why(made)
    assert failing[0] is State.FAILING
    assert before != failing
    assert f"the last plan of {made.file} ended at " in failing[1]
    assert reported(made.store).newest["failure"].what == "began"
    file.unlink()
    assert planned(copy, by_scheduler=False) == 0
    assert state_and_why(made) == failing
    assert reported(made.store).newest["failure"].what == "began"
    assert planned(made.file) == 0
    assert state_and_why(made)[0] is State.NEW
    assert reported(made.store).newest["failure"].what == "over"


def test_a_run_that_fails_names_the_definition_that_it_ran(made: Definition, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    copy = tmp_path / "private" / "mine.toml"
    text = made.file.read_text(encoding="utf-8").replace('path = "incoming"', 'path = "../incoming"')
    copy.write_text(f'warehouse = "../warehouse"\n{text}', encoding="utf-8")
    unreadable(made)
    with contextlib.chdir(copy.parent):
        assert CliRunner().invoke(app, ["run", "mine.toml"]).exit_code != 0
    state, why = state_and_why(made)
    assert state is State.FAILING
    assert f"the last run of {copy} ended at " in why
    assert f"the last run of {copy} ended at " in said(made)
    page = html.unescape(Path(report(made, wall_clock_ms())).read_text(encoding="utf-8"))
    assert f"the last run of {copy} ended at " in page


def test_a_successful_plan_keeps_the_error_of_a_run(made: Definition) -> None:
    last_error.keep(
        made.store, last_error.LastError("run", "the engine is gone", wall_clock_ms(), "/pipelines/clicks.toml")
    )
    arrive(made.file.parent, 1, events(1))
    assert planned(made.file) == 0
    state, why = state_and_why(made)
    assert (state, "the engine is gone" in why) == (State.FAILING, True)


def test_a_plan_without_a_run_is_planned_and_not_running(made: Definition) -> None:
    arrive(made.file.parent, 1, events(1))
    plan(made)
    assert state_and_why(made) == (State.READY, "batch 1 is planned: no run has begun it yet")
    in_two_days_ms = wall_clock_ms() + 2 * 86_400_000 + 60_000
    assert state_and_why(made, in_two_days_ms) == (
        State.READY,
        "batch 1 was planned 2d 1m ago, and no run has begun it yet",
    )
    last_error.keep(made.store, last_error.LastError("run", "no space left", in_two_days_ms, "/pipelines/clicks.toml"))
    assert state_and_why(made, in_two_days_ms)[0] is State.FAILING


def test_a_batch_that_was_approved_long_after_its_plan_waits_for_the_next_run(made: Definition) -> None:
    arrive(made.file.parent, 1, events(1))
    hour_ago_ms = wall_clock_ms() - 3_600_000
    plan(made, lambda: hour_ago_ms)
    ledger = Ledger(made.store, wall_clock_ms, made.lease_timeout_ms)
    _, claim = ledger.claim()
    ledger.write(prepare_row(1, Prepared("_prepared/1.json", "checksum"), "half of it has no key"), claim.epoch)
    ledger.write({"kind": "release"}, claim.epoch)
    assert state_and_why(made)[0] is State.WAITING
    ledger.write({"kind": "approve", "batch_id": 1, "who": "ann", "reason": "known"})
    assert state_and_why(made) == (State.READY, "batch 1 was approved by ann: the next run publishes it")
    said = "batch 1 was approved by ann 16m ago: the next run publishes it"
    assert state_and_why(made, wall_clock_ms() + 16 * 60_000 + 100) == (State.READY, said)


@pytest.mark.parametrize("claimed_first", [True, False])
def test_a_failed_run_without_a_claim_is_shown_at_once(made: Definition, claimed_first: bool) -> None:
    arrive(made.file.parent, 1, events(1))
    ledger = Ledger(made.store, wall_clock_ms, made.lease_timeout_ms)
    if not claimed_first:
        plan(made)
    _, claim = ledger.claim()
    if claimed_first:
        plan(made)
    assert state_and_why(made)[0] is State.RUNNING
    ledger.write({"kind": "release"}, claim.epoch)
    assert state_and_why(made) == (State.FAILING, "the run that worked on batch 1 ended without finishing it")
    last_error.keep(made.store, last_error.LastError("run", "no space left", wall_clock_ms(), "/pipelines/clicks.toml"))
    assert "no space left" in state_and_why(made)[1]
    ledger.claim()
    found = overview(observe_pipeline(made, wall_clock_ms()))
    assert found.state is State.RUNNING
    assert "no space left" in found.warnings[0].sentence  # that of the run before


def test_an_error_before_the_newest_batch_is_over(made: Definition) -> None:
    kept = last_error.LastError("run", "the engine is gone", 1_000, "/pipelines/clicks.toml")
    assert (kept.is_over(2_000), kept.is_over(500), kept.is_over(None)) == (True, False, False)


@pytest.mark.parametrize(
    ("command", "error", "kept_after"),
    [
        ("plan", None, True),  # it planned; what failed was the run
        ("run", None, False),
        ("plan", ValueError("not a number"), True),
        ("run", Superseded("another run holds this pipeline"), True),  # that run says how it ends
        ("run", Rejected("half of it has no key"), False),  # it came as far as its checks
    ],
)
def test_the_end_of_a_command_decides_about_earlier_errors(
    made: Definition, command: last_error.Command, error: Exception | None, kept_after: bool
) -> None:
    earlier = last_error.LastError("run", "the engine is gone", 5, "/pipelines/clicks.toml")
    last_error.keep(made.store, earlier)
    with (
        contextlib.suppress(ValueError, Superseded, Rejected),
        notifying(made, lambda: command == "run", command=command),
    ):
        if error:
            raise error
    kept = last_error.last(made.store)
    assert (kept is not None) is kept_after
    if isinstance(error, ValueError):
        assert kept is not None
        assert (kept.command, kept.sentence) == ("plan", "ValueError: not a number")


def test_an_error_that_cannot_be_stored_hides_no_other(made: Definition, capsys: pytest.CaptureFixture[str]) -> None:
    (folder_of(made) / last_error.FILE).mkdir(parents=True)  # a folder where the file should be
    with pytest.raises(ValueError, match="what went wrong"), notifying(made, command="run"):
        raise ValueError("what went wrong")
    assert "the outcome could not be saved for its pages" in capsys.readouterr().err
