"""Pages inside Airflow: only after login, only for pipelines whose DAG the user may read, rendered on request."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest

from docs import local_airflow
from tests.airflow.by_hand import RUN, made_by_hand
from tests.airflow.served import served, token
from tests.support import browser
from tests.support.clicks import CLICKS, arrive, clicks, events
from tests.support.disks import folder_of
from tests.support.page_samples import NEW, SCRIPT, TROUBLE, WAITING, WELL
from windowlib.definition.definition import load_definition
from windowlib.ledger import last_error
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.render import PageLinks, pipeline_page
from windowlib.reruns.page import BEGIN, END, UNCHANGED

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.airflow,
    # FastAPI imports its test client, which we do not use, wherever Airflow imports FastAPI.
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]


Get = Callable[..., tuple[int, str, dict[str, str]]]


@pytest.fixture
def live_pages() -> ModuleType:
    """Module of the pages; imported only by tests that need it, because it imports Airflow."""
    from windowlib.airflow import live_pages

    return live_pages


@pytest.fixture
def get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Get:
    """Requests a page of the plugin about the pipeline `clicks`, which has no run yet.

    reads: the DAGs that the user may read; `test_in_a_real_airflow` tests Airflow's own decision
    """
    import httpx

    from windowlib.airflow import plugin

    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    monkeypatch.setenv("WINDOWLIB_PIPELINES", str(tmp_path))
    made = clicks(tmp_path, files=1)
    preview = folder_of(made) / "_previews" / "p1"
    preview.mkdir(parents=True)
    (preview / "index.html").write_text("what would change", encoding="utf-8")
    (folder_of(made) / "secret").write_text("not a page", encoding="utf-8")

    def ask(
        address: str,
        *,
        logged_in: bool = True,
        reads: tuple[str, ...] = ("windows_clicks",),
        headers: dict[str, str] | None = None,
    ):
        monkeypatch.setattr(plugin, "may_read", lambda user, dag: dag in reads)
        monkeypatch.setattr(plugin, "may_decide", lambda user, dag: False)
        monkeypatch.setattr(plugin, "may_start", lambda user, dag: False)
        monkeypatch.setattr(plugin, "next_run", {"windows_clicks": "tomorrow"}.__getitem__)
        monkeypatch.setattr(plugin.app, "dependency_overrides", {plugin.logged_in: lambda: "ann"} if logged_in else {})

        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(plugin.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
                return await client.get(address, headers=headers)

        answer = asyncio.run(request())
        return answer.status_code, answer.text, dict(answer.headers)

    return ask


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("/", 200, 'href="clicks/"'),
        ("/", 200, '<a href="../">Airflow</a>'),
        ("/", 200, "<td>tomorrow</td>"),
        ("/clicks/", 200, "1 new file waits for the next run"),
        ("/clicks/", 200, '<a href="../../dags/windows_clicks">its DAG</a>'),
        ("/clicks/", 200, '<a href="../../dags/windows_clicks/runs">its runs</a>'),
        ("/clicks/?since=yesterday", 200, "The first run makes the first batch"),
        ("/clicks/results", 200, "There is no result yet."),
        ("/clicks/results?key.user=u1", 200, "No result matches among the newest."),
        ("/clicks/results?from=yesterday", 200, "is not a time"),
        ("/clicks/results?key.user=%3Cscript%3E", 200, 'value="&lt;script&gt;"'),
        ("/any_file/", 404, "no pipeline 'any_file' that you may see"),
        ("/clicks/previews/p1", 200, "what would change"),
        ("/clicks/previews/p2", 404, "clicks has no preview 'p2'"),
        ("/clicks/previews/..%2f..%2fsecret", 404, "Not Found"),
        ("/clicks/previews/%00", 404, "clicks has no preview"),
        (f"/clicks/previews/{'x' * 300}", 404, "clicks has no preview"),
    ],
)
def test_pages_are_shown(get: Get, address: str, status: int, text: str) -> None:
    found, body, headers = get(address)
    assert (found, text in body) == (status, True)
    if found == 200:
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src ")
        assert "unsafe-eval" not in policy
        assert re.findall(r"script-src ([^;]+);", policy) in ([], [policy_of_scripts()])  # a preview has none


def policy_of_scripts() -> str:
    """Sources of scripts that allow only the scripts of the home page and of the plots."""
    scripts = [(PROJECT / "windowlib/pages/templates" / name).read_bytes() for name in ("home.js", "plots.js")]
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in scripts)


@pytest.mark.parametrize("address", ["/", "/clicks/", "/clicks/results", "/clicks/previews/p1"])
def test_pages_are_shown_only_after_login(get: Get, address: str) -> None:
    assert get(address, logged_in=False)[0] == 401


BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("under", ["", "/team/airflow"])
def test_a_browser_is_led_to_the_login_and_back(get: Get, monkeypatch: pytest.MonkeyPatch, under: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", f"https://example.org{under}/")
    status, _, headers = get("/clicks/results?key.user=a%26b&from=", logged_in=False, headers=BROWSER)
    asked = f"{under}/windowlib/clicks/results?key.user=a%26b&from="
    to = urlsplit(headers["location"])
    assert (status, to.netloc, to.path) == (303, "", f"{under}/api/v2/auth/login")
    assert parse_qs(to.query) == {"next": [asked]}


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({}, 401),
        ({"accept": "application/json"}, 401),
        ({**BROWSER, "authorization": "Basic YTph"}, 401),
        (BROWSER, 303),
    ],
)
def test_only_a_browser_is_led_to_the_login(get: Get, sent: dict[str, str], status: int) -> None:
    assert get("/clicks/", logged_in=False, headers=sent)[0] == status


def test_the_menu_item_is_one_that_airflow_makes_a_link_of() -> None:
    """At the top level, Airflow 3.3 shows a button that opens nothing. `test_in_a_real_airflow` clicks the item."""
    from windowlib.airflow.plugin import WindowlibPlugin

    [item] = WindowlibPlugin.external_views
    assert item == {"name": "Pipelines", "href": "/windowlib/", "destination": "nav", "category": "browse"}


def test_a_pipeline_whose_dag_the_user_may_not_read_is_not_there(get: Get) -> None:
    assert 'href="clicks/"' not in get("/", reads=("windows_other",))[1]
    for address in ("/clicks/", "/clicks/results", "/clicks/previews/p1"):
        refused = get(address, reads=())
        assert (refused[0], refused[1]) == (404, '{"detail":"no pipeline \'clicks\' that you may see"}')


def test_a_broken_definition_has_a_row_and_a_page_that_say_why(get: Get, tmp_path: Path) -> None:
    (tmp_path / "orders.toml").write_text('name = "orders"\n[source]\nformat = "parkuet"\n', encoding="utf-8")
    reads = ("windows_clicks", "windows_orders")
    _, shown, _ = get("/", reads=reads)
    assert re.findall(r'<a href="(\w+)/">', shown) == ["orders", "clicks"]  # trouble first
    assert state_word(shown.partition("clicks/")[0]) == "failing"
    status, page, _ = get("/orders/", reads=reads)
    for text in (shown, page):
        assert "orders.toml" in text
        assert "parkuet" in text
    assert status == 200
    _, hidden, _ = get("/")
    assert ("parkuet" in hidden, 'href="clicks/"' in hidden) == (False, True)
    assert get("/orders/")[0] == 404


def test_a_page_is_made_again_when_the_ledger_has_moved_on(tmp_path: Path, live_pages: ModuleType) -> None:
    made = clicks(tmp_path, files=1)
    count = []
    cache = live_pages.Cache(lambda one, now_ms: count.append(now_ms) or len(count))
    assert [cache.get(made, 0), cache.get(made, 1_000)] == [1, 1]
    assert cache.get(made, live_pages.FRESH_MS) == 2  # what waits is in no ledger
    ledger = Ledger(made.store, wall_clock_ms)
    ledger.claim()
    assert cache.get(made, live_pages.FRESH_MS + 1) == 3


def state_word(page: str) -> str:
    """Word in the badge of a page."""
    [word] = re.findall(r'<span class="badge \w+">([^<]*)</span>', page)
    return str(word)


def test_an_edited_definition_is_shown_by_the_columns_that_the_tables_have(
    after_one: Path, tmp_path: Path, live_pages: ModuleType
) -> None:
    made = made_by_hand(after_one, tmp_path)
    file = tmp_path / "clicks.toml"
    text = CLICKS.replace('key = ["user"]', 'key = ["account"]').replace('clicks = "count(*)"', 'n = "count(*)"')
    file.write_text(text, encoding="utf-8")
    edited = load_definition(file).model_copy(update={"store": made.store})
    assert "the definition was edited" in live_pages.page(edited, wall_clock_ms())
    every, one = (live_pages.search_page(edited, asked, wall_clock_ms()) for asked in ({}, {"key.user": "u1"}))
    users = [set(re.findall(r"<td>(u\d)</td>", page)) for page in (every, one)]
    assert len(users[0]) > 1
    assert users[1] == {"u1"}
    assert "windowlib explain" not in every
    file.write_text(text + '[pages]\nhide = ["account"]\n', encoding="utf-8")
    hiding = load_definition(file).model_copy(update={"store": made.store})
    assert not re.search(r"u\d", live_pages.search_page(hiding, {"key.user": "u1"}, wall_clock_ms()))


@pytest.mark.parametrize(
    ("since", "text"),
    [
        ("2020-01-01 00:00 UTC", "the change since 1 Jan 2020 00:00"),
        ("1", "In small: the change since"),
        ("7", "batch 7 is not among the newest batches"),
        ("yesterday", "is not a time"),
    ],
)
def test_results_are_compared_with_a_moment_or_a_batch(
    after_one: Path, tmp_path: Path, live_pages: ModuleType, since: str, text: str
) -> None:
    page = html.unescape(live_pages.page(made_by_hand(after_one, tmp_path), wall_clock_ms(), since))
    assert text in page
    assert f'name="since" value="{since}"' in page


def test_the_page_of_a_preview_that_was_applied_says_so(
    get: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must no longer say that nothing was changed, or how to apply the preview."""
    from windowlib.airflow import applied

    page = tmp_path / "warehouse" / "clicks" / "_previews" / "p1" / "index.html"
    page.write_text(f"<p>{UNCHANGED}</p>{BEGIN}<code>--apply p1</code>{END}", encoding="utf-8")
    assert "--apply p1" in get("/clicks/previews/p1")[1]
    monkeypatch.setattr(applied, "batch_that_applied", lambda definition, preview_id: {"p1": 7}[preview_id])
    assert get("/clicks/previews/p1")[1] == "<p>Batch 7 has applied it.</p>"


