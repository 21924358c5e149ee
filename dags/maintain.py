"""The DAG `maintain_windows`: `windowlib maintain` once a day for each pipeline in the folder that `windows.py` reads.

Each pipeline has its own task, which waits for the pipeline's runs. A task that fails does not stop the others.
`[retention]` in a definition sets how long earlier batches stay readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable

from windowlib.airflow.commands import maintain_command
from windowlib.airflow.job import Job
from windowlib.airflow.pipelines import definitions, pipelines_folder
from windowlib.airflow.pools import MAINTENANCE
from windowlib.definition.definition import Definition

PAGE = """\
### Maintenance

Maintenance compacts small files, deletes files that no kept batch needs, and shortens the logs of the tables. It
changes no row, and consumers of `result_changes` see nothing. `[retention] cuts` in a definition sets how far back the
tables can be read or rolled back.

A task waits for a run of its pipeline that is in progress. You can clear it, or trigger the DAG, as often as you like.
"""


def maintain_dag(pipelines: Sequence[Definition]) -> DAG:
    """Builds the DAG over these pipelines, of which there is at least one."""
    with DAG(
        dag_id="maintain_windows",
        schedule=CronDataIntervalTimetable("17 3 * * *", timezone="UTC"),
        catchup=False,
        max_active_runs=1,
        tags=["windowlib", "maintenance"],
        doc_md=PAGE,
        default_args={
            "pool": MAINTENANCE.name,
            "retries": 1,
            "retry_delay": timedelta(minutes=10),
            "execution_timeout": timedelta(hours=6),
        },
    ) as dag:
        for definition in pipelines:
            Job(task_id=definition.name, command=maintain_command(definition), connection=definition.airflow.connection)
    return dag


if usable := [item for item in definitions(pipelines_folder(Path(__file__).parent)) if isinstance(item, Definition)]:
    dag = maintain_dag(usable)
