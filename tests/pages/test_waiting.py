"""Rows of a waiting batch that the page shows to the operator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.check_samples import FIGURES, HISTORY, check, definition, results_file
from windowlib.airflow.question import folded_rows, question
from windowlib.pages.waiting_batch import lines, wrong_results
from windowlib.quality.check import critical_failures

SUITE = {
    "type": "expect_column_values_to_be_in_set",
    "kwargs": {"column": "user_id", "value_set": ["a"]},
    "description": "Every user is known.",
}


@pytest.mark.parametrize("severity", ["critical", "warning"])
def test_results_that_stop_a_publication_are_shown(tmp_path: Path, severity: str) -> None:
    (tmp_path / "own.json").write_text(json.dumps({"expectations": [{**SUITE, "severity": severity}]}))
    pipeline = definition(tmp_path, checks='results_suite = "own.json"')
    file = results_file(tmp_path, [("a", 10, 20), ("<b>", 20, 30), ("a", 30, 40)])
    refused = critical_failures(check(pipeline, FIGURES, HISTORY, [file]))
    shown = [line for rows in wrong_results(pipeline, FIGURES["batch_id"]) for line in lines(rows)]
    if severity == "warning":
        assert refused == shown == []
        return
    [row] = shown
    assert row.startswith("Every user is known: user_id <b>, window_start 1970-01-01 00:00:00.02")
    _, body = question("clicks", 7, "/clicks/", ("approve", "abandon"), ["Every user is known."])
    assert "Every user is known." in body
    assert "<b>" not in body
    [field] = folded_rows({"results that are wrong": shown}).values()
    assert (field.schema["title"], field.value) == ("Some of its results that are wrong", row)
    assert wrong_results(pipeline, FIGURES["batch_id"] + 1) == []
