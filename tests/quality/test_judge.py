"""Checks in another process give the same outcomes as in this one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support import check_samples as samples
from tests.support.check_samples import FIGURES, HISTORY, SOUND_RESULTS, definition, own, results_file, stored
from tests.support.private_apis import holds
from windowlib.model.errors import InvalidSpec
from windowlib.quality import judge
from windowlib.quality.suite_files import JUDGED, OF_BATCH, OF_ROWS
from windowlib.quality.terms import Terms

OF_THE_MOMENT = {"batch_id", "id", "run_id", "validation_time", "active_batch_definition", "batch_markers", "pid"}


@pytest.fixture(autouse=True)
def no_judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No judge process at first; the test's own judge ends with it."""
    monkeypatch.setattr(judge, "_judge", None)
    yield
    if judge._judge:
        judge._judge.end()


def own_judge() -> subprocess.Popen[bytes]:
    assert judge._judge
    return judge._judge._process


def lasting(found: Any) -> Any:
    """An outcome without values that differ between runs."""
    if isinstance(found, dict):
        return {name: lasting(value) for name, value in found.items() if name not in OF_THE_MOMENT}
    return [lasting(one) for one in found] if isinstance(found, list) else found


def test_the_judge_gives_the_outcomes_of_this_process(tmp_path: Path) -> None:
    suite = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "user_id", "value_set": ["a"]}}
    clicks = own(tmp_path, "results_suite", suite)
    request = (Terms.of(clicks), FIGURES, HISTORY, [stored(results_file(tmp_path, [*SOUND_RESULTS, ("a", 0, 10)]))])
    here = judge.judge_batch(request)
    judge.start_judge()
    there = judge.judge_batch(request)
    assert lasting(there) == lasting(here)
    assert [outcome["success"] for outcome in there] == [True, True, True, True, False]
    assert psutil.Process(own_judge().pid).ppid() == os.getpid()
    # What is wrong with a suite is said as here.
    clicks = own(tmp_path, "figures_suite", {"type": "expect_wonders", "kwargs": {}})
    with pytest.raises(InvalidSpec, match=r"own\.json: expectation 1, expect_wonders: Great Expect") as raised:
        samples.check(clicks, FIGURES)
    assert own_judge().poll() is None  # it had no answer, and this process met the error itself
    assert raised.traceback[-1].name == "_built"
    with pytest.raises(KeyError, match="rows_admitted"):
        samples.check(definition(tmp_path), {**FIGURES, "rows_admitted": None})


@pytest.mark.fault("the process that runs the checks is killed", "the run does its checks itself")
def test_the_run_judges_itself_if_its_judge_has_ended(tmp_path: Path) -> None:
    judge.start_judge()
    own_judge().kill()
    with pytest.warns(UserWarning, match="the process that judges batches does not answer"):
        assert samples.check(definition(tmp_path), FIGURES, HISTORY)
    assert judge._judge is None
    assert samples.check(definition(tmp_path), FIGURES, HISTORY)


SUITE = [
    ("expect_column_values_to_not_be_null", {"column": "events"}, "warning"),
    ("expect_column_values_to_be_between", {"column": "events", "min_value": 1, "max_value": 1}, "critical"),
    ("expect_column_values_to_be_in_set", {"column": "user_id", "value_set": ["a"], "mostly": 0.5}, "info"),
    ("expect_column_mean_to_be_between", {"column": "events", "max_value": {"$PARAMETER": "max_late_share"}}, "info"),
    ("expect_column_mean_to_be_between", {"column": "user_id", "min_value": 1}, "warning"),  # which ends in an error
    ("expect_compound_columns_to_be_unique", {"column_list": ["window_start", "window_end"]}, "warning"),
]


def test_an_outcome_equals_that_of_great_expectations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from great_expectations.validator.v1_validator import Validator

    from windowlib.quality import verdict

    theirs = list[dict[str, Any]]()

    class Kept(Validator):
        def validate_expectation_suite(self, *given: Any, **named: Any) -> Any:
            found = super().validate_expectation_suite(*given, **named)
            theirs.append(json.loads(json.dumps(found.to_json_dict(), default=verdict._as_json)))
            return found

    monkeypatch.setattr(verdict, "Validator", Kept)
    terms, files = suite_of_rows(tmp_path), [stored(results_file(tmp_path, SOUND_RESULTS))]
    monkeypatch.setattr(verdict, "with_rows", lambda outcome, *given: outcome)
    ours = verdict.validate(terms, {**FIGURES, "windows_touching": 3}, HISTORY, files)
    assert [one["meta"].pop(JUDGED) for one in ours] == [*[OF_BATCH] * (len(ours) - 1), OF_ROWS]
    assert ours == theirs
    assert {one["success"] for one in ours} == {True, False}


def suite_of_rows(folder: Path) -> Terms:
    """The terms of a pipeline that has `SUITE`."""
    suite = folder / "own.json"
    rules = [{"type": kind, "kwargs": kwargs, "severity": severity} for kind, kwargs, severity in SUITE]
    suite.write_text(json.dumps({"expectations": rules}))
    return replace(Terms.of(definition(folder)), results_suite=suite)


@holds("quality/configurations.py", "great_expectations.expectations.expectation")
def test_cached_configurations_change_no_outcome(tmp_path: Path) -> None:
    from windowlib.quality.verdict import validate

    terms, files = suite_of_rows(tmp_path), [stored(results_file(tmp_path, [*SOUND_RESULTS, ("a", 0, 10)]))]
    for figures in (FIGURES, {**FIGURES, "rows_late": FIGURES["rows_late"] + 1, "windows_touching": 3}):
        once, often = (judge_(terms, figures, HISTORY, files) for judge_ in (validate, validate.__wrapped__))
        assert lasting(once) == lasting(often)
        assert len([one for found in once for one in found["results"]]) > 30
    assert not all(one["success"] for found in once for one in found["results"])
