"""A batch that its checks refused, decided in Airflow (*Required Actions*), and what follows from the decision.

    plan ─ a batch waits ─────┐
      └> advance ─ failed ─> decide ─ approve ─> publish ─┐
            └──── done ─────────────────────────────────> end ─> report

The decision is the ledger's, as that of `windowlib approve` and `abandon`: who first decides about a batch has decided,
wherever. Nothing but an answer wakes a task that waits for one, so each question ends by itself after `LOOK_AGAIN`: the
task goes on where it was decided elsewhere meanwhile, and asks again where it was not. `decide` runs where advance has
failed, or where plan found a batch that waits and skipped it; where nothing is planned, and where advance is done,
those tasks have it skipped, without a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import BaseOperator, Context, Param
from airflow.sdk.definitions.param import ParamsDict

from windowlib.airflow import pipelines
from windowlib.airflow.addresses import page_of
from windowlib.airflow.approval import (
    in_the_reason,
    refused_answer,
    responder,
    text_of,
    waits_for_decision,
    whose_answer,
)
from windowlib.airflow.asking import BATCH, Question, asking_run, question_at
from windowlib.airflow.commands import advance_command, of_pipeline, verify_command
from windowlib.airflow.job import Job, Record, in_lines, is_retry, skip
from windowlib.airflow.operators import Advance, BuildReport, Verify
from windowlib.airflow.sentences import FinalFailure
from windowlib.decisions.report import DecisionReport
from windowlib.definition.commands import naming
from windowlib.definition.definition import Definition
from windowlib.definition.reasons import LONGEST
from windowlib.definition.toml.file import Pages

if TYPE_CHECKING:
    from windowlib.ledger.rows import LedgerState
    from windowlib.pages.newest_rows import OperatorAction

APPROVE, ABANDON, LEAVE = "approve", "abandon", "leave waiting"
DONE = {APPROVE: "approved", ABANDON: "abandoned"}
REASON = "reason"  # the field of the form
NOT_TAKEN = "not_taken"  # and that of why the last answer did not count
LOOK_AGAIN = timedelta(minutes=5)  # whether it was decided elsewhere
ROWS = 6  # of each kind, that the question shows


class Decide(Job, HITLOperator):
    """Asks what becomes of the batch that waits, once its report is built (`command`). Done where it is approved;
    skipped where another run has asked already and is not answered yet.
    """

    operator_extra_links = (Question(),)
    question_at = ""

    def __init__(self, *, file: Path, **kwargs: Any) -> None:
        about = f"Why; kept in the ledger: a line of at most {LONGEST:,} characters."
        reason = Param("", type="string", maxLength=LONGEST, title="Reason", description=about)
        subject = "A batch was refused by its checks"
        super().__init__(
            subject=subject,
            options=[APPROVE, ABANDON, LEAVE],
            params={REASON: reason},
            defaults=LEAVE,  # what Airflow answers after `response_timeout`
            response_timeout=LOOK_AGAIN,
            **kwargs,
        )
        self.file = str(file)

    def execute(self, context: Context) -> Any:
        """Builds the report and asks; done at once where the batch is approved, skipped where none waits."""
        from windowlib.batches.planning import ledger_of
        from windowlib.definition.definition import load_definition

        definition = load_definition(Path(self.file))
        state = ledger_of(definition).state()
        if state.plan is None or not state.rejection:
            skip(_nothing_waits(definition, context))
        batch_id = state.plan.batch_id
        if state.approved_by:
            return self._already(definition, batch_id)
        if asking := asking_run(context, self.task_id, batch_id, itself=True):
            self.question_at = question_at(context, self.task_id, asking)
            skip(waits_for_decision(definition, batch_id, self.task_id, asking))
        Job.execute(self, context)
        context["ti"].xcom_push(key=BATCH, value=batch_id)
        return self._ask(context, definition, state)

    def _ask(self, context: Context, definition: Definition, state: LedgerState) -> Any:
        """Puts the question about the batch that waits."""
        from windowlib.airflow.question import folded_rows, question
        from windowlib.batches.may_run import decision_command
        from windowlib.batches.planning import ledger_of
        from windowlib.pages.waiting_batch import lines, rows_in_no_window, wrong_results

        assert state.plan is not None, "a batch waits"
        assert state.rejection, "a batch waits"
        batch_id, ledger = state.plan.batch_id, ledger_of(definition)
        of_batch = {
            "results that are wrong": wrong_results(definition, batch_id),
            "rows that reach no window": rows_in_no_window(definition, ledger.tables, state),
        }
        rows = {which: [line for one in found for line in lines(one)][:ROWS] for which, found in of_batch.items()}
        failed = _failed(definition.root, definition.pages, batch_id, state.rejection)
        file, plan = definition.file, state.plan
        commands = decision_command(APPROVE, file, plan), decision_command(ABANDON, file, plan)
        self.subject, body = question(definition.name, batch_id, page_of(definition.name), commands, failed)
        self.params = ParamsDict({REASON: self.params.get_param(REASON), **folded_rows(rows)})
        before = context["ti"].xcom_pull(task_ids=self.task_id, key=NOT_TAKEN) or ""
        self.body = f"{before}{body}{whose_answer('An approval or abandonment', definition, context)}"
        return HITLOperator.execute(self, context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Writes the answer into the ledger; asks again where it lacks a reason to keep, or no one has answered yet."""
        from windowlib.airflow.question import not_taken
        from windowlib.decisions import verdicts
        from windowlib.definition.definition import load_definition
        from windowlib.ledger.ledger import NothingToDecide
        from windowlib.model.errors import WindowError

        reason = text_of(event, REASON)
        answer = super().execute_complete(context, {**event, "params_input": {REASON: reason[:LONGEST]}})
        [choice], who = answer["chosen_options"], responder(answer)
        batch_id = context["ti"].xcom_pull(task_ids=self.task_id, key=BATCH)
        definition = load_definition(Path(self.file))
        if decided := _decided(definition, batch_id):
            if choice != decided.kind and not event.get("timedout"):
                self.log.warning("%s", in_lines(f"{choice} by {who} does not count: {_in_words(decided)}"))
            return self._already(definition, batch_id)
        if event.get("timedout"):
            self.log.info("no one has decided about batch %s yet, here or elsewhere: asked again", batch_id)
            return self._look_again(context, definition, batch_id)
        if choice == LEAVE:
            raise FinalFailure(in_lines(_left_waiting(definition.name, batch_id, who, reason)))
        why_not = in_the_reason(reason) or refused_answer(definition, who, context)
        if why_not or who is None:
            self.log.warning("%s", in_lines(f"{choice} by {who} is not taken: {why_not}; asked again"))
            context["ti"].xcom_push(key=NOT_TAKEN, value=not_taken(choice, who, why_not or "no user"))
            return self._look_again(context, definition, batch_id)
        decide = verdicts.approve if choice == APPROVE else verdicts.abandon
        try:
            decide(definition, who, reason, batch_id=batch_id)
        except NothingToDecide:
            return self._already(definition, batch_id)
        except WindowError as error:
            again = "nothing is decided; clear this task to be asked again"
            raise FinalFailure(in_lines(f"{naming(str(error), definition.file)}\n{again}")) from None
        said = f"batch {batch_id} is {DONE[choice]} by {who}: {reason}"
        if choice == ABANDON:
            skip(f"{said}\nthis run publishes nothing; the next one plans again")
        self.log.info("%s", said)
        return DecisionReport(choice, who, reason, {"batch_id": batch_id}).json_fields()

    def _look_again(self, context: Context, definition: Definition, batch_id: int) -> Any:
        """Asks again about a batch that still waits, without another report; else says that it waits no more."""
        from windowlib.batches.planning import ledger_of

        state = ledger_of(definition).state()
        if state.plan is None or state.plan.batch_id != batch_id or not state.rejection:
            return self._already(definition, batch_id)
        return self._ask(context, definition, state)

    def _already(self, definition: Definition, batch_id: int) -> Record:
        """What was decided elsewhere: done where it is approved and still to be published, else skipped."""
        from windowlib.batches.planning import ledger_of

        said, plan = _decided(definition, batch_id), ledger_of(definition).state().plan
        if said is None:
            skip(f"batch {batch_id} no longer waits for a decision")
        if said.kind != APPROVE or plan is None or plan.batch_id != batch_id:
            skip(_in_words(said))
        self.log.info("%s", _in_words(said))
        return DecisionReport(APPROVE, said.who, said.reason, {"batch_id": batch_id}).json_fields()


