"""Tasks of the DAG `rerun_windows`. Each command runs as its own process (`windowlib.airflow.job`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLOperator
from airflow.sdk import BaseOperator, BaseOperatorLink, Context, Param

from windowlib.airflow.addresses import preview_of
from windowlib.airflow.applied import done_since
from windowlib.airflow.approval import (
    lacks_approval,
    needs_approval,
    policy,
    reason_mistake,
    refused_answer,
    responder,
    text_of,
    triggered_by,
    whose_answer,
)
from windowlib.airflow.commands import command
from windowlib.airflow.connections.access import load_pipeline
from windowlib.airflow.job import WAIT, Job, Record, in_lines, is_retry, last_words, raise_for, skip
from windowlib.airflow.lineage import LineageTask
from windowlib.airflow.outcome import in_a_line
from windowlib.airflow.outlets import OF_RERUNS, changes_results, extra_of
from windowlib.airflow.pipelines import results_asset
from windowlib.airflow.pools import FIRST
from windowlib.airflow.rerun_form import file_of, preview_named, refuse_unknown, requested_rerun
from windowlib.airflow.sentences import FinalFailure
from windowlib.definition.commands import to_paste
from windowlib.definition.reasons import LONGEST

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition

WHY = "why"  # field of the question about a preview
CHECK, PREVIEW, REVIEW, APPLY = "check", "preview", "review", "apply"  # task ids
PROPOSED = "proposed"  # key of the sentences about ends of the range that check has filled in
SHOWN = "preview_id"  # XCom key of the preview that review has asked about
DID_SOMETHING = "success", "failed"


class CheckRerun(BaseOperator):
    """Refuses a form or a range that cannot be rerun, before anything starts. Logs in words what the rerun will do.

    An empty from or to is filled in from the data. The log and the text to approve name the proposed time.
    """

    def __init__(self, *, pipelines: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipelines = dict(pipelines)

    def execute(self, context: Context) -> Record:
        from windowlib.definition.instants import iso_instant
        from windowlib.ledger.rerun_request import check_can_rerun
        from windowlib.model.errors import WindowError
        from windowlib.reruns.preview_text import title

        params = context["params"]
        try:
            refuse_unknown(context["dag_run"].conf or {}, self.dag.params)
            definition = load_pipeline(file_of(self.pipelines, params["pipeline"]))
            wanted, proposed = requested_rerun(definition, params, _who(context))
            check_can_rerun(definition.source, definition.never_rerun, wanted)
            policy(definition.airflow)
        except WindowError as error:
            raise FinalFailure(in_lines(str(error))) from None
        what = title(wanted, definition.source.key, definition.hidden)
        for sentence in [*proposed, f"{definition.name}: {what}"]:
            self.log.info("%s", sentence)
        bounds = {"from": iso_instant(wanted.from_ms), "to": iso_instant(wanted.to_ms)}
        return {**bounds, "what": what, PROPOSED: list(proposed)}


class PreviewPage(BaseOperatorLink):
    """Button that opens the page of a preview."""

    name = "Preview"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Address of the page of the preview. Airflow calls it after the task has ended."""
        return operator.page if isinstance(operator, PreviewRerun) else ""


