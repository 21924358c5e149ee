"""Commands that plan, run, rerun, verify or maintain a pipeline send notices when they end, where `[notify]` says so;
runs keep metrics. The error that a run or a scheduler's plan ends with is kept for the pipeline's pages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windowlib.cli.exits import REJECTED, SUPERSEDED, UNEXPECTED, exit_code, in_a_sentence
from windowlib.cli.outcomes import handed_over, show_note

if TYPE_CHECKING:
    from pathlib import Path

    from windowlib.definition.definition import Definition
    from windowlib.ledger.last_error import Command
    from windowlib.ledger.ledger import Ledger

TRIES_LEFT = "WINDOWLIB_TRIES_LEFT"  # environment variable of a scheduler: how often it tries this again if it fails


@contextmanager
def notifying(
    definition: Definition, is_well: Callable[[], bool] = lambda: True, *, command: Command | None = None
) -> Iterator[None]:
    """Sends the notices of the pipeline when the block has ended, with its error if it raises one.

    `is_well` says whether the end of the block means that nothing fails any more.
    """
    try:
        yield
    except Exception as error:
        notify_of(definition, error, command=command)
        raise
    notify_of(definition, is_well=is_well(), command=command)


@contextmanager
def planning(definition: Definition, is_well: Callable[[], bool]) -> Iterator[None]:
    """As `notifying`, for a plan.

    A plan in a shell may be of a private copy of the definition. Its error is neither kept nor reported, and its
    success ends no error of the pipeline.
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
    """Sends what is due; an error that the caller tries again, or that is another's, is not a failure yet.

    `command`: that whose error is kept for the pages; None: they do not show how this one ended. Where a pipeline
    without tables yet may not have its folder, nothing is kept, and so nothing sent: what lies there is another's.
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
    failed = None if error is None or passes else in_a_sentence(error)
    if notify(definition, CommandOutcome(failed, is_well), wall_clock_ms(), handed_over(definition), show_note):
        keep_metrics(definition)


def _remember(definition: Definition, error: Exception | None, command: Command, *, is_well: bool) -> None:
    """Keeps the error that a command ended with, also one that is tried again; that this fails is a note.

    That another run is at work says nothing; a batch that waits for a decision came past whatever failed before.
    """
    from windowlib.ledger import last_error
    from windowlib.ledger.ledger import wall_clock_ms

    code = None if error is None else exit_code(error)
    try:
        if error is not None and code not in (SUPERSEDED, REJECTED):
            kept = last_error.LastError(command, in_a_sentence(error), wall_clock_ms(), str(definition.file))
            last_error.keep(definition.root, kept)
        elif code != SUPERSEDED:
            over: list[Command] = ["plan", "run"] if is_well or code == REJECTED else ["plan"]
            last_error.clear(definition.root, over)
    except OSError as refused:
        show_note(f"{definition.name}: how this ended could not be kept for its pages: {refused}")


def _has_folder(definition: Definition) -> bool:
    """Whether the pipeline has its tables, or a plan does not refuse the folder that they would be made in."""
    from windowlib.batches.may_run import check_warehouse
    from windowlib.contract.tables import LEDGER
    from windowlib.model.errors import InvalidSpec

    if (definition.root / LEDGER.name).is_dir():
        return True
    try:
        check_warehouse(definition)
    except InvalidSpec:
        return False
    return True


def _tries_left() -> bool:
    return os.environ.get(TRIES_LEFT, "0") not in ("", "0")


def keep_metrics(definition: Definition, ledger: Ledger | None = None) -> None:
    """Brings the gauges of a pipeline up to date; that this fails is a note. `ledger`: that of a run that has ended."""
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.model.errors import WindowError
    from windowlib.pages.metrics import samples, write

    if not definition.root.is_dir():
        return
    try:
        write(samples(definition, wall_clock_ms(), ledger), definition.root)
    except (OSError, WindowError) as error:
        show_note(f"{definition.name}: metrics are not up to date: {error}")


def keep_page(definition: Definition, ledger: Ledger | None = None) -> Path | None:
    """The page of a pipeline, built with its gauges; None where it has no tables yet, or it fails, which is a note."""
    from windowlib.ledger.ledger import wall_clock_ms
    from windowlib.pages.site import report

    if not definition.root.is_dir():
        return None
    try:
        return report(definition, wall_clock_ms() // 1000 * 1000, ledger)
    except Exception as error:  # anything at all: the run has ended as it has
        show_note(f"{definition.name}: its page is not up to date: {in_a_sentence(error)}")
        return None
