"""Actions on the pages inside Airflow: open a decision, set a file aside, start a rerun; only with the right to."""

from __future__ import annotations

import asyncio
import html
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode
from urllib.request import Request, urlopen

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from docs import local_airflow
from tests.airflow.by_hand import made_by_hand
from tests.airflow.served import AIRFLOW, PROJECT, environment_of, served, token
from tests.support import browser
from tests.support.clicks import clicks
from tests.support.disks import folder_of
from tests.support.page_samples import TROUBLE, WAITING, WELL
from windowlib.definition.definition import Definition
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.reruns.page import PAGE, UNCHANGED
from windowlib.reruns.previews import FOLDER
from windowlib.storage.disk import Disk

pytestmark = [
    pytest.mark.airflow,
    # FastAPI imports its test client, which we do not use, wherever Airflow imports FastAPI.
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]

OURS = {"sec-fetch-site": "same-origin"}
RERUN: dict[str, Any] = {
    "pipeline": TROUBLE,
    "from": "2026-03-05T00:00Z",
    "to": "2026-03-06T00:00Z",
    "reason": "cents were read as euros",
    "dry_run": False,
}
CUT_OFF = {"file": "1.parquet", "reason": "cut off"}
Send = Callable[..., tuple[int, str, Mapping[str, str]]]


class Ann:
    """User who is logged in."""

    def get_name(self) -> str:
        return "ann"


@pytest.fixture
def send(monkeypatch: pytest.MonkeyPatch) -> Send:
    """Sends a request of a user with some rights, and a form by POST. `test_in_a_real_airflow` asks Airflow itself."""
    import httpx

    from windowlib.airflow import plugin
    from windowlib.airflow.web import questions

    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    monkeypatch.setattr(plugin.app, "dependency_overrides", {plugin.logged_in: Ann})
    monkeypatch.setattr(plugin, "may_read", lambda user, dag: True)
    monkeypatch.setattr(questions, "open_question", lambda definition: "/dags/the_question")
    monkeypatch.setattr(questions, "open_review", {"p1": "/dags/the_review"}.get)

    def ask(
        address: str,
        form: Mapping[str, str] | None = None,
        *,
        decides: bool = True,
        starts: bool = True,
        headers: Mapping[str, str] = OURS,
    ) -> tuple[int, str, Mapping[str, str]]:
        monkeypatch.setattr(plugin, "may_decide", lambda user, dag: decides)
        monkeypatch.setattr(plugin, "may_start", lambda user, dag: starts)

        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(plugin.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
                method = "GET" if form is None else "POST"
                return await client.request(method, address, data=form, headers=dict(headers))

        answer = asyncio.run(request())
        return answer.status_code, html.unescape(answer.text), answer.headers

    return ask


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """Pipeline with a file that no run has read."""
    monkeypatch.setenv("WINDOWLIB_PIPELINES", str(tmp_path))
    return clicks(tmp_path, files=1)


@pytest.fixture
def run_once(after_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """Pipeline with the results of one batch."""
    monkeypatch.setenv("WINDOWLIB_PIPELINES", str(tmp_path))
    return made_by_hand(after_one, tmp_path)


def test_a_file_is_set_aside_and_taken_back(waiting: Definition, send: Send) -> None:
    name = next(folder_of(waiting).parent.parent.glob("incoming/*")).name
    form = {"file": name, "reason": " cut off "}
    assert f'<option value="{name}">' in send("/clicks/set-aside")[1]
    status, _, headers = send("/clicks/set-aside", form)
    assert (status, headers["location"]) == (303, "./")
    [decision] = files_set_aside(waiting.store).values()
    assert (decision.path, decision.who, decision.reason) == (name, "ann", "cut off")
    assert f"Set aside: {name}: cut off (ann)" in send("/clicks/")[1]
    status, shown, _ = send("/clicks/set-aside", form)
    assert (status, f"{name} is already set aside" in shown) == (409, True)
    assert f"?file={name}&back=1" in shown
    assert "Take a file back" in send(f"/clicks/set-aside?file={name}&back=1")[1]
    assert send("/clicks/set-aside", {"file": name, "reason": "repaired", "back": "1"})[0] == 303
    assert files_set_aside(waiting.store) == {}
    assert "Set aside:" not in send("/clicks/")[1]


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"file": "", "reason": "r"}, "the file: there is none"),
        ({"file": "x.parquet", "reason": " "}, "the reason: there is none"),
        ({"file": "x.parquet", "reason": "r\ns"}, "the reason: it has the control character"),
        ({"file": "<b>.parquet", "reason": "r"}, "<b>.parquet: no such file in the source folder"),
    ],
)
def test_a_form_that_cannot_be_taken_is_shown_again(
    waiting: Definition, send: Send, form: dict[str, str], problem: str
) -> None:
    status, shown, _ = send("/clicks/set-aside", form)
    assert (status, problem in shown) == (409, True)
    assert f'name="file" value="{form["file"]}"' in shown
    assert files_set_aside(waiting.store) == {}


