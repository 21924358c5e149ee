"""Progress that a command prints while it works."""

from __future__ import annotations

import io
import re
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner

from tests.support.clicks import clicks
from windowlib.cli.main import app
from windowlib.cli.progress import INTERVAL, progress
from windowlib.engines.tasks import task_progress
from windowlib.model.errors import InvalidSpec


def test_without_a_terminal_a_line_is_printed_at_each_interval(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INTERVAL, "100ms")
    monkeypatch.setattr("windowlib.cli.progress.time.monotonic", lambda: 0.0)  # on a busy machine
    done, third = iter(range(1, 100)), threading.Event()

    def computing() -> str:
        if (number := next(done)) == 3:
            third.set()
        return f"computing, {number} of 99 tasks"

    with progress(Console()) as say:
        say(computing)
        assert third.wait(60)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[:2] == ["computing, 1 of 99 tasks, 0 s", "computing, 2 of 99 tasks, 0 s"]
    time.sleep(0.25)
    assert capsys.readouterr().err == ""  # nothing after the block


def test_a_short_step_prints_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for interval in (None, "0s"):
        monkeypatch.delenv(INTERVAL, raising=False) if interval is None else monkeypatch.setenv(INTERVAL, interval)
        with progress(Console()) as say:
            say("publishing")
            time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_an_invalid_interval_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INTERVAL, "often")
    with pytest.raises(InvalidSpec, match='WINDOWLIB_PROGRESS "often" is not a duration'), progress(Console()):
        pass


def test_a_terminal_shows_the_step_at_its_bottom() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    with progress(screen) as say:
        say(lambda: "computing 3 files")
        time.sleep(0.3)
    assert isinstance(screen.file, io.StringIO)
    assert "computing 3 files" in screen.file.getvalue()


@pytest.mark.parametrize(
    ("command", "slow", "says"),
    [
        ("maintain", "windowlib.maintenance.maintain.maintain", "maintaining the tables"),
        ("maintain --dry-run", "windowlib.maintenance.maintain.forecast", "looking for superfluous files"),
        ("report", "windowlib.pages.site.report", "building the page of clicks"),
        ("late list", "windowlib.inspection.lineage.cuts.cut", "reading late events"),
        ("late what-if", "windowlib.inspection.lineage.cuts.cut", "reading late events"),
        ("restore --dry-run", "windowlib.decisions.restore.forecast_restore", "preparing the forecast"),
        (
            "rollback --to-batch 1 --dry-run",
            "windowlib.decisions.rollback.forecast_rollback",
            "preparing the forecast",
        ),
    ],
)
def test_slow_commands_report_their_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, slow: str, says: str
) -> None:
    """A log without lines for minutes looks as if the command hung."""

    def takes_long(*_: object, **__: object) -> None:
        time.sleep(0.1)
        raise InvalidSpec("over")

    monkeypatch.setenv(INTERVAL, "20ms")
    monkeypatch.setattr(slow, takes_long)
    file, (name, *options) = clicks(tmp_path, 1).file, command.split()
    name, options = (f"{name} {options[0]}", options[1:]) if name == "late" else (name, options)
    ended = CliRunner().invoke(app, [*name.split(), str(file), *options])
    assert f"{says}, 0 s" in ended.stderr.splitlines()
    assert ended.exit_code == 2


@pytest.mark.spark
@pytest.mark.both
def test_progress_of_the_tasks_of_an_engine(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    """Spark reports the tasks of its stages; Sail reports none."""
    heard, on_spark = list[str](), request.config.getoption("--engine") == "spark"
    rows = 3_000_000 if on_spark else 300_000
    with task_progress(spark) as far:
        job = threading.Thread(target=spark.range(0, rows, 1, 9).selectExpr("sum(hash(id))").collect)
        job.start()
        while job.is_alive():
            heard.append(far())
            time.sleep(0.02)
        assert far() == ""
    counted = {text for text in heard if text}
    assert all(re.fullmatch(r", \d of [19] tasks?", text) for text in counted), counted
    assert bool(counted) == on_spark
