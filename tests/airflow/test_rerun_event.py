"""A rerun that changed results updates their asset, so that dependent DAGs do not keep wrong results."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.by_hand import RUN, made_by_hand
from tests.support.clicks import arrive, events
from tests.support.disks import folder_of
from windowlib.definition.definition import Definition
from windowlib.reruns.page import PAGE, applied_by
from windowlib.reruns.previews import FOLDER, load

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]
BEGAN = datetime.now(UTC)
PATIENCE_S = 120
OF_RERUN = {"batch_id": 7, "rerun_from_ms": 0, "windows_added": 0, "windows_removed": 0, "windows_changed": 0}


class Added(list[Any]):
    """Airflow's accessor of an alias: stores the added events."""

    def add(self, asset: Any, extra: dict[str, Any]) -> None:
        self.append((asset.name, extra))


class Task:
    """Task instance of a run that ann has triggered, without an approval."""

    def __init__(self, preview_id: str, try_number: int) -> None:
        self.preview_id, self.try_number = preview_id, try_number

    def xcom_pull(self, task_ids: str, key: str = "return_value") -> Any:
        made = [{"preview_id": self.preview_id, "changes_nothing": False, "markdown": ""}]
        return made if task_ids == "preview" else None


def apply(definition: Definition, preview_id: str, try_number: int = 1, *, began: datetime = BEGAN) -> Any:
    """Events that the task sends after it has applied a preview, and the batches that it reports for lineage."""
    from windowlib.airflow.outlets import OF_RERUNS
    from windowlib.airflow.rerun_operators import Apply

    task = Apply(task_id="apply", pipelines={"clicks": str(definition.file)})
    assert task.outlets == [OF_RERUNS]
    run = type("Run", (), {"triggering_user_name": "ann", "start_date": began})()
    form = {"pipeline": "clicks", "dry_run": False, "approval": False}
    events = {OF_RERUNS: Added()}
    task.execute({"ti": Task(preview_id, try_number), "dag_run": run, "params": form, "outlet_events": events})
    return events[OF_RERUNS], [one["batch_id"] for one in task.published_batches]


def dry_run(definition: Definition) -> str:
    """Output of `windowlib rerun --dry-run` over all of the data, run in the folder of the definition."""
    asked = ["--from", "2026-03-01T00:00Z", "--to", "2026-03-10T00:00Z", "--reason", "r", "--dry-run"]
    command, here = [*RUN[:-1], "rerun", str(definition.file), *asked], definition.file.parent
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S, cwd=here).stdout


@pytest.mark.slow
@pytest.mark.fault("the task that applies a rerun is killed after it applied it", "the retry sends the asset event")
def test_an_applied_rerun_updates_the_asset(after_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = made_by_hand(after_one, tmp_path)
    arrive(tmp_path, 1, events(1)[:-5])  # upstream has repaired its file
    # Its command is pasted elsewhere: the task's folder says nothing to who reads its log.
    found = re.search(
        f"^to apply exactly this: .*windowlib rerun {definition.file} --apply (.*)$", dry_run(definition), re.M
    )
    preview_id = found[1] if found else ""
    rows = load(definition.store, preview_id).summary.rows_to_write
    [(asset, extra)], known = apply(definition, preview_id)
    assert (asset, known) == ("windowlib_clicks_results", [2])
    assert (extra["batches"], extra["batch_id"], extra["failed_checks"]) == (1, 2, [])
    added, changed, removed = (extra[f"windows_{kind}"] for kind in ("added", "changed", "removed"))
    assert (added + changed, added + changed + removed) == (rows["results"], rows["result_changes"])
    assert rows["result_changes"] > 0
    assert extra["outcome"].startswith("1 batch, of a rerun: ")
    # Another run is asked about the same preview: it changes nothing.
    assert apply(definition, preview_id) == ([], [])
    # A try of this run has done it, and was killed before it could say so.
    [(_, again)], known = apply(definition, preview_id, 2)
    assert {**again, "seconds": 0} == {**extra, "seconds": 0}
    assert known == [2]
    assert apply(definition, preview_id, 2, began=datetime.now(UTC) + timedelta(hours=1)) == ([], [])
    page = (folder_of(definition) / FOLDER / preview_id / PAGE).read_text(encoding="utf-8")
    assert ("Nothing has been changed." in page, "--apply" in page) == (True, True)
    done = applied_by(page, 2)
    assert ("Batch 2 has applied it." in done, "--apply" in done) == (True, False)
    assert "to apply" not in dry_run(definition)  # by now nothing would change


def test_a_rerun_that_leaves_all_rows_as_they_are_sends_no_event() -> None:
    from windowlib.airflow.outlets import changes_results

    assert not changes_results([])
    assert not changes_results([OF_RERUN])
    assert changes_results([OF_RERUN | {"windows_removed": 1}])
    assert changes_results([OF_RERUN, {"batch_id": 8}])  # an ordinary one, which another run had left
