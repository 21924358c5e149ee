"""Delivery of a notice to a webhook, as JSON by HTTP POST.

The URL and the token may be secrets, so messages contain only the host. Redirects are not followed, because a redirect
could carry the token to another server. A delivery that exceeds the timeout is abandoned, even if the server is still
answering.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from windowlib.definition.toml.file import Notify


class Undelivered(Exception):
    """A notice could not be delivered. The message contains at most the host of the URL."""


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **options: Any) -> None:
        return None


def post(notify: Notify, notice: Mapping[str, Any]) -> None:
    """Posts a notice to the webhook of the definition. Raises `Undelivered`."""
    url = _address(notify)
    headers = {"Content-Type": "application/json", "User-Agent": "windowlib"}
    if notify.token_variable:
        headers["Authorization"] = f"Bearer {_environment_value('token_variable', notify.token_variable)}"
    failed = list[str]()
    seconds = notify.timeout_ms / 1000

    def send() -> None:
        try:
            body = json.dumps(notice, ensure_ascii=False).encode()
            with build_opener(_NoRedirects).open(Request(url, body, headers, method="POST"), timeout=seconds):
                pass
        except HTTPError as error:
            failed.append(f"answered {error.code}")
            error.close()
        except URLError as error:
            failed.append(f"cannot be reached ({type(error.reason).__name__})")
        except Exception as error:  # an invalid address, or an answer that is not HTTP
            failed.append(f"cannot be used ({type(error).__name__})")

    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    sending.join(seconds)
    if sending.is_alive():
        failed.append(f"did not answer within {seconds:g} s")
    if failed:
        raise Undelivered(f"the webhook at {urlsplit(url).hostname} {failed[0]}")


def _address(notify: Notify) -> str:
    url = notify.webhook or _environment_value("webhook_variable", notify.webhook_variable or "")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise Undelivered(
            f"the environment variable {notify.webhook_variable} holds no address that begins with http:// or https://"
        )
    return url


def _environment_value(key: str, name: str) -> str:
    if not (value := os.environ.get(name, "").strip()):
        raise Undelivered(f"notify.{key}: the environment variable {name} is not set")
    return value
