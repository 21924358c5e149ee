"""The DAG `rerun_windows`: a form (pipeline, from, to, reason) → check → preview → review → apply → report.

A dry run ends after the preview. Otherwise the operator reviews the preview and approves it. The rerun then applies
exactly the preview, or nothing. The form offers the pipelines in the folder that `windows.py` reads.
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

AT_ONCE = 256  # runs: a run with an open question holds no slot, and the pool limits those that compute
TIME = {"type": ["null", "string"], "format": "date-time"}
FORM = {
    "from": Param(
        None,
        **TIME,
        title="From",
        description="Inclusive, in the time zone at the lower left. All windows that overlap the range are recomputed.",
    ),
    "to": Param(
        None,
        **TIME,
        title="To",
        description="Exclusive. If empty while From is set: the end of the last result.",
    ),
    "all_history": Param(
        False,
        type="boolean",
        title="All history",
        description="Recompute all results. Required if From and To are both empty.",
    ),
    "reason": Param(
        "",
        type="string",
        maxLength=LONGEST,
        title="Reason",
        description=f"Recorded with the batch. One line of at most {LONGEST:,} characters.",
    ),
    "dry_run": Param(True, type="boolean", title="Dry run", description="Show what would change, then stop."),
    "preview": Param(
        None,
        type=["null", "string"],
        title="Preview",
        description="Id of an existing preview to apply. The rerun takes From, To and Reason from it.",
    ),
    "approval": Param(
        True,
        type="boolean",
        title="Wait for approval",
        description="Apply the preview only after an operator has approved it.",
    ),
    "accept_gap": Param(
        False,
        type="boolean",
        title="Accept missing files",
        description="Continue although source files are gone. Their events are removed from the windows.",
    ),
}
"""Fields of the form, except the pipeline."""


def rerun_dag(pipelines: dict[str, str]) -> DAG:
    """Builds the DAG over these pipelines, of which there is at least one."""
    names = sorted(pipelines)
    with DAG(
        dag_id="rerun_windows",
        schedule=None,
        catchup=False,
        max_active_runs=AT_ONCE,
        tags=["windowlib", "rerun"],
        doc_md=rerun_page(names),
        params={
            "pipeline": Param(  # no default, so that no pipeline is recomputed by mistake
                type="string", enum=names, title="Pipeline", description="The pipeline to recompute."
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
