"""Actions that a form requests. Each runs the operation of the command, under the login name of the user."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from windowlib.airflow.addresses import outside
from windowlib.airflow.approval import reason_mistake
from windowlib.airflow.rerun_form import requested_rerun
from windowlib.decisions.set_aside import set_aside, take_back
from windowlib.definition.definition import Definition
from windowlib.definition.instants import iso_instant
from windowlib.ledger.rerun_request import RerunRefused, check_can_rerun
from windowlib.model.errors import WindowError

RERUN_DAG = "rerun_windows"


class FormRefused(WindowError):
    """A form lacks a value that its action needs. Nothing was changed."""


def decide_file(definition: Definition, fields: Mapping[str, str], who: str) -> str:
    """Sets a file aside, as `windowlib set-aside` does. The field `back` takes it back.

    Returns the address of the page of the pipeline. Raises `WindowError`.
    """
    file, reason = fields.get("file", ""), fields.get("reason", "")
    if not file:
        raise FormRefused("the file: there is none. Give its path relative to the source folder")
    if mistake := reason_mistake(reason):
        raise FormRefused(f"{mistake}. Give the reason in one line")
    (take_back if fields.get("back") else set_aside)(definition, file, who, reason)
    return "./"


def start_rerun(definition: Definition, fields: Mapping[str, str], who: str) -> str:
    """Starts a run of the DAG of reruns, as Airflow's own form does. Returns the address of the run.

    With the field `apply`, the run asks for an approval of its preview and applies it. Otherwise it ends with the
    preview. Raises `WindowError`.
    """
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.exceptions import ParamValidationError
    from airflow.models.dag import DagModel
    from airflow.utils.types import DagRunTriggeredByType

    range_and_reason = {name: fields.get(name, "") for name in ("from", "to", "reason")}
    wanted, _ = requested_rerun(definition, {**range_and_reason, "all_history": False}, who)
    check_can_rerun(definition.source, definition.never_rerun, wanted)
    dag = DagModel.get_current(RERUN_DAG)
    if dag is None or dag.is_paused:
        problem = "does not exist" if dag is None else "is paused"
        raise RerunRefused(
            f"the DAG {RERUN_DAG} {problem}, so no rerun starts. Switch it on in Airflow, then send again"
        )
    form = {
        "pipeline": definition.name,
        "from": iso_instant(wanted.from_ms),
        "to": iso_instant(wanted.to_ms),
        "reason": wanted.reason,
        "dry_run": "apply" not in fields,
    }
    try:
        run = trigger_dag(dag_id=RERUN_DAG, triggered_by=DagRunTriggeredByType.UI, triggering_user_name=who, conf=form)
    except (ParamValidationError, ValueError) as error:
        raise RerunRefused(f"Airflow refuses the form: {error}. Nothing was changed") from error
    assert run is not None, "a started run"
    return f"{outside()}/dags/{RERUN_DAG}/runs/{quote(run.run_id, safe='')}"
