"""The DAG `rerun_windows`: a form (pipeline, from, to, reason) → check → preview → review → apply → report.

A dry run ends after its preview. Otherwise the operator looks at the preview and approves; what is then applied is
exactly what was shown, or nothing. The choices of the form are the definitions of the folder that `windows.py` reads.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param

from windowlib.airflow.dag_docs import rerun_page
from windowlib.airflow.pipelines import files_for_reruns, pipelines_folder
from windowlib.airflow.pools import BY_WEIGHT, LIGHT, RERUNS
from windowlib.airflow.rerun_operators import Apply, CheckRerun, PreviewRerun, ReportRerun, Review
from windowlib.definition.reasons import LONGEST

AT_ONCE = 256  # runs: one whose question is open holds no slot; what computes is bounded by its pool
TIME = {"type": ["null", "string"], "format": "date-time"}
FORM = {
    "from": Param(
        None,
        **TIME,
        title="From",
        description="Inclusive, in the zone at the lower left. Windows that meet the range are recomputed.",
    ),
    "to": Param(
        None,
        **TIME,
        title="To",
        description="Exclusive. Empty with a From: to the end of the last result.",
    ),
    "all_history": Param(
        False,
        type="boolean",
        title="All history",
        description="Recompute all results. Needed where From and To are both empty.",
    ),
    "reason": Param(
        "",
        type="string",
        maxLength=LONGEST,
        title="Reason",
        description=f"Why; kept with the batch: a line of at most {LONGEST:,} characters.",
    ),
    "dry_run": Param(True, type="boolean", title="Dry run", description="Show what would change, and stop there."),
    "preview": Param(
        None,
        type=["null", "string"],
        title="Preview",
        description="The id of one made before, to apply it without making it again; From, To and Reason are its own.",
    ),
    "approval": Param(
        True,
        type="boolean",
        title="Wait for approval",
        description="Apply the preview only after it has been approved.",
    ),
    "accept_gap": Param(
        False,
        type="boolean",
        title="Accept missing files",
        description="Go on where files of the source are gone: their events are removed from the windows.",
    ),
}
"""What the operator is asked, but for the pipeline."""


def rerun_dag(pipelines: dict[str, str]) -> DAG:
    """The DAG over these pipelines; there must be one."""
    names = sorted(pipelines)
    with DAG(
        dag_id="rerun_windows",
        schedule=None,
        catchup=False,
        max_active_runs=AT_ONCE,
        tags=["windowlib", "rerun"],
        doc_md=rerun_page(names),
        params={
            "pipeline": Param(  # no default: no pipeline is recomputed because it was the first of the list
                type="string", enum=names, title="Pipeline", description="Whose windows are recomputed."
            ),
            **FORM,
        },
        default_args={"pool": LIGHT.name, "retries": 0, "retry_delay": timedelta(minutes=1), **BY_WEIGHT},
    ) as dag:
        check = CheckRerun(task_id="check", pipelines=pipelines)
        preview = PreviewRerun(task_id="preview", pipelines=pipelines, pool=RERUNS.name)
        review = Review(task_id="review", pipelines=pipelines, params=Review.FORM, pool="default_pool")
        apply = Apply(task_id="apply", pipelines=pipelines, retries=2, pool=RERUNS.name)
        report = ReportRerun(task_id="report", pipelines=pipelines)
        check >> preview >> review >> apply >> report.as_teardown()
    return dag


if pipelines := files_for_reruns(pipelines_folder(Path(__file__).parent)):
    dag = rerun_dag(pipelines)
