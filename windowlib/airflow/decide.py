"""Decision about a batch that its checks refused, in Airflow's *Required Actions*, and the tasks after it.

    plan ─ a batch waits ─────┐
      └> advance ─ failed ─> decide ─ approve ─> publish ─┐
            └──── done ─────────────────────────────────> end ─> report

The ledger stores the decision, as for `windowlib approve` and `abandon`; the first decision about a batch counts,
wherever it was made. `decide` polls every five minutes (`LOOK_AGAIN`), because only an answer wakes a waiting task. It
continues if the batch was decided elsewhere, and otherwise asks again.

`decide` runs after advance has failed, or after plan has found a waiting batch and skipped advance. If nothing is
planned, plan skips `decide` without a process. If advance succeeds, advance skips `decide`.
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
    reason_mistake,
    refused_answer,
    responder,
    text_of,
    waits_for_decision,
    whose_answer,
)
from windowlib.airflow.asking import BATCH, Question, asking_run, question_at
from windowlib.airflow.commands import advance_command, of_pipeline, verify_command
from windowlib.airflow.connections.access import load_pipeline
from windowlib.airflow.job import Job, Record, in_a_sentence, in_lines, is_retry, skip
from windowlib.airflow.operators import Advance, BuildReport, Verify
from windowlib.airflow.sentences import FinalFailure
from windowlib.decisions.report import DecisionReport
from windowlib.definition.commands import naming
from windowlib.definition.definition import Definition
from windowlib.definition.reasons import LONGEST
from windowlib.definition.toml.file import Pages
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from windowlib.ledger.rows import LedgerState
    from windowlib.pages.newest_rows import OperatorAction

APPROVE, ABANDON, LEAVE = "approve", "abandon", "leave waiting"
DONE = {APPROVE: "approved", ABANDON: "abandoned"}
REASON = "reason"  # the field of the form
NOT_TAKEN = "not_taken"  # XCom key of the reason why the last answer did not count
LOOK_AGAIN = timedelta(minutes=5)  # for a decision made elsewhere
ROWS = 6  # rows of each kind that the question shows


class Decide(Job, HITLOperator):
    """Builds the report (`command`), then asks for a decision about the waiting batch.

    Succeeds if the batch is approved. Is skipped if another run asks already and has no answer yet.
    """

    operator_extra_links = (Question(),)
    question_at = ""

    def __init__(self, *, file: Path, **kwargs: Any) -> None:
        about = f"Reason of the decision, kept in the ledger: a line of at most {LONGEST:,} characters."
        reason = Param("", type="string", maxLength=LONGEST, title="Reason", description=about)
        subject = "A batch was refused by its checks"
        super().__init__(
            subject=subject,
            options=[APPROVE, ABANDON, LEAVE],
            params={REASON: reason},
            defaults=LEAVE,  # answer of Airflow after `response_timeout`
            response_timeout=LOOK_AGAIN,
            **kwargs,
        )
        self.file = str(file)

    @in_a_sentence()
    def execute(self, context: Context) -> Any:
        """Builds the report and asks. Succeeds at once if the batch is approved. Is skipped if no batch waits."""
        from windowlib.batches.planning import ledger_of

        definition = load_pipeline(self.file)
        state = ledger_of(definition).state()
        if state.plan is None or not state.rejection:
            skip(_nothing_waits(definition, context))
        batch_id = state.plan.batch_id
        if state.approved_by:
            return self._decided_elsewhere(definition, batch_id)
        if asking := asking_run(context, self.task_id, batch_id, itself=True):
            self.question_at = question_at(context, self.task_id, asking)
            skip(waits_for_decision(definition, batch_id, self.task_id, asking))
        Job.execute(self, context)
        context["ti"].xcom_push(key=BATCH, value=batch_id)
        return self._ask(context, definition, state)

    def _ask(self, context: Context, definition: Definition, state: LedgerState) -> Any:
        """Asks the question about the waiting batch."""
        from windowlib.airflow.question import folded_rows, question
        from windowlib.batches.may_run import decision_command
        from windowlib.batches.planning import ledger_of
        from windowlib.pages.changes.waiting import waiting_changes
        from windowlib.pages.waiting_batch import lines, rows_in_no_window, wrong_results

        assert state.plan is not None, "a batch waits"
        assert state.rejection, "a batch waits"
        batch_id, ledger = state.plan.batch_id, ledger_of(definition)
        row_groups = {
            "results that are wrong": wrong_results(definition, batch_id),
            "rows that reach no window": rows_in_no_window(definition, ledger.tables, state),
        }
        rows = {
            title: [line for row in batch_rows for line in lines(row)][:ROWS]
            for title, batch_rows in row_groups.items()
        }
        failed = _failed_checks(definition.store, definition.pages, batch_id, state.rejection)
        file, plan = definition.file, state.plan
        commands = decision_command(APPROVE, file, plan), decision_command(ABANDON, file, plan)
        changes = waiting_changes(definition, ledger.tables, state)
        self.subject, body = question(definition.name, batch_id, page_of(definition.name), commands, failed, changes)
        self.params = ParamsDict({REASON: self.params.get_param(REASON), **folded_rows(rows)})
        before = context["ti"].xcom_pull(task_ids=self.task_id, key=NOT_TAKEN) or ""
        self.body = f"{before}{body}{whose_answer('An approval or abandonment', definition, context)}"
        return HITLOperator.execute(self, context)

    @in_a_sentence()
    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Writes the answer into the ledger. Asks again if its reason is missing, or nobody has answered yet."""
        from windowlib.airflow.question import not_taken
        from windowlib.decisions import verdicts
        from windowlib.ledger.ledger import NothingToDecide
        from windowlib.model.errors import WindowError

        reason = text_of(event, REASON)
        answer = super().execute_complete(context, {**event, "params_input": {REASON: reason[:LONGEST]}})
        [choice], who = answer["chosen_options"], responder(answer)
        batch_id = context["ti"].xcom_pull(task_ids=self.task_id, key=BATCH)
        definition = load_pipeline(self.file)
        if decided := _decided(definition, batch_id):
            if choice != decided.kind and not event.get("timedout"):
                self.log.warning("%s", in_lines(f"{choice} by {who} does not count: {_in_words(decided)}"))
            return self._decided_elsewhere(definition, batch_id)
        if event.get("timedout"):
            self.log.info("no one has decided about batch %s yet, here or elsewhere: asked again", batch_id)
            return self._look_again(context, definition, batch_id)
        if choice == LEAVE:
            raise FinalFailure(in_lines(_left_waiting(definition.name, batch_id, who, reason)))
        mistake = reason_mistake(reason) or refused_answer(definition, who, context)
        if mistake or who is None:
            self.log.warning("%s", in_lines(f"{choice} by {who} is not taken: {mistake}; asked again"))
            context["ti"].xcom_push(key=NOT_TAKEN, value=not_taken(choice, who, mistake or "no user"))
            return self._look_again(context, definition, batch_id)
        decide = verdicts.approve if choice == APPROVE else verdicts.abandon
        try:
            decide(definition, who, reason, batch_id=batch_id)
        except NothingToDecide:
            return self._decided_elsewhere(definition, batch_id)
        except WindowError as error:
            advice = "nothing is decided; clear this task to be asked again"
            raise FinalFailure(in_lines(f"{naming(str(error), definition.file)}\n{advice}")) from None
        sentence = f"batch {batch_id} is {DONE[choice]} by {who}: {reason}"
        if choice == ABANDON:
            skip(f"{sentence}\nthis run publishes nothing; the next one plans again")
        self.log.info("%s", sentence)
        return DecisionReport(choice, who, reason, {"batch_id": batch_id}).json_fields()

    def _look_again(self, context: Context, definition: Definition, batch_id: int) -> Any:
        """Asks again about a batch that still waits, without a new report. Otherwise reports its decision."""
        from windowlib.batches.planning import ledger_of

        state = ledger_of(definition).state()
        if state.plan is None or state.plan.batch_id != batch_id or not state.rejection:
            return self._decided_elsewhere(definition, batch_id)
        return self._ask(context, definition, state)

    def _decided_elsewhere(self, definition: Definition, batch_id: int) -> Record:
        """Returns an approval given elsewhere if the batch is not published yet. Otherwise skips the task."""
        from windowlib.batches.planning import ledger_of

        decision, plan = _decided(definition, batch_id), ledger_of(definition).state().plan
        if decision is None:
            skip(f"batch {batch_id} no longer waits for a decision")
        if decision.kind != APPROVE or plan is None or plan.batch_id != batch_id:
            skip(_in_words(decision))
        self.log.info("%s", _in_words(decision))
        return DecisionReport(APPROVE, decision.who, decision.reason, {"batch_id": batch_id}).json_fields()


