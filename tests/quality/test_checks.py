"""Every check passes on a sound batch, and fails alone for its own fault."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.check_samples import (
    FIGURES,
    HISTORY,
    RERUN_FIGURES,
    SOUND_RESULTS,
    check,
    definition,
    own,
    results_file,
)
from tests.support.disks import folder_of
from windowlib.contract.tables import DQ_RESULTS
from windowlib.model.errors import InvalidSpec
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.quality.baselines import WEEK_MS
from windowlib.quality.check import critical_failures, dq_rows, explain
from windowlib.quality.figures import ROWS_MUST_BE_ZERO
from windowlib.quality.offending import rows_of
from windowlib.quality.validations import KEPT_BATCHES, stored_outcomes


def after(events: int) -> dict[str, int | None]:
    """Figures of a batch with this number of events in state."""
    return {"events_in_state_after": events, "events_in_state_written": events}


# What is judged, and changes of figures that make it fail, alone.
SPOILED: dict[str, dict[str, int | None]] = {
    "rows_unread": {"rows_in_files": 1001},
    "rows_unaccounted": {"rows_read": 1001, "rows_in_files": 1001},
    "rows_without_reason": {"quarantined_malformed": 4},
    "quarantine_rows_missing": {"quarantine_rows_written": 19},
    "late_rows_missing": {"late_rows_written": 9},
    "late_rows_early": {"late_rows_early": 1},
    "ids_repeated": {"ids_repeated": 1},
    "late_share": {"rows_late": 50, "late_rows_written": 50, **after(830)},
    "unusable_share": {"quarantined_malformed": 15, "quarantined_duplicate": -1},
    "duplicate_share": {"quarantined_duplicate": 14, "quarantined_malformed": 0},
    "events_unaccounted": {"events_retired": 199},
    "state_unread": {"events_in_state_read": 101},
    "state_unwritten": {"events_in_state_written": 869},
    "windows_unwritten": {"windows_written_open": 89},
    "windows_miscounted": {"windows_miscounted": 1},
    "windows_overdue": {"windows_overdue": 1},
    "windows_touching": {"windows_touching": 1},
    "windows_past_cleanup": {"windows_past_cleanup": 1},
    "watermark_fell_by_ms": dict.fromkeys(("watermark_out_ms", "watermark_candidate_ms"), 1_763_689_999_999),
    "watermark_ahead_by_ms": {"watermark_out_ms": 1_763_695_000_001},
    "watermark_behind_by_ms": {"watermark_out_ms": 1_763_694_999_999},
    "results_unaccounted": {"results_rows_after": 58},
    "events_unfired": {"events_fired": 399},
    "firings_unfounded": {"firings_unfounded": 1},
    **{name: {name: 1} for name in ROWS_MUST_BE_ZERO},
    "results_gone_null": {"results_gone_null": 1},
    "changes_unaccounted": {"changes_rows_written": 60},
    "windows_fired": {"windows_fired_early": 90, "windows_fired_on_time": 46, "changes_rows_written": 145},
}
SPOILED_RERUN: dict[str, dict[str, int | None]] = {
    "results_unaccounted": {"results_rows_after": 12},
    "changes_unaccounted": {"changes_rows_written": 6},
    **{name: {name: 1} for name in ROWS_MUST_BE_ZERO[:3]},
    "late_unaccounted": {"late_rows_after": 7},
    "windows_touching": {"windows_touching": 1},
    "windows_past_cleanup": {"windows_past_cleanup": 1},
    "watermark_moved_ms": {"watermark_out_ms": 1_763_690_000_001},
}
# By what is usual at this hour of the week: of batches that read 1,000 rows and fired 55 windows.
UNUSUAL: dict[str, dict[str, int | None]] = {
    "rows_read": {"rows_in_files": 1751, "rows_read": 1751, "rows_admitted": 1731, **after(1621)},
    "late_share": {"rows_late": 18, "late_rows_written": 18, **after(862)},
    "windows_fired": {"windows_fired_on_time": 92, "changes_rows_written": 101},
}
WARNINGS = {"late_share", "unusable_share", "duplicate_share", "results_gone_null", "windows_fired"}


def judged(result: Any) -> str:
    """The column a check looks at."""
    return result.expectation.split("(")[1].rstrip(")")


def failed(results: list[Any]) -> list[Any]:
    return [result for result in results if not result.success]


@pytest.fixture
def clicks(tmp_path: Path):
    return definition(tmp_path)


def test_a_sound_batch_passes_every_check(clicks, tmp_path):
    results = check(clicks, FIGURES, HISTORY, [results_file(tmp_path, SOUND_RESULTS)])
    assert {result.suite for result in results} == {"events", "state", "results", "usual"}
    assert failed(results) == []


def test_every_check_can_fail(clicks, tmp_path):
    """Each new check needs a figure that makes it fail."""
    results = check(clicks, FIGURES, HISTORY, [results_file(tmp_path, SOUND_RESULTS)])
    of_hours = [result for result in results if result.suite == "usual"]
    assert {judged(one) for one in results if one not in of_hours} == set(SPOILED)
    assert [judged(one) for one in of_hours] == list(UNUSUAL)
    assert len(results) == len(SPOILED) + len(UNUSUAL)


@pytest.mark.parametrize("column", SPOILED)
def test_one_wrong_figure_fails_one_check(clicks, column):
    results = check(clicks, {**FIGURES, **SPOILED[column]}, HISTORY)
    assert [judged(result) for result in failed(results)] == [column]
    assert [judged(result) for result in critical_failures(results)] == ([] if column in WARNINGS else [column])


def test_every_check_of_a_rerun_can_fail(clicks):
    results = check(clicks, RERUN_FIGURES)
    assert {result.suite for result in results} == {"rerun"}
    assert failed(results) == []
    assert [judged(result) for result in results] == list(SPOILED_RERUN)


@pytest.mark.parametrize("column", SPOILED_RERUN)
def test_one_wrong_figure_of_a_rerun_fails_one_check(clicks, column):
    results = failed(check(clicks, {**RERUN_FIGURES, **SPOILED_RERUN[column]}))
    assert [judged(result) for result in results] == [column]
    assert critical_failures(results) == results


def test_bounds_are_inclusive(clicks):
    at_the_bound = {
        "late_share": {"rows_late": 49, "late_rows_written": 49, **after(831)},
        "unusable_share": {"quarantined_malformed": 14, "quarantined_duplicate": 0},
        "windows_fired": {"windows_fired_on_time": 135, "changes_rows_written": 144},
        "few windows fired": {"windows_fired_on_time": 15, "changes_rows_written": 24},
    }
    for changes in at_the_bound.values():
        assert failed(check(clicks, {**FIGURES, **changes}, HISTORY)) == []
    too_few = {**FIGURES, "windows_fired_on_time": 14, "changes_rows_written": 23}
    assert [judged(result) for result in failed(check(clicks, too_few, HISTORY))] == ["windows_fired"]


@pytest.mark.parametrize(
    "history", [HISTORY[:4], [{**past, "windows_fired_on_time": 0, "windows_fired_late": 0} for past in HISTORY]]
)
def test_without_enough_history_any_number_of_windows_may_fire(clicks, history):
    figures = {**FIGURES, "windows_fired_on_time": 100_000, "changes_rows_written": 100_009}
    assert failed(check(clicks, figures, history)) == []


def same_hour(weeks: int) -> list[dict[str, int | None]]:
    """Batches like the sound one, planned in the hour that it was planned in, so many weeks long."""
    at = FIGURES["plan_time_ms"]
    assert at is not None
    return [{**FIGURES, "plan_time_ms": at - week * WEEK_MS} for week in range(weeks, 0, -1)]


@pytest.mark.parametrize("column", UNUSUAL)
def test_an_unusual_value_for_the_hour_of_the_week_is_a_warning(clicks, column):
    spoiled = {**FIGURES, **UNUSUAL[column]}
    [found] = failed(check(clicks, spoiled, [*same_hour(4), *HISTORY]))
    assert (found.suite, judged(found), found.severity) == ("usual", column, "warning")
    assert failed(check(clicks, spoiled, [*same_hour(3), *HISTORY])) == [], "silent in the first weeks"


def test_a_batch_that_reads_nothing_is_not_unusual(clicks):
    nothing = dict.fromkeys(
        [name for name in FIGURES if name.startswith(("rows_", "quarantined_", "late_", "quar"))], 0
    )
    idle = {**FIGURES, **nothing, "watermark_candidate_ms": None, "watermark_out_ms": FIGURES["watermark_in_ms"]}
    idle |= {**after(80), "events_retired": 20, "windows_fired_on_time": 0, "changes_rows_written": 9}
    assert [one for one in failed(check(clicks, idle, same_hour(8))) if one.suite == "usual"] == []


def test_the_first_batch_has_no_watermark_to_fall_from(clicks):
    assert failed(check(clicks, {**FIGURES, "watermark_in_ms": None})) == []
    nothing = {"watermark_in_ms": None, "watermark_candidate_ms": None, "watermark_out_ms": -(2**63)}
    assert failed(check(clicks, {**FIGURES, **nothing})) == []


def test_the_watermark_of_a_finished_source_is_allowed(clicks, tmp_path):
    finished = {**FIGURES, "watermark_candidate_ms": MAX_WATERMARK, "watermark_out_ms": MAX_WATERMARK}
    assert failed(check(clicks, finished, HISTORY, [results_file(tmp_path, SOUND_RESULTS)])) == []


@pytest.mark.fault("the watermark is lost", "a check fails")
def test_a_lost_watermark_fails_a_check(clicks):
    figures = {**FIGURES, "watermark_out_ms": None}
    assert [judged(result) for result in failed(check(clicks, figures))] == [
        "watermark_fell_by_ms",
        "watermark_behind_by_ms",
    ]


def test_silence_moves_the_watermark_only_with_idle_timeout(clicks, tmp_path):
    moved = FIGURES["plan_time_ms"] - 3_600_000 - 300_000 - 1
    quiet = {**FIGURES, "watermark_candidate_ms": None, "watermark_out_ms": moved}
    assert [judged(result) for result in failed(check(clicks, quiet))] == ["watermark_ahead_by_ms"]
    patient = definition(tmp_path, watermark='idle_timeout = "1h"')
    assert failed(check(patient, quiet)) == []
    too_far = {**quiet, "watermark_out_ms": moved + 1}
    assert [judged(result) for result in failed(check(patient, too_far))] == ["watermark_ahead_by_ms"]
    loud = {**quiet, "watermark_candidate_ms": FIGURES["watermark_in_ms"]}
    assert [judged(result) for result in failed(check(patient, loud))] == ["watermark_ahead_by_ms"]


def test_the_newest_event_limits_the_watermark(clicks):
    """The check does not trust the candidate that the batch states."""
    newest = FIGURES["watermark_out_ms"] + 5 * 60_000 + 1  # out_of_orderness is five minutes
    assert failed(check(clicks, {**FIGURES, "newest_event_ms": newest})) == []
    too_far = check(clicks, {**FIGURES, "newest_event_ms": newest - 1})
    assert [judged(result) for result in failed(too_far)] == ["watermark_ahead_by_ms"]


@pytest.mark.parametrize("columns", [["user_id"], ["user_id", "events"], ["window_start_ms"], []])
def test_an_own_suite_judges_every_row(tmp_path, columns):
    """The wrong row is the last of ten thousand. Only the columns of the suite are read."""
    named = [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": name}} for name in columns]
    of_all = {"type": "expect_table_row_count_to_equal", "kwargs": {"value": 9_999}}
    clicks = own(tmp_path, "results_suite", *named, of_all)
    file = results_file(tmp_path, [("a", 10 * number, 10 * number + 10) for number in range(10_000)])
    [one] = failed(check(clicks, FIGURES, HISTORY, [file]))
    assert one.observed == "10000"


def test_an_own_suite_finds_the_one_wrong_row_of_many(tmp_path):
    of_user = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "user_id", "value_set": ["a"]}}
    columns = ["user_id", "window_start", "window_end", "events", "window_start_ms", "window_end_ms"]
    of_all = {"type": "expect_table_columns_to_match_set", "kwargs": {"column_set": columns}}
    clicks = own(tmp_path, "results_suite", of_user, of_all)
    rows = [("a", 10 * number, 10 * number + 10) for number in range(5_000)]
    results = failed(check(clicks, FIGURES, HISTORY, [results_file(tmp_path, [*rows, ("b", 0, 10)])]))
    assert [one.observed for one in results] == ["1 unexpected among 5001, such as b"]


def test_the_wrong_rows_are_kept_with_their_key_and_window(tmp_path):
    of_user = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "user_id", "value_set": ["a"]}}
    two = {"column_A": "window_start_ms", "column_B": "events", "or_equal": True}
    of_two = {"type": "expect_column_pair_values_a_to_be_greater_than_b", "kwargs": two}
    met = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "user_id"}}
    clicks = own(tmp_path, "results_suite", of_user, of_two, met)
    (tmp_path / "first").mkdir()
    files = [
        results_file(tmp_path / "first", [("a", 10, 20), ("b", 20, 30)]),
        results_file(tmp_path, [("a", 0, 10), *(("c", 10 * number, 10 * number + 10) for number in range(1, 9))]),
    ]
    check(clicks, FIGURES, HISTORY, files)
    [suite] = [one for one in stored_outcomes(clicks.store)[0].suites if one["suite_name"] == "own_results"]
    found = {one["expectation_config"]["type"]: rows_of(one) for one in suite["results"]}
    users, starts, none = (found[one["type"]] for one in (of_user, of_two, met))
    assert [(row["user_id"], row["window_start"][17:23]) for row in users] == [
        ("b", "00.020"), ("c", "00.010"), ("c", "00.020"), ("c", "00.030"), ("c", "00.040"),
    ]  # fmt: skip
    assert [(row["user_id"], row["window_end"]) for row in starts] == [("a", "1970-01-01T00:00:00.010000+00:00")]
    assert none == []


def test_a_missing_figure_is_named(clicks):
    with pytest.raises(KeyError, match="rows_admitted"):
        check(clicks, {**FIGURES, "rows_admitted": None})


def test_explain_shows_expected_and_observed_values(clicks):
    results = check(clicks, {**FIGURES, "rows_read": 1001, "rows_in_files": 1001})
    assert explain(critical_failures(results)) == (
        "- Every row read was either admitted or quarantined. Expected 0, observed 1 (rows_read 1001,"
        " rows_admitted 980, rows_quarantined 20)."
    )


def test_rows_of_dq_results_fit_their_table(clicks):
    rows = dq_rows(7, check(clicks, FIGURES, HISTORY))
    table = pa.Table.from_pylist(
        [{**row, "plan_time": datetime(2026, 1, 1, tzinfo=UTC)} for row in rows], DQ_RESULTS.columns
    )
    assert table.num_rows == len(SPOILED) + len(UNUSUAL)
    assert sorted(rows[0]) == sorted(set(DQ_RESULTS.columns.names) - {"plan_time"})
    assert all(None not in row.values() for row in rows)


def test_only_the_newest_outcomes_are_kept_newest_first(clicks):
    folder = folder_of(clicks) / "checks"
    check(clicks, {**FIGURES, "batch_id": KEPT_BATCHES + 10})
    contents = (folder / f"{KEPT_BATCHES + 10}.json").read_text()
    for batch_id in range(1, KEPT_BATCHES + 1):
        (folder / f"{batch_id}.json").write_text(contents)
    check(clicks, {**FIGURES, "batch_id": KEPT_BATCHES + 11, "rows_read": 1001, "rows_in_files": 1001})
    (folder_of(clicks) / "checks" / "7 (copy).json").write_text("{}", encoding="utf-8")  # a copy made by hand
    batches = stored_outcomes(clicks.store)
    assert [batch.batch_id for batch in batches[:3]] == [KEPT_BATCHES + 11, KEPT_BATCHES + 10, KEPT_BATCHES]
    assert len(batches) == len(list(folder.iterdir())) - 1 == KEPT_BATCHES
    assert batches[-1].batch_id == 3
    assert [one["expectation_config"]["kwargs"]["column"] for one in batches[0].failed] == ["rows_unaccounted"]
    assert batches[0].figures["rows_read"] == 1001


# -- an author's own checks --------------------------------------------------------------------------------------------


def test_own_checks_of_figures_are_judged_with_their_severity(tmp_path):
    clicks = own(
        tmp_path,
        "figures_suite",
        {
            "type": "expect_column_min_to_be_between",
            "kwargs": {"column": "rows_read", "min_value": 1001},
            "severity": "warning",
            "description": "A batch reads more than a thousand rows.",
        },
        {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "quarantined_future", "value_set": [0]}},
    )
    few, future = failed(check(clicks, FIGURES, HISTORY))
    assert explain([few]) == "- A batch reads more than a thousand rows. Expected at least 1001, observed 1000."
    assert (few.suite, few.severity) == ("own_figures", "warning")
    assert future.sentence == "expect_column_values_to_be_in_set(quarantined_future) holds."
    assert (future.severity, future.expected) == ("critical", "value_set=[0]")
    assert future.observed == "1 unexpected among 1, such as 3"


def with_means(folder: Path, means: list[float | None]) -> Path:
    """A file of results with an aggregate of doubles."""
    file = results_file(folder, [("a", 10 * number, 10 * number + 10) for number in range(len(means))])
    pq.write_table(pq.read_table(file).append_column("mean", pa.array(means, pa.float64())), file)
    return file


def test_nan_is_within_no_bounds_and_a_null_within_all(tmp_path):
    of_each = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "mean", "min_value": 0}}
    of_all = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "mean", "max_value": 9}}
    clicks = own(tmp_path, "results_suite", of_each, of_all)
    assert failed(check(clicks, FIGURES, HISTORY, [with_means(tmp_path, [1.5, None])])) == []
    each, largest = failed(check(clicks, FIGURES, HISTORY, [with_means(tmp_path, [1.5, None, math.nan])]))
    assert each.observed.startswith("1 unexpected among 3")
    assert judged(largest) == "mean"


@pytest.mark.parametrize(("bound", "holds"), [("1970-01-01T00:00:00", True), ("1970-01-02", False)])
def test_a_bound_of_times_without_a_zone_is_in_utc(tmp_path, bound, holds):
    starts = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "window_start", "min_value": bound}}
    clicks = own(tmp_path, "results_suite", starts)
    results = failed(check(clicks, FIGURES, HISTORY, [results_file(tmp_path, SOUND_RESULTS)]))
    assert [one.observed.partition(",")[0] for one in results] == ([] if holds else ["3 unexpected among 3"])


def test_own_checks_of_results_see_the_rows(tmp_path):
    clicks = own(
        tmp_path,
        "results_suite",
        {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "user_id", "value_set": ["a"]}},
    )
    file = results_file(tmp_path, SOUND_RESULTS)
    assert [result.observed for result in failed(check(clicks, FIGURES, HISTORY, [file]))] == [
        "1 unexpected among 3, such as b"
    ]
    assert failed(check(clicks, FIGURES, HISTORY)) == []  # a batch that wrote no results has none to judge
    assert failed(check(clicks, FIGURES, HISTORY, [results_file(tmp_path, [])])) == []


def test_a_check_that_cannot_be_evaluated_fails(tmp_path):
    clicks = own(
        tmp_path,
        "figures_suite",
        {"type": "expect_column_max_to_be_between", "kwargs": {"column": "files_read", "max_value": 1}},  # of reruns
    )
    (result,) = critical_failures(check(clicks, FIGURES, HISTORY))
    assert '"files_read"' in result.observed
    assert "Traceback" not in (folder_of(clicks) / "checks" / "7.json").read_text()


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ("{", "JSONDecodeError"),
        ("[]", r"got \[\]"),
        ('{"expectations": [{"type": "expect_wonders", "kwargs": {}}]}', "Great Expectations has"),
        ('{"expectations": [{"type": "expect_column_max_to_be_between", "kwargs": {"kolumn": "a"}}]}', "kolumn|column"),
    ],
)
def test_a_suite_that_cannot_be_read_is_named(tmp_path, contents, problem):
    (tmp_path / "own.json").write_text(contents)
    clicks = definition(tmp_path, checks='figures_suite = "own.json"')
    with pytest.raises(InvalidSpec, match=rf"own\.json:? .*{problem}"):
        check(clicks, FIGURES)


@pytest.mark.fault("the file of a suite is missing", "the error names it")
def test_a_missing_suite_file_is_named(tmp_path):
    with pytest.raises(InvalidSpec, match=r'checks\.results_suite: no such file, given "gone\.json"'):
        definition(tmp_path, checks='results_suite = "gone.json"')


# -- imports --------------------------------------------------------------------------------------------------------


def test_importing_the_check_imports_nothing_heavy():
    code = "import sys, windowlib.quality.check; print({'great_expectations', 'pandas', 'pyspark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_user_without_a_home_has_batches_judged(unnamed: tuple[str, ...]) -> None:
    """Great Expectations asks for it when it is imported."""
    code = "from windowlib.quality.judge import check_suites; check_suites([])"
    subprocess.run([*unnamed, sys.executable, "-c", code], check=True)


@pytest.mark.long("tests/private_apis asks the same of the process that judges, in make test")
def test_statistics_and_plots_are_imported_when_they_are_used() -> None:
    program = """
import sys, types
from importlib import import_module
from windowlib.quality.lazy_imports import lazily
with lazily():
    import_module("windowlib.quality.verdict")
seldom = [sys.modules[name] for name in ("altair", "scipy.stats")]
assert all(type(module) is not types.ModuleType for module in seldom), seldom  # not loaded yet
assert seldom[1].entropy([0.5, 0.5]) > 0.69
assert type(seldom[1]) is types.ModuleType
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_great_expectations_has_no_usage_statistics_to_turn_off() -> None:
    assert importlib.util.find_spec("great_expectations.analytics") is None, "set GX_ANALYTICS_ENABLED=false again"
