"""Holding a pipeline while a run works: a heartbeat keeps the claim alive, the end of the run releases it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError

from windowlib.tables.delta_commits import Conflict
from windowlib.tables.disk import CannotWrite
from windowlib.tables.ledger import Ledger, Superseded
from windowlib.tables.ledger_rows import Claim


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
    except Superseded:
        raise
    except Exception as error:
        current = ledger.state().claim
        if current is not None and current.epoch != claim.epoch:
            raise Superseded(
                "another run took this pipeline over while this one was working; this one leaves"
            ) from error
        raise


@contextmanager
def deciding(ledger: Ledger, claim: Claim) -> Iterator[None]:
    """As `lease`, for an operator's command: raises `Superseded` where another run or program was faster."""
    with lease(ledger, claim), superseded_explains(ledger, claim):
        try:
            yield
        except Conflict as error:
            raise Superseded(f"another run or program has changed a table meanwhile ({error}): look again") from error


def _release(ledger: Ledger, claim: Claim) -> None:
    try:
        ledger.write({"kind": "release"}, claim.epoch)
    except Superseded:
        return  # the run that took over holds it now
    except (OSError, DeltaError, CannotWrite):
        ledger.forgo(claim)  # how the run itself ended must not be hidden
