"""Task advance of a pipeline, as Airflow runs it after plan has found batch 1."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def advance(file: Path) -> Any:
    """Task advance, as in the DAG of the pipeline."""
    from windowlib.airflow.commands import advance_command
    from windowlib.airflow.operators import Advance
    from windowlib.definition.definition import load_definition

    return Advance(task_id="advance", command=advance_command(load_definition(file)))


def context(try_number: int) -> dict[str, Any]:
    """Context of a task whose plan found batch 1, in a run of the DAG that began a minute ago."""

    class Ti:
        def xcom_pull(self, task_ids: str) -> Any:
            return [{"batch_id": 1}]

        def xcom_push(self, key: str, value: Any) -> None:
            setattr(self, key, value)

    ti, run = Ti(), type("Run", (), {"start_date": datetime.fromtimestamp(time.time() - 60, UTC)})()
    ti.try_number = try_number  # type: ignore[attr-defined]
    return {"ti": ti, "dag_run": run, "outlet_events": {}}
