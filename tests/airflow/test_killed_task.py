"""Task of Airflow that SIGKILL ends: its command continues; the retry waits for it and reports its figures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.airflow.advance_task import advance, context
from tests.support.clicks import ON_SAIL, clicks, events
from windowlib.batches.planning import ledger_of
from windowlib.ledger.owner import Owner, ProcessState
from windowlib.runs.recent_batches import committed_since

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]

ROOT = Path(__file__).parents[2]
TASK = """
import sys
from tests.airflow.advance_task import advance, context
from pathlib import Path
advance(Path(sys.argv[1])).execute(context(1))
"""
PATIENCE_S = 240


@pytest.mark.fault(
    "SIGKILL ends a task, and its command continues", "the retry waits for the command and reports its batches"
)
def test_the_retry_reports_the_batches_of_the_orphaned_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = clicks(tmp_path, 1, ON_SAIL)
    began = time.time()
    task = subprocess.Popen([sys.executable, "-c", TASK, str(definition.file)], cwd=ROOT, stdout=subprocess.DEVNULL)
    ledger = ledger_of(definition)
    while (claim := ledger.state().claim) is None:
        assert task.poll() is None
        assert time.time() - began < PATIENCE_S
        time.sleep(0.05)
    task.kill()
    task.wait()
    orphan = Owner.of_json(claim.owner)
    assert orphan.life() is ProcessState.AT_WORK  # nothing has ended it
    try:
        given = context(2)
        with pytest.raises(DownstreamTasksSkipped):  # it is done, and nothing is to be decided
            advance(definition.file).execute(given)
        assert given["ti"].return_value.startswith("1 batch, ")
        records = given["ti"].batches
    finally:
        if orphan.life() is ProcessState.AT_WORK and psutil.pid_exists(orphan.pid):
            os.kill(orphan.pid, signal.SIGKILL)
    assert [(record["rows_read"], record["watermark"] is not None) for record in records] == [(len(events(1)), True)]
    assert records[0]["seconds"] > 0  # of what the killed try has computed, too
    assert [report.batch_id for report in committed_since(definition, int(began * 1000))] == [1]
    assert ledger.state().claim.epoch == 1  # the retry has computed nothing
