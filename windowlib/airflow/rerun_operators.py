"""The tasks of the DAG `rerun_windows`. Each command runs as its own process, as in `windowlib.airflow.job`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from windowlib.airflow.commands import command
from windowlib.airflow.decide import responder
from windowlib.airflow.job import WAIT, Job, Record, in_lines, last_words, raise_for


class Check(BaseOperator):
    """Refuses a range that cannot be rerun, before anything starts; says in words what will be done."""

    def __init__(self, *, pipelines: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipelines = dict(pipelines)

    def execute(self, context: Context) -> Record:
        from windowlib.definition.definition import load_definition
        from windowlib.definition.instants import iso_instant
        from windowlib.model.errors import WindowError
        from windowlib.tables.rerun import Rerun, check_can_rerun, time_range

        params = context["params"]
        try:
            definition = load_definition(_file(self.pipelines, params["pipeline"]))
            asked = time_range(str(params["from"]), str(params["to"]), time.time_ns() // 1_000_000)
            wanted = Rerun(asked.from_ms, asked.to_ms, params["reason"], _who(context))
            check_can_rerun(definition, wanted)
        except WindowError as error:
            raise AirflowFailException(in_lines(str(error))) from None
        self.log.info("%s: %s", definition.name, wanted.title)
        return {"from": iso_instant(asked.from_ms), "to": iso_instant(asked.to_ms), "what": wanted.title}


class PreviewPage(BaseOperatorLink):
    """The button that opens the page of a preview."""

    name = "Preview"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Where `windowlib.airflow.plugin` shows it; asked for when the task has ended."""
        return operator.page if isinstance(operator, PreviewRerun) else ""


class OfPipeline(Job):
    """A command for the pipeline that the form names."""

    def __init__(self, *, pipelines: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(command=(), **kwargs)
        self.pipelines = dict(pipelines)

    def prepare(self, name: str, context: Context, *options: str) -> None:
        """Sets the command line of `windowlib NAME`."""
        file = _file(self.pipelines, context["params"]["pipeline"])
        self.command = command(name, file, *options)


class PreviewRerun(OfPipeline):
    """What would change: in the log, on a page, and as the preview's id."""

    operator_extra_links = (PreviewPage(),)
    page = ""

    def execute(self, context: Context) -> list[Record]:
        from windowlib.definition.definition import load_definition
        from windowlib.reruns.previews import load
        from windowlib.reruns.words import markdown

        params = context["params"]
        options = ["--from", str(params["from"]), "--to", str(params["to"]), "--reason", params["reason"]]
        options += ["--who", _who(context), "--dry-run", *(["--accept-gap"] if params["accept_gap"] else [])]
        self.prepare("rerun", context, *options)
        records = super().execute(context)
        definition = load_definition(_file(self.pipelines, params["pipeline"]))
        found = load(definition.root, records[-1]["preview_id"])
        text = markdown(found, definition.source.key, definition.pages.hide)
        self.page = f"/windowlib/{definition.name}/previews/{found.preview_id}"
        text += f"\n\n[As a page]({self.page})"
        return [{"preview_id": found.preview_id, "changes_nothing": found.summary.changes_nothing, "markdown": text}]


class Approve(ApprovalOperator):
    """Waits for an operator who has looked at the preview; a dry run, or one that changes nothing, ends here."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            subject="Rerun of {{ params.pipeline }}: apply what the preview shows?",
            body="{{ ti.xcom_pull(task_ids='preview')[0]['markdown'] }}",
            **kwargs,
        )

    def execute(self, context: Context) -> Any:
        params, found = context["params"], context["ti"].xcom_pull(task_ids="preview")[0]
        if found["changes_nothing"]:
            raise AirflowSkipException("the preview changes nothing: there is nothing to apply")
        if params["dry_run"]:
            raise AirflowSkipException(
                "a dry run ends with its preview: to apply it, trigger again with the dry run switched off, or run"
                f" windowlib rerun … --apply {found['preview_id']}"
            )
        if not params["approval"]:
            self.log.info("the form asks for no approval")
            return None
        return super().execute(context)


class Apply(OfPipeline):
    """Does exactly what the preview showed; waits while a scheduled run is in progress."""

    def execute(self, context: Context) -> list[Record]:
        preview_id = context["ti"].xcom_pull(task_ids="preview")[0]["preview_id"]
        approved = responder(context["ti"].xcom_pull(task_ids="approve"))
        who = f"{_who(context)}, approved by {approved}" if approved else _who(context)
        self.prepare("rerun", context, "--apply", preview_id, "--who", who, "--wait", WAIT)
        records, lines, code = self.run_command()
        # Tried again where another run is in progress: skipped, it would look as if there had been nothing to do.
        raise_for(code, last_words(lines), retried=True)
        return records


class ReportRerun(OfPipeline):
    """Builds the pages of the checks, the rerun's among them."""

    def execute(self, context: Context) -> Any:
        self.prepare("report", context)
        return super().execute(context)


def _file(pipelines: Mapping[str, str], name: str) -> str:
    """Where a pipeline is defined. Raises AirflowFailException for one that the form does not offer."""
    if name not in pipelines:
        raise AirflowFailException(f"no pipeline {name!r} can be rerun; allowed: {', '.join(sorted(pipelines))}")
    return str(Path(pipelines[name]))


def _who(context: Context) -> str:
    """Who triggered the run, as far as Airflow knows."""
    run = context["dag_run"]
    return str(getattr(run, "triggering_user_name", None) or "airflow")