class Publish(Advance):
    """Publishes the approved batch, and runs the batches after it."""

    def execute(self, context: Context) -> str:
        return self.run_pipeline(context)


def add_decision_tasks(definition: Definition, advance: Advance, report: BuildReport, suffix: str = "") -> None:
    """Adds the tasks after advance: decision about a refused batch, verification of a sample, and report as a teardown.

    The state of the last task before report is the state of the run. That task succeeds if advance or publish succeeds.
    It is skipped if there was nothing to do, or the waiting batch was abandoned. Otherwise it fails.
    """
    decide = Decide(
        task_id=f"decide{suffix}",
        file=definition.file,
        command=of_pipeline("report", definition.file),
        trigger_rule="all_done",
        execution_timeout=None,  # a person may take longer
        **pipelines.retries(definition.airflow),
    )
    publish = Publish(
        task_id=f"publish{suffix}",
        file=definition.file,
        command=advance_command(definition),
        outlets=[pipelines.results_asset(definition.name, definition.store)],
        **pipelines.engine_task(definition),
    )
    end = _end(definition, suffix)
    advance >> decide >> publish >> end >> report.as_teardown()
    advance >> end


def _end(definition: Definition, suffix: str) -> BaseOperator:
    if definition.checks.verify_sample:
        settings = {"trigger_rule": "one_success", **pipelines.engine_task(definition)}
        return Verify(task_id=f"verify{suffix}", command=verify_command(definition), **settings)
    return EmptyOperator(task_id=f"end{suffix}", trigger_rule="one_success")  # needs no process


