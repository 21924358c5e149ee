"""How a task's log says that its command failed: one sentence at ERROR, where Airflow would add a traceback.

Airflow logs whatever ends a task with the frames of its own code. Those say nothing about a mistake in a definition or
a source, and the sentence is below them. What is raised here is logged without them.
"""

from __future__ import annotations

import sys
from typing import Any

import structlog
from airflow.sdk.exceptions import AirflowException, AirflowFailException


class ExpectedFailure(AirflowException):
    """Ends a task with a sentence that says all there is to know. Airflow tries again."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        _log_sentences()


class FinalFailure(ExpectedFailure, AirflowFailException):
    """The same, and trying again would not help."""


def as_sentence(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """The line of a log about a `ExpectedFailure` error that is being handled: its sentence, and no traceback.

    >>> try:
    ...     raise ExpectedFailure("no such column")
    ... except ExpectedFailure as error:
    ...     as_sentence(None, "error", {"event": "Task failed with exception", "exc_info": error})
    {'event': 'no such column'}
    >>> as_sentence(None, "error", {"event": "Failed", "exc_info": True})
    {'event': 'Failed', 'exc_info': True}
    """
    given = event.get("exc_info")
    error = sys.exc_info()[1] if given is True else given
    if isinstance(error, tuple):
        error = error[1]
    if not isinstance(error, ExpectedFailure):
        return event
    return {name: value for name, value in event.items() if name != "exc_info"} | {"event": str(error)}


def _log_sentences() -> None:
    """Puts `as_sentence` before what Airflow does with each line; in the list itself, which loggers in use hold."""
    steps = structlog.get_config()["processors"]
    if as_sentence not in steps:
        steps.insert(0, as_sentence)
