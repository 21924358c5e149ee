"""Holding a pipeline while a run works: a heartbeat keeps the claim alive, the end of the run releases it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from deltalake.exceptions import DeltaError

from windowlib.delta.commits import Conflict
from windowlib.delta.disk import CannotWrite
from windowlib.ledger.ledger import DecidedMeanwhile, Ledger, Superseded
from windowlib.ledger.rows import Claim
from windowlib.model.errors import TryAgain

TRIES = 5  # where another program is faster with a table
T = TypeVar("T")


class Overtaken(TryAgain):
    """Another program was faster with a table, again and again, although no other run holds the pipeline."""


@contextmanager
def lease(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """Keeps the claim alive by a heartbeat while the block runs, and releases it at its end.

    A heartbeat that cannot be written is tried again at the next, so one I/O error does not lose the claim.
    """
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(ledger.lease_timeout_ms / 3000):
            try:
                ledger.write({"kind": "heartbeat"}, claim.epoch)
            except Superseded:
                return  # the next write of the run itself will say so
            except Exception:
                continue  # storage that fails for a moment; where it fails for good, the run's own writes say so

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
    """Raises `Superseded` for any error of a run that was taken over: its files were removed while it worked."""
    try:
        yield
    except (Superseded, DecidedMeanwhile):
        raise
    except Exception as error:
        current = ledger.state().claim
        if current is not None and current.epoch != claim.epoch:
            raise Superseded(
                "another run took this pipeline over while this one was working; this one leaves"
            ) from error
        raise


@contextmanager
def conflicts_explained(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """Raises for a `Conflict` of the block `Superseded`, where another run holds the pipeline by now, else `Overtaken`.

    The other program may be done already: then nothing but this process is at work, and it is to be started again.
    """
    try:
        yield
    except Conflict as error:
        ledger.check(claim.epoch)
        raise Overtaken(f"another program has changed a table meanwhile ({error}): look, and start again") from error


def again_while_ours(ledger: Ledger, claim: Claim, step: Callable[[], T]) -> T:
    """What `step` gives, which looks at the tables each time: again after a `Conflict`, while the claim holds.

    So a compaction by another program, or a run that slept and was taken over, costs a second look, not the batch.
    Raises `Superseded`, and `Overtaken` after `TRIES`.
    """
    for _ in range(TRIES - 1):
        try:
            return step()
        except Conflict:
            ledger.check(claim.epoch)
    with conflicts_explained(ledger, claim):
        return step()


@contextmanager
def deciding(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """As `lease`, for an operator's command: raises `Superseded` where another run was faster, `Overtaken` where
    another program was.
    """
    with lease(ledger, claim), superseded_explains(ledger, claim), conflicts_explained(ledger, claim):
        yield


def _release(ledger: Ledger, claim: Claim) -> None:
    try:
        ledger.write({"kind": "release"}, claim.epoch)
    except Superseded:
        return  # the run that took over holds it now
    except (OSError, DeltaError, CannotWrite):
        ledger.forgo(claim)  # how the run itself ended must not be hidden
