"""Actors on one pipeline, interleaved step by step: a schedule explorer without Spark.

Every actor is the real code in a thread of its own. Before each of its steps (`STEPS`: whatever reads or writes a log,
a prepare file or the ledger) it waits until the schedule lets it go on, so only one of them moves at a time and a
seed gives the same schedule each time. No actor can distinguish a sleeping one from a dead one: every claim may be
taken over, which is worse than anything that lease and heartbeat allow. Only what a batch computes is simple
(`tests.world.schedules.pipeline`).

A power cut takes away what was not made to last: a file that was not flushed may be empty afterwards, and one whose
folder was not flushed since it was made there may be gone.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.simple_batches import before_each_step
from tests.world.schedules.pipeline import computed, held_in_source, not_compared, recomputed
from windowlib.batches import batch
from windowlib.delta import checkpoints
from windowlib.erasure import forget
from windowlib.ledger import retained_batches as kept
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rows import Claim, LedgerState
from windowlib.maintenance import compaction
from windowlib.migrations import switch, undo
from windowlib.quality import check
from windowlib.quality.check import CheckResult
from windowlib.reruns import batch as rerun
from windowlib.runs import attempt
from windowlib.storage import disk as storage_disk

MOVES_AT_MOST = 3_000  # of one schedule: more means that an actor never ends
MOVES_OF_A_RUN = 250  # about as many as a run of two batches takes
REFUSING = "run whose checks refuse"  # the name of the actor
REFUSAL = CheckResult("events", "rows", "critical", "Every row is liked.", False, "0", "1")


class Killed(BaseException):
    """Error that ends an actor past all its handlers."""


@dataclass(slots=True)
class Actor:
    """An actor on the pipeline. `error` is how it ended, where not as it should."""

    name: str
    act: Callable[[], object]
    priority: float
    refuses: bool = False  # its checks refuse every batch
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None
    killed: bool = False
    ended: bool = False
    began: int = 0  # how many moves there had been
    epoch: int = 0  # of its newest claim
    error: BaseException | None = None


class Explorer:
    """One schedule of several actors, drawn from a seed; `watch` looks at the tables between any two steps.

    The actor of the highest priority moves; now and then one loses its priority, or is killed (as often as `kills`
    says), so that a few changes at the worst moments are as likely as many.
    """

    def __init__(self, seed: int, watch: Callable[[], None], kills: int = 0, power_cut: bool = False) -> None:
        self.random, self.watch, self.kills = random.Random(seed), watch, kills
        self.moves_left = self.random.randint(1, MOVES_OF_A_RUN) if power_cut else MOVES_AT_MOST
        self.power_cut = power_cut
        self.actors: list[Actor] = []
        self.moves: list[str] = []
        self._movers: list[Actor] = []
        self._moved = threading.Semaphore(0)
        self._by_thread: dict[int, Actor] = {}

    def add(self, name: str, act: Callable[[], object]) -> None:
        self.actors.append(Actor(name, act, self.random.random(), refuses=name == REFUSING))

    def judged(self) -> list[CheckResult]:
        """Outcome of the checks of the moving actor."""
        actor = self._by_thread.get(threading.get_ident())
        return [REFUSAL] if actor and actor.refuses else []

    def claimed(self, epoch: int) -> None:
        """Called when the actor that moves has claimed the pipeline."""
        if actor := self._by_thread.get(threading.get_ident()):
            actor.epoch = epoch

    def is_alone(self, epoch: int) -> bool:
        """Tests if the moving actor was alone on the ledger: no other actor lived at the same time and took over.

        `epoch` is that of the newest claim. One that was killed does not count, unless the claim is its.
        """
        actor = self._by_thread[threading.get_ident()]
        others = (one for one in self._movers[actor.began :] if one is not actor and not one.killed)
        return epoch == actor.epoch and not any(not one.name.startswith("foreign") for one in others)

    def step(self, what: str) -> None:
        """Called by an actor before each step: waits for its turn. Other threads pass."""
        actor = self._by_thread.get(threading.get_ident())
        if actor is None:
            return
        if not actor.killed:
            self.moves.append(f"{actor.name}: {what}")
            self._moved.release()
            actor.go.acquire()
        if actor.killed:
            raise Killed

    def run(self) -> None:
        """Moves the actors until all have ended, or the power fails. Raises the first error of one, or of `watch`."""
        for actor in self.actors:
            actor.thread = threading.Thread(target=self._live, args=(actor,), daemon=True)
            actor.thread.start()
            self._moved.acquire()
        try:
            for _ in range(self.moves_left):
                alive = [actor for actor in self.actors if not actor.ended]
                if not alive:
                    break
                self._move(max(alive, key=lambda actor: actor.priority))
                self.watch()
            else:
                assert self.power_cut, f"not ended after {MOVES_AT_MOST} moves"
        finally:
            for actor in self.actors:
                while not actor.ended:
                    actor.killed = True
                    self._go(actor)
        for actor in self.actors:
            if actor.error:
                raise actor.error

    def _move(self, actor: Actor) -> None:
        if actor not in self._movers:
            actor.began = len(self._movers)
        self._movers.append(actor)
        drawn = self.random.random()
        if drawn < 0.04:
            actor.priority = -self.random.random()
        elif drawn < 0.06 and self.kills:
            self.kills -= 1
            actor.killed = True
            self.moves.append(f"{actor.name}: killed")
        self._go(actor)

    def _go(self, actor: Actor) -> None:
        actor.go.release()
        self._moved.acquire()

    def _live(self, actor: Actor) -> None:
        self._by_thread[threading.get_ident()] = actor
        try:
            self.step("begins")
            actor.act()
        except Killed:
            pass
        except BaseException as error:
            actor.error = error
        finally:
            del self._by_thread[threading.get_ident()]  # the system gives this number to a later thread
            actor.ended = True
            self._moved.release()


@dataclass(slots=True)
class VolatileDisk:
    """Contents of a folder that survive a power cut: contents of files, and names in folders."""

    root: Path
    synced: set[int] = field(default_factory=set)  # files by their number: a second name is the same file
    named: dict[Path, int] = field(default_factory=dict)  # which file, by its number, has the name

    def keep(self) -> None:
        """Marks all present files as durable."""
        found = [self.root, *self.root.rglob("*")]
        self.synced = {file.stat().st_ino for file in found if file.is_file()}
        self.named = {path: path.stat().st_ino for path in found}

    def flush(self, path: Path) -> None:
        """A file, or the names in a folder, are made to last."""
        about = path.stat()
        if path.is_dir():
            self.named.update({one: number for one in path.iterdir() if (number := _number(one))})
        else:
            self.synced.add(about.st_ino)

    def cut(self, chance: random.Random, spared: Collection[Path] = ()) -> None:
        """Cuts the power: some files that were not synced are empty, some are gone; none of `spared`."""
        files = (file for file in self.root.rglob("*") if file.is_file() and file not in spared)
        gone: dict[Path, bool] = {}
        for file in sorted(files, key=lambda file: file.stat().st_mtime_ns):  # names are not the same each time
            ways = [*reversed([one for one in file.parents if one.is_relative_to(self.root)]), file]
            lost = next((one for one in ways if self.named.get(one) != _number(one)), None)
            if lost is not None and lost not in gone:
                gone[lost] = chance.random() < 0.5
            if lost is not None and gone[lost]:
                file.unlink()
            elif _number(file) not in self.synced and chance.random() < 0.5:
                file.write_bytes(b"")


def _number(path: Path) -> int | None:
    """Identity of a file among files of its name; None if it has gone."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