def test_an_error_that_no_ledger_has_is_on_the_page_at_once(tmp_path: Path, live_pages: ModuleType) -> None:
    made = clicks(tmp_path, files=1)
    now_ms = wall_clock_ms()
    assert state_word(live_pages.page(made, now_ms)) == "no run yet"
    last_error.keep(made.store, last_error.LastError("plan", "no column user", now_ms, "/pipelines/clicks.toml"))
    shown = live_pages.page(made, now_ms + 1)
    assert (state_word(shown), "no column user" in shown) == ("failing", True)


def test_a_run_that_died_is_not_shown_as_running(tmp_path: Path, live_pages: ModuleType) -> None:
    """Its claim stays in the ledger, whose version does not change."""
    made = clicks(tmp_path, files=1)
    program = (
        "import sys, time; from pathlib import Path; from windowlib.batches.planning import plan;"
        "from windowlib.definition.definition import load_definition; from windowlib.ledger.ledger import Ledger,"
        " wall_clock_ms; one = load_definition(sys.argv[1]); Ledger(one.store, wall_clock_ms).claim(); plan(one);"
        "print(one.store, flush=True); time.sleep(600)"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program, str(made.file)],
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "WINDOWLIB_WAREHOUSE"},
    )
    assert run.stdout is not None
    assert run.stdout.readline().strip() == str(folder_of(made))
    now_ms = wall_clock_ms()
    running = live_pages.page(made, now_ms)
    run.kill()
    run.wait()
    run.stdout.close()
    dead = live_pages.page(made, now_ms + 1)
    assert [f"process {run.pid} on" in page for page in (running, dead)] == [True, False]
    assert [state_word(page) for page in (running, dead)] == ["running", "failing"]
    assert "the run that worked on batch 1 ended without finishing it" in dead


