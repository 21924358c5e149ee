"""A real browser without a window, driven through Chromium's own pipe: what a page asks for, says and looks like."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = (1280, 800), (390, 844)


def installed() -> str | None:
    """Chromium's program, where there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Seen:
    """What a browser saw of a page: every request, what the console complained of, how wide it is, a picture."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    width: int = 0
    too_wide: list[str] = field(default_factory=list)
    text: str = ""
    background: str = ""
    picture: bytes = b""


WIDER = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide') &&
 e.getBoundingClientRect().right > WIDTH + 1).map(e => e.tagName + '.' + e.getAttribute('class')).slice(0, 5)"""


class Browser:
    """Chromium, through the pipe of its debugging protocol."""

    def __init__(self, read: int, write: int) -> None:
        self._from, self._to = os.fdopen(read, "rb"), os.fdopen(write, "wb")
        self._number, self._left, self.events = 0, b"", list[dict[str, Any]]()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The answer to a command; events that come meanwhile are kept."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        self._to.write(json.dumps(asked | ({"sessionId": session} if session else {})).encode() + b"\0")
        self._to.flush()
        while True:
            found = self._message()
            if found.get("id") == self._number:
                assert "error" not in found, found
                return found["result"]
            self.events.append(found)

    def wait(self, method: str) -> None:
        """Until an event came."""
        while not any(one.get("method") == method for one in self.events):
            self.events.append(self._message())

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = self._from.read1(1 << 20)
            assert more, "the browser has ended"
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def look(
        self, address: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False, opened: bool = False,
        cookies: tuple[dict[str, str], ...] = (), picture: bool = False,
    ) -> Seen:  # fmt: skip
        """Opens a page in a tab of its own; `opened`: with every part that can be opened; `picture`: takes one."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events = []
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable", session)
        for cookie in cookies:
            self.call("Network.setCookie", session, **cookie)
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride",
            session,
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", session, features=scheme)
        self.call("Page.navigate", session, url=address)
        self.wait("Page.loadEventFired")
        if opened:
            self._value(session, "document.querySelectorAll('details').forEach(one => one.open = true)")
        seen = Seen(
            width=self._value(session, "document.documentElement.scrollWidth"),
            too_wide=self._value(session, WIDER.replace("WIDTH", str(width))),
            text=self._value(session, "document.body.innerText"),
            background=self._value(session, "getComputedStyle(document.body).backgroundColor"),
            picture=self._picture(session, width) if picture else b"",
        )
        for event in self.events:
            said = event.get("params", {})
            match event.get("method"):
                case "Network.requestWillBeSent":
                    seen.requests.append(said["request"]["url"])
                case "Log.entryAdded" if said["entry"]["level"] in ("warning", "error"):
                    seen.complaints.append(said["entry"]["text"])
                case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                    seen.complaints.append(json.dumps(said))
        self.call("Target.disposeBrowserContext", browserContextId=context)
        return seen

    def _value(self, session: str, expression: str) -> Any:
        found = self.call("Runtime.evaluate", session, expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _picture(self, session: str, width: int) -> bytes:
        height = min(12_000, self._value(session, "document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        found = self.call("Page.captureScreenshot", session, clip=clip, captureBeyondViewport=True)
        return base64.b64decode(found["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser, until the block ends; its profile is in a folder of its own. `installed` says whether there is one."""
    program = installed()
    assert program, "a test asks first"
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = [
        program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--no-first-run", "--disable-background-networking", f"--user-data-dir={folder}", "--remote-debugging-pipe",
    ]  # fmt: skip
    start = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
    process = subprocess.Popen(
        ["bash", "-c", start, "browser", *command],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    made = Browser(ours_in, ours_out)
    try:
        yield made
    finally:
        with suppress(BrokenPipeError, AssertionError):
            made.call("Browser.close")
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        made._from.close()
        with suppress(BrokenPipeError):
            made._to.close()
