"""Decisions about refused batches in Airflow: the real operator on a real ledger, and real runs of the DAG.

A logged-in user answers through Airflow's API.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs import local_airflow
from tests.airflow.answered import LOGIN
from tests.support.clicks import clicks
from tests.support.disks import folder_of
from tests.support.installed import SESSIONS
from windowlib.batches.planning import ledger_of, plan
from windowlib.decisions.verdicts import abandon, approve
from windowlib.definition.definition import Definition, load_definition
from windowlib.ledger.prepare import Prepared
from windowlib.ledger.rows import prepare_row
from windowlib.pages.newest_rows import tail
from windowlib.publication.readers import read_table

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]

PROJECT = Path(__file__).resolve().parents[2]
NOW = datetime.now(UTC)
OPEN = "awaiting_input"


def decisions(definition: Definition) -> list[tuple[str, int | None, str, str]]:
    """Decisions of operators in the ledger, newest first."""
    ledger = ledger_of(definition)
    said = tail(ledger.tables, ledger.state().version).actions
    return [(one.kind, one.batch_id, one.who, one.reason) for one in said]


# -- the operator on a ledger ------------------------------------------------------------------------------------------


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """Pipeline whose first batch was abandoned, and whose second batch waits."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = clicks(tmp_path, 1)
    plan(definition)
    abandon(definition, "bob", "a wrong file")
    plan(definition)
    refused = Prepared("_prepared/2.json", "checksum")
    ledger_of(definition).write(prepare_row(2, refused, "- One row. Expected 1, observed 2."))
    return definition


class Context(dict[str, Any]):
    """Context of a task that has asked about a batch, in a run that ann has triggered.

    The run was due an hour ago, or at `due`, and began then, or at `began`.
    """

    try_number = 1

    def __init__(self, batch_id: int, due: datetime = NOW - timedelta(hours=1), began: datetime | None = None) -> None:
        run = {"run_after": due, "start_date": began or due, "triggering_user_name": "ann"}
        super().__init__(ti=self, dag_run=type("Run", (), run)())
        self.kept: dict[str, Any] = {"batch_id": batch_id}

    dag_id, run_id = "windows_clicks", "now"

    def xcom_pull(self, task_ids: str, key: str, run_id: str = "now") -> Any:
        assert task_ids == "decide"
        return self.kept.get(key)

    def xcom_push(self, key: str, value: Any) -> None:
        assert key == "not_taken"
        self.kept[key] = value

    def get_ti_count(self, dag_id: str, task_ids: list[str], states: list[str]) -> int:
        return 0


class Asked(Context):
    """Context in a later run, while an earlier run has asked and has no answer yet."""

    states: ClassVar = {"now": {"decide": "running"}, "old": {"decide": "success"}, "first": {"decide": OPEN}}

    def get_ti_count(self, dag_id: str, task_ids: list[str], states: list[str]) -> int:
        return sum(one["decide"] in states for one in self.states.values())

    def get_task_states(self, dag_id: str, task_ids: list[str]) -> dict[str, dict[str, str]]:
        return self.states


def task(definition: Definition) -> Any:
    from windowlib.airflow.decide import Decide

    return Decide(task_id="decide", file=definition.file, command=["false"])


def answered(
    definition: Definition, choice: str, reason: str = "", batch_id: int | Context = 2, *, by: str | None = "ann"
) -> Any:
    """Outcome of an answer as Airflow passes it on; without an answer (`by` None), the question has timed out."""
    context = batch_id if isinstance(batch_id, Context) else Context(batch_id)
    event = {
        "chosen_options": [choice],
        "params_input": {"reason": reason},
        "responded_at": NOW,
        "responded_by_user": by and {"id": "7", "name": by},
        "timedout": by is None,
    }
    return task(definition).execute_complete(context, event)


def test_approved(refused: Definition) -> None:
    said = {"batch_id": 2, "decision": "approve", "who": "ann", "reason": "no loss"}
    assert answered(refused, "approve", " no loss ") == said
    assert decisions(refused)[0] == ("approve", 2, "ann", "no loss")
    assert ledger_of(refused).state().approved_by == "ann"


