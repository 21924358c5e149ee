"""Home page of many pipelines in a browser: small, quick, and searched, sorted and filtered without a server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page

from windowlib.pages.decided import OperatorDecision
from windowlib.pages.last_day import HOURS, LastDay
from windowlib.pages.overview import DECISION, CheckMark, Overview, in_order, unreadable
from windowlib.pages.pipeline_state import State
from windowlib.pages.render import PageLinks, home_page

NOW_MS = 1_772_712_000_000  # 2026-03-05, noon UTC
HOUR_MS = 3_600_000
MANY = 200
HIGHEST = 44  # pixels of a row


def row(number: int) -> Overview:
    chance = random.Random(number)
    return Overview(
        f"pipeline_{number:03}",
        State.CURRENT,
        "there is nothing left to read",
        watermark_ms=NOW_MS,
        final_ms=NOW_MS - number * HOUR_MS,
        changed_ms=NOW_MS - chance.randrange(9 * HOUR_MS),
        day=LastDay(
            [chance.randrange(2_000) for _ in range(HOURS)], chance.randrange(100), 100, 1, 0 if number % 2 else 4
        ),
        strip=[CheckMark(batch, "met", 0) for batch in range(20)],
        schedule="0 * * * *",
        owner="ann" if number == 7 else None,
    )


def rows() -> list[Overview]:
    why = "batch 4 was refused by its checks"
    waiting = Overview("waiting", State.WAITING, why, reason=why, solved_at=DECISION)
    broken = unreadable("broken", f"the footer of {'0007' * 40}.parquet is damaged\nsecond line")
    return in_order([*map(row, range(MANY - 2)), waiting, broken])


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("home") / "index.html"
    place = PageLinks(pipeline=lambda name: f"{name}/index.html", home=None)
    file.write_text(home_page(rows(), NOW_MS, place, {"waiting": "5 Mar 13:00"}), encoding="utf-8")
    return file


@pytest.fixture
def home(request: pytest.FixtureRequest, page_file: Path, _has_browser: None) -> Iterator[Page]:
    page = request.getfixturevalue("chromium").chromium.new_page(viewport={"width": 1280, "height": 900})
    requests = list[str]()
    page.on("request", lambda asked: requests.append(asked.url))
    page.on("pageerror", lambda error: requests.append(str(error)))
    page.goto(page_file.as_uri())
    yield page
    assert requests == [page_file.as_uri()]
    page.close()


def names(home: Page) -> list[str]:
    """Names of the rows that are shown, in order."""
    return [str(name) for name in home.locator("tbody tr:visible th > a:first-child").all_text_contents()]


def test_many_pipelines_are_a_small_page(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    assert text.count("<tr data-state") == MANY
    assert text.index("broken/index.html") < text.index("waiting/index.html") < text.index("pipeline_000/index.html")
    assert 'href="waiting/index.html#decision"' in text
    assert "<td>5 Mar 13:00</td>" in text


def test_recent_decisions_are_listed_newest_first() -> None:
    old, new, newest = (
        OperatorDecision(NOW_MS - days * 24 * HOUR_MS, f"approve batch {9 - days}", "ann", "known")
        for days in (20, 2, 1)
    )
    listed = [replace(row(1), decided=[new, old]), replace(row(2), decided=[newest])]
    page = home_page(listed, NOW_MS, PageLinks(pipeline=lambda name: f"{name}/index.html", home=None))
    assert "approve batch -11" not in page
    assert page.index("approve batch 8") < page.index("approve batch 7")
    assert 'href="pipeline_002/index.html#decided"' in page
    assert "Reruns and decisions" not in home_page([row(1)], NOW_MS, PageLinks(pipeline=str, home=None))


def test_late_and_refused_shares_link_to_their_rows() -> None:
    shares = replace(row(1), day=LastDay(late=1, admitted=4, refused=0, read=4))
    page = home_page([shares], NOW_MS, PageLinks(pipeline=lambda name: f"{name}/index.html", home=None))
    assert '<a href="pipeline_001/index.html#late" title="1">25.0 %</a>' in page
    assert "#quarantine" not in page


def test_rows_are_low_and_the_table_fits(home: Page) -> None:
    heights = home.eval_on_selector_all("tbody tr", "rows => rows.map(row => row.getBoundingClientRect().height)")
    assert (len(heights), max(heights) <= HIGHEST) == (MANY, True)
    frame = home.locator(".wide").evaluate("frame => frame.scrollWidth - frame.clientWidth")
    assert frame == 0


def test_a_search_finds_names_owners_and_reasons(home: Page) -> None:
    home.keyboard.press("/")
    for typed, shown in {"refused checks": ["waiting"], "ann": ["pipeline_007"], "0007": ["broken"]}.items():
        home.keyboard.type(typed)
        assert names(home) == shown
        assert f"1 of {MANY} shown" in home.inner_text("output")
        home.keyboard.press("Escape")
    assert len(names(home)) == MANY


def test_states_have_counts_and_filter(home: Page) -> None:
    assert home.locator(".choice").all_inner_texts() == [
        f"all {MANY}", "failing 1", "waiting for a decision 1", f"up to date {MANY - 2}",
    ]  # fmt: skip
    home.get_by_role("radio", name=f"all {MANY}").focus()
    home.keyboard.press("ArrowRight")
    assert names(home) == ["broken"]
    home.keyboard.press("ArrowRight")
    assert names(home) == ["waiting"]


def test_a_head_sorts_up_down_and_back(home: Page) -> None:
    head = home.get_by_role("columnheader", name="final up to")
    for order, first in (("ascending", "pipeline_197"), ("descending", "pipeline_000"), ("none", "broken")):
        head.get_by_role("button").press("Enter")
        assert (head.get_attribute("aria-sort"), names(home)[0]) == (order, first)
    home.get_by_role("columnheader", name="refused").get_by_role("button").press("Enter")
    assert names(home)[-1] in ("waiting", "broken", "pipeline_197"), "rows without a value are last"


def test_arrows_lead_from_row_to_row(home: Page) -> None:
    home.keyboard.press("/")
    home.keyboard.press("ArrowDown")
    home.keyboard.press("ArrowDown")
    assert home.evaluate("document.activeElement.textContent") == "waiting"


def test_without_scripts_the_whole_table_is_shown(request: pytest.FixtureRequest, home: Page) -> None:
    profile = request.getfixturevalue("chromium").chromium.new_context(java_script_enabled=False)
    page = profile.new_page()
    page.goto(home.url)
    assert page.locator("tbody tr").count() == MANY
    assert not page.locator("form").is_visible()
    assert "failing: 1, waiting for a decision: 1" in page.inner_text("body")
    profile.close()
