"""The DAGs that Airflow finds when it parses the DAG files, and the state of each task after its command."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.support.disks import folder_of
from windowlib.definition.definition import load_definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.rerun import TimeRange
from windowlib.reruns.previews import Preview, Summary, keep
from windowlib.runs.attempt import BatchReport
from windowlib.storage.disk import Disk

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

pytestmark = [
    pytest.mark.airflow,
    # FastAPI imports its test client, which we do not use, wherever Airflow imports FastAPI.
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]

PROJECT = Path(__file__).resolve().parents[2]
DAGS = PROJECT / "dags"
DEFINITION = """
name = "{name}"
warehouse = "warehouse"

[source]
format = "parquet"
path = "incoming"
key = ["user_id"]
timestamp = "ts"

[watermark]
out_of_orderness = "5m"

[window]
type = "tumbling"
size = "10m"

[aggregates]
events = "count(*)"
"""


def dag_bag() -> "DagBag":
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(DAGS)


OF_ALL = {"rerun_windows", "maintain_windows"}
WAITING = ["--who", "airflow", "--wait=1h"]


@pytest.fixture
def pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folder of definitions from which the DAGs are made."""
    monkeypatch.setenv("WINDOWLIB_PIPELINES", str(tmp_path))
    return tmp_path


PARSED = """
import sys
from pathlib import Path
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(Path(sys.argv[1]))
print(sorted(bag.dag_ids), bag.import_errors, "obstore" in sys.modules)
"""


def test_parsing_uses_no_object_store_before_airflow_forks(pipelines: Path) -> None:
    """A process that has used an object store cannot be forked, and Airflow forks a process for each task."""
    text = DEFINITION.format(name="remote").replace('"warehouse"', '"s3://shop/warehouse"')
    (pipelines / "remote.toml").write_text(text.replace('"incoming"', '"s3://shop/incoming"'), encoding="utf-8")
    command = [sys.executable, "-W", "ignore", "-c", PARSED, str(DAGS)]
    parsed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    assert parsed == f"{sorted({*OF_ALL, 'windows_remote'})} {{}} False"


def test_every_definition_is_a_dag() -> None:
    bag = dag_bag()
    assert bag.import_errors == {}
    of_pipelines = [f"windows_{file.stem}" for file in (DAGS / "pipelines").glob("*.toml")]
    assert sorted(bag.dags) == sorted([*of_pipelines, *OF_ALL])


@pytest.mark.parametrize("name", sorted(file.stem for file in (DAGS / "pipelines").glob("*.toml")))
def test_plan_advance_report(name: str) -> None:
    dag = dag_bag().dags[f"windows_{name}"]
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == {
        "plan": {"advance"},
        "advance": {"decide", "end"},
        "decide": {"publish"},
        "publish": {"end"},
        "end": {"report"},
        "report": set(),
    }
    # Where advance is done, it has decide skipped; the scheduler skips publish, and runs no process for end.
    rules = {name: dag.get_task(name).trigger_rule for name in ("decide", "publish", "end")}
    assert rules == {"decide": "all_done", "publish": "all_success", "end": "one_success"}
    assert type(dag.get_task("end")).__name__ == "EmptyOperator"
    assert {task.task_id: task.pool for task in dag.tasks} == {
        "plan": "windowlib",
        "advance": "windowlib_spark",
        "decide": "windowlib",
        "publish": "windowlib_spark",
        "end": "windowlib",
        "report": "windowlib",
    }
    limits = {task.task_id: task.execution_timeout for task in dag.tasks}
    hour = timedelta(hours=1)
    assert limits == {"plan": hour, "advance": None, "decide": None, "publish": None, "end": hour, "report": hour}
    # A person may take longer: then it looks whether it was decided elsewhere, and asks again.
    assert dag.get_task("decide").response_timeout == timedelta(minutes=5)
    # Airflow adds up what follows otherwise, and a report would be the last in its pool behind every plan.
    assert {(task.task_id == "report", task.weight_rule) for task in dag.tasks} == {
        (True, "absolute"),
        (False, "absolute"),
    }
    assert {task.priority_weight for task in dag.tasks if task.task_id != "report"} == {1}
    assert dag.get_task("report").priority_weight > 1
    assert {(task.retries, task.retry_delay) for task in dag.tasks} == {(2, timedelta(minutes=1))}
    assert (dag.catchup, dag.max_active_runs) == (False, 1)
    assert dag.timetable.expression == "*/10 * * * *"
    assert type(dag.timetable).__name__ == "CronDataIntervalTimetable"
    assert f"windowlib status {DAGS / 'pipelines' / name}.toml" in dag.doc_md
    for task in ("advance", "publish"):
        assert [asset.name for asset in dag.get_task(task).outlets] == [f"windowlib_{name}_results"]


def test_owner_description_and_tags_are_those_of_the_dag(pipelines: Path) -> None:
    about = 'owner = "web team"\ndescription = "Clicks | of *each* user."\ntags = ["sales", "daily"]\n'
    (pipelines / "one.toml").write_text(about + DEFINITION.format(name="one"), encoding="utf-8")
    dag = dag_bag().dags["windows_one"]
    assert (dag.owner, dag.description) == ("web team", "Clicks | of *each* user.")
    assert dag.tags == {"windowlib", "tumbling", "sales", "daily"}
    assert "\nClicks \\| of \\*each\\* user.\n" in dag.doc_md
    assert "| owner | web team |" in dag.doc_md


def test_verify_is_a_task_where_the_definition_says_so(pipelines: Path) -> None:
    """If verify fails, the DAG fails, although the teardown report runs after it. Approved batches are verified too."""
    checks = '[checks]\nverify_sample = 0.25\nverify_last = "6h"\n'
    counts = DEFINITION.format(name="two").replace('"tumbling"', '"tumbling_count"').replace('"10m"', "3")
    (pipelines / "one.toml").write_text(DEFINITION.format(name="one") + checks, encoding="utf-8")
    (pipelines / "two.toml").write_text(counts + checks, encoding="utf-8")
    (pipelines / "three.toml").write_text(together("three") + checks, encoding="utf-8")
    bag = dag_bag()
    assert bag.import_errors == {}
    dag = bag.dags["windows_one"]
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == {
        "plan": {"advance"},
        "advance": {"decide", "verify"},
        "decide": {"publish"},
        "publish": {"verify"},
        "verify": {"report"},
        "report": set(),
    }
    assert dag.get_task("verify").trigger_rule == "one_success"
    asked = [str(pipelines / "one.toml"), "--sample", "0.25", "--last", "6h"]
    assert dag.get_task("verify").command[-6:] == ["verify", *asked]
    # Count windows have no bounds in time.
    assert bag.dags["windows_two"].get_task("verify").command[-2:] == ["--sample", "0.25"]
    together_dag = bag.dags["together_stream"]
    assert together_dag.get_task("advance_three").downstream_task_ids == {"decide_three", "verify_three"}


def test_the_dag_for_maintenance_has_a_task_for_each_pipeline() -> None:
    dag = dag_bag().dags["maintain_windows"]
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == {"clicks": set(), "clicks_sliding": set()}
    assert dag.get_task("clicks").command[-5:] == ["maintain", str(DAGS / "pipelines/clicks.toml"), *WAITING]
    # Hours of maintenance must not keep plans and reports waiting.
    assert {task.pool for task in dag.tasks} == {"windowlib_maintenance"}