@contextmanager
def explored(explorer: Explorer, safe: VolatileDisk, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within the block, steps wait for the schedule, batches need no engine, and no claim protects."""
    before_each_step(explorer.step, patch, explorer.random.shuffle)

    def is_free(ledger: Ledger, claim: Claim, *_: Any) -> bool:
        return True

    claim = Ledger.claim

    def claiming(ledger: Ledger, *rest: Any) -> tuple[LedgerState, Claim]:
        before, made = claim(ledger, *rest)
        explorer.claimed(made.epoch)
        return before, made

    patch.setattr(Ledger, "claim", claiming)
    patch.setattr(storage_disk, "flush", safe.flush)
    patch.setattr(Ledger, "_is_free", is_free)
    patch.setattr(batch, "compute", computed)
    patch.setattr(rerun, "compute", recomputed)
    patch.setattr(forget, "source_holdings", held_in_source)
    patch.setattr(switch, "difference", not_compared)
    patch.setattr(undo, "difference", not_compared)
    patch.setattr(attempt, "_judged", lambda *_: explorer.judged())
    patch.setattr(check, "preload", lambda: None)
    for what in ("CLOSED", "OPEN", "OPEN_DAY"):
        patch.setattr(compaction, what, 2)
    patch.setattr(checkpoints, "ENTRIES", 2)
    patch.setattr(kept, "READING_MS", 0)  # no reader but the runs themselves
    yield
