"""Lineage of a task that publishes, as OpenLineage gets it; `test_airflow_run` tests that a real task sends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from openlineage.client.serde import Serde

from tests.support.check_samples import FIGURES, HISTORY, check
from tests.support.clicks import CLICKS, clicks
from windowlib.airflow.lineage import LineageTask, lineage, newest_checks

BATCHES = [{"rows_read": 5, "results_rows_written": 3, "late_rows_written": 1}, {"rows_read": 2}]


def reported(folder: Path, text: str = CLICKS, batches: Any = BATCHES) -> tuple[dict[str, Any], dict[str, Any]]:
    """The source and the tables by name, as they are sent."""
    definition = clicks(folder, 0, text)
    late = {"rows_late": 110, "late_rows_written": 110, "events_in_state_after": 770, "events_in_state_written": 770}
    check(definition, {**FIGURES, **late}, HISTORY)
    found = lineage(definition, batches, newest_checks(definition.store, definition.pages))
    read, *written = (json.loads(Serde.to_json(one)) for one in (*found.inputs, *found.outputs))
    return read, {Path(one["name"]).name: one for one in written}


def test_columns_come_from_columns(tmp_path: Path) -> None:
    text = CLICKS.replace('total = "sum(value)"', 'total = "sum(value) filter (where gap > 1)"')
    text = text.replace("max_files_per_run = 1", '[source.rename]\nAmount = "value"')
    _, written = reported(tmp_path, text)
    lineage = written["results"]["facets"]["columnLineage"]
    named = {
        name: [(one["field"], one["transformations"][0]["type"], one["transformations"][0]["subtype"])
               for one in field["inputFields"]]
        for name, field in lineage["fields"].items()
    }  # fmt: skip
    assert named == {
        "user": [("user", "DIRECT", "IDENTITY")],
        "window_start": [("at_ms", "DIRECT", "TRANSFORMATION")],
        "window_end": [("at_ms", "DIRECT", "TRANSFORMATION")],
        "last_event_time": [("at_ms", "DIRECT", "AGGREGATION")],
        "clicks": [],
        "total": [("Amount", "DIRECT", "AGGREGATION"), ("gap", "INDIRECT", "FILTER")],
        "first": [("Amount", "DIRECT", "AGGREGATION")],
    }
    everywhere = [(one["field"], one["transformations"][0]["subtype"]) for one in lineage["dataset"]]
    assert everywhere == [("user", "GROUP_BY"), ("at_ms", "WINDOW"), ("id", "FILTER")]


def test_local_times_of_windows_come_from_event_times(tmp_path: Path) -> None:
    head, _, _ = CLICKS.partition("[window]")
    window = '[window]\ntype = "tumbling"\nevery = "1 day"\ntime_zone = "Europe/Berlin"\n'
    _, written = reported(tmp_path, f'{head}{window}[aggregates]\nclicks = "count(*)"\n')
    fields = written["results"]["facets"]["columnLineage"]["fields"]
    assert fields["window_start_local"] == fields["window_end_local"] == fields["window_start"]


def test_rows_and_checks_are_reported(tmp_path: Path) -> None:
    read, written = reported(tmp_path)
    assert read["name"] == str(tmp_path / "incoming")
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 7
    assert {name: one["outputFacets"]["outputStatistics"]["rowCount"] for name, one in written.items()} == {
        "results": 3,
        "late_events": 1,
    }
    failed = [one for one in read["inputFacets"]["dataQualityAssertions"]["assertions"] if not one["success"]]
    assert [(one["assertion"], one["severity"]) for one in failed] == [
        ("expect_column_max_to_be_between(late_share)", "warn")
    ]
    judged = written["results"]["facets"]["dataQualityAssertions"]["assertions"]
    assert {one["severity"] for one in judged} == {"error", "warn"}
    assert all(one["success"] for one in judged)


def test_a_batch_that_was_refused_has_no_rows(tmp_path: Path) -> None:
    read, written = reported(tmp_path, batches=())
    assert "inputStatistics" not in read["inputFacets"]
    assert list(written) == ["results"]
    assert not written["results"]["outputFacets"]


def test_a_task_without_a_definition_reports_nothing() -> None:
    assert LineageTask(task_id="advance", command=[]).get_openlineage_facets_on_complete(None) is None
