"""Pages for every reader: without grave faults in both colour modes, by keyboard, in every width, and in print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Page

from tests.support.axe import axe_script, grave_faults
from tests.support.npm_packages import NoPackages
from tests.support.page_samples import AS_OF_MS, NAMES, NEW, TROUBLE, WAITING, WELL, definition
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.render import PageLinks, SearchResult, results_page
from windowlib.pages.rows import ResultFilter, results
from windowlib.pages.site import site
from windowlib.storage.disk import Disk

HOME, BROKEN, RESULTS = "", "broken", "results"
KINDS = (HOME, WELL, TROUBLE, WAITING, NEW, BROKEN, RESULTS)
WIDTHS = (390, 1280, 1920)
Opens: TypeAlias = Callable[..., Page]
FOCUS = """() => {
  const focused = document.activeElement, shown = focused.type === "radio" ? focused.nextElementSibling : focused;
  return [[...document.querySelectorAll("*")].indexOf(focused), getComputedStyle(shown).outlineStyle];
}"""
CUT = "frames => frames.filter(frame => frame.scrollHeight > frame.clientHeight + 1).length"


@pytest.fixture(scope="session")
def kinds(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a page of each kind."""
    place = tmp_path_factory.mktemp("kinds")
    site(
        [definition(samples, name) for name in NAMES], Disk(place), AS_OF_MS, {Path("broken.toml"): "`gap` is missing"}
    )
    made = definition(samples, TROUBLE)
    tables = observe_pipeline(made, AS_OF_MS).tables
    found = results(made, tables, {"results": tables["results"].version() or 0}, ResultFilter(key={"user": "u1"}))
    page = results_page(
        TROUBLE, SearchResult({"user": "u1"}, "", "", found), AS_OF_MS, PageLinks(lambda name: name, "../index.html")
    )
    (place / RESULTS).mkdir()
    (place / RESULTS / "index.html").write_text(page, encoding="utf-8")
    return place


@pytest.fixture
def opens(request: pytest.FixtureRequest, kinds: Path, _has_browser: None) -> Iterator[Opens]:
    """Opens a page of a kind in a profile of its own, with all of its parts opened."""
    profiles = []

    def shown(kind: str, *, dark: bool = False, width: int = 1280, is_open: bool = True) -> Page:
        profile = request.getfixturevalue("chromium").chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", bypass_csp=True
        )
        profiles.append(profile)
        page: Page = profile.new_page()
        page.goto((kinds / kind / "index.html").as_uri())
        if is_open:
            page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        return page

    yield shown
    for profile in profiles:
        profile.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_grave_fault(opens: Opens, without_rights: list[str], dark: bool) -> None:
    try:
        script = axe_script()
    except NoPackages as reason:
        without_rights.append(f"accessibility of the pages ({reason})")
        pytest.skip(f"needs axe-core: {reason}")
    assert {kind: faults for kind in KINDS if (faults := grave_faults(opens(kind, dark=dark), script))} == {}


def test_axe_would_notice(opens: Opens) -> None:
    try:
        script = axe_script()
    except NoPackages as reason:
        pytest.skip(f"needs axe-core: {reason}")
    page = opens(WELL)
    page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    assert [rule for _, rule, *_ in grave_faults(page, script)] == ["color-contrast"]


@pytest.mark.parametrize("kind", [HOME, TROUBLE])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_fits_every_width(opens: Opens, kind: str, width: int) -> None:
    page = opens(kind, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("kind", [HOME, TROUBLE, WAITING])
def test_the_focus_is_visible_and_follows_the_page(opens: Opens, kind: str) -> None:
    page, places = opens(kind, is_open=False), list[int]()
    for _ in range(25):
        page.keyboard.press("Tab")
        place, outline = page.evaluate(FOCUS)
        places.append(place)
        assert outline == "solid"
    assert places == sorted(places)


def test_arrows_show_the_values_of_a_plot(opens: Opens) -> None:
    page = opens(TROUBLE)
    plot = page.locator("#hours svg.bars").first
    shown = plot.locator("xpath=ancestor::div[contains(@class, 'shows')]//output")
    before = shown.inner_text()
    plot.focus()
    newest = shown.inner_text()
    page.keyboard.press("Home")
    assert (plot.get_attribute("role"), plot.get_attribute("aria-valuetext")) == ("slider", shown.inner_text())
    assert len({before, newest, shown.inner_text()}) == 3
    page.keyboard.press("Tab")
    assert shown.inner_text() == before
    plot.hover()
    assert shown.inner_text() != before


def test_print_shows_whole_tables_without_controls(opens: Opens) -> None:
    page = opens(TROUBLE, dark=True, is_open=False)
    page.emulate_media(media="print", color_scheme="light")
    hidden = page.evaluate(
        "[...document.querySelectorAll('.wide')].filter(e => e.scrollHeight > e.clientHeight + 1).length"
    )
    assert (hidden, page.locator("nav").is_visible()) == (0, False)
