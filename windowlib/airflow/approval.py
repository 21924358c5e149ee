"""Who may approve, and what an answer in *Required Actions* must have.

The author says it in the definition (`airflow.approval`), and the operator of an Airflow in the variable
`WINDOWLIB_APPROVAL` of its tasks: the stricter of the two holds.
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

APPROVAL = "WINDOWLIB_APPROVAL"  # environment variable: what holds for every pipeline of this Airflow
POLICIES = ("asked", "required", "another user")  # of `airflow.approval`, each stricter than the one before


def policy(settings: Airflow) -> str:
    """Which approval a pipeline asks for. Raises `InvalidSpec` where the variable says none of `POLICIES`."""
    given = os.environ.get(APPROVAL) or POLICIES[0]
    if given not in POLICIES:
        raise InvalidSpec(f"{APPROVAL}: need one of {', '.join(map(repr, POLICIES))}, given {given!r}")
    return max(given, settings.approval, key=POLICIES.index)


def responder(answer: Mapping[str, Any] | None) -> str | None:
    """The name by which the user who answered is logged in; None where no user has answered."""
    user = (answer or {}).get("responded_by_user") or {}
    return user.get("name") or user.get("id")


def asked_by(context: Context) -> str | None:
    """The user who triggered the run; None where a schedule did."""
    return getattr(context["dag_run"], "triggering_user_name", None)


def text_of(event: Mapping[str, Any], key: str) -> str:
    """What was written into a field of the form, stripped: Airflow does not validate what its API is given."""
    given = (event.get("params_input") or {}).get(key)
    return given.strip() if isinstance(given, str) else ""


def in_the_reason(reason: str) -> str | None:
    """Why a reason that must be given does not count, or None."""
    wrong = wrong_with(reason) if reason else "there is none"
    return f"the reason: {wrong}" if wrong else None


def must_ask(definition: Definition, form: Mapping[str, Any]) -> bool:
    """Whether a rerun waits for approval: its form asks for one, or the pipeline does whatever the form says."""
    return bool(form["approval"]) or policy(definition.airflow) != "asked"


def waits_for_decision(definition: Definition, batch_id: int, decide: str, asking: str | None) -> str:
    """That a batch of an earlier run waits: who may decide about it, and where. `decide` is the task that asks, in the
    run `asking` or, where that is None, in this one.
    """
    where = (
        f"\nit is asked in the run {asking}: the button Decide among the details of this task leads there"
        if asking
        else ""
    )
    others = ", but not the user who triggered this run" if policy(definition.airflow) == "another user" else ""
    return (
        f"batch {batch_id} of {definition.name} waits for a decision since an earlier run, and nothing else is done"
        f" until then: every user who may answer the Required Actions of this DAG can decide{others}, where the task"
        f" {decide} asks; so can who may run windowlib in a shell{where}"
    )


def refused_answer(definition: Definition, who: str | None, context: Context) -> str | None:
    """Why this user's approval does not count, or None: with `approval = "another user"` no user approves a request
    of their own. Airflow's own list of users who may answer is checked before.
    """
    if who is None:
        return "no user is logged in"
    if policy(definition.airflow) == "another user" and who == asked_by(context):
        return f'{who} triggered this run, and the approval must be that of "another user"'
    return None


def whose_answer(what: str, definition: Definition, context: Context) -> str:
    """Whose answer counts as `what`: the last paragraph of a question; an empty text where that of every user does."""
    asked = asked_by(context) if policy(definition.airflow) == "another user" else None
    return f"\n\n{what} must be that of another user than {asked}, who triggered this run." if asked else ""


def lacks_approval(definition: Definition, answer: Mapping[str, Any] | None, context: Context) -> str | None:
    """Why a rerun may not be applied, or None: none is asked for, or the recorded `answer` is one that counts."""
    if not must_ask(definition, context["params"]):
        return None
    return refused_answer(definition, responder(answer), context) if answer else "no one has answered"
