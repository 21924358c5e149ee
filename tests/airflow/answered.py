"""Runs a DAG as `airflow dags test` does, and answers its questions through Airflow's API, as a logged-in user.

    python -m tests.airflow.answered FOLDER_OF_DAGS DAG_ID RUNS

`RUNS` is a JSON list with the answers of each run. An answer has `chosen_options` and `params_input`. It may have
`before`, a command that runs first; the last answer may have `after`, a command that runs when the run has ended.
Prints a line of JSON for each run: its state, the state of each task, and the questions.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from typing import Any

LOGIN = {"username": "ann", "password": "ann"}
PATIENCE_S = 120


async def answer_all(
    app: Any, dag_id: str, answers: list[dict[str, Any]], asked: list[Any], ended: threading.Event
) -> None:
    """Answers each question as it comes, until there are no answers left."""
    import httpx

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
        token = (await client.post("/auth/token", json=LOGIN)).json()["access_token"]
        client.headers["authorization"] = f"Bearer {token}"
        runs = f"/api/v2/dags/{dag_id}/dagRuns"
        for given in answers:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                found = await client.get(f"{runs}/~/hitlDetails", params={"response_received": "false"})
                waiting = [
                    one for one in found.json()["hitl_details"] if one["task_instance"]["state"] == "awaiting_input"
                ]
                if waiting or ended.is_set():
                    break
                assert time.monotonic() < deadline, found.text
                await asyncio.sleep(0.5)
            if not waiting:
                return
            task = waiting[0]["task_instance"]
            if before := given.pop("before", None):
                await asyncio.to_thread(subprocess.run, before, check=True, capture_output=True)
            place = f"{runs}/{task['dag_run_id']}/taskInstances/{task['task_id']}/-1/hitlDetails"
            taken = await client.patch(place, json=given)
            asked.append({"subject": waiting[0]["subject"], "body": waiting[0]["body"], "status": taken.status_code})


def main(folder: str, dag_id: str, runs: list[list[dict[str, Any]]]) -> None:
    from airflow.api_fastapi.app import create_app
    from airflow.dag_processing.dagbag import DagBag

    app, dag = (
        create_app(apps="core"),
        DagBag(folder).dags[dag_id],
    )  # two threads that import would wait for one another
    for answers in runs:
        after = answers[-1].pop("after", None)
        asked: list[Any] = []
        ended = threading.Event()
        work = answer_all(app, dag_id, answers, asked, ended)
        answering = threading.Thread(target=asyncio.run, args=(work,), daemon=True)
        answering.start()
        run = dag.test()
        ended.set()
        answering.join(PATIENCE_S)
        if after:
            subprocess.run(after, check=True)
        tasks = {one.task_id: str(one.state) for one in run.get_task_instances()}
        print(f"\n{json.dumps({'state': str(run.state), 'tasks': tasks, 'asked': asked})}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