@pytest.mark.parametrize("action", ["set-aside", "rerun"])
def test_without_the_right_an_action_is_not_offered_and_is_refused(
    run_once: Definition, send: Send, action: str
) -> None:
    rights = {"decides": action != "set-aside", "starts": action != "rerun"}
    offered, shown = (send("/clicks/", **given)[1] for given in ({}, rights))
    assert [f'href="{action}' in page for page in (offered, shown)] == [True, False]
    for form in (None, CUT_OFF):
        status, said, _ = send(f"/clicks/{action}", form, **rights)
        assert (status, "you may not do this: it needs the right to" in said) == (403, True)
    assert files_set_aside(run_once.store) == {}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://example.org"},
        {"origin": "null"},
    ],
)
@pytest.mark.parametrize("action", ["set-aside", "rerun"])
def test_a_form_of_another_site_is_refused(
    waiting: Definition, send: Send, action: str, headers: dict[str, str]
) -> None:
    """The browser sends the user's cookie with it."""
    status, said, _ = send(f"/clicks/{action}", CUT_OFF, headers=headers)
    assert (status, "not sent by a page of this Airflow" in said) == (403, True)
    assert files_set_aside(waiting.store) == {}


def test_without_tls_the_origin_of_a_form_counts(
    waiting: Definition, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers send `Sec-Fetch-Site` only to trustworthy sites. A proxy may change the host."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow.example.org/team")
    for number, origin in enumerate(("http://airflow", "http://airflow.example.org")):
        status, _, _ = send("/clicks/set-aside", {**CUT_OFF, "file": "no"}, headers={"origin": origin})
        assert status == 409, number


def test_the_form_of_a_rerun_is_filled_for_a_day(run_once: Definition, send: Send) -> None:
    shown = send("/clicks/")[1]
    link = shown.partition('<a href="rerun?')[2].partition('"')[0]
    form, fields = send(f"/clicks/rerun?{link}")[1], dict(parse_qsl(link))
    assert fields["from"].endswith(" 00:00 UTC")
    for name in ("from", "to"):
        assert f'name="{name}" value="{fields[name]}"' in form


@pytest.mark.parametrize(
    ("preview_id", "decides", "is_linked"), [("p1", True, True), ("p2", True, False), ("p1", False, False)]
)
def test_a_preview_leads_to_its_open_review_a_user_who_may_answer(
    waiting: Definition, send: Send, preview_id: str, decides: bool, is_linked: bool
) -> None:
    page = folder_of(waiting) / FOLDER / preview_id / PAGE
    page.parent.mkdir(parents=True)
    page.write_text(f"<body>\n<p>{UNCHANGED}</p>", encoding="utf-8")
    status, shown, _ = send(f"/clicks/previews/{preview_id}", decides=decides)
    assert (status, 'href="/dags/the_review"' in shown, '<a href="../">clicks</a>' in shown) == (200, is_linked, True)


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({}, "from and to are empty"),
        ({"from": "yesterday", "to": "2026-03-06T00:00Z"}, "yesterday"),
        ({"from": "2026-03-06T00:00Z", "to": "2026-03-05T00:00Z"}, "2026-03-05"),
        ({"from": "2026-03-05T00:00Z", "to": "2026-03-06T00:00Z", "reason": "r" * 2_001}, "the reason: it has 2,001"),
    ],
)
def test_a_rerun_that_cannot_be_is_refused_before_it_starts(
    run_once: Definition, send: Send, form: dict[str, str], problem: str
) -> None:
    status, shown, _ = send("/clicks/rerun", form)
    assert (status, problem in shown) == (409, True)