@pytest.mark.long("make test looks at the page that a real Airflow has made, which names the run")
def test_a_batch_links_to_the_run_of_airflow_that_made_it_and_one_made_by_hand_to_none(
    after_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live_pages: ModuleType
) -> None:
    """The run of a DAG may have any name."""
    from windowlib.airflow.job import Job

    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    made = made_by_hand(after_one, tmp_path)
    assert "/runs/" not in live_pages.page(made, wall_clock_ms()).replace('/runs"', "")
    arrive(tmp_path, 2, events(2))
    task = type("Ti", (), {"dag_id": "windows_clicks", "run_id": "a/b <i>&?"})()
    records, _, code = Job(task_id="advance", command=[*RUN, str(made.file)]).run_command({"ti": task})  # type: ignore[typeddict-item]
    assert (code, [one["batch_id"] for one in records]) == (0, [2])
    page = live_pages.page(made, wall_clock_ms() + live_pages.FRESH_MS)
    shown = re.findall(r"<strong>batch (\d+)</strong>.*?</details>", page, re.DOTALL)
    links = re.findall(r'made by <a href="([^"]*)">([^<]*)</a> of the DAG windows_clicks', page)
    assert (shown[0], len(links)) == ("2", 1)
    assert links == [("../../dags/windows_clicks/runs/a%2Fb%20%3Ci%3E%26%3F", "a/b &lt;i&gt;&amp;?")]
    of_file = pipeline_page(pipeline(observe_pipeline(made, wall_clock_ms())), PageLinks(pipeline=str, home=None))
    assert "made by a/b &lt;i&gt;&amp;? of the DAG windows_clicks" in of_file


