"""A soak: one pipeline on the embedded engine under everything that may happen to it, from a seed.

Real processes of what claims take for two machines run it, rerun ranges, move its watermark and roll it back;
they are killed, stopped and woken at random; files arrive, late ones too; its author edits it; a key is erased, its
tables are maintained, ten batches stay readable; another program compacts its tables or deletes rows, which the
operator takes back. At the end all is let run, and the tables must be what plain Python makes of every row that ever
arrived (`tests.soak.truth`); what was erased must be in no file.

The seed decides what is done; how far each process has come by then is the machine's.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from tests.soak.events import FILE_MS, FORGOTTEN, START_MS, Row, arrive, define
from tests.soak.truth import check_all_windows, check_erased, check_places
from windowlib.definition.instants import iso_instant
from windowlib.runs.exits import DIFFERS, DONE, REJECTED, SUPERSEDED, USER

ROOT = Path(__file__).parents[2]
HOSTS = ("", "elsewhere")  # this machine, and another
AT_ONCE = 3  # processes that are awake
ENDS_IN_S = 600  # a command that takes longer hangs, on a busy machine too
FOREIGN = "DELETE by delta-rs"  # `verify` between another program's change and the run that refuses it
REASON = ("--who", "ann", "--reason", "soak")
# What a command may say when the tables, or what is planned, are not what it was typed for.
FORESEEN = {
    "run": ("was changed by another program",),
    "rerun": ("was changed by another program", "nothing has been run yet", "is different now", "changed since"),
    "advance-watermark": ("nothing has been run", "is planned", "already", "planned meanwhile", "another program"),
    "rollback": ("no batch", "is the newest", "another program"),
    "restore": ("nothing to do", "no way back"),
    "approve": ("no batch", "waits"),
    "abandon": ("no batch", "is planned", "is done or given up", "another program"),
    "verify": ("another program", "nothing is committed"),
    "maintain": ("another program", "nothing is committed"),
    "forget": ("another program", "nothing is committed", "no window", "is not finished"),
}


@dataclass(slots=True)
class Started:
    """A process of a command; `stopped` until a moment, `killed` by us."""

    command: str
    process: subprocess.Popen[bytes]
    output: Path
    began: float
    stopped_until: float | None = None
    killed: bool = False

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")


@dataclass(slots=True)
class Soak:
    """One soak in a folder of its own."""

    folder: Path
    seed: int
    chance: random.Random = field(init=False)
    pipeline: Path = field(init=False)
    rows: list[Row] = field(default_factory=list)
    files: int = 0
    started: list[Started] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    count: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        (self.folder / "incoming").mkdir(parents=True)
        self.pipeline = define(self.folder, self.chance)

    @property
    def tables(self) -> Path:
        return self.folder / "warehouse" / "soak"

    @property
    def kept_rows(self) -> list[Row]:
        """All rows but those of the key that is erased at the end."""
        return [row for row in self.rows if row.user != FORGOTTEN]

    def play(self, seconds: float) -> None:
        """Does one thing after another for so long."""
        until = time.monotonic() + seconds
        doings: dict[Callable[[], object], int] = {
            self.a_file: 30,
            self.a_run: 40,
            self.kill: 12,
            self.stop: 10,
            self.edit: 4,
            self.rerun: 6,
            self.advance_watermark: 3,
            self.roll_back: 4,
            self.optimize: 4,
            self.delete: 3,
            self.abandon: 3,
            self.maintain: 5,
            self.forget: 2,
            self.verify: 2,
        }
        self.a_file()
        while time.monotonic() < until:
            (doing,) = self.chance.choices(list(doings), list(doings.values()))
            doing()
            time.sleep(self.chance.choice((0.0, 0.1, 0.4, 1.0)))
            self.look()

    def end(self) -> None:
        """Lets everything come to its end, runs what is left, and compares with the truth."""
        for one in self.started:
            self.wake(one)
        while self.started:
            time.sleep(0.05)
            self.look()
        for _ in range(20):
            if self.done("run", "--finish", "--wait", "30s") == DONE:
                break
        else:
            raise AssertionError("the pipeline does not come to rest")
        assert self.done("forget", "--key", FORGOTTEN, "--now", "--yes", *REASON) == DONE
        check_erased(self.tables, FORGOTTEN)
        check_places(self.pipeline, self.kept_rows)
        assert self.done("verify") == DONE
        assert self.done("rerun", *self.all_time(), "--yes", *REASON) == DONE
        check_all_windows(self.pipeline, self.kept_rows)
        check_erased(self.tables, FORGOTTEN)

    # -- what happens ---------------------------------------------------------------------------------------------

    def a_file(self) -> None:
        self.files += 1
        self.rows += arrive(self.folder, self.files, self.chance)

    def a_run(self) -> None:
        limit = self.chance.choice(((), (), ("--max-batches", "1")))
        self.start("run", *limit)

    def kill(self) -> None:
        """SIGKILL at a random moment of a process, stopped ones too."""
        if self.started:
            time.sleep(self.chance.random() * 2)
            one = self.chance.choice(self.started)
            one.killed = True
            one.process.kill()

    def stop(self) -> None:
        """SIGSTOP, for longer than a lease or for less."""
        if awake := [one for one in self.started if one.stopped_until is None]:
            time.sleep(self.chance.random() * 2)
            one = self.chance.choice(awake)
            with suppress(ProcessLookupError):
                os.kill(one.process.pid, signal.SIGSTOP)
                one.stopped_until = time.monotonic() + self.chance.choice((0.5, 4.0, 10.0))

    def wake(self, one: Started) -> None:
        if one.stopped_until is not None:
            one.stopped_until = None
            with suppress(ProcessLookupError):
                os.kill(one.process.pid, signal.SIGCONT)

    def edit(self) -> None:
        define(self.folder, self.chance)

    def rerun(self) -> None:
        from_ms = START_MS + self.chance.randrange(self.files) * FILE_MS
        to_ms = from_ms + self.chance.choice((1, 6)) * FILE_MS
        asked = ("--from", iso_instant(from_ms), "--to", iso_instant(to_ms))
        if self.chance.random() < 0.5:
            self.start("rerun", *asked, "--yes", *REASON)
            return
        shown = self.ended("rerun", *asked, "--dry-run", "--json")
        if shown.process.returncode == DONE:
            line = next(line for line in shown.said().splitlines() if line.startswith("{"))
            self.start("rerun", "--apply", json.loads(line)["preview_id"], "--who", "ann")

    def advance_watermark(self) -> None:
        to_ms = START_MS + (self.files - self.chance.randrange(4)) * FILE_MS
        self.start("advance-watermark", "--to", iso_instant(to_ms), "--yes", *REASON)

    def roll_back(self) -> None:
        if batches := self.batches():
            self.start("rollback", "--to-batch", str(self.chance.choice(batches[-4:])), "--yes", *REASON)

    def optimize(self) -> None:
        """Another program compacts a table."""
        name = self.chance.choice(("results", "open_windows", "source_files", "ledger"))
        with suppress(CommitFailedError, TableNotFoundError):
            DeltaTable(self.tables / name).optimize.compact()
            self.outcomes[f"foreign OPTIMIZE of {name}"] += 1

    def delete(self) -> None:
        """Another program deletes rows of results; the operator takes it back."""
        with suppress(CommitFailedError, TableNotFoundError):
            DeltaTable(self.tables / "results").delete(f"\"user\" = '{self.chance.choice(('u0', 'u1'))}'")
            self.outcomes["foreign DELETE"] += 1
        self.start("restore", "--yes", *REASON)

    def abandon(self) -> None:
        self.start("abandon", *REASON)

    def verify(self) -> None:
        self.start("verify")

    def maintain(self) -> None:
        self.start("maintain", "--who", "ann", "--wait", "5s")

    def forget(self) -> None:
        now = self.chance.choice(((), ("--now",)))
        self.start("forget", "--key", FORGOTTEN, *now, "--yes", "--wait", "5s", *REASON)

    # -- processes ------------------------------------------------------------------------------------------------

    def start(self, command: str, *arguments: str) -> Started:
        """Starts a command on one of the machines, once there is room."""
        while sum(one.stopped_until is None for one in self.started) >= AT_ONCE:
            time.sleep(0.05)
            self.look()
        host = self.chance.choice(HOSTS)
        program = ["tests.soak.host", host] if host else ["windowlib"]
        output = self.folder / f"{self.count}.txt"
        self.count += 1
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", *program, command, str(self.pipeline), *arguments],
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        one = Started(command, process, output, time.monotonic())
        self.started.append(one)
        return one

    def kill_all(self) -> None:
        """Leaves no process behind."""
        for one in self.started:
            one.process.kill()
            one.process.wait()

    def done(self, command: str, *arguments: str) -> int:
        """The exit code of a command that is awaited."""
        return self.ended(command, *arguments).process.returncode

    def ended(self, command: str, *arguments: str) -> Started:
        """A command that is awaited."""
        one = self.start(command, *arguments)
        while one in self.started:
            time.sleep(0.02)
            self.look()
        return one

    def look(self) -> None:
        """Wakes who has slept enough; judges how commands have ended."""
        for one in list(self.started):
            if one.stopped_until is not None and time.monotonic() >= one.stopped_until:
                self.wake(one)
            if one.process.poll() is not None:
                self.started.remove(one)
                self.judge(one)
            elif time.monotonic() > one.began + ENDS_IN_S:
                raise AssertionError(f"{one.command} does not end:\n{one.said()}")

    def judge(self, one: Started) -> None:
        """Raises AssertionError where a command has ended as it must not. Decides what waits for an operator."""
        code, said = one.process.returncode, one.said()
        self.outcomes[f"{one.command}: {code}{' (killed)' if one.killed and code < 0 else ''}"] += 1
        if code == -signal.SIGKILL and one.killed:
            return
        foreseen = code == USER and any(words in said for words in FORESEEN.get(one.command, ()))
        foreseen = foreseen or (one.command == "verify" and code == DIFFERS and FOREIGN in said)
        assert code in (DONE, SUPERSEDED, REJECTED) or foreseen, f"{one.command} ended with {code}:\n{said}"
        assert "Traceback" not in said, said
        if code == REJECTED:
            self.start(self.chance.choice(("approve", "abandon")), *REASON)
        elif foreseen and "was changed by another program" in said and one.command != "restore":
            self.start("restore", "--yes", *REASON)

    def batches(self) -> list[int]:
        """The batches that the ledger has committed."""
        from windowlib.batches.planning import ledger_of
        from windowlib.definition.definition import load_definition
        from windowlib.tables.ledger_history import commits_of

        return [commit.batch_id for commit in commits_of(ledger_of(load_definition(self.pipeline)).tables)]

    def all_time(self) -> Sequence[str]:
        from_ms, to_ms = START_MS - 24 * 3_600_000, START_MS + (self.files + 2) * FILE_MS
        return "--from", iso_instant(from_ms), "--to", iso_instant(to_ms)
