"""A played pipeline: its folder, the past actions of its author and operators, and its command line."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.support.killed import Killed, at, dead_owner
from tests.world.mixed_operations.drawn import FUNCTION, Drawn, pipeline
from tests.world.mixed_operations.foreseen import check_ended
from tests.world.mixed_operations.incoming import Incoming
from tests.world.random_pipelines.truth import Row
from windowlib.cli.main import app
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.engines import choice
from windowlib.ledger import lease
from windowlib.publication.readers import UnknownTable, read_table

WHY = ("--reason", "why not", "--who", "ann")
YES = ("--yes", *WHY)
KILLS = 0.2  # how likely a command is killed
KILLED = -1  # the exit code of a command that was killed
STEPS = 14  # of a command that can be killed: about as many as a batch has
MOMENTS = (
    *(f"ledger:{kind}" for kind in ("claim", "plan", "prepare", "commit", "abandon", "migrate_finish")),
    *(f"commit:{table}" for table in ("source_files", "open_windows", "late_events", "quarantine", "seen_ids")),
    *(f"commit:{table}" for table in ("watermarks", "run_metrics", "dq_results", "results", "result_changes")),
    *("row:erasures", "row:maintenance", "write:windows", "write:difference", "write:feed", "restore:results"),
)


@dataclass(slots=True)
class World:
    """One pipeline and its past; `moves` are the operations on all pipelines over the same files.

    `half` are keys whose erasure was killed, `aside` files that cannot be read and were set aside. `recut`: batches are
    not cut by file alone, or something was done between them that the same files in a new pipeline would not meet.
    """

    incoming: Incoming
    seed: int
    engine: str
    name: str = "mixed"
    drawn: Drawn = field(init=False)
    erased: set[str] = field(default_factory=set)
    half: set[str] = field(default_factory=set)
    aside: set[str] = field(default_factory=set)
    recut: bool = False
    before_migration: str | None = None
    adopted: set[int] = field(default_factory=set)  # batches that keep what another program deleted
    restarts: int = 0  # how often followers had to begin again without a row that says so
    silent: bool = False  # an erasure without such rows was killed: a later batch may publish it
    moves: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)  # command and exit code, or that it was killed
    others: list[World] = field(default_factory=list)  # that read the same files

    def __post_init__(self) -> None:
        self.drawn = pipeline(self.seed, self.engine, self.name)
        (self.folder / "own.py").write_text(FUNCTION, encoding="utf-8")
        self.write(self.drawn.text)
        self.recut = "max_files_per_run = 1\n" not in self.drawn.text or "idle_timeout" in self.drawn.text

    def next_to_it(self) -> World:
        """Another pipeline over the same files, which gets the same operations."""
        other = World(self.incoming, self.seed, self.engine, "second", moves=self.moves, outcomes=self.outcomes)
        self.others, other.others = [other], [self]
        return other

    @property
    def readers(self) -> tuple[World, ...]:
        """All pipelines over these files, this one first."""
        return (self, *self.others)

    # -- the definition and the source ----------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        return self.incoming.folder

    @property
    def chance(self) -> random.Random:
        return self.incoming.chance

    @property
    def file(self) -> Path:
        return self.folder / f"{self.name}.toml"

    @property
    def definition(self) -> Definition:
        return load_definition(self.file)

    def write(self, text: str) -> None:
        """The author's definition is this from now on."""
        self.drawn.text = text
        self.file.write_text(text, encoding="utf-8")

    def arrive(self, *, readable: bool = True) -> str:
        """One more file of the source; its name."""
        name = self.incoming.arrive()
        if not readable:
            self.incoming.cut_off(name)
        self.moves.append(f"{name} arrives{'' if readable else ', cut off'}")
        return name

    # -- the tables -----------------------------------------------------------------------------------------------

    def rows(self, table: str) -> list[dict[str, Any]]:
        """A table as of the newest batch, as any reader gets it."""
        try:
            return read_table(self.definition, table).to_pylist()
        except UnknownTable:
            return []

    def read(self) -> dict[str, tuple[Row, ...]]:
        """The files that were read, in the order of arrival, each with the rows that it had then."""
        rows = sorted(self.rows("source_files"), key=lambda row: int(row["sequence"]))
        return {Path(row["path"]).name: self.incoming.contents[row["sha256"]] for row in rows}

    def other_now(self) -> dict[str, tuple[Row, ...]]:
        """The files that were read and have other rows now, or are gone; each with the rows that it had then."""
        read, incoming = self.read(), self.incoming
        return {
            name: rows for name, rows in read.items() if incoming.contents.get(str(incoming.checksum(name))) != rows
        }

    def ledger(self) -> list[dict[str, Any]]:
        return sorted(self.rows("ledger"), key=lambda row: int(row["sequence"]))

    def is_begun(self) -> bool:
        """Tests if the next command has a batch to finish first."""
        kinds = [row["kind"] for row in self.ledger()]
        return any(kind in ("plan", "prepare") for kind in takewhile(lambda kind: kind != "commit", reversed(kinds)))

    def commits(self) -> list[dict[str, Any]]:
        """The ledger's commit rows, each with its decision as a dictionary."""
        rows = (row for row in self.ledger() if row["kind"] == "commit")
        return [{**row, "decision": json.loads(row["decision"] or "{}")} for row in rows]

    # -- commands -------------------------------------------------------------------------------------------------

    def command(self, words: str, *arguments: object, killed: float = 0.0) -> int:
        """The exit code of a command, which may be killed at some step: so likely. Raises AssertionError where it ends
        as it must not."""
        step = self.chance.randrange(STEPS) if self.chance.random() < killed else None
        asked = [*words.split(), str(self.file), *map(str, arguments)]
        self.moves.append(
            " ".join([words, self.name, *map(str, arguments)])
            + (f", to be killed at step {step}" if step is not None else "")
        )
        try:
            result = self._called(asked, step)
        except Killed:
            self.moves[-1] += ", and was"
            self.outcomes[f"{words}: killed"] += 1
            return KILLED
        self.moves[-1] += f": {result.exit_code} {result.output.strip()[-300:]}"
        self.outcomes[f"{words}: {result.exit_code}"] += 1
        check_ended(words, result, changed=self._changed)
        return result.exit_code

    def _changed(self) -> bool:
        """Tests if a file that was read has other rows now, or is gone."""
        return any(one.other_now() for one in self.readers)

    def given_again(self, words: str, *arguments: str) -> int:
        """The exit code of a decision that is given again where it was killed."""
        code = self.command(words, *arguments, *YES, killed=KILLS)
        return self.command(words, *arguments, *YES) if code == KILLED else code

    def said(self, words: str, *arguments: object) -> dict[str, Any] | None:
        """Output of a command with `--json`; None if it is refused."""
        result = self._called([*words.split(), str(self.file), *map(str, arguments), "--json"], None)
        self.moves.append(f"{words} {' '.join(map(str, arguments))}: {result.exit_code}")
        check_ended(words, result, changed=self._changed)
        lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
        return json.loads(lines[-1]) if lines and result.exit_code == 0 else None

    def _called(self, arguments: Iterable[str], step: int | None) -> Result:
        """Raises `Killed` at the step at which the command is killed."""
        with ExitStack() as stack:
            patch = stack.enter_context(dead_owner() if step is not None else pytest.MonkeyPatch.context())
            patch.setattr(choice, "refusal", _refusal)
            if step is not None:
                patch.setattr(lease, "_release", lambda ledger, claim: None)
                _die_at(step, patch)
            return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200"})


def _die_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """Kills the command at a moment of `MOMENTS`, after `step` earlier ones."""
    left = iter(range(step))

    def die() -> None:
        if next(left, None) is None:
            raise Killed

    for moment in MOMENTS:
        at(patch, moment, die)


def _refusal(source: Source, uses: Uses, refusal: Callable[..., str | None] = choice.refusal) -> str | None:
    """Sail computes the operator's windows, too, of such simple values as there are here."""
    return refusal(source, replace(uses, runs_operator=False))