# -- a real Airflow ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long("the application itself is asked by the tests above, the same pages as files by tests/pages")
def test_in_a_real_airflow(tmp_path: Path, without_rights: list[str]) -> None:
    if browser.installed() is None:
        without_rights.append("pages of Airflow in a browser (no Chromium)")
        pytest.skip("needs Chromium")
    folder = tmp_path / "pipelines"
    subprocess.run([sys.executable, "-m", "tests.support.page_samples", str(folder)], check=True, cwd=PROJECT)
    with served(folder, local_airflow.free_port(8391)) as address, browser.browser() as chromium:
        cookies = {
            user: ({"name": "_token", "value": token(address, user), "url": address},) for user in ("admin", "ann")
        }
        with pytest.raises(HTTPError, match="401"):
            urlopen(f"{address}/windowlib/")
        for cookie in ("", "_token=given by another Airflow"):
            asked = Request(f"{address}/windowlib/{WELL}/", headers={**BROWSER, "cookie": cookie})
            with urlopen(asked) as shown:
                assert shown.url == f"{address}/auth/login?next=%2Fwindowlib%2F{WELL}%2F"
        menu = chromium.clicked(f"{address}/", "Browse", "Pipelines", cookies=cookies["admin"])
        assert menu == f"{address}/windowlib/"
        for page in ("", *(f"{name}/" for name in (WELL, TROUBLE, WAITING, NEW)), f"{TROUBLE}/results"):
            for size in (browser.DESKTOP, browser.PHONE):
                for dark in (False, True):
                    seen = chromium.look(f"{address}/windowlib/{page}", size, dark=dark, cookies=cookies["admin"])
                    assert seen.requests == [f"{address}/windowlib/{page}"]
                    assert seen.complaints == []
                    assert (seen.width, seen.too_wide) == (size[0], [])
        assert SCRIPT in chromium.look(f"{address}/windowlib/{TROUBLE}/", cookies=cookies["admin"]).text
        home = chromium.look(f"{address}/windowlib/", cookies=cookies["ann"]).text
        assert (WELL in home, TROUBLE in home) == (True, False)
        assert "that you may see" in chromium.look(f"{address}/windowlib/{TROUBLE}/", cookies=cookies["ann"]).text
