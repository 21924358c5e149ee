"""What a command says while it works."""

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


def test_without_a_terminal_a_line_now_and_then(
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


def test_what_is_over_soon_says_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for interval in (None, "0s"):
        monkeypatch.delenv(INTERVAL, raising=False) if interval is None else monkeypatch.setenv(INTERVAL, interval)
        with progress(Console()) as say:
            say("publishing")
            time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_an_interval_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INTERVAL, "often")
    with pytest.raises(InvalidSpec, match='WINDOWLIB_PROGRESS "often" is not a duration'), progress(Console()):
        pass


def test_on_a_terminal_it_stands_at_the_bottom_while_it_is_done() -> None:
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
def test_what_takes_long_says_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, slow: str, says: str
) -> None:
    """Minutes of silence in a log look as if it hung."""

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
def test_how_far_the_engine_is(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    """Spark counts the tasks of its stages; Sail does not say."""
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