def test_the_dag_for_reruns() -> None:
    dag = dag_bag().dags["rerun_windows"]
    assert [task.task_id for task in dag.topological_sort()] == ["check", "preview", "review", "apply", "report"]
    # One that waits for a person must not keep scheduled runs waiting.
    assert [task.pool for task in dag.topological_sort()] == [
        "windowlib",
        "windowlib_reruns",
        "default_pool",
        "windowlib_reruns",
        "windowlib",
    ]
    report = dag.get_task("report")
    assert (report.is_teardown, report.on_failure_fail_dagrun) == (True, False)
    assert report.priority_weight > 1
    assert {task.weight_rule for task in dag.tasks} == {"absolute"}
    assert type(dag.timetable).__name__ == "NullTimetable"
    form = {name: dag.params.get_param(name) for name in dag.params}
    assert form["pipeline"].schema["enum"] == ["clicks", "clicks_sliding"]
    assert [form[name].schema["format"] for name in ("from", "to")] == ["date-time", "date-time"]
    assert [dag.params[name] for name in ("dry_run", "approval", "accept_gap")] == [True, True, False]
    assert form["reason"].schema["maxLength"] == 2_000
    # A run whose question is open would keep every other one waiting, dry runs of other pipelines too.
    assert dag.max_active_runs == 256


def test_the_form_offers_what_can_be_rerun(pipelines: Path) -> None:
    assert "rerun_windows" not in dag_bag().dags  # no pipeline, no choice
    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    counts = DEFINITION.format(name="two").replace('"tumbling"', '"tumbling_count"').replace('"10m"', "3")
    (pipelines / "two.toml").write_text(counts, encoding="utf-8")
    (pipelines / "three.toml").write_text("name = 3", encoding="utf-8")
    assert dag_bag().dags["rerun_windows"].params.get_param("pipeline").schema["enum"] == ["one"]


FROM_MS = 1_772_496_000_000