class Publish(Advance):
    """Publishes the batch that was approved, and those after it."""

    def execute(self, context: Context) -> str:
        return self.run_pipeline(context)


def followed(one: Definition, advance: Advance, report: BuildReport, suffix: str = "") -> None:
    """What comes after advance: the decision about a refused batch, the check of a sample, and report as a teardown.

    The run is as good as its end: done where advance or publish is, skipped where nothing was to do or what waited was
    abandoned, failed otherwise.
    """
    decide = Decide(
        task_id=f"decide{suffix}",
        file=one.file,
        command=of_pipeline("report", one.file),
        trigger_rule="all_done",
        execution_timeout=None,  # a person may take longer
        **pipelines.retries(one.airflow),
    )
    publish = Publish(
        task_id=f"publish{suffix}",
        file=one.file,
        command=advance_command(one),
        outlets=[pipelines.results_asset(one.name, one.root)],
        **pipelines.engine_task(one),
    )
    end = _end(one, suffix)
    advance >> decide >> publish >> end >> report.as_teardown()
    advance >> end


def _end(one: Definition, suffix: str) -> BaseOperator:
    if one.checks.verify_sample:
        settings = {"trigger_rule": "one_success", **pipelines.engine_task(one)}
        return Verify(task_id=f"verify{suffix}", command=verify_command(one), **settings)
    return EmptyOperator(task_id=f"end{suffix}", trigger_rule="one_success")  # the scheduler runs none


