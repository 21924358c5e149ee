"""A soak: one pipeline on the embedded engine under everything that may happen to it, from a seed.

Real processes of what claims take for two machines run it, rerun ranges, move its watermark and roll it back;
they are killed, stopped and woken at random; files arrive, late ones too; its author edits it, and migrates to another
gap, which is undone, kept, or given up; a key is erased, its tables are maintained, ten batches stay readable; another
program compacts its tables or deletes rows, which the operator takes back. Meanwhile a reader sees windows of one gap.
At the end all is let run, and the tables must be what plain Python makes of every row that ever arrived
(`tests.world.soak.truth`), by the gap that is in force (`tests.world.soak.rules`); what was erased must be in no file.

The seed decides what is done; how far each process has come by then is the machine's.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from tests.support.clicks import START_MS
from tests.world.soak.author import Author
from tests.world.soak.events import FILE_MS, FORGOTTEN, Row, arrive
from tests.world.soak.foreseen import CHANGED, UNDOABLE, check_ended, meets_other_rule, outcome, was_killed
from tests.world.soak.processes import Processes, Started
from tests.world.soak.rules import Rules, ledger_rows, rules_of
from tests.world.soak.truth import (
    check_all_windows,
    check_erased,
    check_followers,
    check_one_rule,
    check_places,
    results,
)
from windowlib.cli.exits import DONE, REJECTED
from windowlib.definition.instants import iso_instant

REASON = ("--who", "ann", "--reason", "soak")
DECIDED = ("--yes", *REASON)


@dataclass(slots=True)
class Soak:
    """One soak in a folder of its own."""

    folder: Path
    seed: int
    chance: random.Random = field(init=False)
    author: Author = field(init=False)
    processes: Processes = field(init=False)
    rows: list[Row] = field(default_factory=list)
    files: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        (self.folder / "incoming").mkdir(parents=True)
        self.author = Author(self.folder, self.chance)
        self.processes = Processes(self.folder, self.chance)

    @property
    def pipeline(self) -> Path:
        return self.author.file

    @property
    def tables(self) -> Path:
        return self.folder / "warehouse" / "soak"

    @property
    def rules(self) -> Rules:
        """Gap in force by the ledger. Raises AssertionError for forbidden rows."""
        return rules_of(ledger_rows(self.tables))

    @property
    def gap_ms(self) -> int:
        found = self.rules.gap_ms
        assert found is not None, "something was run"
        return found

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
            self.processes.kill: 12,
            self.processes.stop: 10,
            self.author.edit: 4,
            self.rerun: 6,
            self.advance_watermark: 3,
            self.roll_back: 4,
            self.optimize: 4,
            self.delete: 3,
            self.abandon: 3,
            self.maintain: 5,
            self.forget: 2,
            self.verify: 2,
            self.migrate: 12,
            self.undo: 3,
            self.finish: 3,
            self.read: 4,
        }
        self.a_file()
        while time.monotonic() < until:
            (doing,) = self.chance.choices(list(doings), list(doings.values()))
            doing()
            time.sleep(self.chance.choice((0.0, 0.1, 0.4, 1.0)))
            self.look()

    def end(self, *, rerun: bool = True) -> None:
        """Lets all processes end, runs the rest, and compares with the truth; `rerun`: all time again."""
        self.processes.wake_all()
        while self.processes.started:
            time.sleep(0.05)
            self.look()
        self.migrations_end()
        for _ in range(20):
            if self.done("run", "--finish", "--wait", "30s") == DONE:
                break
        else:
            raise AssertionError("the pipeline does not come to rest")
        if self.outcomes["forget: 0"]:
            assert not [window for window in results(self.pipeline) if window.user == FORGOTTEN], "the key is back"
        assert self.done("forget", "--key", FORGOTTEN, "--now", *DECIDED) == DONE
        check_erased(self.tables, FORGOTTEN)
        check_places(self.pipeline, self.kept_rows, self.gap_ms)
        check_followers(self.pipeline)
        assert self.done("verify") == DONE
        self.migrate_at_the_end()
        if rerun:
            assert self.done("rerun", *self.all_time(), *DECIDED) == DONE
            check_all_windows(self.pipeline, self.kept_rows, self.gap_ms)
            check_followers(self.pipeline)
            check_erased(self.tables, FORGOTTEN)

    def migrations_end(self) -> None:
        """Abandons, undoes or keeps unfinished migrations."""
        for _ in range(20):
            self.follow()
            if self.rules.migration:
                self.done("migrate", self.chance.choice(("--undo", "--finish")), *DECIDED)
            elif not (self.tables / "_migration").exists() or self.done("migrate", "--undo", *DECIDED) == DONE:
                return

    def migrate_at_the_end(self) -> None:
        """All of the past under another gap is as from scratch, and, where that is undone, as it was."""
        before, gap_ms = results(self.pipeline), self.gap_ms
        self.author.change(gap_ms)
        assert self.done("migrate", *DECIDED, file=self.author.begun and self.author.begun[0]) == DONE
        assert self.gap_ms != gap_ms
        check_all_windows(self.pipeline, self.kept_rows, self.gap_ms)
        check_followers(self.pipeline)
        check_erased(self.tables, FORGOTTEN)
        if self.chance.random() < 0.5:
            assert self.done("migrate", "--undo", *DECIDED) == DONE
            assert results(self.pipeline) == before
        else:
            assert self.done("migrate", "--finish", *DECIDED) == DONE

    # -- what happens ---------------------------------------------------------------------------------------------

    def a_file(self) -> None:
        self.files += 1
        self.rows += arrive(self.folder, self.files, self.chance)

    def a_run(self) -> None:
        limit = self.chance.choice(((), (), ("--max-batches", "1")))
        self.start("run", *limit)

    def rerun(self) -> None:
        from_ms = START_MS + self.chance.randrange(self.files) * FILE_MS
        to_ms = from_ms + self.chance.choice((1, 6)) * FILE_MS
        asked = ("--from", iso_instant(from_ms), "--to", iso_instant(to_ms))
        if self.chance.random() < 0.5:
            self.start("rerun", *asked, *DECIDED)
            return
        shown = self.ended("rerun", *asked, "--dry-run", "--json")
        if shown.code == DONE:
            line = next(line for line in shown.said().splitlines() if line.startswith("{"))
            self.start("rerun", "--apply", json.loads(line)["preview_id"], "--who", "ann")

    def advance_watermark(self) -> None:
        to_ms = START_MS + (self.files - self.chance.randrange(4)) * FILE_MS
        self.start("advance-watermark", "--to", iso_instant(to_ms), *DECIDED)

    def roll_back(self) -> None:
        if batches := self.batches():
            self.start("rollback", "--to-batch", str(self.chance.choice(batches[-4:])), *DECIDED)

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
        self.start("restore", *DECIDED)

    def abandon(self) -> None:
        self.start("abandon", *REASON)

    def verify(self) -> None:
        self.start("verify")

    def maintain(self) -> None:
        self.start("maintain", "--who", "ann", "--wait", "5s")

    def forget(self) -> None:
        now = self.chance.choice(((), ("--now",)))
        self.start("forget", "--key", FORGOTTEN, *now, "--yes", "--wait", "5s", *REASON)

    # -- migrations -----------------------------------------------------------------------------------------------

    def migrate(self) -> None:
        """The author migrates to another gap; or the command of a migration that was begun is given again."""
        in_force_ms = self.rules.gap_ms
        if in_force_ms is None:
            return
        if self.author.begun is None or self.chance.random() < 0.15:
            self.author.change(in_force_ms)
        self.migrate_again(*self.chance.choice((DECIDED, DECIDED, DECIDED, ("--dry-run",))))

    def migrate_again(self, *arguments: str) -> None:
        if self.author.begun:
            self.start("migrate", *arguments, "--wait", "5s", file=self.author.begun[0])

    def undo(self) -> None:
        self.start("migrate", "--undo", *DECIDED, "--wait", "5s")

    def finish(self) -> None:
        self.start("migrate", "--finish", *DECIDED)

    def follow(self) -> None:
        """The author puts the gap that is in force into the definition."""
        if (in_force_ms := self.rules.gap_ms) is not None:
            self.author.follow(in_force_ms)

    def read(self) -> None:
        check_one_rule(self.tables, self.rows)
        self.outcomes["read"] += 1

    # -- processes ------------------------------------------------------------------------------------------------

    def start(self, command: str, *arguments: str, file: Path | None = None) -> Started:
        """Starts a command on one of the machines once there is room, with another definition if a file is given."""
        while self.processes.are_many:
            time.sleep(0.05)
            self.look()
        return self.processes.start(command, file or self.pipeline, *arguments)

    def done(self, command: str, *arguments: str, file: Path | None = None) -> int:
        """The exit code of a command that is awaited."""
        return self.ended(command, *arguments, file=file).code

    def ended(self, command: str, *arguments: str, file: Path | None = None) -> Started:
        """A command that is awaited."""
        one = self.start(command, *arguments, file=file)
        while one in self.processes.started:
            time.sleep(0.02)
            self.look()
        return one

    def look(self) -> None:
        """Checks the ends of commands, and starts the next actions."""
        for one in self.processes.ended():
            self.outcomes[outcome(one)] += 1
            check_ended(one)
            if not was_killed(one):
                self.follow_up(one)

    def follow_up(self, one: Started) -> None:
        """Decides on waiting batches, and on a definition that is not in force."""
        said = one.said()
        if one.command.startswith("migrate"):
            if one.code == REJECTED:
                self.migrate_again("--approve", *DECIDED)
            elif one.code == DONE and "Nothing was switched" not in said:
                self.follow()
        elif one.code == REJECTED:
            self.start(self.chance.choice(("approve", "abandon")), *REASON)
        elif meets_other_rule(one):
            self.chance.choice((self.follow, lambda: self.migrate_again(*DECIDED), lambda: None))()
        elif one.code != DONE and CHANGED in said and one.command != "restore":
            self.start("restore", *DECIDED)
        elif one.code != DONE and UNDOABLE in said:
            self.chance.choice((self.undo, self.finish))()

    def batches(self) -> list[int]:
        """The batches that the ledger has committed."""
        return [*self.rules.gaps]

    def all_time(self) -> Sequence[str]:
        from_ms, to_ms = START_MS - 24 * 3_600_000, START_MS + (self.files + 2) * FILE_MS
        return "--from", iso_instant(from_ms), "--to", iso_instant(to_ms)
