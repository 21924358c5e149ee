"""Kills a run at a chosen moment, so that the next run finds its leftovers.

A moment is a text: `write:windows` (Spark is writing), `commit:results` (just before that table's commit),
`row:erasures` (just before a row is added to a table that no batch publishes),
`restore:results` (before `abandon` brings that table back), `ledger:prepare`, `ledger:commit` (just before that row).
Two ways to die:

* `stopped` inside the test's process: nothing after the moment is executed, the claim stays, and its owner is dead.
* `python -m tests.support.killed FOLDER BATCH MOMENT ENGINE`: a process that is ended by SIGKILL, in that batch.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.disks import folder_of
from tests.support.simple_batches import one_by_one
from windowlib.batches.staging import Staging
from windowlib.delta import commits as delta_commits
from windowlib.delta.table_change import FileChange
from windowlib.delta.tables import Table
from windowlib.ledger import lease, ledger, owner
from windowlib.ledger.rows import LedgerState

SOON_S = 0.05
FILES = 3  # of the pipeline that a process runs


class Killed(BaseException):
    """The end of a run that no handler of it sees."""


@contextmanager
def stopped(moment: str) -> Iterator[None]:
    """The block dies at `moment`, as if its process were killed; AssertionError when the moment does not come."""

    def die() -> None:
        raise Killed(moment)

    with dead_owner() as patch:
        patch.setattr(lease, "_release", lambda ledger, claim: None)
        at(patch, moment, die)
        try:
            yield
        except Killed:
            return
        raise AssertionError(f"the run never came to {moment}")


@contextmanager
def dead_owner(host: str | None = None) -> Iterator[pytest.MonkeyPatch]:
    """Claims of the block belong to a process that has ended, or to one on another machine that is silent."""
    here = owner.this_process()
    claiming = replace(here, host=host, boot_id=f"of {host}") if host else replace(here, pid=_unused_pid())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger.owner, "this_process", lambda: claiming)
        yield patch


def at(patch: pytest.MonkeyPatch, moment: str, die: Callable[[], None], batch_id: int | None = None) -> None:
    """Calls `die` when the moment comes (in batch `batch_id`, where one is given)."""
    kind, _, what = moment.partition(":")
    commit, restore = delta_commits.commit_logged, delta_commits.restore
    append, write = ledger.Ledger._append, Staging.write
    one_by_one(patch)

    def committing(table: Table, expected: int, change: FileChange, *identity: Any) -> int:
        ours = len(identity) == 2 and batch_id in (None, identity[1][1])
        if kind == ("commit" if ours else "row") and folder_of(table).name == what:
            die()
        return commit(table, expected, change, *identity)

    def restoring(table: Table, *arguments: Any, **rest: Any) -> int | None:
        if kind == "restore" and folder_of(table).name == what:
            die()
        return restore(table, *arguments, **rest)

    def appending(self: ledger.Ledger, state: LedgerState, *rows: Any) -> None:
        if kind == "ledger" and any(r["kind"] == what and batch_id in (None, r.get("batch_id")) for r in rows):
            die()
        append(self, state, *rows)

    def writing(self: Staging, frame: Any, name: str, *partition_by: str) -> None:
        if kind == "write" and name == what and (batch_id is None or self.attempt.startswith(f"{batch_id}-")):
            die()
        write(self, frame, name, *partition_by)

    patch.setattr(delta_commits, "commit_logged", committing)
    patch.setattr(delta_commits, "restore", restoring)
    patch.setattr(ledger.Ledger, "_append", appending)
    patch.setattr(Staging, "write", writing)


def _unused_pid() -> int:
    return next(pid for pid in range(4_000_000, 1, -1) if not psutil.pid_exists(pid))


def _main(folder: Path, batch_id: int, moment: str, engine: str) -> None:
    """Runs the pipeline in `folder` until the moment, then ends."""
    from tests.support.clicks import clicks, clock
    from tests.support.quick import QUICK
    from windowlib.engines import sail
    from windowlib.engines.spark import session
    from windowlib.runs.advance import advance

    def die() -> None:
        if moment.startswith("write:"):  # let the engine begin
            threading.Timer(SOON_S, os.kill, (os.getpid(), signal.SIGKILL)).start()
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    at(pytest.MonkeyPatch(), moment, die, batch_id)
    settings = {"spark.sql.shuffle.partitions": "2", **QUICK}
    started = sail.session if engine == "sail" else lambda: session("local[2]", settings)
    definition = clicks(folder, FILES).model_copy(update={"engine": engine})
    advance(definition, started, clock=clock)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