class RunOf:
    """Context of a run with this form, whose preview returned this."""

    def __init__(self, *, changes_nothing: bool = False, **form: Any) -> None:
        self.form = {"pipeline": "one", "from": "2026-03-02T00:00:00Z", "to": "2026-03-03T00:00:00Z", "reason": "r"}
        self.form |= {"dry_run": False, "approval": True, "accept_gap": False, "preview": None}
        self.form |= {"all_history": False} | form
        self.returned = [{"preview_id": "p1", "changes_nothing": changes_nothing, "markdown": ""}]
        self.conf: dict[str, Any] | None = form
        self.checked: dict[str, Any] | None = None
        self.answer: dict[str, Any] | None = None
        self.shown: str | None = None

    def xcom_push(self, key: str, value: Any) -> None:
        assert key == "preview_id"
        self.shown = value

    def xcom_pull(self, task_ids: str, key: str = "return_value") -> Any:
        if key == "preview_id":
            return self.shown
        return {"preview": self.returned, "check": self.checked, "review": self.answer}.get(task_ids)

    @property
    def context(self) -> dict[str, Any]:
        run = type("Run", (), {"triggering_user_name": "ann", "conf": self.conf})()
        return {"params": self.form, "ti": self, "dag_run": run}


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"to": "2026-03-01T00:00:00+00:00"}, "is not before"),
        ({"from": "2026-03-02T00:00:00"}, "has no time zone"),
        ({"to": "2926-03-03T00:00:00Z"}, "is in the future"),
        ({"to": None}, r"^to is empty, and there are no results yet"),
        ({"preview": " p2 ", "from": None, "to": None}, "no preview 'p2' here"),
        ({"pipeline": "four"}, "no pipeline 'four' can be rerun; allowed: one"),
        ({"reason": "r" * 200_000}, "^the reason: it has 200,000 characters: need at most 2,000$"),
        ({"reason": "r\0"}, r"^the reason: it has the control character '.x00': need one\sline of text$"),
    ],
)
def test_check_refuses_before_anything_starts(pipelines: Path, form: dict[str, str], says: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    check = dag_bag().dags["rerun_windows"].get_task("check")
    assert check.execute(RunOf().context)["what"] == "rerun 2026-03-02 00:00:00 UTC to 2026-03-03 00:00:00 UTC"
    with pytest.raises(AirflowFailException, match=says):
        check.execute(RunOf(**form).context)


def test_a_misspelt_field_is_refused(pipelines: Path) -> None:
    """Otherwise it would be ignored, and all of the data would be rerun."""
    from airflow.sdk.exceptions import AirflowFailException

    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    check, run = dag_bag().dags["rerun_windows"].get_task("check"), RunOf()
    run.conf = {"pipeline": "one", "form": "2026-03-02T00:00Z", "until": "2026-03-03T00:00Z"}
    with pytest.raises(AirflowFailException, match="not a field of this form: 'form', 'until'; allowed:") as raised:
        check.execute(run.context)
    allowed = "accept_gap, all_history, approval, dry_run, from, pipeline, preview, reason, to. Nothing was changed"
    assert allowed in " ".join(str(raised.value).split())
    for fine in (None, {"pipeline": "one", "openlineage": {"parentRunId": "1"}}):
        run.conf = fine
        check.execute(run.context)


@pytest.mark.parametrize(
    ("form", "says"),
    [
        (
            {"dry_run": True},
            "a dry run ends with its preview: .* and the preview p1, or run: .*windowlib rerun .*one.toml --apply p1",
        ),
        ({"changes_nothing": True}, "the preview changes nothing"),
    ],
)
@pytest.mark.parametrize("task", ["review", "apply"])
def test_nothing_is_applied_without_need(
    pipelines: Path, form: dict[str, bool], says: str, task: str, caplog: pytest.LogCaptureFixture
) -> None:
    """This also holds if a user marks review as success and clears apply."""
    from airflow.sdk.exceptions import AirflowSkipException

    from windowlib.airflow.job import LOG_WIDTH

    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    with pytest.raises(AirflowSkipException) as raised:
        dag_bag().dags["rerun_windows"].get_task(task).execute(RunOf(approval=False, **form).context)
    lines = str(raised.value).splitlines()
    assert re.search(says, " ".join(lines))
    assert [one for one in lines if len(one) > LOG_WIDTH] == [one for one in lines if "--apply" in one]
    assert str(raised.value) in caplog.messages  # Airflow folds its own line about it away


def test_approval_can_be_switched_off(pipelines: Path) -> None:
    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    assert dag_bag().dags["rerun_windows"].get_task("review").execute(RunOf(approval=False).context) is None


@pytest.mark.parametrize(("author", "deployment"), [("asked", "required"), ("required", ""), ("required", "asked")])
def test_the_stricter_of_author_and_deployment_holds(
    asking: None, pipelines: Path, monkeypatch: pytest.MonkeyPatch, author: str, deployment: str
) -> None:
    """Otherwise an author could switch off approvals that the deployment requires."""
    monkeypatch.setenv("WINDOWLIB_APPROVAL", deployment)
    (pipelines / "one.toml").write_text(
        DEFINITION.format(name="one") + f'[airflow]\napproval = "{author}"\n', encoding="utf-8"
    )
    with pytest.raises(Asked):
        dag_bag().dags["rerun_windows"].get_task("review").execute(RunOf(approval=False).context)


def test_four_eyes_of_the_deployment(asking: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.setenv("WINDOWLIB_APPROVAL", "another user")
    assert answered("asked", "Approve", "bob")["responded_by_user"]["name"] == "bob"
    with pytest.raises(Asked):
        answered("asked", "Approve", "ann")
    monkeypatch.setenv("WINDOWLIB_APPROVAL", "requird")  # a slip of the pen switches nothing off
    check = dag_bag().dags["rerun_windows"].get_task("check")
    with pytest.raises(AirflowFailException, match=r"WINDOWLIB_APPROVAL: need one of (.|\n)*given 'requird'"):
        check.execute(RunOf().context)


def rerun_tasks(policy: str = "asked") -> Any:
    """DAG for reruns of a pipeline with this policy about approvals."""
    folder = Path(os.environ["WINDOWLIB_PIPELINES"])
    text = DEFINITION.format(name="one") + f'[airflow]\napproval = "{policy}"\n'
    (folder / "one.toml").write_text(text, encoding="utf-8")
    return dag_bag().dags["rerun_windows"]


def answered(policy: str, choice: str, who: str, why: str = "") -> Any:
    """Outcome of an answer to the question about a preview, in a run that ann has triggered."""
    approve = rerun_tasks(policy).get_task("review")
    event = {
        "chosen_options": [choice],
        "params_input": {"why": why},
        "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": "7", "name": who},
        "timedout": False,
    }
    return approve.execute_complete(RunOf(approval=policy == "asked").context, event)


class Asked(Exception):
    """The question was asked (again)."""


@pytest.fixture
def asking(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes questions raise `Asked`; tests/airflow/test_decide.py has real questions."""
    from airflow.providers.standard.operators.hitl import HITLOperator

    def ask(operator: Any, _: Any) -> None:
        raise Asked(operator.body)

    monkeypatch.setattr(HITLOperator, "execute", ask)


def test_who_may_approve_a_rerun(asking: None) -> None:
    for policy, who in (("asked", "ann"), ("required", "ann"), ("another user", "bob")):
        assert answered(policy, "Approve", who)["responded_by_user"]["name"] == who
    with pytest.raises(Asked, match=r"^\*\*Approve by ann was not taken\*\*: ann triggered this run, and") as asked:
        answered("another user", "Approve", "ann")
    assert str(asked.value).endswith("\n\nAn approval must come from another user than ann, who triggered this run.")


def test_a_rejected_rerun_fails_with_who_and_why(asking: None) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="rejected by ann: the wrong day\nnothing was changed"):
        answered("asked", "Reject", "ann", " the wrong day ")
    with pytest.raises(Asked, match=r"^\*\*Reject by ann was not taken\*\*: the reason: there is none. Answer again"):
        answered("asked", "Reject", "ann", " ")
    with pytest.raises(Asked, match="it has 2,001 characters: need at most 2,000"):
        answered("asked", "Reject", "ann", "r" * 2_001)


def applied(policy: str, run: RunOf, program: str = "") -> list[str]:
    """Options of the command that applies the preview; `program` runs in its place."""
    apply, asked = rerun_tasks(policy).get_task("apply"), list[str]()

    def prepare(name: str, context: Any, *options: str) -> None:
        asked.extend(options)
        apply.command = [sys.executable, "-c", program]

    apply.prepare = prepare
    apply.execute(run.context)
    return asked


@pytest.mark.parametrize(
    ("policy", "form", "who", "refused"),
    [
        ("asked", {"approval": False}, None, None),
        ("asked", {}, "ann", None),
        ("another user", {}, "bob", None),
        ("asked", {}, None, "no one has answered"),
        ("required", {"approval": False}, None, "no one has answered"),
        ("another user", {"approval": False}, None, "no one has answered"),
        ("another user", {}, "ann", "ann triggered this run"),
    ],
)
def test_nothing_is_applied_without_an_approval_that_counts(
    pipelines: Path, policy: str, form: dict[str, bool], who: str | None, refused: str | None
) -> None:
    """A task review that was marked as success holds no approval."""
    from airflow.sdk.exceptions import AirflowFailException

    run = RunOf(**form)
    run.answer = who and {"chosen_options": ["Approve"], "responded_by_user": {"id": "7", "name": who}}
    run.shown = who and "p1"
    if refused is None:
        approved = f"ann, approved by {who}" if who else "ann"
        assert applied(policy, run) == ["--apply", "p1", "--who", approved, "--wait", "1h"]
        return
    with pytest.raises(AirflowFailException) as raised:
        applied(policy, run)
    said = " ".join(str(raised.value).split())
    assert f"needs an approval, and has none that counts: {refused}" in said
    assert "Clear review and the tasks after it" in said


def test_an_approval_counts_for_the_preview_that_was_shown(asking: None) -> None:
    """If only preview is cleared, its new preview must not be applied."""
    from airflow.sdk.exceptions import AirflowFailException

    run = RunOf()
    with pytest.raises(Asked):
        rerun_tasks().get_task("review").execute(run.context)
    run.answer = {"chosen_options": ["Approve"], "responded_by_user": {"id": "7", "name": "bob"}}
    assert applied("asked", run)[:2] == ["--apply", "p1"]
    run.returned[0]["preview_id"] = "p2"
    with pytest.raises(AirflowFailException, match=r"about(.|\n)*preview\sp1,\sand\sthis\sis\sp2"):
        applied("asked", run)


@pytest.mark.parametrize(
    ("task", "before", "form"),
    [
        ("preview", "check", {}),
        ("preview", "check", {"preview": "p1"}),
        ("review", "preview", {}),
        ("apply", "preview", {"approval": False}),
    ],
)
def test_a_task_fails_after_an_earlier_task_was_marked_as_success(
    pipelines: Path, task: str, before: str, form: dict[str, Any]
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    run = RunOf(**form)
    run.returned = []
    with pytest.raises(
        AirflowFailException, match=f"^there is no outcome of {before}: clear it and the tasks after it"
    ):
        rerun_tasks().get_task(task).execute(run.context)


@pytest.mark.parametrize("policy", ["required", "another user"])
def test_a_deployment_that_wants_approvals_gets_them(asking: None, pipelines: Path, policy: str) -> None:
    text = DEFINITION.format(name="one") + f'[airflow]\napproval = "{policy}"\n'
    (pipelines / "one.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Asked):
        dag_bag().dags["rerun_windows"].get_task("review").execute(RunOf(approval=False).context)


@pytest.mark.parametrize(("base_url", "under"), [("", ""), ("https://example.org/team/airflow/", "/team/airflow")])
def test_a_preview_that_was_made_is_shown_and_not_made_again(
    pipelines: Path, monkeypatch: pytest.MonkeyPatch, base_url: str, under: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    definition = load_definition(pipelines / "one.toml")
    summary = Summary({"added": 1}, {}, [0, 0], 0, {}, [0, 1], 1, 1, [], 0, None, [])
    asked = Rerun(1_772_496_000_000, 1_772_582_400_000, "euros", "bob")
    keep(definition.store, Preview("p1", 1_772_600_000_000, asked, 3, None, summary))
    dag, run = dag_bag().dags["rerun_windows"], RunOf(preview="p1", reason="", **{"from": None, "to": None})
    run.checked = dag.get_task("check").execute(run.context)
    assert run.checked["what"] == asked.title
    preview = dag.get_task("preview")
    [shown] = preview.execute(run.context)  # it has no command: one would fail
    assert (shown["preview_id"], shown["changes_nothing"]) == ("p1", False)
    assert "euros" in shown["markdown"]
    page = f"{under}/windowlib/one/previews/p1"
    (link,) = preview.operator_extra_links
    assert link.get_link(preview, ti_key=None) == page
    assert shown["markdown"].endswith(f"[As a page]({page})")


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"from": "2026-03-03T00:00:00Z", "to": "2026-03-04T01:00:00+01:00", "reason": "euros"}, None),
        (
            {"from": "2026-03-03T01:00:00Z"},
            "from is '2026-03-03T01:00:00Z', but preview p1 was made with",
        ),
        ({"to": "2026-03-03T00:00:00Z"}, "and is applied unchanged. Leave to empty"),
        ({"reason": "dollars"}, "reason is 'dollars', but preview p1 was made with 'euros'"),
        ({"reason": "dollars", "preview": None}, "^from and to are empty: give a range"),
        ({"all_history": True}, "all_history is on, and preview p1 has its own range"),
    ],
)
def test_a_form_that_names_a_preview_says_nothing_else(pipelines: Path, form: dict[str, Any], says: str | None) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    summary = Summary({"added": 1}, {}, [0, 0], 0, {}, [0, 1], 1, 1, [], 0, None, [])
    asked = Rerun(FROM_MS, FROM_MS + 86_400_000, "euros", "bob")
    root = folder_of(load_definition(pipelines / "one.toml"))
    keep(Disk(root), Preview("p1", FROM_MS + 100_000_000, asked, 3, None, summary))
    run = RunOf(**{"preview": "p1", "from": None, "to": None, "reason": ""} | form)
    check = dag_bag().dags["rerun_windows"].get_task("check")
    with nullcontext() if says is None else pytest.raises(AirflowFailException, match=says):
        assert check.execute(run.context)["what"] == asked.title


def test_an_empty_end_of_the_range_is_taken_from_the_data(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text to approve contains the proposed end."""
    import windowlib.publication.data_range

    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    dag, run = dag_bag().dags["rerun_windows"], RunOf(**{"from": None, "to": "", "all_history": True})
    with monkeypatch.context() as patch:
        patch.setattr(windowlib.publication.data_range, "data_range", lambda *_: TimeRange(FROM_MS, FROM_MS + 1_500))
        run.checked = dag.get_task("check").execute(run.context)
    assert run.checked == {
        "from": "2026-03-03T00:00:00Z",
        "to": "2026-03-03T00:00:01.500Z",
        "what": "rerun 2026-03-03 00:00:00 UTC to 2026-03-03 00:00:01.500 UTC",
        "proposed": [
            "from was empty: 2026-03-03T00:00:00Z, the first result's window start",
            "to was empty: 2026-03-03T00:00:01.500Z, the last result's window end",
        ],
    }
    preview = dag.get_task("preview")
    asked: list[str] = []

    def prepare(name: str, context: Any, *options: str) -> None:
        asked.extend(options)
        preview.command = [sys.executable, "-c", outcomes({"preview_id": "p1"})]

    preview.prepare = prepare
    definition = load_definition(pipelines / "one.toml")
    summary = Summary({"added": 1}, {}, [0, 0], 0, {}, [0, 1], 1, 1, [], 0, None, [])
    keep(
        definition.store, Preview("p1", FROM_MS + 2_000, Rerun(FROM_MS, FROM_MS + 1_500, "r", "ann"), 3, None, summary)
    )
    [shown] = preview.execute(run.context)
    assert asked[:4] == ["--from", "2026-03-03T00:00:00Z", "--to", "2026-03-03T00:00:01.500Z"]
    assert shown["markdown"].startswith("From was empty: 2026-03-03T00:00:00Z, the first result's window start.\n\nTo")


def test_an_empty_range_is_all_history_only_where_the_form_says_so(pipelines: Path) -> None:
    """Otherwise a form without a range would recompute all results."""
    from airflow.sdk.exceptions import AirflowFailException

    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    check = dag_bag().dags["rerun_windows"].get_task("check")
    with pytest.raises(AirflowFailException) as raised:
        check.execute(RunOf(**{"from": None, "to": " "}).context)
    assert " ".join(str(raised.value).split()) == (
        "from and to are empty: give a range, or switch on All history (all_history) to recompute all results. Nothing"
        " was changed"
    )
    with pytest.raises(AirflowFailException, match="all_history is on, and from or to is given"):
        check.execute(RunOf(all_history=True).context)


def test_no_pipeline_is_chosen_in_the_form(pipelines: Path) -> None:
    """Otherwise users who overlook the field would rerun the first pipeline of the list."""
    from airflow.sdk.exceptions import ParamValidationError

    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    params = dag_bag().dags["rerun_windows"].params
    assert params.get_param("pipeline").schema["enum"] == ["one"]
    with pytest.raises(ParamValidationError):
        params.get_param("pipeline").resolve()
    assert params.get_param("pipeline").resolve("one") == "one"


@pytest.mark.fault("a rerun meets a scheduled run", "Airflow tries the task again")
def test_a_rerun_that_meets_another_run_is_tried_again(pipelines: Path) -> None:
    """A skipped task would look as if there had been nothing to do."""
    from airflow.sdk.exceptions import AirflowException, AirflowSkipException

    program = "import sys; print('error: another run holds this pipeline', file=sys.stderr); sys.exit(4)"
    with pytest.raises(AirflowException, match="exit code 4: another run holds this pipeline") as raised:
        applied("asked", RunOf(approval=False), program)
    assert not isinstance(raised.value, AirflowSkipException)


@pytest.mark.parametrize(
    ("applied", "reports"), [("success", 1), ("failed", 1), ("skipped", 0), ("upstream_failed", 0)]
)
def test_a_rerun_is_reported_where_it_did_something_or_failed(pipelines: Path, applied: str, reports: int) -> None:
    """The page is also updated after a rerun that was refused."""
    from airflow.sdk.exceptions import AirflowSkipException

    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    report, run, made = dag_bag().dags["rerun_windows"].get_task("report"), RunOf(), list[str]()
    run.run_id = "now"
    run.get_task_states = lambda dag_id, task_ids, run_ids: {"now": {task_ids[0]: applied}}
    report.prepare = lambda name, context: setattr(report, "command", [sys.executable, "-c", "print('built')"])
    report.run_command = lambda context: (made.append("report") or [], [], 0)
    if reports:
        report.execute(run.context)
    else:
        with pytest.raises(AirflowSkipException, match="nothing was applied"):
            report.execute(run.context)
    assert len(made) == reports


def test_report_always_runs_and_hides_no_failure() -> None:
    """An ordinary last task with `all_done` would make the run succeed even after advance has failed."""
    report = dag_bag().dags["windows_clicks"].get_task("report")
    assert report.is_teardown
    assert not report.on_failure_fail_dagrun


def test_parsing_imports_no_spark_and_is_quick() -> None:
    seen = subprocess.run(
        [
            sys.executable,
            "-c",
            "import airflow.sdk, runpy, sys, time; started = time.process_time();"
            f"runpy.run_path({str(DAGS / 'windows.py')!r}); print(time.process_time() - started);"
            "print({name.partition('.')[0] for name in sys.modules} & "
            "{'pyspark', 'py4j', 'delta', 'deltalake', 'pandas', 'pyarrow', 'great_expectations'})",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert seen[1] == "set()"
    assert float(seen[0]) < 5


def test_a_run_that_is_late_is_reported_where_freshness_is_asked_for(pipelines: Path) -> None:
    notify = '[notify]\nwebhook = "https://hooks.example.com/1"\n'
    for name, asked in (("one", notify + 'freshness = "2h"\n'), ("two", notify), ("three", "")):
        (pipelines / f"{name}.toml").write_text(DEFINITION.format(name=name) + asked, encoding="utf-8")
    bag = dag_bag()
    assert bag.import_errors == {}
    assert [bag.dags[f"windows_{name}"].deadline for name in ("two", "three")] == [None, None]
    [deadline] = bag.dags["windows_one"].deadline
    assert deadline.interval == timedelta(hours=2)
    assert deadline.callback.path == "windowlib.airflow.late_runs.judge"
    assert deadline.callback.kwargs == {"file": str(pipelines / "one.toml")}


def test_without_a_schedule_a_pipeline_runs_by_hand(pipelines: Path) -> None:
    (pipelines / "quiet.toml").write_text(DEFINITION.format(name="quiet"), encoding="utf-8")
    dag = dag_bag().dags["windows_quiet"]
    assert type(dag.timetable).__name__ == "NullTimetable"


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ('gapp = "1m"', "broken.toml: window.gapp"),
        ("= =", "broken.toml: is not TOML"),
        ('[airflow]\nschedule = "61 * * * *"', 'broken.toml: airflow.schedule: given "61 * * * *"'),
    ],
)
@pytest.mark.fault("a definition is broken", "its own DAG fails with the reason; other DAGs run")
def test_a_broken_definition_fails_alone_and_says_why(pipelines: Path, mistake: str, message: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    whole = DEFINITION.format(name="whole")
    (pipelines / "whole.toml").write_text(whole, encoding="utf-8")
    broken = whole.replace('size = "10m"', f'size = "10m"\n{mistake}\n').replace("whole", "broken")
    (pipelines / "broken.toml").write_text(broken, encoding="utf-8")
    bag = dag_bag()
    assert bag.import_errors == {}
    assert len(bag.dags["windows_whole"].tasks) == 6
    (task,) = bag.dags["windows_broken"].tasks
    assert message in bag.dags["windows_broken"].doc_md
    with pytest.raises(AirflowFailException) as raised:
        task.execute({})
    assert message in str(raised.value).replace("\n", " ")


def test_an_error_is_shown_in_lines_of_its_own() -> None:
    """Airflow's page of a log cuts longer lines. A path or a name stays whole."""
    from windowlib.airflow.job import LOG_WIDTH, in_lines

    path = f"/{'long' * LOG_WIDTH}"
    message = f"{path} is not what was expected; {'words ' * LOG_WIDTH}\n\n- a second line"
    lines = in_lines(message).splitlines()
    assert [line for line in lines if len(line) > LOG_WIDTH] == [path]
    assert lines[-2:] == ["", "- a second line"]
    assert " ".join(lines).split() == message.split()


def test_a_command_in_an_error_stays_in_one_line() -> None:
    """A command over two lines would be two commands when it is pasted."""
    from windowlib.airflow.job import LOG_WIDTH, in_lines
    from windowlib.definition.commands import WHY, to_paste

    drop = to_paste("abandon", Path("/srv/my pipelines/of the shops/clicks.toml"), "--batch", "7", *WHY)
    lines = in_lines(f"{'words ' * 20}: `{drop}` drops it\nto drop it, and plan again: {drop}").splitlines()
    assert [line.count(drop) for line in lines if "abandon" in line] == [1, 1]
    assert max(len(line) for line in lines if "abandon" not in line) <= LOG_WIDTH


def test_one_name_for_two_pipelines(pipelines: Path) -> None:
    for file in ("one", "other"):
        (pipelines / f"{file}.toml").write_text(DEFINITION.format(name="same"), encoding="utf-8")
    bag = dag_bag()
    assert sorted(bag.dags.keys() - OF_ALL) == ["windows_other", "windows_same"]
    assert (
        f"{pipelines / 'other.toml'}: name: same is already the name of {pipelines / 'one.toml'}"
        in bag.dags["windows_other"].doc_md
    )


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("a copy (2).toml", DEFINITION.format(name="whole"), "name: whole is already the name of"),
        ("whole (copy).toml", DEFINITION.format(name="whole"), "name: whole is already the name of"),
        ("größer & länger.toml", DEFINITION.format(name="Größer"), "name"),
        ("x" * 240 + ".toml", "= =", "is not TOML"),
        ("nested.toml", "name = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("tables.toml", "".join(f"[{'.'.join('a' * n)}]\n" for n in range(1, 1500)), "a definition has at most"),
        ("binary.toml", "name = '\x00'", "is not TOML"),
    ],
)
def test_whatever_is_wrong_with_a_file_costs_its_own_dag_alone(
    pipelines: Path, file: str, text: str, message: str
) -> None:
    (pipelines / "whole.toml").write_text(DEFINITION.format(name="whole"), encoding="utf-8")
    (pipelines / file).write_text(text, encoding="utf-8")
    bag = dag_bag()
    assert bag.import_errors == {}
    assert len(bag.dags["windows_whole"].tasks) == 6
    assert str(pipelines / "whole.toml") in bag.dags["windows_whole"].get_task("plan").command
    (broken,) = bag.dags.keys() - {"windows_whole"} - OF_ALL
    (task,) = bag.dags[broken].tasks
    assert message in task.message


def test_a_broken_file_does_not_take_the_place_of_a_pipeline(pipelines: Path) -> None:
    """The file `one.toml` is broken, and a valid pipeline has the name that its DAG would have."""
    (pipelines / "one.toml").write_text("= =", encoding="utf-8")
    (pipelines / "other.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    bag = dag_bag()
    assert bag.import_errors == {}
    assert len(bag.dags["windows_one"].tasks) == 6
    assert len(bag.dags["windows_one_2"].tasks) == 1


@pytest.mark.parametrize("mistake", ['[watermark]\nidel_timeout = "1h"\n', "size = = 5\n", 'name = "one\n'])
@pytest.mark.parametrize(("original", "copy"), [("one.toml", "backup.toml"), ("a.toml", "b.toml")])
def test_a_copy_does_not_replace_an_original_with_a_mistake(
    pipelines: Path, original: str, copy: str, mistake: str
) -> None:
    """A copy may differ, for example in its lateness, and would publish under the name of the pipeline."""
    text = DEFINITION.format(name="one")
    (pipelines / copy).write_text(text, encoding="utf-8")
    broken = mistake + text.lstrip().partition("\n")[2] if mistake.startswith("name") else text + mistake
    (pipelines / original).write_text(broken, encoding="utf-8")
    bag = dag_bag()
    ids = {f"windows_{Path(file).stem}" for file in (original, copy)}
    assert bag.dags.keys() - OF_ALL == ids
    assert {len(bag.dags[one].tasks) for one in ids} == {1}
    (task,) = bag.dags[f"windows_{Path(copy).stem}"].tasks
    assert f"name: one is already the name of {pipelines / original}" in task.message


def test_files_of_editors_and_file_systems_are_not_pipelines(pipelines: Path) -> None:
    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    (pipelines / ".one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    (pipelines / "._one.toml").write_bytes(b"\x00\x05\x16\x07")
    (pipelines / ".#one.toml").symlink_to("ann@host.4711")
    assert dag_bag().dags.keys() - OF_ALL == {"windows_one"}


def test_a_dag_that_cannot_be_made_leaves_the_others(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from windowlib.airflow import dag_docs

    for name in ("one", "two"):
        (pipelines / f"{name}.toml").write_text(DEFINITION.format(name=name), encoding="utf-8")
    page = dag_docs.page

    def breaks(one: Any) -> str:
        if one.name == "one":
            raise RuntimeError("no page")
        return page(one)

    monkeypatch.setattr(dag_docs, "page", breaks)
    bag = dag_bag()
    assert bag.import_errors == {}
    assert len(bag.dags["windows_two"].tasks) == 6
    (task,) = bag.dags["windows_one"].tasks
    assert "RuntimeError: no page" in task.message


def test_every_pool_that_a_task_needs_is_made() -> None:
    """A task without its pool would wait without a message."""
    from windowlib.airflow.pools import POOLS, as_json

    used = {task.pool for dag in dag_bag().dags.values() for task in dag.tasks} - {"default_pool"}
    assert used <= as_json().keys() == {pool.name for pool in POOLS}
    assert {pool.slots > 1 for pool in POOLS} == {True}  # one that hangs does not hold the others
    guide = (PROJECT / "docs" / "guides" / "airflow.md").read_text(encoding="utf-8")
    assert "$ python -P -m windowlib.airflow.pools > pools.json\n" in guide
    printed = subprocess.run([sys.executable, "-P", "-m", "windowlib.airflow.pools"], capture_output=True, check=True)
    assert json.loads(printed.stdout) == as_json()


@pytest.mark.parametrize(
    ("engine", "pool"),
    [
        ('engine = "sail"', "windowlib_sail"),
        ('spark = { master = "sc://host:15002" }', "windowlib_remote"),
        ('spark = { master = "spark://host:7077" }', "windowlib_remote"),
        ('spark = { master = "local[2]" }', "windowlib_spark"),
    ],
)
def test_each_kind_of_engine_has_its_pool(pipelines: Path, engine: str, pool: str) -> None:
    (pipelines / "one.toml").write_text(engine + DEFINITION.format(name="one"), encoding="utf-8")
    assert dag_bag().dags["windows_one"].get_task("advance").pool == pool


def together(name: str, schedule: str = "*/10 * * * *") -> str:
    return DEFINITION.format(name=name) + f'[airflow]\nschedule = "{schedule}"\ntogether = "stream"\n'


def test_definitions_that_run_together_are_one_dag(pipelines: Path) -> None:
    for name in ("one", "two"):
        (pipelines / f"{name}.toml").write_text(together(name), encoding="utf-8")
    (pipelines / "three.toml").write_text(DEFINITION.format(name="three"), encoding="utf-8")
    bag = dag_bag()
    assert bag.import_errors == {}
    assert sorted(bag.dags.keys() - OF_ALL) == ["together_stream", "windows_three"]
    dag = bag.dags["together_stream"]
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == {
        "together": {"advance_one", "advance_two"},
        **{
            task.format(name): {one.format(name) for one in after}
            for name in ("one", "two")
            for task, after in {
                "advance_{}": ("decide_{}", "end_{}"),
                "decide_{}": ("publish_{}",),
                "publish_{}": ("end_{}",),
                "end_{}": ("report_{}",),
                "report_{}": (),
            }.items()
        },
    }
    light = {f"{task}_{name}" for task in ("decide", "end", "report") for name in ("one", "two")}
    assert {task.task_id for task in dag.tasks if task.pool == "windowlib"} == light
    assert dag.get_task("decide_two").command[-2:] == ["report", str(pipelines / "two.toml")]
    assert dag.get_task("publish_two").command[-2:] == ["run", str(pipelines / "two.toml")]
    assert dag.timetable.expression == "*/10 * * * *"
    assert [dag.get_task(f"advance_{name}").trigger_rule.value for name in ("one", "two")] == ["all_done"] * 2
    assert [dag.get_task(f"report_{name}").is_teardown for name in ("one", "two")] == [True, True]
    files = [str(pipelines / f"{name}.toml") for name in ("one", "two")]
    assert dag.get_task("together").command[-2:] == files
    assert [asset.name for asset in dag.get_task("advance_two").outlets] == ["windowlib_two_results"]
    report = dag.get_task("report_two")
    (link,) = report.operator_extra_links
    assert link.get_link(report, ti_key=None) == "/windowlib/two/"
    assert link.get_link(dag.get_task("advance_two"), ti_key=None) == "/windowlib/two/"
    assert link.get_link(dag.get_task("together"), ti_key=None) == "/windowlib/"
    assert all(f"windowlib status {file}" in dag.doc_md for file in files)


def test_buttons_lead_to_pages_of_an_airflow_under_a_path(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/team/airflow/")
    (pipelines / "one.toml").write_text(DEFINITION.format(name="one"), encoding="utf-8")
    (pipelines / "two.toml").write_text(together("two"), encoding="utf-8")
    dags = dag_bag().dags
    for dag, task, page in (
        ("windows_one", "report", "one/"),
        ("together_stream", "advance_two", "two/"),
        ("together_stream", "together", ""),
    ):
        of = dags[dag].get_task(task)
        link, *_ = of.operator_extra_links
        assert link.get_link(of, ti_key=None) == f"/team/airflow/windowlib/{page}"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (together("two", "0 * * * *"), 'two.toml: airflow.schedule: given "0 * * * *", but '),
        (together("two") + '[spark]\nmaster = "local[1]"\n', r"differ in engine or [spark]"),
    ],
)
def test_definitions_that_cannot_run_together_say_why(pipelines: Path, other: str, message: str) -> None:
    (pipelines / "one.toml").write_text(together("one"), encoding="utf-8")
    (pipelines / "two.toml").write_text(other, encoding="utf-8")
    bag = dag_bag()
    assert bag.import_errors == {}
    (task,) = bag.dags["together_stream"].tasks
    assert message in task.message


# -- tasks: the real operators, running a real process --------------------------------------------------------------


def job(tmp_path: Path, program: str, kind: str = "Job", **kwargs: Any) -> Any:
    from windowlib.airflow import operators

    file = tmp_path / "job.py"
    file.write_text(textwrap.dedent(program), encoding="utf-8")
    return getattr(operators, kind)(task_id="advance", command=[sys.executable, str(file)], **kwargs)


@pytest.mark.parametrize(
    ("code", "exception", "message"),
    [
        (1, "AirflowException", "exit code 1: said why"),
        (2, "AirflowFailException", "a retry cannot fix: said why"),
        (3, "AirflowFailException", "refused by its checks: said why"),
        (4, "AirflowSkipException", "said why"),
        (5, "AirflowFailException", "verification found differences: said why"),
        (137, "AirflowException", "exit code 137: said why"),
    ],
)
def test_exit_codes(tmp_path: Path, code: int, exception: str, message: str) -> None:
    """Airflow tries again after AirflowException only."""
    from airflow.sdk import exceptions

    with pytest.raises(exceptions.AirflowException, match=message) as raised:
        job(tmp_path, f"import sys; print('busy\\nerror: said why', file=sys.stderr); sys.exit({code})").execute({})
    tried_again = not isinstance(raised.value, exceptions.AirflowFailException | exceptions.AirflowSkipException)
    assert isinstance(raised.value, getattr(exceptions, exception))
    assert tried_again == (exception == "AirflowException")


def test_an_error_is_one_sentence_in_the_log(tmp_path: Path) -> None:
    """In its own process, as Airflow runs tasks, with the log that it sends to the supervisor; for both codes."""
    program = tmp_path / "task.py"
    program.write_text(
        textwrap.dedent("""
        import structlog, sys
        from airflow.sdk.log import configure_logging
        configure_logging(json_output=True, output=sys.stdout.buffer)
        from windowlib.airflow.job import Job
        log = structlog.get_logger("task")
        log.info("begins")  # loggers are in use before the task's own code is imported
        command = "print('10:00 WARN slow'); print('error: no column x'); print('there: y'); raise SystemExit(%d)"
        for code in (1, 2):
            try:
                Job(task_id="one", command=[sys.executable, "-c", command % code]).execute({})
            except Exception:
                log.exception("Task failed with exception")
        try:
            raise ValueError("of another team")
        except Exception:
            log.exception("Task failed with exception")
        """),
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    said = [
        one for one in map(json.loads, done.stdout.splitlines()) if "outside of the Task Runner" not in one["event"]
    ]
    begins, *of_both, other = said
    assert begins["level"] == "info"
    for slow, failed in (of_both[:2], of_both[2:]):
        assert [slow["level"], failed["level"]] == ["warning", "error"]
        assert failed["event"].endswith(": no column x\nthere: y")
        assert "exception" not in failed
    assert other["exception"][0]["exc_value"] == "of another team"


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "SIGTERM"), (40, "signal 40")])
def test_a_signal_is_named(number: int, name: str) -> None:
    from airflow.sdk.exceptions import AirflowException

    from windowlib.airflow.job import raise_for

    with pytest.raises(AirflowException, match=f"^killed by {name}: the next try") as raised:
        raise_for(-number, "no output")
    assert "memory" not in str(raised.value)


@pytest.mark.fault("a signal kills the command of a task", "Airflow tries the task again")
def test_a_command_killed_by_a_signal_is_tried_again(tmp_path: Path) -> None:
    from airflow.sdk import exceptions

    with pytest.raises(exceptions.AirflowException) as raised:
        job(tmp_path, "import os; os.kill(os.getpid(), 9)").execute({})
    said = "killed by SIGKILL (out of memory?): the next try, or the next run, finishes its batch."
    assert " ".join(str(raised.value).split()) == f"{said} Its last words: no output"
    assert not isinstance(raised.value, exceptions.AirflowFailException | exceptions.AirflowSkipException)


def test_an_error_of_several_lines_is_reported_whole(tmp_path: Path) -> None:
    from airflow.sdk import exceptions

    from windowlib.airflow.job import raise_for

    program = """
        import sys
        print("WARN busy\\nerror: refused:\\n- one\\n- another", file=sys.stderr)
        sys.exit(3)
    """
    with pytest.raises(exceptions.AirflowFailException) as raised:
        job(tmp_path, program).execute({})
    assert str(raised.value) == "refused by its checks: refused:\n- one\n- another"
    with pytest.raises(exceptions.AirflowFailException, match=r"^batch 7 was refused by its checks and waits$"):
        raise_for(3, "batch 7 was refused by its checks and waits")


def outcomes(*records: dict[str, Any]) -> str:
    """Program that reports these outcomes."""
    return "from windowlib.cli.outcomes import print_report\n" + "".join(
        f"print_report({record!r}, lambda report: 'a sentence', as_json=False)\n" for record in records
    )


@pytest.mark.fault("Spark or the author's code prints JSON", "a line of the log, not an outcome")
def test_outcomes_are_returned_and_what_is_printed_is_not(tmp_path: Path) -> None:
    """A printed line of JSON, for example from Spark's log or the author's code, is only a line."""
    program = f"""print('{{"batch_id": 3}}')\n{outcomes({"batch_id": 1}, {"batch_id": 2})}print("[1]")"""
    records, lines, code = job(tmp_path, program).run_command()
    assert records == [{"batch_id": 1}, {"batch_id": 2}]
    assert lines == ['{"batch_id": 3}', "a sentence", "a sentence", "[1]"]
    assert code == 0


class Events(dict[Any, Any]):
    """Airflow's `outlet_events`: has an event for every asset."""

    def __missing__(self, asset: Any) -> Any:
        self[asset] = type("Event", (), {"extra": None})()
        return self[asset]


class PlanSays:
    """Task instance whose plan returned this."""

    def __init__(self, batch_id: int | None) -> None:
        self.planned: list[dict[str, Any]] | None = [{"batch_id": batch_id, "files": 0}]
        self.pushed = dict[str, Any]()

    def xcom_pull(self, task_ids: str) -> Any:
        return self.planned

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


def done(task: Any, ti: Any, **context: Any) -> tuple[Any, list[str]]:
    """Return value of a task that has succeeded, and the tasks that it has the scheduler skip."""
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    with pytest.raises(DownstreamTasksSkipped) as ended:
        task.execute({"ti": ti, **context})
    return ti.pushed.pop("return_value"), ended.value.tasks


def test_nothing_planned_skips_advance(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    from windowlib.airflow.job import LOG_WIDTH

    records = [{"batch_id": None, "files": 0}]
    plan = job(tmp_path, outcomes(*records), "PlanBatch", file=tmp_path / "one.toml")
    assert done(plan, PlanSays(None)) == (records, ["advance", "decide", "report"])
    _, begins, said = capfd.readouterr().out.partition("nothing was planned: nothing was changed. The results")
    first, *others = said.partition(" [airflow.task")[0].splitlines()
    assert others[-1].endswith("trigger the DAG rerun_windows")
    assert max(map(len, [begins + first, *others])) <= LOG_WIDTH  # Airflow's page of a log cuts what is longer
    # One that was cleared alone:
    advance = job(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')", "Advance")
    with pytest.raises(AirflowSkipException, match="nothing was planned: nothing was changed"):
        advance.execute({"ti": PlanSays(None)})
    assert not (tmp_path / "ran").exists()


def test_nothing_to_verify_skips_and_a_difference_fails(tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

    def verify(code: int, nothing_compared: bool) -> Any:
        ends = f"import sys; print('error: said why', file=sys.stderr); sys.exit({code})"
        return job(tmp_path, outcomes({"nothing_compared": nothing_compared}) + ends, "Verify").execute({})

    assert verify(0, False) == [{"nothing_compared": False}]
    with pytest.raises(AirflowSkipException, match="said why"):
        verify(2, True)
    with pytest.raises(AirflowFailException, match="said why"):
        verify(5, False)


RECORD = BatchReport(7, {"rows_read": 5, "rows_admitted": 5, "rows_late": 0, "windows_open": 2}, 0, 1.5).json_fields()


ONE_BATCH = "1 batch, 0 results, watermark 1970-01-01T00:00:00Z"


@pytest.mark.parametrize("marked", [False, True])
def test_the_asset_event_carries_the_figures_of_all_batches(tmp_path: Path, marked: bool) -> None:
    """The figures are not those of the last batch alone. If plan was marked as success, the command plans itself."""
    from airflow.sdk import Asset

    failed = {"sentence": "Every row is usable.", "observed": "3"}
    seven = {"batch_id": 7, "rows_quarantined": 3, "watermark": None, "failed_checks": [failed]}
    program = outcomes(RECORD | seven, RECORD | {"batch_id": 8, "rows_quarantined": 0, "windows_open": 4})
    asset, events = Asset("results"), Events()
    advance = job(tmp_path, program, "Advance", outlets=[asset])
    ti = PlanSays(7)
    if marked:
        ti.planned = None
    line = "2 batches, 0 results, watermark 1970-01-01T00:00:00Z, 1 check failed"
    assert done(advance, ti, outlet_events=events) == (line, ["decide"])
    assert [batch["batch_id"] for batch in ti.pushed["batches"]] == [7, 8]
    assert events[asset].extra == {
        "outcome": line,
        "batches": 2,
        "batch_id": 8,
        "rows_read": 10,
        "rows_admitted": 10,
        "rows_late": 0,
        "rows_quarantined": 3,
        "windows_open": 4,
        "watermark": "1970-01-01T00:00:00Z",
        "seconds": 3.0,
        "failed_checks": [{"batch_id": 7, **failed}],
    }


@pytest.mark.parametrize("kind", ["Advance", "Publish"])
def test_without_a_batch_there_is_no_asset_event(tmp_path: Path, kind: str) -> None:
    """A cleared task without a batch must not start dependent DAGs."""
    from airflow.sdk import Asset
    from airflow.sdk.exceptions import AirflowSkipException

    from windowlib.airflow import decide, operators

    task = {"Advance": operators.Advance, "Publish": decide.Publish}[kind]
    asset, events, ti = Asset("results"), Events(), PlanSays(7)
    with pytest.raises(AirflowSkipException, match="nothing is new: nothing was changed"):
        task(task_id="it", command=[sys.executable, "-c", ""], outlets=[asset]).execute(
            {"ti": ti, "outlet_events": events}
        )
    assert (events, ti.pushed) == ({}, {})


class TogetherSays:
    """Task instance whose `together` returned this; no other run asks about a batch."""

    dag_id, run_id = "together_stream", "now"

    def get_ti_count(self, dag_id: str, task_ids: list[str], states: list[str]) -> int:
        return 0

    def __init__(self, returned: Any) -> None:
        self.returned = returned
        self.pushed = dict[str, Any]()

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def xcom_pull(self, task_ids: str) -> Any:
        assert task_ids == "together"
        return self.returned


def test_each_task_reports_its_pipeline_of_the_common_run(tmp_path: Path) -> None:
    """One pipeline was done, one had nothing new, and one was refused: it runs alone, and reports the refusal itself.

    A batch of the last pipeline was refused before: its task does not fail for that, and its own task decide asks.
    """
    from airflow.sdk import Asset
    from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

    lines = [
        {"pipeline": "one", "batch_id": 3, **RECORD},
        {"pipeline": "three", "batch_id": 8, **RECORD},
        *({"pipeline": name, "batches": n, "exit_code": code} for name, n, code in (("one", 1, 0), ("two", 0, 0))),
        {"pipeline": "three", "batches": 1, "exit_code": 3},
        {"pipeline": "four", "batches": 0, "exit_code": 3, "waits": 2},
    ]
    program = outcomes(*lines) + "import sys; sys.exit(3)"
    records, skipped = done(job(tmp_path, program, "AdvanceTogether"), TogetherSays(None))
    assert (records, skipped) == (lines, ["advance_two", "decide_two", "report_two"])

    refused = "import sys; print('error: batch 9 was refused', file=sys.stderr); sys.exit(3)"
    asset, events = Asset("results"), Events()
    context: dict[str, Any] = {"ti": TogetherSays(records), "outlet_events": events}
    (tmp_path / "four.toml").write_text(DEFINITION.format(name="four"), encoding="utf-8")
    each = {
        name: job(tmp_path, refused, "AfterTogether", pipeline=name, file=tmp_path / f"{name}.toml", outlets=[asset])
        for name in ("one", "two", "three", "four")
    }
    assert done(each["one"], **context) == (ONE_BATCH, ["decide_one"])
    assert context["ti"].pushed == {"batches": [{"batch_id": 3, **RECORD}]}
    assert events[asset].extra == {"outcome": ONE_BATCH, "batches": 1, "batch_id": 3, **RECORD}
    with pytest.raises(AirflowSkipException, match="nothing is new"):
        each["two"].execute(context)
    with pytest.raises(AirflowFailException, match="refused by its checks: batch 9 was refused"):
        each["three"].execute(context)
    with pytest.raises(
        AirflowSkipException, match=r"batch 2 of four waits for a decision(.|\n)*task\sdecide_four asks"
    ):
        each["four"].execute(context)


@pytest.mark.fault("the task of several pipelines breaks", "each pipeline runs alone")
def test_pipelines_run_alone_after_the_shared_task_failed(tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowException

    with pytest.raises(AirflowException, match="killed by SIGKILL"):
        job(tmp_path, "import os; os.kill(os.getpid(), 9)", "AdvanceTogether").execute({})
    program = outcomes({"batch_id": 1, **RECORD})
    advance = job(tmp_path, program, "AfterTogether", pipeline="one", file=tmp_path / "one.toml")
    assert done(advance, TogetherSays(None), outlet_events=Events()) == (ONE_BATCH, ["decide_one"])


def test_killing_the_task_ends_the_whole_group(tmp_path: Path) -> None:
    """Airflow's handler of SIGTERM calls `on_kill`, and execute continues until its command has ended."""
    from airflow.sdk.exceptions import AirflowException

    pids = tmp_path / "pids"
    program = f"""
        import os, subprocess, time
        child = subprocess.Popen(["sleep", "600"])
        open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
        time.sleep(600)
    """
    task = job(tmp_path, program)
    killer = threading.Thread(target=lambda: (wait_for(lambda: pids.exists() and pids.read_text()), task.on_kill()))
    killer.start()
    with pytest.raises(AirflowException, match="killed by SIGTERM: the next try"):
        task.execute({})
    killer.join()
    for pid in map(int, pids.read_text().split()):
        wait_for(lambda pid=pid: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_a_cluster_gets_spark_submit(tmp_path: Path) -> None:
    from windowlib.airflow.commands import advance_command
    from windowlib.definition.definition import load_definition

    file = tmp_path / "p.toml"
    commands = {}
    for master in ("local[2]", "sc://host:15002", "spark://host:7077"):
        file.write_text(DEFINITION.format(name="p") + f'[spark]\nmaster = "{master}"\n', encoding="utf-8")
        commands[master] = advance_command(load_definition(file))
    plain = [sys.executable, "-P", "-m", "windowlib", "run", str(file)]
    assert commands["local[2]"] == commands["sc://host:15002"] == plain
    submit, start = commands["spark://host:7077"], PROJECT / "windowlib" / "__main__.py"
    assert Path(submit[0]).is_file()
    assert submit[1:] == [
        "--master",
        "spark://host:7077",
        str(start),
        "run",
        str(file),
    ]


def test_spark_submit_finds_this_python(tmp_path: Path) -> None:
    """Without PYSPARK_DRIVER_PYTHON, spark-submit would use the `python` on PATH, which has no pyspark."""
    printed = job(tmp_path, """import os; print(os.environ["PYSPARK_DRIVER_PYTHON"])""")
    assert printed.run_command() == ([], [sys.executable], 0)


def wait_for(condition: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "still not so"
        time.sleep(0.02)