def _failed_checks(tables: Store, pages: Pages, batch_id: int, rejection: str) -> list[str]:
    """Sentence for each failed check. Omits values of rows if the definition hides columns."""
    from windowlib.pages.history import results_of
    from windowlib.quality.check import critical_failures, explain
    from windowlib.quality.validations import stored_outcome

    checked = stored_outcome(tables, batch_id)
    results = results_of(checked, examples=not pages.hide) if checked else []
    explanation = explain(critical_failures(results)) or ("" if pages.hide else rejection)
    return [line.removeprefix("- ") for line in explanation.splitlines()] or ["The report names the failed checks."]


def _decisions(definition: Definition) -> Sequence[OperatorAction]:
    """Decisions of operators about batches, newest first."""
    from windowlib.batches.planning import ledger_of
    from windowlib.pages.newest_rows import tail

    ledger = ledger_of(definition)
    return [action for action in tail(ledger.tables, ledger.state().version).actions if action.kind in DONE]


def _decided(definition: Definition, batch_id: int) -> OperatorAction | None:
    return next((action for action in _decisions(definition) if action.batch_id == batch_id), None)


def _nothing_waits(definition: Definition, context: Context) -> str:
    """Sentence that no batch waits, or about the newest decision since this run of the DAG began.

    When a task of the run is cleared, the run begins again. Then decisions count since the run was due.
    """
    run = context["dag_run"]
    began = run.run_after if is_retry(context) else run.start_date or run.run_after
    since_ms = began.timestamp() * 1000
    if newest := next((action for action in _decisions(definition) if action.at_ms >= since_ms), None):
        return _in_words(newest)
    return "no batch waits for a decision: the log of advance says why it published nothing"


def _in_words(action: OperatorAction) -> str:
    return f"batch {action.batch_id} is already {DONE[action.kind]} by {action.who}: {action.reason}"


def _left_waiting(pipeline: str, batch_id: int, who: str | None, reason: str) -> str:
    why = f": {reason}" if reason else ""
    return (
        f"batch {batch_id} of {pipeline} still waits for a decision: {who or 'no user'} left it waiting{why}\n"
        "the next run asks again; so does this task when it is cleared"
    )
