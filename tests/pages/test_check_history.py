"""History of checks: values and bounds of all kept runs, with links to the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.clicks import CLICKS, clicks
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Tables
from windowlib.pages.failed_checks import failed_check_sentences
from windowlib.pages.history import histories, places
from windowlib.pages.hours import Hour
from windowlib.pages.plots.by_batch import check_plot
from windowlib.pages.plots.by_hour import days
from windowlib.pages.words import check_strip, strip_words
from windowlib.quality.offending import INDEX
from windowlib.quality.suite_files import JUDGED, OF_BATCH, OF_ROWS
from windowlib.quality.validations import Validated
from windowlib.reruns.preview_text import HIDDEN

WRONG = {
    "user": "ann",
    "window_start": "2026-03-05T10:00:00+00:00",
    "window_end": "2026-03-05T10:10:00+00:00",
    "total": -7,
}


def batch(batch_id: int, share: float, high: float = 0.1, rows: list[Mapping[str, Any]] | None = None) -> Validated:
    of_figure = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "unusable_share", "max_value": high}}
    of_rows = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "total", "min_value": 0}}
    figures = [outcome(of_figure, share <= high, {"observed_value": share}, figures=["rows_read"])]
    wrong = [outcome(of_rows, not rows, {"unexpected_count": len(rows or ()), "element_count": 9, INDEX: rows or []})]
    suites = [suite(figures, OF_BATCH), suite(wrong, OF_ROWS)]
    return Validated(batch_id, {"rows_read": 100 + batch_id}, suites)


def suite(results: list[Any], judged: str) -> dict[str, Any]:
    return {"suite_name": "own", "results": results, "meta": {JUDGED: judged}}


def outcome(config: dict[str, Any], success: bool, result: dict[str, Any], figures: list[str] | None = None) -> Any:
    meta = {"windowlib": {"figures": figures or []}}
    return {
        "success": success,
        "expectation_config": {**config, "severity": "warning", "description": f"{config['type']}.", "meta": meta},
        "result": result,
        "exception_info": {"raised_exception": False},
    }


BATCHES = [batch(n, 0.5 if n in (30, 31) else 0.01, rows=[WRONG] if n == 59 else None) for n in range(60, 0, -1)]


@pytest.fixture
def made(tmp_path: Path) -> Definition:
    return clicks(tmp_path, files=0)


def test_the_values_of_all_runs_are_shown_with_their_bounds(made: Definition) -> None:
    share = next(one for one in histories(made, BATCHES, []) if "max" in one.sentence)
    assert [(one.batches, one.result.success, one.result.observed) for one in share.spans] == [
        ("32 to 60", True, "1 %"),
        ("31", False, "50 % (rows_read 131)"),
        ("30", False, "50 % (rows_read 130)"),
        ("1 to 29", True, "1 %"),
    ]
    plot = check_plot(share)
    assert plot is not None
    assert len(plot.bars) == 60
    assert [number for number, bar in enumerate(plot.bars, 1) if bar.kind] == [30, 31]
    assert plot.bars[29].title == "batch 30: 50 % (rows_read 130), expected at most 10 %"
    [band] = plot.bands
    assert band.y == pytest.approx(plot.height * (1 - 0.1 / 0.6), abs=0.01)
    assert plot.bars[0].y > band.y > plot.bars[29].y > 0
    assert plot.ticks == ["60 %", "40 %", "20 %", "0 %"]


def test_each_bound_is_its_own_line(made: Definition) -> None:
    [share, _] = sorted(
        histories(made, [batch(2, 0.01, 0.2), batch(1, 0.01)], []), key=lambda one: "max" not in one.sentence
    )
    assert [(one.batches, one.result.expected) for one in share.spans] == [("2", "at most 20 %"), ("1", "at most 10 %")]


def test_the_author_s_checks_come_first_with_their_trend(made: Definition) -> None:
    internal = {**BATCHES[0].suites[0], "suite_name": "events"}
    own = {**BATCHES[0].suites[0], "suite_name": "own_tests"}
    batches = [Validated(number, {"rows_read": number}, [internal, own]) for number in (3, 2, 1)]
    batches[0] = batch(3, 0.5)  # of a suite of the author
    found = histories(made, [replace(batches[0], suites=[*batches[0].suites, internal]), *batches[1:]], [])
    assert [(check.suite, check.is_own) for check in found] == [
        ("own", True),
        ("own", True),
        ("own_tests", True),
        ("events", False),
    ]
    assert found[-1].values == [0.01, 0.01, 0.01]


def test_wrong_results_are_shown_with_key_and_window(made: Definition, tmp_path: Path) -> None:
    total = next(one for one in histories(made, BATCHES, []) if "values" in one.sentence)
    [failure] = total.failures
    assert (failure.value, failure.high) == (1, 0)
    assert failure.rows.columns == ["user", "window_start", "window_end", "total"]
    assert failure.rows.cells == [["ann", "2026-03-05 10:00:00", "2026-03-05 10:10:00", "-7"]]
    hiding = clicks(tmp_path / "hiding", files=0, definition=f'{CLICKS}[pages]\nhide = ["user"]\n')
    [failure] = next(one for one in histories(hiding, BATCHES, []) if "values" in one.sentence).failures
    assert failure.rows.cells[0][:2] == [HIDDEN, "2026-03-05 10:00:00"]


def test_a_failed_check_links_to_its_rows(made: Definition) -> None:
    on_page = ["quarantine-null_key", "quarantine-duplicate", "results"]
    share = next(one for one in histories(made, BATCHES, on_page) if "max" in one.sentence)
    assert [one.anchor for one in share.places] == ["quarantine-null_key"]  # duplicates are not a mistake
    assert [one.anchor for one in places("quarantined_duplicate", on_page)] == ["quarantine-duplicate"]
    assert [one.anchor for one in places("rows_without_reason", on_page)] == on_page[:2]
    assert [one.anchor for one in places("late_rows_early", on_page)] == ["late"]
    late = histories(made, [batch(1, 0.5)], [])
    assert [one.places for one in late] == [[], []]  # none of these rows is on the page


def test_checks_with_equal_sentences_are_each_shown(made: Definition) -> None:
    kinds = ("expect_column_values_to_be_between", "expect_column_values_to_be_in_set")
    checks = [({"type": one, "kwargs": {"column": "total"}}, number) for number, one in enumerate(kinds * 2)]
    results = [
        {**outcome(config, number > 1, {"unexpected_count": number, "element_count": 9})} for config, number in checks
    ]
    for one in results:
        one["expectation_config"]["description"] = "The total is right."
    batches = [Validated(1, {}, [suite(results, OF_ROWS)])]
    found = histories(made, batches, [])
    assert [[one.value for one in history.outcomes] for history in found] == [[0], [1], [2], [3]]
    said = list(failed_check_sentences(made, Tables(made.store), None, batches, 5, {}))
    assert said == [
        f"Failed, observed {count} unexpected among 9: The total is right, since batch 1" for count in (0, 1)
    ]


def test_a_bound_that_moves_is_the_same_check(made: Definition) -> None:
    moved = batch(2, 0.01, 0.2)
    moved.suites[0]["results"][0]["expectation_config"]["description"] = "At most 0.2."
    [share, _] = sorted(histories(made, [moved, batch(1, 0.01)], []), key=lambda one: "0.2" not in one.sentence)
    assert (share.sentence, [one.batch_id for one in share.outcomes]) == ("At most 0.2.", [1, 2])


def test_one_event_and_one_check_are_singular(made: Definition) -> None:
    [day] = days([Hour(0, 1, 1, 0, 0)])
    assert day.sum == "1 event, 0 late"
    config = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "total"}}
    failed = [outcome(config, False, {"unexpected_count": 1, "element_count": 9})] * 4
    batches = [Validated(1, {}, [suite(failed, OF_ROWS)])]
    assert [*failed_check_sentences(made, Tables(made.store), None, batches, 5, {})][-1] == "1 more check failed"


def test_the_strip_of_a_check_that_only_informs_shows_that_it_failed(made: Definition) -> None:
    failed = outcome({"type": "expect_column_values_to_be_between", "kwargs": {"column": "total"}}, False, {})
    failed["expectation_config"]["severity"] = "info"
    [history] = histories(made, [Validated(1, {}, [suite([failed], OF_ROWS)])], [])
    words = "checks of 1 batch: 0 met, 1 with warnings, 0 refused; the newest with warnings"
    assert strip_words(check_strip(history)) == words
