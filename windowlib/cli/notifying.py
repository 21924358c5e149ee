"""Notices and metrics at the end of a command.

A command that plans, runs, reruns, verifies or maintains a pipeline sends the notices of `[notify]` when it ends. Runs
also update metrics. The error of a run, or of a plan under a scheduler, is kept for the pipeline's pages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windowlib.cli.exits import REJECTED, SUPERSEDED, UNEXPECTED, error_sentence, exit_code
from windowlib.cli.outcomes import notice_handover, show_note
from windowlib.cli.tracebacks import has_tables

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.ledger.last_error import Command
    from windowlib.ledger.ledger import Ledger

TRIES_LEFT = "WINDOWLIB_TRIES_LEFT"  # environment variable of a scheduler: its number of retries left


@contextmanager
def notifying(
    definition: Definition, is_well: Callable[[], bool] = lambda: True, *, command: Command | None = None
) -> Iterator[None]:
    """Sends the notices of the pipeline when the block ends. Includes the error if the block raises an error.

    `is_well`, called after the block, returns if the block's success ends an earlier failure.
    """
    try:
        yield
    except Exception as error:
        notify_of(definition, error, command=command)
        raise
    notify_of(definition, is_well=is_well(), command=command)


@contextmanager
def planning(definition: Definition, is_well: Callable[[], bool]) -> Iterator[None]:
    """Sends the notices of a pipeline when a plan ends, like `notifying`.

    A plan from a shell may use a private copy of the definition. So its error is neither kept nor reported, and its
    success ends no failure of the pipeline.
    """
    if TRIES_LEFT in os.environ:
        with notifying(definition, is_well, command="plan"):
            yield
    else:
        yield
        notify_of(definition)


def notify_of(
    definition: Definition, error: Exception | None = None, *, is_well: bool = False, command: Command | None = None
) -> None:
    """Sends the notices that are due. An error is no failure if it is retried, or another run or a decision settles it.

    `command` is the command whose error is kept for the pages. With None, no error is kept. If the pipeline has no
    tables and may not use its folder, nothing is kept or sent, because the folder belongs to something else.
    """
    if error is not None and not _has_folder(definition):
        return
    if command:
        _remember(definition, error, command, is_well=is_well)
    if not (definition.notify.has_webhook or definition.notify.airflow):
        return
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.notices.notify import CommandOutcome, notify

    code = None if error is None else exit_code(error)
    passes = code in (SUPERSEDED, REJECTED) or (code == UNEXPECTED and _tries_left())
    failure = None if error is None or passes else error_sentence(error)
    if notify(definition, CommandOutcome(failure, is_well), wall_clock_ms(), notice_handover(definition), show_note):
        update_metrics(definition)


def _remember(definition: Definition, error: Exception | None, command: Command, *, is_well: bool) -> None:
    """Keeps the error of a command, even if the command is retried. If the error cannot be kept, prints a note.

    An error about another run in progress changes nothing. A refused batch proves that earlier errors are over.
    """
    from windowlib.ledger import last_error
    from windowlib.ledger.ledger import wall_clock_ms

    code = None if error is None else exit_code(error)
    try:
        if error is not None and code not in (SUPERSEDED, REJECTED):
            kept = last_error.LastError(command, error_sentence(error), wall_clock_ms(), str(definition.file))
            last_error.keep(definition.store, kept)
        elif code != SUPERSEDED:
            over: list[Command] = ["plan", "run"] if is_well or code == REJECTED else ["plan"]
            last_error.clear(definition.store, over)
    except OSError as refused:
        show_note(f"{definition.name}: the outcome could not be saved for its pages: {refused}")


def _has_folder(definition: Definition) -> bool:
    """Tests if the pipeline has tables, or if a plan would accept the folder for them."""
    from windowlib.batches.may_run import check_warehouse
    from windowlib.model.errors import InvalidSpec

    if has_tables(definition.store):
        return True
    try:
        check_warehouse(definition)
    except InvalidSpec:
        return False
    return True


def _tries_left() -> bool:
    return os.environ.get(TRIES_LEFT, "0") not in ("", "0")


def update_metrics(definition: Definition, ledger: Ledger | None = None) -> None:
    """Updates the gauges of a pipeline, or prints a note on failure. `ledger` is the ledger of a finished run."""
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.model.errors import WindowError
    from windowlib.pages.metrics import samples, write

    if not has_tables(definition.store):
        return
    try:
        write(samples(definition, wall_clock_ms(), ledger), definition.store)
    except (OSError, WindowError) as error:
        show_note(f"{definition.name}: metrics could not be updated: {error}")


def build_page(definition: Definition, ledger: Ledger | None = None) -> str | None:
    """Builds the page and the gauges of a pipeline. Returns the page's address.

    Returns None without tables. On failure, prints a note and returns None.
    """
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.pages.site import report

    if not has_tables(definition.store):
        return None
    try:
        return report(definition, wall_clock_ms() // 1000 * 1000, ledger)
    except Exception as error:  # no error here may change the outcome of the run
        show_note(f"{definition.name}: its page could not be built: {error_sentence(error)}")
        return None
