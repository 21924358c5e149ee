"""Pages and actions inside Airflow, used in a browser. No request leaves the origin.

The application itself is served. Airflow's permissions and its own pages are in the tests `test_in_a_real_airflow`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Page, expect

from docs import local_airflow
from tests.airflow.by_hand import made_by_hand
from tests.support import browser
from tests.support.clicks import arrive, events
from tests.support.disks import folder_of
from windowlib.definition.definition import Definition
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.reruns.page import BEGIN, END, UNCHANGED

pytestmark = [
    pytest.mark.airflow,
    # FastAPI imports its test client, which we do not use, wherever Airflow imports FastAPI.
    pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient. is deprecated"),
]

Opened: TypeAlias = tuple[Page, str]
PREVIEW = (
    f"<html lang='en'>\n<body>\n<h1>a rerun</h1>\n<p>{UNCHANGED}</p>\n{BEGIN}<pre>--apply p1</pre>{END}</body></html>"
)


class Ann:
    """User who is logged in and may do everything."""

    def get_name(self) -> str:
        return "ann"


@contextmanager
def served() -> Iterator[str]:
    """Serves the application below the path that Airflow gives it. Yields the address of Airflow."""
    import uvicorn
    from fastapi import FastAPI

    from windowlib.airflow.addresses import PREFIX
    from windowlib.airflow.plugin import app

    site = FastAPI()
    site.mount(PREFIX, app)
    port = local_airflow.free_port(8395)
    server = uvicorn.Server(uvicorn.Config(site, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def pipeline(after_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """Pipeline after one batch, with a file that no run has read."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    monkeypatch.setenv("WINDOWLIB_PIPELINES", str(tmp_path))
    definition = made_by_hand(after_one, tmp_path)
    arrive(tmp_path, 2, events(2))
    return definition


@pytest.fixture
def opened(pipeline: Definition, monkeypatch: pytest.MonkeyPatch, without_rights: list[str]) -> Iterator[Opened]:
    """Page in a browser that shows the home page, and the address of Airflow."""
    if browser.installed() is None:
        without_rights.append("actions in Airflow in a browser (no Chromium)")
        pytest.skip("needs Chromium")
    from windowlib.airflow import plugin
    from windowlib.airflow.web import questions

    monkeypatch.setattr(plugin.app, "dependency_overrides", {plugin.logged_in: Ann})
    for right in ("may_read", "may_decide", "may_start"):
        monkeypatch.setattr(plugin, right, lambda user, dag: True)
    monkeypatch.setattr(plugin, "next_run", lambda dag: "")
    monkeypatch.setattr(questions, "open_question", lambda definition: None)
    monkeypatch.setattr(questions, "open_review", lambda preview_id: "/dags/rerun_windows/runs/r/tasks/review")
    with served() as address, browser.browser() as chromium, chromium.page() as (page, requests):
        page.goto(f"{address}/windowlib/")
        yield page, address
        assert requests
        assert [url for url in requests if not url.startswith((address, "data:"))] == []


def on_its_page(page: Page) -> None:
    page.get_by_role("link", name="clicks", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("clicks")


def is_explained(page: Page, address: str, cells: list[str]) -> None:
    """The page explains the result of these cells of the table."""
    expect(page).to_have_url(re.compile(f"^{re.escape(address)}/windowlib/clicks/explain\\?"))
    expect(page.get_by_label("user")).to_have_value(cells[1])
    expect(page.get_by_role("heading", level=2).first).to_contain_text(cells[2])
    count = int(cells[4])
    expect(page.get_by_role("heading", name=re.compile(f"^{count} events? in it"))).to_be_visible()
    shown = page.get_by_role("region", name="events of the window").get_by_role("row")
    expect(shown).to_have_count(count + 1)  # with the head
    versions = page.get_by_role("region", name="versions of the result")
    expect(versions.get_by_role("columnheader", name="cause")).to_be_visible()
    expect(versions.get_by_text("fired: the watermark passed its end").first).to_be_visible()


def explained_row(page: Page) -> list[str]:
    """Clicks `explain` in the first row of results. Returns the cells of the row."""
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="explain", exact=True)).first
    cells = row.get_by_role("cell").all_inner_texts()
    row.get_by_role("link", name="explain", exact=True).click()
    return cells


