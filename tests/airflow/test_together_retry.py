"""Pipelines that run together: a retry of the common task reports everything that the earlier try has committed."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.by_hand import made_by_hand
from tests.support.clicks import ON_SAIL
from windowlib.definition.definition import Definition, load_definition

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]


class Ti:
    """Task instance at try `try_number`; the tasks of one run of the DAG share their return values."""

    def __init__(self, try_number: int, together: Any = None) -> None:
        self.try_number, self.together = try_number, together
        self.pushed = dict[str, Any]()

    def xcom_pull(self, task_ids: str) -> Any:
        return self.together

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


def context(ti: Ti, outlet_events: dict[Any, Any]) -> dict[str, Any]:
    """Context of a task in a run of the DAG that began an hour ago."""
    run = type("Run", (), {"start_date": datetime.fromtimestamp(time.time() - 3600, UTC)})()
    return {"ti": ti, "dag_run": run, "outlet_events": outlet_events}


def ended(task: Any, given: dict[str, Any]) -> list[str]:
    """Tasks that a successful task has the scheduler skip."""
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    try:
        given["ti"].pushed["return_value"] = task.execute(given)
    except DownstreamTasksSkipped as done:
        return [str(one) for one in done.tasks]
    return []


def definitions(after_one: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Definition]:
    """`clicks`, with a committed batch, and `hours`, over one source with a file; `idle`, over an empty source."""
    monkeypatch.setenv("AIRFLOW_HOME", str(folder / "airflow"))
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    made_by_hand(after_one, folder)
    (folder / "hours.toml").write_text(ON_SAIL.replace('"clicks"', '"hours"', 1), encoding="utf-8")
    (folder / "empty").mkdir()
    idle = ON_SAIL.replace('"clicks"', '"idle"', 1).replace('path = "incoming"', 'path = "empty"')
    (folder / "idle.toml").write_text(idle, encoding="utf-8")
    return [load_definition(folder / f"{name}.toml") for name in ("clicks", "hours", "idle")]


@pytest.mark.fault(
    "the task of several pipelines is killed after one of them committed",
    "the retry runs that pipeline alone and reports its batch too",
)
def test_a_retry_reports_the_commits_of_the_earlier_try(
    after_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk import Asset
    from airflow.sdk.exceptions import AirflowSkipException

    from windowlib.airflow.commands import advance_command
    from windowlib.airflow.operators import AdvanceTogether, AfterTogether

    # The first try was killed when it had committed the batch of `clicks`: nothing says how that one ended.
    members = definitions(after_one, tmp_path, monkeypatch)
    together = Ti(try_number=2)
    skipped = ended(AdvanceTogether(task_id="together", command=advance_command(*members)), context(together, {}))
    assert skipped == []  # whether a pipeline had news before, its own task finds out

    for one in members[:2]:
        asset = Asset(f"{one.name}_results")
        events = {asset: type("Event", (), {"extra": None})()}
        ti = Ti(1, together.pushed["return_value"])
        after = AfterTogether(
            task_id=f"advance_{one.name}",
            pipeline=one.name,
            file=one.file,
            command=advance_command(one),
            outlets=[asset],
        )
        assert ended(after, context(ti, events)) == [f"decide_{one.name}"]
        assert [batch["batch_id"] for batch in ti.pushed["batches"]] == [1]
        assert events[asset].extra["batches"] == 1
    idle = AfterTogether(
        task_id="advance_idle", pipeline="idle", file=members[2].file, command=advance_command(members[2])
    )
    with pytest.raises(AirflowSkipException, match="nothing is new"):  # no event of its asset goes out
        ended(idle, context(Ti(1, together.pushed["return_value"]), {}))
