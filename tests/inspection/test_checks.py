"""The checks of a pipeline, listed and explained; expected ranges by hour of the week, read from the tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.support.check_samples import FIGURES, HISTORY, check, definition
from windowlib.cli.main import app
from windowlib.contract.tables import RUN_METRICS
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files, row_groups
from windowlib.delta import small_tables as small
from windowlib.delta.tables import Tables
from windowlib.inspection.checks import check_named, checks
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.model.errors import InvalidSpec
from windowlib.quality.baselines import HOUR_MS, NEEDED, WEEK_MS, WEEKS
from windowlib.runs.history import history
from windowlib.storage.disk import Disk

NOW_MS = FIGURES["plan_time_ms"] or 0


@pytest.fixture
def clicks(tmp_path: Path):
    return definition(tmp_path)


def test_each_check_states_its_failure_condition_owner_and_override(clicks):
    check(clicks, FIGURES, HISTORY)
    check(clicks, {**FIGURES, "batch_id": 8, "rows_late": 98, "late_rows_written": 98}, HISTORY)
    found = checks(clicks, NOW_MS)
    late = check_named(found, "events.late_share")
    assert (late.severity, late.owner, late.bound, late.outcome) == ("warning", "data source", "0 % to 5 %", "failed")
    assert late.fails.startswith("It fails if late_share is above 5 %. Batch 8 failed: observed 10 % ")
    assert late.override.endswith("under [checks]: max_late_share = …   (0 to 1, now 0.05)")
    assert [(one.batch_id, one.success) for one in late.seen] == [(8, False), (7, True)]
    assert late.observes[0] == "late_share: late events, as a share of admitted events"
    assert check_named(found, "unusable_share").fails == (
        "It fails if unusable_share is above 2 %. Batch 8 had 1.1 %: 55 % of the bound."
    )
    usual = check_named(found, "usual.rows_read")
    assert (usual.bound, usual.fails.startswith("It cannot fail now")) == ("none yet", True)
    assert "events.json" in check_named(found, "rows_unaccounted").override
    assert len({one.name for one in found.checks}) == len(found.checks)


def test_an_unknown_check_is_refused_with_similar_names(clicks):
    with pytest.raises(InvalidSpec, match=r'clicks has no check "late_share"; did you mean events.late_share or usual'):
        check_named(checks(clicks, NOW_MS), "late_share")


def test_the_owner_of_an_own_check_is_the_pipelines(tmp_path: Path):
    (tmp_path / "own.json").write_text(
        json.dumps({"expectations": [{"type": "expect_column_max_to_be_between",
                                      "kwargs": {"column": "rows_read", "max_value": 4}, "severity": "warning"}]})
    )  # fmt: skip
    own = definition(tmp_path, checks='figures_suite = "own.json"')
    found = checks(own.model_copy(update={"owner": "web team"}), NOW_MS)
    mine = check_named(found, "own_figures.rows_read")
    assert (found.owner, mine.owner, mine.bound) == ("web team", "web team", "at most 4")
    assert mine.override == f"edit {tmp_path / 'own.json'}"


LARGEST = "expect_column_max_to_be_between"
HOW_IT_FAILS = [
    (LARGEST, {"column": "watermark_out_ms", "min_value": 0}, "watermark_out_ms is below 0."),
    (LARGEST, {"column": "rows_read", "max_value": 9, "strict_max": True}, "rows_read is not below 9."),
    (
        "expect_column_values_to_be_in_set",
        {"column": "rows_late", "value_set": [1]},
        "does not meet the check: value_set=[1].",
    ),
    ("expect_column_values_to_not_be_null", {"column": "newest_event_ms"}, "newest_event_ms does not meet the check."),
]


@pytest.mark.parametrize(("kind", "arguments", "how"), HOW_IT_FAILS)
def test_a_check_of_any_kind_says_how_it_fails(tmp_path: Path, kind: str, arguments: dict[str, Any], how: str):
    own_one = {"expectations": [{"type": kind, "kwargs": arguments}]}
    (tmp_path / "own.json").write_text(json.dumps(own_one), encoding="utf-8")
    found = checks(definition(tmp_path, checks='figures_suite = "own.json"'), NOW_MS)
    [mine] = (one for one in found.checks if one.suite == "own_figures")
    assert mine.fails.startswith("It fails if ")
    assert how in mine.fails


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def test_the_command_lists_them(clicks):
    check(clicks, FIGURES, HISTORY)
    listed = ran("checks", clicks.file)
    assert "late_share" in listed.stdout
    assert "data source" in listed.stdout
    explained = ran("checks", clicks.file, "--explain", "events.late_share")
    assert "override in" in explained.stdout
    assert "20 % of the bound" in explained.stdout
    [line] = ran("checks", clicks.file, "--json").stdout.splitlines()
    assert len(json.loads(line)["checks"]) == len(listed.stdout.splitlines()) - 2


def figures_of(batch_id: int, at_ms: int) -> list[dict[str, object]]:
    about = {"batch_id": batch_id, "plan_time": datetime.fromtimestamp(at_ms / 1000, UTC)}
    return [{**about, "figure": name, "value": at_ms if name == "plan_time_ms" else 1} for name in NEEDED]


def test_one_row_group_of_a_long_file_is_read_for_each_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table, hour_ms = Tables(Disk(tmp_path))[RUN_METRICS.name], NOW_MS // HOUR_MS * HOUR_MS
    delta_commits.create(table, RUN_METRICS.schema())
    times = range(hour_ms - (WEEKS + 4) * WEEK_MS, hour_ms, HOUR_MS)
    rows = [row for batch_id, at_ms in enumerate(times, start=1) for row in figures_of(batch_id, at_ms)]
    version = small.append_rows(table, 0, rows)
    groups: list[int] = []
    read = row_groups._read
    monkeypatch.setattr(row_groups, "_read", lambda file, of, schema: groups.extend(of) or read(file, of, schema))
    commit = Commit(len(times), {RUN_METRICS.name: version}, 0, 0, "", "", {}, 0, plan_time_ms=0, late_out_ms=0)
    found = history(Tables(Disk(tmp_path)), LedgerState(commit=commit), NOW_MS)
    assert len(found) == WEEKS + 20
    assert len(rows) // data_files.ROWS_PER_GROUP > WEEKS
    assert WEEKS <= len(groups) <= WEEKS + 1, "a row group for each week, and the newest"


def test_earlier_batches_of_the_hour_are_found_and_no_others(tmp_path: Path):
    tables, hour_ms = Tables(Disk(tmp_path)), NOW_MS // HOUR_MS * HOUR_MS
    version = delta_commits.create(tables[RUN_METRICS.name], RUN_METRICS.schema())
    times = [hour_ms - week * WEEK_MS + at for week in range(WEEKS + 2, 0, -1) for at in (-1, 0, HOUR_MS - 1, HOUR_MS)]
    for batch_id, at_ms in enumerate(times, start=1):
        version = small.append_rows(tables[RUN_METRICS.name], version, figures_of(batch_id, at_ms))
    commit = Commit(len(times), {RUN_METRICS.name: version}, 0, 0, "", "", {}, 0, plan_time_ms=0, late_out_ms=0)
    found = history(tables, LedgerState(commit=commit), NOW_MS)
    same_hour = [one["plan_time_ms"] for one in found[:-20]]
    newest = [one["plan_time_ms"] for one in found[-20:]]
    assert newest == times[-20:]
    in_hour = [at for at in times[:-20] if (at - hour_ms) % WEEK_MS < HOUR_MS]
    assert same_hour == [at for at in in_hour if at >= hour_ms - WEEKS * WEEK_MS]


def test_the_command_refuses_a_suite_that_great_expectations_refuses(tmp_path: Path):
    misspelt = {"type": "expect_column_max_to_be_betwen", "kwargs": {"column": "rows_read", "max_value": 4}}
    (tmp_path / "own.json").write_text(json.dumps({"expectations": [misspelt]}))
    own = definition(tmp_path, checks='figures_suite = "own.json"')
    shown = ran("checks", own.file)
    assert shown.exit_code == 2
    assert "expectation 1" in shown.stderr
    assert "did you mean expect_column_max_to_be_between?" in shown.stderr
