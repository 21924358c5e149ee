"""A real browser without a window: its requests, messages, width and pictures of a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Chromium
    from playwright.sync_api import Page

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = (1280, 800), (390, 844)


def installed() -> str | None:
    """Path of the system's Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Seen:
    """Observations of a page: requests, console messages, width, a picture."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    width: int = 0
    too_wide: list[str] = field(default_factory=list)
    text: str = ""
    background: str = ""
    picture: bytes = b""


WIDER = """width => [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide') &&
 e.getBoundingClientRect().right > width + 1).map(e => e.tagName + '.' + e.getAttribute('class')).slice(0, 5)"""


@dataclass(frozen=True)
class Browser:
    """Chromium, as Playwright drives it."""

    chromium: Chromium

    def look(
        self, address: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False, opened: bool = False,
        cookies: Sequence[dict[str, Any]] = (), picture: bool = False,
    ) -> Seen:  # fmt: skip
        """Opens a page without a profile; `opened`: with every part that can be opened; `picture`: takes one."""
        width, height = size
        profile = self.chromium.new_context(
            viewport={"width": width, "height": height},
            is_mobile=width < 600,
            color_scheme="dark" if dark else "light",
        )
        profile.add_cookies([*cookies])  # type: ignore[list-item]
        page, seen = profile.new_page(), Seen()
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on(
            "console", lambda said: seen.complaints.append(said.text) if said.type in ("warning", "error") else None
        )
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.goto(address)
        if opened:
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        seen.width = page.evaluate("document.documentElement.scrollWidth")
        seen.too_wide = page.evaluate(WIDER, width)
        seen.text = page.inner_text("body")
        seen.background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        if picture:
            seen.picture = page.screenshot(full_page=True)
        profile.close()
        return seen

    def clicked(self, address: str, *names: str, cookies: Sequence[dict[str, Any]] = ()) -> str:
        """The address that opens in a tab of its own when a link or button after the other is clicked on a page."""
        profile = self.chromium.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
        profile.add_cookies([*cookies])  # type: ignore[list-item]
        page = profile.new_page()
        page.goto(address)
        *before, last = names
        for name in before:
            page.get_by_text(name, exact=True).first.click()
        with profile.expect_page() as opened:
            page.get_by_text(last, exact=True).first.click()
        opened.value.wait_for_load_state()
        found = opened.value.url
        profile.close()
        return found

    @contextmanager
    def page(self, cookies: Sequence[dict[str, Any]] = ()) -> Iterator[tuple[Page, list[str]]]:
        """A page to act on, and the addresses that it requests."""
        profile, requests = self.chromium.new_context(), list[str]()
        profile.add_cookies([*cookies])  # type: ignore[list-item]
        page = profile.new_page()
        page.on("request", lambda request: requests.append(request.url))
        yield page, requests
        profile.close()


@contextmanager
def browser() -> Iterator[Browser]:
    """Opens a browser for the block; `installed` finds its program."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=installed())
        yield Browser(chromium)
        chromium.close()