def test_a_click_on_a_new_result_explains_it(opened: Opened) -> None:
    page, address = opened
    on_its_page(page)
    is_explained(page, address, explained_row(page))
    page.get_by_role("link", name="clicks", exact=True).click()
    expect(page).to_have_url(f"{address}/windowlib/clicks/")


def test_a_result_that_was_searched_is_explained(opened: Opened) -> None:
    page, address = opened
    on_its_page(page)
    page.get_by_role("link", name="Search by key or time").click()
    page.get_by_label("user").fill("u1")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("status")).to_contain_text("that match")
    cells = explained_row(page)
    assert cells[1] == "u1"
    is_explained(page, address, cells)
    page.get_by_label("a time in the window").fill("yesterday")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("alert")).to_contain_text('at = "yesterday" is not a time')
    page.get_by_role("link", name="results").click()
    page.get_by_label("window ends from").fill("yesterday")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("alert")).to_contain_text("is not a time")
    page.get_by_role("link", name="Reset").click()
    expect(page.get_by_role("status")).to_contain_text("among the newest")


def test_results_are_compared_with_a_batch(opened: Opened) -> None:
    page, _ = opened
    on_its_page(page)
    page.get_by_label("another time or batch").fill("7")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("batch 7 is not among the newest batches")).to_be_visible()
    page.get_by_label("another time or batch").fill("2020-01-01 00:00 UTC")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("region", name=re.compile("^Changes since 2020-01-01")).first).to_be_visible()


def test_a_file_is_set_aside_and_taken_back(opened: Opened, pipeline: Definition) -> None:
    page, _ = opened
    on_its_page(page)
    page.get_by_role("link", name="Set a file aside").click()
    page.get_by_label("file").fill("no.parquet")
    page.get_by_label("reason").fill("cut off")
    page.get_by_role("button", name="Set it aside").click()
    expect(page.get_by_role("alert")).to_contain_text("no.parquet: no such file in the source folder")
    expect(page.get_by_label("reason")).to_have_value("cut off")
    name = page.locator("#offered option").first.get_attribute("value")
    assert name is not None
    page.get_by_label("file").fill(name)
    page.get_by_role("button", name="Set it aside").click()
    expect(page.get_by_text(f"Set aside: {name}: cut off (ann)")).to_be_visible()
    assert [*files_set_aside(pipeline.store)] == [name]
    page.get_by_role("link", name="Set a file aside or take it back").click()
    page.get_by_role("link", name="take back").click()
    page.get_by_label("reason").fill("repaired")
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_text("Set aside:")).to_have_count(0)
    assert files_set_aside(pipeline.store) == {}


def test_the_form_of_a_rerun_names_what_is_wrong(opened: Opened) -> None:
    page, _ = opened
    on_its_page(page)
    page.get_by_role("link", name="rerun …").first.click()
    expect(page.get_by_label("from")).to_have_value(re.compile(r"^20\d\d-\d\d-\d\d 00:00 UTC$"))
    page.get_by_label("from").fill("yesterday")
    page.get_by_label("reason").fill("euros, not cents")
    page.get_by_role("button", name="Start the rerun").click()
    expect(page.get_by_role("alert")).to_contain_text('from = "yesterday" is not a time')
    expect(page.get_by_label("reason")).to_have_value("euros, not cents")


def test_a_preview_leads_to_its_review_and_its_pipeline(opened: Opened, pipeline: Definition) -> None:
    page, address = opened
    stored = folder_of(pipeline) / "_previews" / "p1" / "index.html"
    stored.parent.mkdir(parents=True)
    stored.write_text(PREVIEW, encoding="utf-8")
    page.goto(f"{address}/windowlib/clicks/previews/p1")
    review = page.get_by_role("link", name="Open the review")
    expect(review).to_have_attribute("href", "/dags/rerun_windows/runs/r/tasks/review")
    page.get_by_role("link", name="clicks", exact=True).click()
    expect(page).to_have_url(f"{address}/windowlib/clicks/")
