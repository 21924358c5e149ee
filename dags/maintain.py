"""The DAG `maintain_windows`: once a day `windowlib maintain` for each pipeline of the folder that `windows.py` reads.

Each task is of one pipeline and waits for its runs; what becomes of one does not matter to the others. How long earlier
batches stay readable is said by `[retention]` in the definitions.
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

Small files of the tables are put together, what no kept batch needs is deleted, the tables' logs are shortened. No row
changes, and who follows `result_changes` sees nothing. `[retention] cuts` in a definition says for how long the tables
can be read as a batch left them, and rolled back.

A task waits for a run of its pipeline that is in progress. Clear it, or trigger the DAG by hand, as often as you like.
"""


def maintain_dag(pipelines: Sequence[Definition]) -> DAG:
    """The DAG over these pipelines; there must be one."""
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
        for one in pipelines:
            Job(task_id=one.name, command=maintain_command(one))
    return dag


if found := [one for one in definitions(pipelines_folder(Path(__file__).parent)) if isinstance(one, Definition)]:
    dag = maintain_dag(found)
