"""Wording of pages, pictures and commands: singular for one, and whole durations."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, MINUTE_MS, PLAN_TIME_MS, START_MS, arrive, clicks, clock
from tests.support.disks import folder_of
from windowlib.cli.main import app
from windowlib.decisions.advance_watermark import forecast_advance
from windowlib.definition.definition import Definition
from windowlib.definition.instants import utc
from windowlib.ledger.verifications import Verification, keep
from windowlib.pages.site import report
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
THINGS = "rows|events|late events|quarantined rows|results|runs|batches|checks|windows|slices|files|times"
WRONG = re.compile(rf"(?<![\d,.:])\b1 ({THINGS})\b.*")


def event(user: str | None, at: int) -> dict[str, object]:
    return {"id": f"{user} {at}", "user": user, "at_ms": START_MS + at * MINUTE_MS, "value": 1}


@pytest.fixture(scope="module")
def one(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Definition:
    """A pipeline with one result, one window in flight, one late event, and one row without a key."""
    folder = tmp_path_factory.mktemp("one")
    definition = clicks(folder, 0, CLICKS.replace('"2h"', '"2h 30s"'))
    arrive(folder, 1, [event("u1", 0), event("u1", 600)])
    arrive(folder, 2, [event("u2", 5), event(None, 6)])
    advance(definition, lambda: spark, clock=clock)
    compared = dict.fromkeys(("results", "open_windows", "late_events"), 1)
    made = Verification(utc(PLAN_TIME_MS), 2, "equal", None, None, 1, 0, 1, 1, compared, {}, [], [])
    keep(definition.store, made)
    return definition


def test_a_page(one: Definition) -> None:
    page = html.unescape(Path(report(one, PLAN_TIME_MS + MINUTE_MS)).read_text(encoding="utf-8"))
    assert "1 row of open_windows" in page
    assert "1 late event;" in page
    assert "1 event in results" in page
    assert WRONG.findall(page) == []
    assert page.count("2h 30s now") == 2
    assert "late by 7h 39m 30s</span>" in page


def test_commands(one: Definition, tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        return CliRunner().invoke(app, [*arguments], env={"WINDOWLIB_WAREHOUSE": str(folder_of(one).parent)}).output

    picture = tmp_path / "late.svg"
    commands = [
        said("status", str(one.file)),
        said("explain", str(one.file), "--key", "u2", "--at", "2026-03-02T00:05Z"),
        said("late", "list", str(one.file)),
        said("late", "what-if", str(one.file), "--picture", str(picture)),
    ]
    assert "it occurs in 1 late event and 0 quarantined rows" in commands[1]
    assert [WRONG.findall(one) for one in (*commands, picture.read_text(encoding="utf-8"))] == [[]] * 5


def test_the_watermark_moved_by_hand(one: Definition) -> None:
    assert (
        "1 of 1 window in flight ends between the two" in forecast_advance(one, START_MS + 700 * MINUTE_MS, clock).notes
    )
