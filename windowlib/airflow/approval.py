"""Users who may approve, and requirements of an answer in *Required Actions*.

The author of a definition sets `airflow.approval`. The administrator of Airflow sets the environment variable
`WINDOWLIB_APPROVAL` for its tasks. The stricter setting applies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Context

from windowlib.definition.definition import Definition
from windowlib.definition.reasons import wrong_with
from windowlib.definition.toml.file import Airflow
from windowlib.model.errors import InvalidSpec

APPROVAL = "WINDOWLIB_APPROVAL"  # environment variable: policy for every pipeline of this Airflow
POLICIES = ("asked", "required", "another user")  # values of `airflow.approval`, from lenient to strict


def policy(settings: Airflow) -> str:
    """Policy that applies to a pipeline. Raises `InvalidSpec` if the variable has none of `POLICIES`."""
    setting = os.environ.get(APPROVAL) or POLICIES[0]
    if setting not in POLICIES:
        raise InvalidSpec(f"{APPROVAL}: need one of {', '.join(map(repr, POLICIES))}, given {setting!r}")
    return max(setting, settings.approval, key=POLICIES.index)


def responder(answer: Mapping[str, Any] | None) -> str | None:
    """Login name of the user who answered; None if no user has answered."""
    user = (answer or {}).get("responded_by_user") or {}
    return user.get("name") or user.get("id")


def triggered_by(context: Context) -> str | None:
    """User who triggered the run; None if a schedule did."""
    return getattr(context["dag_run"], "triggering_user_name", None)


def text_of(event: Mapping[str, Any], key: str) -> str:
    """String in a field of the form, stripped; empty for other types. Airflow's API does not validate answers."""
    value = (event.get("params_input") or {}).get(key)
    return value.strip() if isinstance(value, str) else ""


def reason_mistake(reason: str) -> str | None:
    """Problem with a required reason, in words; None if the reason is valid."""
    mistake = wrong_with(reason) if reason else "there is none"
    return f"the reason: {mistake}" if mistake else None


def needs_approval(definition: Definition, form: Mapping[str, Any]) -> bool:
    """Tests if the form or the pipeline of a rerun requires an approval."""
    return bool(form["approval"]) or policy(definition.airflow) != "asked"


def waits_for_decision(definition: Definition, batch_id: int, decide: str, asking: str | None) -> str:
    """Message about a batch of an earlier run that waits: the users who may decide about it, and the place to decide.

    decide: the task that asks
    asking: run of the DAG whose task asks, or None for this run
    """
    run_hint = (
        f"\nit is asked in the run {asking}: the button Decide among the details of this task leads there"
        if asking
        else ""
    )
    others = ", but not the user who triggered this run" if policy(definition.airflow) == "another user" else ""
    return (
        f"batch {batch_id} of {definition.name} waits for a decision since an earlier run, and no run continues"
        f" until then. Every user who may answer the Required Actions of this DAG can decide{others}, where the task"
        f" {decide} asks. So can everyone who may run windowlib in a shell{run_hint}"
    )


def refused_answer(definition: Definition, who: str | None, context: Context) -> str | None:
    """Reason why the approval of a user does not count, or None.

    With `approval = "another user"` users cannot approve their own requests. Airflow has already checked that the
    user may answer.
    """
    if who is None:
        return "no user is logged in"
    if policy(definition.airflow) == "another user" and who == triggered_by(context):
        return f'{who} triggered this run, and the approval must come from "another user"'
    return None


def whose_answer(what: str, definition: Definition, context: Context) -> str:
    """Last paragraph of a question: users whose answer counts as `what`. Empty if the answer of every user counts."""
    requester = triggered_by(context) if policy(definition.airflow) == "another user" else None
    return f"\n\n{what} must come from another user than {requester}, who triggered this run." if requester else ""


def lacks_approval(definition: Definition, answer: Mapping[str, Any] | None, context: Context) -> str | None:
    """Reason why a rerun may not be applied. None if it needs no approval, or the recorded `answer` counts."""
    if not needs_approval(definition, context["params"]):
        return None
    return refused_answer(definition, responder(answer), context) if answer else "no one has answered"
