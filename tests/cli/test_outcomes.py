"""Reports as text and as JSON; a caller reads the same JSON from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import RenderableType

from windowlib.cli.display import table_of
from windowlib.cli.outcomes import OUTCOMES, no_text, print_report
from windowlib.decisions.report import DecisionReport


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a report."""

    at: datetime
    share: float


@dataclass(frozen=True, slots=True)
class Whole:
    """Report with parts."""

    file: Path
    total: Decimal
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Report that chooses its keys."""

    secret: str
    whole: Whole

    def json_fields(self) -> dict[str, Any]:
        return {"of": self.whole.file, "whole": self.whole}


NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(("share", "shown"), [(0.5, 0.5), (float("nan"), "NaN")])
def test_a_report_is_json_part_by_part(capsys: pytest.CaptureFixture[str], share: float, shown: object) -> None:
    """A number that JSON lacks becomes a text."""
    whole = Whole(Path("a.csv"), Decimal("1.50"), (Part(NOON, share),))
    print_report(Chosen("x", whole), no_text, as_json=True)
    parts = [{"at": "2026-03-02T12:00:00Z", "share": shown}]
    assert json.loads(capsys.readouterr().out) == {
        "of": "a.csv",
        "whole": {"file": "a.csv", "total": "1.50", "parts": parts},
    }


@pytest.mark.parametrize("as_json", [False, True])
def test_a_caller_reads_the_json_that_is_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    monkeypatch.setenv(OUTCOMES, str(tmp_path / "outcomes"))
    report = DecisionReport("accept-clock", "ann", "back from a pause", {"clock": NOON})
    print_report(report, lambda decided: f"{decided.who} decided", as_json)
    kept = (tmp_path / "outcomes").read_text()
    assert json.loads(kept) == report.json_fields()
    assert report.json_fields()["clock"] == "2026-03-02T12:00:00Z"
    assert capsys.readouterr().out == (kept if as_json else "ann decided\n")


def test_text_is_plain_or_lines_with_markup_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """A word between colons is not replaced by an emoji."""

    def lines(path: str) -> Iterator[RenderableType]:
        yield f"[bold]{path}[/bold]"
        table = table_of(["file"])
        table.add_row(path)
        yield table

    print_report(":key:.csv", lines, as_json=False)
    print_report("[bold]\x1b", lambda path: path, as_json=False)
    print_report("", no_text, as_json=False)
    assert capsys.readouterr().out.splitlines() == [":key:.csv", "file     ", ":key:.csv", "[bold]\\x1b"]
