"""Lease of a pipeline while a run works: a heartbeat keeps the claim alive, and the end of the run releases it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from deltalake.exceptions import DeltaError

from windowlib.delta.commits import Conflict
from windowlib.ledger.ledger import DecidedMeanwhile, Ledger, Superseded
from windowlib.ledger.rows import Claim
from windowlib.model.errors import TryAgain
from windowlib.storage.refusals import CannotWrite

TRIES = 5  # attempts of a step while other programs commit to a table first
T = TypeVar("T")


class Overtaken(TryAgain):
    """Other programs committed to a table first in every attempt, although no other run holds the pipeline."""


@contextmanager
def lease(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """Keeps the claim alive by a heartbeat while the block runs, and releases it at the end.

    The block may release the claim itself, with its last row. Then the ledger refuses the heartbeat and the release.
    A heartbeat that cannot be written is skipped, so one I/O error does not lose the claim.
    """
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(ledger.lease_timeout_ms / 3000):
            try:
                ledger.write({"kind": "heartbeat"}, claim.epoch)
            except Superseded:
                return  # released, or the next write of the run raises it, too
            except Exception:
                continue  # storage may fail for a moment; if it fails for good, the run's own writes raise it

    thread = threading.Thread(target=beat, name="windowlib-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        _release(ledger, claim)


@contextmanager
def superseded_explains(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """Turns any error of the block into `Superseded` if another run took over and removed files of this run."""
    try:
        yield
    except (Superseded, DecidedMeanwhile):
        raise
    except Exception as error:
        current = ledger.state().claim
        if current is not None and current.epoch != claim.epoch:
            raise Superseded("another run took this pipeline over during this run, so this run ends") from error
        raise


@contextmanager
def conflicts_explained(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """Turns a `Conflict` of the block into `Superseded` if another run holds the pipeline now, else into `Overtaken`.

    After `Overtaken`, the operator can repeat the command.
    """
    try:
        yield
    except Conflict as error:
        ledger.check(claim.epoch)
        raise Overtaken(
            f"another program has changed a table while this command ran ({error}): check the table, then start again"
        ) from error


def retry_while_claimed(ledger: Ledger, claim: Claim, step: Callable[[], T]) -> T:
    """Returns the result of `step`. Repeats `step` after a `Conflict`, unless another run has claimed the pipeline.

    `step` reads the tables anew in each attempt. A compaction by another program, or a commit of a superseded run,
    therefore costs an attempt, not the batch. Raises `Superseded`, and `Overtaken` after `TRIES` attempts.
    """
    for _ in range(TRIES - 1):
        try:
            return step()
        except Conflict:
            ledger.check(claim.epoch)
    with conflicts_explained(ledger, claim):
        return step()


@contextmanager
def explained_lease(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """Holds the lease and explains errors of the block: `Superseded` if another run took over, `Overtaken` if other
    programs committed to a table first.
    """
    with lease(ledger, claim), superseded_explains(ledger, claim), conflicts_explained(ledger, claim):
        yield


def _release(ledger: Ledger, claim: Claim) -> None:
    try:
        ledger.write({"kind": "release"}, claim.epoch)
    except Superseded:
        return  # released already, or the run that took over holds the pipeline now
    except (OSError, DeltaError, CannotWrite):
        ledger.mark_forgone(claim)  # this error must not hide the error of the run itself
