"""Pages for every reader: without grave faults in both colour modes, by keyboard, in every width, and in print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Page

from tests.support.axe import axe_script, grave_faults
from tests.support.npm_packages import NoPackages
from tests.support.page_kinds import HOME, page_kinds
from tests.support.page_samples import TROUBLE, WAITING, WELL

WIDTHS, PAPER = (390, 1280, 1920), 794  # A4 upright
Opens: TypeAlias = Callable[..., Page]
FOCUS = """() => {
  const focused = document.activeElement, shown = focused.type === "radio" ? focused.nextElementSibling : focused;
  return [[...document.querySelectorAll("*")].indexOf(focused), getComputedStyle(shown).outlineStyle];
}"""


@pytest.fixture(scope="session")
def kinds(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each kind."""
    place = tmp_path_factory.mktemp("kinds")
    page_kinds(samples, place)
    return place


def kinds_of(place: Path) -> list[str]:
    return sorted(str(page.parent.relative_to(place)) for page in place.rglob("index.html"))


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
def test_axe_finds_no_grave_fault(opens: Opens, kinds: Path, without_rights: list[str], dark: bool) -> None:
    """Each colour mode has a width of its own. On a phone, tables scroll, and a keyboard must reach them."""
    try:
        script = axe_script()
    except NoPackages as reason:
        without_rights.append(f"accessibility of the pages ({reason})")
        pytest.skip(f"needs axe-core: {reason}")
    shown = ((kind, opens(kind, dark=dark, width=390 if dark else 1280)) for kind in kinds_of(kinds))
    assert {kind: faults for kind, page in shown if (faults := grave_faults(page, script))} == {}


def test_axe_would_notice(opens: Opens) -> None:
    try:
        script = axe_script()
    except NoPackages as reason:
        pytest.skip(f"needs axe-core: {reason}")
    page = opens(WELL)
    page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    assert [rule for _, rule, *_ in grave_faults(page, script)] == ["color-contrast"]


def test_pages_fit_every_width(opens: Opens, kinds: Path) -> None:
    for kind in kinds_of(kinds):
        page, widths = opens(kind), []
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            widths.append(page.evaluate("document.documentElement.scrollWidth"))
        page.set_viewport_size({"width": PAPER, "height": 1123})
        page.emulate_media(media="print")
        widths.append(page.evaluate("document.documentElement.scrollWidth"))
        assert (kind, *widths) == (kind, *WIDTHS, PAPER)


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
