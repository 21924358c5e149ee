"""Delivery of notices by Airflow's notifiers: `notify.airflow` names the class, `notify.arguments` its arguments.

Arguments are templates of Airflow, if the notifier declares them as such. The notice is available as `windowlib`, for
example `"{{ windowlib.sentence }}"`. A failed delivery is a warning in the task's log; a later run tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from airflow.sdk import BaseNotifier, Context

from windowlib.storage.address import store_at
from windowlib.storage.objects import AccessOf
from windowlib.storage.store import Store

CONTEXT = "windowlib"  # the name of the notice in templates


def send(
    message: Mapping[str, Any],
    context: Context,
    warn: Callable[[str, object], None],
    access: AccessOf | None = None,
) -> None:
    """Sends a notice of a command (`windowlib.cli.outcomes.notice_handover`). Records a failed delivery.

    `access` is the way to the warehouse, if it is not the usual one.
    """
    notice = message["notice"]
    try:
        _notify(_notifier(message["notifier"], message["arguments"]), notice, context)
    except Exception as error:  # no error of a notifier changes the outcome of the run
        reason = f"notifier {message['notifier']}: {type(error).__name__}"
        warn("%s", f"not delivered ({notice['situation']} {notice['what']}): {reason}: {error}")
        with suppress(Exception):  # the warning has reported it
            _keep(store_at(message["root"], access), notice, reason)


def _notifier(path: str, arguments: Mapping[str, Any]) -> BaseNotifier:
    module, _, name = path.rpartition(".")
    notifier = getattr(import_module(module), name)(**arguments)
    if not isinstance(notifier, BaseNotifier):
        raise TypeError(f"got {type(notifier).__name__}; need a notifier of Airflow, a BaseNotifier")
    return notifier


def _notify(notifier: BaseNotifier, notice: Mapping[str, Any], context: Context) -> None:
    """Calls a notifier as Airflow does, so that its templates are filled in. Raises errors that Airflow only logs."""
    failed, own = list[Exception](), notifier.notify

    def notify(filled: Context) -> None:
        try:
            own(filled)
        except Exception as error:
            failed.append(error)
            raise

    notifier.notify = notify  # type: ignore[method-assign,assignment]
    notifier(cast(Context, {**context, CONTEXT: dict(notice)}))
    if failed:
        raise failed[0]


def _keep(tables: Store, notice: Mapping[str, Any], reason: str) -> None:
    """Records in the table of notices that a notice was not delivered, unless its situation has a newer notice."""
    from dataclasses import replace

    from windowlib.ledger.notices import reported
    from windowlib.notices.notify import keep

    newest = reported(tables).newest.get(notice["situation"])
    if newest is not None and newest.what == notice["what"]:
        keep(tables, [replace(newest, delivered=False, error=reason)])