def test_abandoned(refused: Definition) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    with pytest.raises(AirflowSkipException, match="batch 2 is abandoned by ann: no use\nthis run publishes nothing"):
        answered(refused, "abandon", "no use")
    assert decisions(refused)[0] == ("abandon", 2, "ann", "no use")


def test_left_waiting(refused: Definition) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"still waits for a decision: ann left it\swaiting"):
        answered(refused, "leave waiting")
    assert [one[:2] for one in decisions(refused)] == [("abandon", 1)]


@pytest.mark.fault(
    "a batch is decided in the shell while Airflow asks", "the first decision counts; the task names who made it"
)
def test_the_first_decision_counts(refused: Definition, capfd: pytest.CaptureFixture[str]) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    approve(refused, "bob", "first")
    before = decisions(refused)
    said = {"batch_id": 2, "decision": "approve", "who": "bob", "reason": "first"}
    for choice in ("approve", "abandon", "leave waiting"):  # the batch is still to be published
        assert answered(refused, choice, "second") == said
    logged = " ".join(capfd.readouterr().out.split())
    does_not = "by ann does not count: batch 2 is already approved by bob: first"
    assert logged.count(does_not) == 2
    assert f"[warning ] abandon {does_not}" in logged
    assert f"[warning ] leave waiting {does_not}" in logged
    assert task(refused).execute(Context(2)) == said
    assert decisions(refused) == before
    abandon(refused, "bob", "after all")
    with pytest.raises(AirflowSkipException, match="batch 2 is already abandoned by bob: after all"):
        answered(refused, "approve", "second")


class Put(Exception):
    """A question was asked (again), with this text."""


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.providers.standard.operators.hitl import HITLOperator

    def ask(operator: Any, _: Any) -> None:
        raise Put(operator.body)

    monkeypatch.setattr(HITLOperator, "execute", ask)


@pytest.mark.fault("a batch is decided in the shell, and no one answers in Airflow", "the task ends within minutes")
def test_what_the_shell_has_decided_ends_the_question(refused: Definition, asking: None) -> None:
    """Otherwise the task would wait for an answer for ever, and no later run would begin."""
    from airflow.sdk.exceptions import AirflowSkipException

    before = decisions(refused)
    with pytest.raises(Put, match=r"--batch 2 --reason") as asked:  # its command, the report, would fail
        answered(refused, "leave waiting", by=None)
    assert "The checks refused batch 2 of **clicks**" in str(asked.value)
    assert decisions(refused) == before
    approve(refused, "bob", "first")
    said = {"batch_id": 2, "decision": "approve", "who": "bob", "reason": "first"}
    assert answered(refused, "leave waiting", by=None) == said
    abandon(refused, "bob", "after all")
    with pytest.raises(AirflowSkipException, match="batch 2 is already abandoned by bob: after all"):
        answered(refused, "leave waiting", by=None)


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("", "there is none"),
        ("r" * 2_001, "it has 2,001 characters: need at most 2,000"),
        ("r\0", r"it has the control character '\\x00': need one line of text"),
        ("one\ntwo", r"it has the control character '\\n': need one line of text"),
    ],
)
def test_a_reason_that_cannot_be_kept_is_asked_for_again(
    refused: Definition, asking: None, reason: str, why: str
) -> None:
    """The problem stands before the question until the next answer, because users do not see the log."""
    before, context = decisions(refused), Context(2)
    for by, given in (("ann", reason), (None, "")):
        with pytest.raises(Put) as asked:
            answered(refused, "approve", given, context, by=by)
        assert str(asked.value).startswith(
            f"**approve by ann was not taken**: the reason: {why}. Answer again.\n\nThe checks refused batch 2"
        )
    assert decisions(refused) == before


def test_the_form_takes_no_longer_reason_than_can_be_kept(refused: Definition) -> None:
    from windowlib.airflow.rerun_operators import Review

    assert task(refused).serialized_params["reason"]["schema"]["maxLength"] == 2_000
    assert Review.FORM["why"].schema["maxLength"] == 2_000