class PipelineJob(Job):
    """Command for the pipeline that the form names."""

    def __init__(self, *, pipelines: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(command=(), **kwargs)
        self.pipelines = dict(pipelines)

    def prepare(self, name: str, context: Context, *options: str) -> None:
        """Sets the command line of `windowlib NAME`."""
        file = file_of(self.pipelines, context["params"]["pipeline"])
        self.command, self.connection = command(name, file, *options), load_pipeline(file).airflow.connection


class PreviewRerun(PipelineJob):
    """Previews the rerun in the log and on a page, and returns a report with its id. Reuses the preview in the form."""

    operator_extra_links = (PreviewPage(),)
    page = ""

    def execute(self, context: Context) -> list[Record]:
        from windowlib.reruns.preview_text import markdown
        from windowlib.reruns.previews import load

        params = context["params"]
        definition, preview_id = load_pipeline(file_of(self.pipelines, params["pipeline"])), preview_named(params)
        checked = _outcome_of(CHECK, context)
        if not preview_id:
            options = ["--from", checked["from"], "--to", checked["to"], "--reason", params["reason"]]
            options += ["--who", _who(context), "--dry-run", *(["--accept-gap"] if params["accept_gap"] else [])]
            self.prepare("rerun", context, *options)
            preview_id = super().execute(context)[-1]["preview_id"]
        preview = load(definition.store, preview_id)
        text = markdown(preview, definition.source.key, definition.hidden)
        self.page = preview_of(definition.name, preview.preview_id)
        proposals = "".join(f"{sentence[0].upper()}{sentence[1:]}.\n\n" for sentence in checked[PROPOSED])
        text = f"{proposals}{text}\n\n[As a page]({self.page})"
        return [
            {"preview_id": preview.preview_id, "changes_nothing": preview.summary.changes_nothing, "markdown": text}
        ]


class Review(ApprovalOperator):
    """Waits for an operator's approval of the preview. A dry run, or a rerun that changes nothing, ends here.

    After a rejection the task fails, with the user and the reason, because nothing was recomputed. Takes `FORM` as its
    `params`.
    """

    FORM: ClassVar = {  # optional: otherwise the form would require it to approve
        WHY: Param(
            None,
            type=["null", "string"],
            maxLength=LONGEST,
            title="Why",
            description="Required to reject; the log keeps it.",
        )
    }

    def __init__(self, *, pipelines: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(subject="Rerun of {{ params.pipeline }}: apply what the preview shows?", **kwargs)
        self.pipelines = dict(pipelines)

    def execute(self, context: Context) -> Any:
        _to_apply(self._file(context), context)
        if not needs_approval(self._definition(context), context["params"]):
            self.log.info("the form asks for no approval")
            return None
        return self._ask(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Succeeds after an approval, fails after a rejection, and asks again if the answer does not count."""
        from windowlib.airflow.question import not_taken

        why = text_of(event, WHY)
        answer = HITLOperator.execute_complete(self, context, {**event, "params_input": {WHY: why[:LONGEST]}})
        [choice], who = answer["chosen_options"], responder(answer)
        if choice == self.APPROVE:
            mistake = refused_answer(self._definition(context), who, context)
        else:
            mistake = reason_mistake(why)
        if mistake:
            self.log.warning("%s", in_lines(f"{choice} by {who} is not taken: {mistake}; asked again"))
            return self._ask(context, not_taken(choice, who, mistake))
        if choice == self.REJECT:
            raise FinalFailure(in_lines(f"rejected by {who}: {why}\nnothing was changed"))
        return answer

    def _ask(self, context: Context, before: str = "") -> Any:
        [preview] = _outcome_of(PREVIEW, context)
        self.body = f"{before}{preview['markdown']}{whose_answer('An approval', self._definition(context), context)}"
        context["ti"].xcom_push(key=SHOWN, value=preview["preview_id"])
        return super().execute(context)

    def _definition(self, context: Context) -> Definition:
        return load_pipeline(self._file(context))

    def _file(self, context: Context) -> str:
        return file_of(self.pipelines, context["params"]["pipeline"])


class Apply(LineageTask, PipelineJob):
    """Applies exactly what the preview showed. Waits while a scheduled run is in progress.

    The task checks the approval itself, because a user may have marked earlier tasks as success. If the rerun changed
    results, the task updates the asset of the pipeline's results.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(outlets=[OF_RERUNS], **kwargs)

    def execute(self, context: Context) -> list[Record]:
        file = file_of(self.pipelines, context["params"]["pipeline"])
        preview_id = _to_apply(file, context)
        answer = context["ti"].xcom_pull(task_ids=REVIEW)
        _refuse_unapproved(file, preview_id, answer, context)
        approved = responder(answer)
        who = f"{_who(context)}, approved by {approved}" if approved else _who(context)
        self.prepare("rerun", context, "--apply", preview_id, "--who", who, "--wait", WAIT)
        self.file = file
        records, lines, code = self.run_command(context)
        # If another run is in progress, try again: a skipped task would look as if there was nothing to do.
        raise_for(code, last_words(lines), retried=True)
        self._published(file, preview_id, records, context)
        return records

    def _published(self, file: str, preview_id: str, records: Sequence[Record], context: Context) -> None:
        """Sends the event of the results' asset, also for batches of an earlier try that was killed."""
        definition = load_pipeline(file)
        batches = [record for record in records if "done_already" not in record]
        if not batches and is_retry(context):
            batches = done_since(definition, preview_id, context["dag_run"].start_date)
        if not batches:
            return
        self.published_batches = batches
        self.log.info("%s", in_a_line(batches))
        if changes_results(batches):
            context["outlet_events"][OF_RERUNS].add(
                results_asset(definition.name, definition.store), extra=extra_of(batches)
            )


class ReportRerun(PipelineJob):
    """Builds the page of the pipeline after an apply that did something or failed. Otherwise is skipped.

    It is a teardown, so that it runs after a failure and does not hide the failure.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, **FIRST})

    def execute(self, context: Context) -> Any:
        task: Any = context["ti"]
        states = task.get_task_states(dag_id=self.dag_id, task_ids=[APPLY], run_ids=[task.run_id])
        if states.get(task.run_id, {}).get(APPLY) not in DID_SOMETHING:
            skip("nothing was applied: there is nothing to report")
        self.prepare("report", context)
        return super().execute(context)


def _outcome_of(task: str, context: Context) -> Any:
    """Return value of an earlier task. Raises `FinalFailure` if there is none, because a user marked it as success."""
    outcome = context["ti"].xcom_pull(task_ids=task)
    if not outcome:
        raise FinalFailure(f"there is no outcome of {task}: clear it and the tasks after it")
    return outcome


def _to_apply(file: str, context: Context) -> str:
    """Id of the preview to apply. Skips the task for a dry run, or a preview that changes nothing."""
    [preview] = _outcome_of(PREVIEW, context)
    preview_id = str(preview["preview_id"])
    if preview["changes_nothing"]:
        skip("the preview changes nothing: there is nothing to apply")
    if context["params"]["dry_run"]:
        skip(
            "a dry run ends with its preview: to apply it, trigger again with the dry run switched off and the"
            f" preview {preview_id}, or run:\n" + to_paste("rerun", file, "--apply", preview_id)
        )
    return preview_id


def _refuse_unapproved(file: str, preview_id: str, answer: Mapping[str, Any] | None, context: Context) -> None:
    """Raises `FinalFailure` if the rerun needs an approval, and the answer of *review* does not count."""
    mistake = lacks_approval(load_pipeline(file), answer, context)
    shown = context["ti"].xcom_pull(task_ids=REVIEW, key=SHOWN)
    if answer and not mistake and shown != preview_id:
        mistake = f"the answer is about the preview {shown}, and this is {preview_id}"
    if mistake:
        raise FinalFailure(
            in_lines(
                f"this rerun needs an approval, and has none that counts: {mistake}. Nothing was changed. Clear"
                " review and the tasks after it: it asks again"
            )
        )


def _who(context: Context) -> str:
    """User who triggered the run, as far as Airflow knows; otherwise `airflow`."""
    return str(triggered_by(context) or "airflow")