def _failed(root: Path, pages: Pages, batch_id: int, rejection: str) -> list[str]:
    """A sentence for each check that failed; without values of rows where the definition hides columns."""
    from windowlib.pages.history import results_of
    from windowlib.quality.check import critical_failures, explain
    from windowlib.quality.validations import stored_outcome

    checked = stored_outcome(root, batch_id)
    results = results_of(checked, examples=not pages.hide) if checked else []
    said = explain(critical_failures(results)) or ("" if pages.hide else rejection)
    return [line.removeprefix("- ") for line in said.splitlines()] or ["The report says which."]


def _said(definition: Definition) -> Sequence[OperatorAction]:
    """What operators decided about batches, newest first."""
    from windowlib.batches.planning import ledger_of
    from windowlib.pages.newest_rows import tail

    ledger = ledger_of(definition)
    return [one for one in tail(ledger.tables, ledger.state().version).actions if one.kind in DONE]


def _decided(definition: Definition, batch_id: int) -> OperatorAction | None:
    return next((one for one in _said(definition) if one.batch_id == batch_id), None)


def _nothing_waits(definition: Definition, context: Context) -> str:
    """That no batch waits; and what was decided since this run of the DAG began, not what it waited for before.

    A run begins again when one of its tasks is cleared: then it is what was decided since it was due.
    """
    run = context["dag_run"]
    began = run.run_after if is_retry(context) else run.start_date or run.run_after
    since_ms = began.timestamp() * 1000
    if newest := next((one for one in _said(definition) if one.at_ms >= since_ms), None):
        return _in_words(newest)
    return "no batch waits for a decision: why advance published nothing is in its log"


def _in_words(said: OperatorAction) -> str:
    return f"batch {said.batch_id} is already {DONE[said.kind]} by {said.who}: {said.reason}"


def _left_waiting(pipeline: str, batch_id: int, who: str | None, reason: str) -> str:
    why = f": {reason}" if reason else ""
    return (
        f"batch {batch_id} of {pipeline} still waits for a decision, left so by {who or 'no user'}{why}\n"
        "the next run asks again; so does this task when it is cleared"
    )
