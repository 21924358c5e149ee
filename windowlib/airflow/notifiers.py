"""Notices by Airflow's own notifiers: `notify.airflow` names one, made with `notify.arguments`.

The arguments are templates of Airflow, where the notifier has them so, with the notice as `windowlib`:
`"{{ windowlib.sentence }}"`. A delivery that fails is a warning in the task's log, and is tried again by a later run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from airflow.sdk import BaseNotifier, Context

CONTEXT = "windowlib"  # the name of the notice in templates


def send(handed: Mapping[str, Any], context: Context, warn: Callable[[str, object], None]) -> None:
    """Sends what a command has handed over (`windowlib.cli.outcomes.notice_handover`); keeps it where that fails."""
    notice = handed["notice"]
    try:
        _notify(_notifier(handed["notifier"], handed["arguments"]), notice, context)
    except Exception as error:  # whatever a notifier fails at, the run is what it is
        reason = f"notifier {handed['notifier']}: {type(error).__name__}"
        warn("%s", f"not delivered ({notice['situation']} {notice['what']}): {reason}: {error}")
        with suppress(Exception):  # the warning has said it
            _keep(Path(handed["root"]), notice, reason)


def _notifier(path: str, arguments: Mapping[str, Any]) -> BaseNotifier:
    module, _, name = path.rpartition(".")
    made = getattr(import_module(module), name)(**arguments)
    if not isinstance(made, BaseNotifier):
        raise TypeError(f"need a notifier of Airflow, a BaseNotifier, got {type(made).__name__}")
    return made


def _notify(notifier: BaseNotifier, notice: Mapping[str, Any], context: Context) -> None:
    """Airflow's own way to call a notifier, which fills its templates in; it logs an error, which is raised here."""
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


def _keep(root: Path, notice: Mapping[str, Any], reason: str) -> None:
    """Says in the table that it was not delivered, unless something newer about it is there."""
    from dataclasses import replace

    from windowlib.ledger.notices import reported
    from windowlib.notices.notify import keep

    newest = reported(root).newest.get(notice["situation"])
    if newest is not None and newest.what == notice["what"]:
        keep(root, [replace(newest, delivered=False, error=reason)])
