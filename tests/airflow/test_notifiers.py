"""Notices by a notifier of Airflow: filled-in templates, and records of failed deliveries. Counters of tasks."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.check_samples import definition
from tests.support.private_apis import holds, listed
from windowlib.definition.definition import Definition
from windowlib.ledger import last_error
from windowlib.ledger.notices import reported
from windowlib.notices.notify import keep
from windowlib.storage.disk import Disk

pytestmark = pytest.mark.airflow

NOTIFIER = """
from airflow.sdk import BaseNotifier

class ToFile(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, file, text, **more):
        super().__init__()
        self.file, self.text = file, text

    def notify(self, context):
        with open(self.file, "a") as file:
            print(self.text, context["windowlib"]["situation"], file=file)
"""


@pytest.fixture
def clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """Pipeline whose only file is truncated, with its own notifier that writes to the file `notices`."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    (tmp_path / "own_notifier.py").write_text(NOTIFIER, encoding="utf-8")
    arguments = f'{{file = "{tmp_path}/notices", text = "{{{{ windowlib.pipeline }}}}: {{{{ windowlib.what }}}}"}}'
    notify = f'[notify]\nairflow = "own_notifier.ToFile"\narguments = {arguments}\n'
    made = definition(tmp_path, checks=notify)
    (tmp_path / "incoming").mkdir()
    cut_off = tmp_path / "incoming" / "1.parquet"
    cut_off.write_bytes(b"PAR1")
    os.utime(cut_off, (1, 1))
    return made


def plan(clicks: Definition) -> Any:
    from windowlib.airflow.commands import of_pipeline
    from windowlib.airflow.operators import PlanBatch

    return PlanBatch(task_id="plan", file=clicks.file, command=of_pipeline("plan", clicks.file))


class Ti:
    """Task instance that stores XComs."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.kept[key] = value


def test_a_notice_is_sent_once_by_the_notifier_that_the_definition_names(clicks: Definition, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException, DownstreamTasksSkipped

    for _ in range(2):
        with pytest.raises(AirflowFailException, match="an error that a retry cannot fix"):
            plan(clicks).execute({"ti": None})
    assert (tmp_path / "notices").read_text() == "clicks: began failure\n"
    (tmp_path / "incoming" / "1.parquet").unlink()
    ti = Ti()
    with pytest.raises(DownstreamTasksSkipped):  # there is nothing to do
        plan(clicks).execute({"ti": ti})
    assert [record["batch_id"] for record in ti.kept["return_value"]] == [None], "a notice is not an outcome"
    assert (tmp_path / "notices").read_text().splitlines()[1:] == ["clicks: over failure"]


def test_the_plan_task_keeps_its_error_with_the_path_of_the_definition(clicks: Definition) -> None:
    with pytest.raises(Exception, match="an error that a retry cannot fix"):
        plan(clicks).execute({"ti": None})
    kept = last_error.last(clicks.store)
    assert kept is not None
    assert (kept.command, kept.file) == ("plan", str(clicks.file))
    assert "1.parquet" in kept.sentence


@pytest.mark.fault("a notifier of Airflow fails", "the task's log has a warning; a later run sends the notice again")
def test_a_failed_notifier_is_tried_again(clicks: Definition, tmp_path: Path) -> None:
    (tmp_path / "notices").mkdir()  # cannot be written to
    with pytest.raises(Exception, match="an error that a retry cannot fix"):
        plan(clicks).execute({"ti": None})
    kept = reported(clicks.store).newest["failure"]
    assert (kept.delivered, kept.error) == (False, "notifier own_notifier.ToFile: IsADirectoryError")
    (tmp_path / "notices").rmdir()
    with pytest.raises(Exception, match="an error that a retry cannot fix"):
        plan(clicks).execute({"ti": None})
    assert (tmp_path / "notices").read_text() == "clicks: began failure\n"


def test_a_failure_that_airflow_tries_again_is_not_reported_yet(tmp_path: Path) -> None:
    from windowlib.airflow.job import Job, tries_left

    ti = type("Ti", (), {"try_number": 1, "max_tries": 2})()
    assert [tries_left({"ti": ti}), tries_left({})] == [2, 0]  # type: ignore[typeddict-item]
    ti.try_number = 3
    assert tries_left({"ti": ti}) == 0  # type: ignore[typeddict-item]
    shown = "import os; print(os.environ['WINDOWLIB_TRIES_LEFT'])"
    ti.try_number = 2
    _, lines, _ = Job(task_id="job", command=[sys.executable, "-c", shown]).run_command({"ti": ti})  # type: ignore[typeddict-item]
    assert lines == ["1"]


@holds("airflow/statistics.py", "airflow.sdk.observability.stats")
def test_batches_are_counted_where_airflow_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.observability import stats

    from windowlib.airflow.statistics import count

    counted = []

    class Recorder:
        def incr(self, name: str, count: int = 1, rate: float = 1, tags: dict[str, str] | None = None) -> None:
            counted.append((name, count, tags))

    module = import_module(stats.incr.__module__)
    for name in ("_factory", "_backend", "_export_legacy_names"):  # as they were, once this test is done
        monkeypatch.setattr(module, name, getattr(module, name))
    with listed("airflow.sdk.observability.stats"):
        stats.initialize(factory=Recorder, export_legacy_names=False)
    try:
        count([{"windows_fired_on_time": 3, "windows_fired_late": 1, "rows_late": 0}] * 2, {"dag_id": "windows_clicks"})
    finally:
        monkeypatch.undo()
    tags = {"dag_id": "windows_clicks"}
    assert counted == [("windowlib.batches", 2, tags), ("windowlib.results", 8, tags)]


def test_keeping_no_notice_writes_no_row(tmp_path: Path) -> None:
    keep(Disk(tmp_path), [])
    assert json.dumps([*map(str, tmp_path.iterdir())]) == "[]"