def test_a_question_says_whose_answer_does_not_count(
    refused: Definition, asking: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the user who triggered the run would press approve again and again."""
    with pytest.raises(Put) as asked:
        answered(refused, "leave waiting", by=None)
    assert "another user" not in str(asked.value)
    monkeypatch.setenv("WINDOWLIB_APPROVAL", "another user")
    with pytest.raises(Put) as asked:
        answered(refused, "approve", "no loss")
    said = str(asked.value)
    assert said.startswith("**approve by ann was not taken**: ann triggered this run, and the approval must come from")
    assert said.endswith("\n\nAn approval or abandonment must come from another user than ann, who triggered this run.")
    assert answered(refused, "approve", "no loss", by="bob")["who"] == "bob"


def test_each_command_of_a_question_is_a_paragraph(refused: Definition, asking: None) -> None:
    """Airflow joins the lines of a code block into one line, so two commands would be pasted as one."""
    with pytest.raises(Put) as asked:
        answered(refused, "leave waiting", by=None)
    said = str(asked.value).split("\n\n")
    commands = [one for one in said if "--batch 2" in one]
    assert [one.count("--batch") for one in commands] == [1, 1]
    assert [one[0] + one[-1] for one in commands] == ["``", "``"]
    assert "windowlib approve" in commands[0]
    assert "windowlib abandon" in commands[1]


def test_a_question_begins_with_the_checks_and_shows_rows_in_boxes_below(refused: Definition, asking: None) -> None:
    """Rows must not stand between the checks and the possible answers."""
    from windowlib.airflow.question import folded_rows

    with pytest.raises(Put) as asked:
        answered(refused, "leave waiting", by=None)
    assert str(asked.value).split("\n\n")[1] == "- One row. Expected 1, observed 2."
    [box] = folded_rows({"results that are wrong": [], "rows that reach no window": ["row 1", "row 2"]}).values()
    assert (box.value, box.schema["title"]) == ("row 1\nrow 2", "Some of its rows that reach no window")
    assert "null" in box.schema["type"], "an answer does not need it"


@pytest.mark.parametrize(("base_url", "under"), [("", ""), ("https://example.org/team/airflow/", "/team/airflow")])
def test_a_question_leads_to_the_page(
    refused: Definition, asking: None, monkeypatch, base_url: str, under: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    with pytest.raises(Put) as asked:
        answered(refused, "leave waiting", by=None)
    assert f"[The page of the pipeline]({under}/windowlib/clicks/)" in str(asked.value)


@pytest.mark.fault("an answer arrives after another batch started to wait", "that batch still waits")
def test_an_answer_applies_only_to_its_own_batch(refused: Definition) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    for choice in ("approve", "abandon"):
        with pytest.raises(AirflowSkipException, match="batch 1 is already abandoned by bob: a wrong file"):
            answered(refused, choice, "no loss", batch_id=1)
    state = ledger_of(refused).state()
    assert (state.plan.batch_id, state.approved_by) == (2, None)


def test_while_another_run_is_at_work_nothing_is_abandoned(refused: Definition) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    ledger = ledger_of(refused)
    ledger.claim()
    with pytest.raises(AirflowFailException, match="nothing is decided; clear this task to be asked again"):
        answered(refused, "abandon", "no use")
    assert ledger.state().plan.batch_id == 2


def test_a_cleared_task_says_who_has_decided(refused: Definition) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    abandon(refused, "bob", "no use", batch_id=2)
    with pytest.raises(AirflowSkipException, match="batch 2 is already abandoned by bob: no use"):
        task(refused).execute(Context(2))
    nothing_waits = r"no batch waits for a decision: the log of advance says why\sit published nothing"
    with pytest.raises(AirflowSkipException, match=nothing_waits):
        task(refused).execute(Context(2, due=NOW + timedelta(hours=1)))
    # Decided while this run waited for another one to end: it is not why this one publishes nothing.
    later = Context(2, began=NOW + timedelta(hours=1))
    with pytest.raises(AirflowSkipException, match=nothing_waits):
        task(refused).execute(later)
    later.try_number = 2  # cleared: the run began again
    with pytest.raises(AirflowSkipException, match="batch 2 is already abandoned by bob: no use"):
        task(refused).execute(later)


@pytest.mark.fault("a refused batch waits when the next run begins", "plan says so and is green; decide asks")
def test_a_later_run_says_that_the_batch_waits(refused: Definition, capfd: pytest.CaptureFixture[str]) -> None:
    """Runs the real command. The run does not fail, but its log has a warning."""
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    from windowlib.airflow.commands import of_pipeline
    from windowlib.airflow.operators import PlanBatch

    plan = PlanBatch(task_id="plan", file=refused.file, command=of_pipeline("plan", refused.file))
    pushed: dict[str, Any] = {}
    with pytest.raises(DownstreamTasksSkipped) as ended:
        plan.execute(Planning(2, pushed))
    assert ended.value.tasks == ["advance"]
    assert pushed == {"return_value": [{"batch_id": 2, "waits": True}]}
    said = " ".join(capfd.readouterr().out.split())
    assert "[warning ] batch 2 of clicks waits for a decision since an earlier run, and no run continues" in said
    assert "Every user who may answer the Required Actions of this DAG can decide, where the task decide asks" in said
    assert "One row. Expected 1, observed 2. to publish it anyway: " in said
    assert f"windowlib approve {refused.file} --batch 2 --reason" in said


class Planning(Asked):
    """Context of plan, in a run after the one that has asked, or without such a run."""

    def __init__(self, batch_id: int, pushed: dict[str, Any], states: dict[str, dict[str, str]] | None = None) -> None:
        super().__init__(batch_id)
        self.pushed = pushed
        self.states = states or {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


@pytest.mark.parametrize(
    ("states", "asked_in"), [({}, "now"), ({"backfill__2026-11-20T00:00:00+00:00": {"decide": OPEN}}, "backfill__")]
)
def test_a_later_run_leads_to_the_question_of_the_run_that_asks(
    refused: Definition, states: dict[str, dict[str, str]], asked_in: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The refused batch of a backfill waits in a run far from the newest one."""
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    from windowlib.airflow.commands import of_pipeline
    from windowlib.airflow.operators import PlanBatch

    plan = PlanBatch(task_id="plan", file=refused.file, command=of_pipeline("plan", refused.file))
    [_, button] = plan.operator_extra_links
    assert button.get_link(plan, ti_key=None) == ""
    with pytest.raises(DownstreamTasksSkipped):
        plan.execute(Planning(2, {}, states))
    run = {"now": "now", "backfill__": "backfill__2026-11-20T00%3A00%3A00%2B00%3A00"}[asked_in]
    assert button.get_link(plan, ti_key=None) == f"/dags/windows_clicks/runs/{run}/tasks/decide/required_actions"
    said = " ".join(capfd.readouterr().out.split())
    assert (f"it is asked in the run {asked_in}" in said) is bool(states)


def test_a_question_of_another_run_is_not_asked_twice(refused: Definition) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowSkipException

    decide = task(refused)
    with pytest.raises(
        AirflowSkipException, match=r"waits for a decision(.|\n)*\nit is asked in the run first: the button"
    ):
        decide.execute(Asked(2))
    assert decide.question_at == "/dags/windows_clicks/runs/first/tasks/decide/required_actions"
    with pytest.raises(AirflowException, match="no output"):  # of its command, the report, before it asks
        task(refused).execute(Asked(1))


# -- a real Airflow ----------------------------------------------------------------------------------------------------

SUITE = {
    "type": "expect_column_max_to_be_between",
    "kwargs": {"column": "rows_quarantined", "max_value": 0},
    "severity": "critical",
    "description": "Every row is **usable** <script>alert(1)</script> | always.",
}
SHOWN = r"Every row is \*\*usable\*\* &lt;script&gt;alert(1)&lt;/script&gt; \| always. Expected at most 0, observed 1."
HOSTILE = "<b>one</b> click | is not much"


@pytest.fixture
def definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """Pipeline that refuses a batch with an unusable row, and has a file with such a row."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    folder = tmp_path / "dags" / "pipelines"
    (folder / "incoming").mkdir(parents=True)
    (folder / "figures.json").write_text(json.dumps({"expectations": [SUITE]}), encoding="utf-8")
    text = f'engine = "sail"\nwarehouse = "warehouse"\n{SESSIONS}[checks]\nfigures_suite = "figures.json"\n'
    (folder / "small.toml").write_text(text, encoding="utf-8")
    for number, place in ((1, "incoming"), (2, "later")):
        table = pa.table({"user": ["a"] * 3, "ts": pa.array([number * 1000, number * 1000 + 900, None], pa.int64())})
        (folder / place).mkdir(exist_ok=True)
        pq.write_table(table, folder / place / f"{number}.parquet")
    return load_definition(folder / "small.toml")


def run(definition: Definition, place: Path, *answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs the DAG of the pipeline in its own real Airflow, once for each list of answers."""
    home = local_airflow.home(place)
    home.mkdir()
    (home / "passwords.json").write_text(json.dumps({LOGIN["username"]: LOGIN["password"]}), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "WINDOWLIB_WAREHOUSE"}
    environment |= local_airflow.environment(place, 8080) | {
        "WINDOWLIB_PIPELINES": str(definition.file.parent),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{LOGIN['username']}:admin",
    }
    subprocess.run([local_airflow.BIN / "airflow", "db", "migrate"], env=environment, check=True, capture_output=True)
    command = [sys.executable, "-m", "tests.airflow.answered", PROJECT / "dags", "windows_small", json.dumps(answers)]
    ended = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"state"')]


def answer(choice: str, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"chosen_options": [choice], "params_input": {} if reason is None else {"reason": reason}, **more}


@pytest.mark.slow
@pytest.mark.long("the answers' outcomes are held by the tests above, the order of tasks by test_dags")
def test_in_a_real_airflow(definition: Definition, tmp_path: Path) -> None:
    """First run: left waiting. Second run: asked again, answered twice without a reason, and approved.

    The next batch is abandoned. The one after it is approved in the shell before its question is answered.
    """
    folder = definition.file.parent
    arrives = ["mv", str(folder / "later" / "2.parquet"), str(folder / "incoming")]
    by_bob = [sys.executable, "-P", "-m", "windowlib", "approve", str(definition.file), "--reason", "r", "--who", "bob"]
    left, approved, abandoned, in_the_shell = run(
        definition,
        tmp_path,
        [answer("leave waiting")],
        [answer("approve", " "), answer("approve"), answer("approve", HOSTILE, after=arrives)],
        [answer("abandon", "no use")],
        [answer("abandon", "no use", before=by_bob)],
    )
    tasks = {"plan": "success", "advance": "failed", "report": "success"}
    published = tasks | {"decide": "success", "publish": "success", "end": "success"}
    assert left["tasks"] == tasks | {"decide": "failed", "publish": "upstream_failed", "end": "upstream_failed"}
    # The plan of a later run meets the batch that waits: nothing is broken.
    assert approved["tasks"] == published | {"advance": "skipped"}
    assert in_the_shell["tasks"] == published
    assert abandoned["tasks"] == tasks | {"decide": "skipped", "publish": "skipped", "end": "upstream_failed"}
    assert [one["state"] for one in (left, approved, abandoned, in_the_shell)] == ["failed", "success"] * 2
    assert [len(one["asked"]) for one in (left, approved, abandoned, in_the_shell)] == [1, 3, 1, 1]
    assert left["asked"][0]["subject"] == "small: batch 1 was refused by its checks"
    assert SHOWN in left["asked"][0]["body"]
    assert decisions(definition) == [
        ("approve", 3, "bob", "r"),
        ("abandon", 2, "ann", "no use"),
        ("approve", 1, "ann", HOSTILE),
    ]
    # Each batch has two sessions, the newest of which is in flight after it.
    assert sorted(read_table(definition, "results")["batch_id"].to_pylist()) == [1, 3, 3]
    page = (folder_of(definition) / "pages" / "index.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;one&lt;/b&gt; click" in page