def test_a_source_that_cannot_be_listed_offers_no_files(
    waiting: Definition, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(waiting.source.store.url.removeprefix("file://"))
    status, shown, _ = send("/clicks/set-aside")
    assert (status, "<option" in shown) == (200, False)


# -- a real Airflow ---------------------------------------------------------------------------------------------------


@contextmanager
def asking(environment: Mapping[str, str], dag: str, form: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Runs a DAG with a form, until the block ends."""
    program = (
        f"from airflow.dag_processing.dagbag import DagBag;"
        f" DagBag({str(PROJECT / 'dags')!r}).dags[{dag!r}].test(run_conf={form!r})"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        process_group=0,
    )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(run.pid, 9)
        run.wait(30)


def preview_with(reason: str, previews: Path) -> str | None:
    """Id of the preview of a rerun with this reason, once it is stored."""
    return next((page.parent.name for page in previews.glob(f"*/{PAGE}") if reason in page.read_text()), None)


@pytest.mark.slow
@pytest.mark.long("the application itself is asked by the tests above")
def test_in_a_real_airflow(tmp_path: Path, without_rights: list[str]) -> None:
    """Also tests that no request leaves the origin."""
    if browser.installed() is None:
        without_rights.append("actions in Airflow in a browser (no Chromium)")
        pytest.skip("needs Chromium")
    folder = tmp_path / "pipelines"
    samples = [sys.executable, "-m", "tests.support.page_samples", str(folder), "2"]
    subprocess.run(samples, check=True, cwd=PROJECT)
    (folder / f"incoming-{WELL}" / "cut.parquet").write_bytes(b"PAR1")
    corrected = folder / f"incoming-{TROUBLE}" / "0001.parquet"
    rows = pq.read_table(corrected)
    pq.write_table(rows.set_column(3, "value", pc.multiply(rows["value"], 3)), corrected)
    port = local_airflow.free_port(8394)
    environment = environment_of(folder, port)
    subprocess.run([AIRFLOW, "dags", "reserialize"], env=environment, check=True, capture_output=True)
    with (
        served(folder, port, environment) as address,
        browser.browser() as chromium,
        asking(environment, f"windows_{WAITING}"),
    ):
        admin, ann = ({"name": "_token", "value": token(address, user), "url": address} for user in ("admin", "ann"))
        with chromium.page([admin]) as (page, requests):
            page.set_default_timeout(120_000)  # at most: the first page imports all modules
            page.goto(f"{address}/windowlib/{WELL}/")
            page.get_by_role("link", name="Set a file aside").click()
            page.get_by_label("file").fill("cut.parquet")
            page.get_by_label("reason").fill("cut off")
            page.get_by_role("button", name="Set it aside").click()
            page.get_by_text("Set aside: cut.parquet: cut off (admin)").wait_for()
            page.get_by_role("link", name="rerun …").first.click()
            page.get_by_label("reason").fill("euros, not cents")
            page.get_by_role("button", name="Start the rerun").click()
            page.wait_for_url("**/dags/rerun_windows/runs/**")
            page.get_by_text("Triggering User").wait_for()
            page.goto(f"{address}/windowlib/{WAITING}/")
            while not (link := page.get_by_role("link", name="Open the decision")).count():
                page.wait_for_timeout(1_000)
                page.reload()
            link.click()
            page.get_by_text(f"{WAITING}: batch 2 was refused by its checks").first.wait_for()
            with asking(environment, "rerun_windows", RERUN):
                while not (preview_id := preview_with(RERUN["reason"], folder / "warehouse" / TROUBLE / FOLDER)):
                    page.wait_for_timeout(1_000)
                page.goto(f"{address}/windowlib/{TROUBLE}/previews/{preview_id}")
                while not (link := page.get_by_role("link", name="Open the review")).count():
                    page.wait_for_timeout(1_000)
                    page.reload()
                link.click()
                page.get_by_text(f"Rerun of {TROUBLE}: apply what the preview shows?").first.wait_for()
            page.goto(f"{address}/windowlib/{WELL}/")
            page.get_by_role("link", name="explain", exact=True).first.click()
            page.get_by_role("region", name="events of the window").wait_for()
            page.get_by_role("region", name="versions of the result").get_by_text("fired").first.wait_for()
            assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []
        [decision] = files_set_aside(Disk(folder / "warehouse" / WELL)).values()
        assert (decision.path, decision.who, decision.reason) == ("cut.parquet", "admin", "cut off")
        asked = Request(f"{address}/api/v2/dags/rerun_windows/dagRuns", headers={"cookie": f"_token={admin['value']}"})
        with urlopen(asked) as answer:
            [run] = [run for run in json.load(answer)["dag_runs"] if run["triggering_user_name"] == "admin"]
        assert {name: run["conf"][name] for name in ("pipeline", "reason", "dry_run")} == {
            "pipeline": WELL,
            "reason": "euros, not cents",
            "dry_run": True,
        }
        seen = chromium.look(f"{address}/windowlib/{WELL}/", cookies=[ann]).text
        assert ("145" in seen or "results" in seen, "Set a file aside" in seen, "rerun …" in seen) == (
            True,
            False,
            False,
        )
        for action in ("set-aside", "rerun"):
            sent = Request(
                f"{address}/windowlib/{WELL}/{action}",
                urlencode(CUT_OFF).encode(),
                {"cookie": f"_token={ann['value']}", **OURS},
            )
            with pytest.raises(HTTPError, match="403"):
                urlopen(sent)
