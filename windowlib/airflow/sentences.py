"""Expected failures of tasks: the log has one sentence at ERROR, without a traceback.

Airflow logs an exception that ends a task with a traceback of its own code. Such a traceback says nothing about a
mistake in a definition or a source, and hides the sentence. The log of this module's exceptions has no traceback.
"""

from __future__ import annotations

import sys
from typing import Any

import structlog
from airflow.sdk.exceptions import AirflowException, AirflowFailException


class ExpectedFailure(AirflowException):
    """Ends a task with a sentence that explains everything. Airflow tries again."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        _log_sentences()


class FinalFailure(ExpectedFailure, AirflowFailException):
    """Ends a task with a sentence that explains everything. Airflow does not try again, because that would not help."""


def as_sentence(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Log event with the sentence of an `ExpectedFailure` instead of its traceback. Other events stay as they are.

    >>> try:
    ...     raise ExpectedFailure("no such column")
    ... except ExpectedFailure as error:
    ...     as_sentence(None, "error", {"event": "Task failed with exception", "exc_info": error})
    {'event': 'no such column'}
    >>> as_sentence(None, "error", {"event": "Failed", "exc_info": True})
    {'event': 'Failed', 'exc_info': True}
    """
    error_info = event.get("exc_info")
    error = sys.exc_info()[1] if error_info is True else error_info
    if isinstance(error, tuple):
        error = error[1]
    if not isinstance(error, ExpectedFailure):
        return event
    return {name: value for name, value in event.items() if name != "exc_info"} | {"event": str(error)}


def _log_sentences() -> None:
    """Inserts `as_sentence` before Airflow's own log processors, in the list that existing loggers hold."""
    steps = structlog.get_config()["processors"]
    if as_sentence not in steps:
        steps.insert(0, as_sentence)
