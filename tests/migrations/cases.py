"""Random migrations, one from each seed: a pipeline, a change of its definition, kills, files that arrive meanwhile.

A case migrates, may undo that or keep it, and runs what is left. Each of its commands is killed at one of its steps, or
none, and given again. At each kill readers must see the tables from before or after, whole. In the end these are as
those of a fresh pipeline under the definition that is in force then, over the same files in the same batches.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, MINUTE_MS, START_MS, arrive, clicks, clock
from tests.support.killed import stopped
from windowlib.definition.definition import Definition
from windowlib.ledger.migration import migrations
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.switch import build, switch
from windowlib.migrations.undo import finish, finish_prepared, tidy, undo
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

ASKED = MigrationRequest("ann", "a case", clock)
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("id", "user", "shop")]
    + [(name, pa.int64()) for name in ("at_ms", "sent_ms", "value")]
)
OUTCOME = ("results", "open_windows", "late_events", "quarantine", "seen_ids")
BEGUN = CLICKS.replace("max_files_per_run = 1\n", "max_files_per_run = 0\n").replace('"5m"', '"20m"')
SESSION = 'type = "session"\ngap = "10m"'
TUMBLING = 'type = "tumbling"\nsize = "30m"'
SLIDING = 'type = "sliding"\nsize = "40m"\nslide = "20m"'
COUNT = 'trigger = {type = "count", n = %d}\n'


def window(text: str) -> str:
    return BEGUN.replace(SESSION, text)


CHANGES = {  # the definition before and after
    "gap": (BEGUN, BEGUN.replace('gap = "10m"', 'gap = "25m"')),
    "size": (window(TUMBLING), window(TUMBLING.replace("30m", "1h"))),
    "slide": (window(SLIDING), window(SLIDING.replace('slide = "20m"', 'slide = "10m"'))),
    "key": (BEGUN, BEGUN.replace('key = ["user"]', 'key = ["shop"]')),
    "more key": (window(TUMBLING), window(TUMBLING).replace('key = ["user"]', 'key = ["user", "shop"]')),
    "time": (BEGUN, BEGUN.replace('timestamp = "at_ms"', 'timestamp = "sent_ms"')),
    "trigger": (window(TUMBLING + "\n" + COUNT % 3), window(TUMBLING + "\n" + COUNT % 2)),
    "kind": (window(SLIDING), BEGUN),
}
BUILDING = ("write:windows", "ledger:prepare", "commit:open_windows", "commit:results", "ledger:commit")
SWITCHING = (
    *(
        "write:feed",
        "ledger:claim",
        "ledger:prepare",
        "commit:source_files",
        "commit:open_windows",
        "commit:run_metrics",
    ),
    *("commit:results", "commit:result_changes", "ledger:commit"),
)
FINISHING = ("ledger:migrate_finish",)


@dataclass(slots=True)
class Case:
    """One migration from a seed, in its own folder. `moves`: the steps so far, for the message of a failure."""

    folder: Path
    seed: int
    spark: SparkSession
    moves: list[str] = field(default_factory=list)
    arrived: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def play(self) -> str:
        """Plays the case and returns its description. Raises AssertionError with all moves on a failure."""
        try:
            return self._play()
        except BaseException as error:
            error.add_note(f"seed {self.seed}: {'; '.join(self.moves)}")
            raise

    def _play(self) -> str:
        kind = self.chance.choice([*CHANGES])
        texts = CHANGES[kind]
        self.at(texts[0])
        for _ in range(self.chance.randint(1, 2)):
            self.arrive()
            self.run(texts[0])
        self.maybe_more(texts[0])
        self.given(texts, "build", lambda new: build(new, self._spark, ASKED), BUILDING)
        self.maybe_more(texts[0])
        self.given(texts, "switch", self.switch, SWITCHING)
        end = self.chance.choice(("left", "--undo", "--finish"))
        if self.chance.random() < 0.5:
            self.arrive()
            self.run(texts[1])
        if end == "--undo":
            self.given(texts, end, self.undo, SWITCHING)
        elif end == "--finish":
            self.given(texts, end, self.finish, FINISHING)
        text = texts[end != "--undo"]
        self.arrive()
        self.run(text)
        self.check(text)
        assert (end == "left") == bool(migrations(self.at(text).store)), "what is left of the migration"
        return f"{kind}, {end}"

    # -- what is done ----------------------------------------------------------------------------------------------

    def at(self, text: str) -> Definition:
        return clicks(self.folder, 0, text)

    def _spark(self) -> SparkSession:
        return self.spark

    def arrive(self) -> None:
        self.arrived += 1
        self.moves.append(f"file {self.arrived} arrives")
        arrive(self.folder, self.arrived, rows_of(self.seed, self.arrived), SCHEMA)

    def run(self, text: str) -> None:
        self.moves.append("run")
        advance(self.at(text), self._spark, clock=clock)

    def maybe_more(self, text: str) -> None:
        if self.chance.random() < 0.6:
            self.arrive()
            if self.chance.random() < 0.6:
                self.run(text)

    def switch(self, new: Definition) -> None:
        switch(new, build(new, self._spark, ASKED), self._spark, ASKED)

    def undo(self, new: Definition) -> None:
        undo(new, self._spark, ASKED)

    def finish(self, new: Definition) -> None:
        finish(new, ASKED)

    def given(
        self, texts: tuple[str, str], command: str, act: Callable[[Definition], object], steps: tuple[str, ...]
    ) -> None:
        """A command is killed at one of its steps, a file may arrive, and it is given again; or it is given once."""
        step = self.chance.choice((None, *steps))
        new = self.at(texts[1])
        if step is None:
            self.moves.append(command)
            act(new)
            return
        before = outcome(new)
        self.moves.append(f"{command} killed at {step}")
        try:
            with stopped(step):
                act(new)
        except AssertionError:  # the command had nothing to do at that step, and is done
            self.moves.append("which it never came to")
            assert command in ("build", "switch"), step
            return
        assert outcome(new) == before, f"readers see something else after {self.moves[-1]}"
        if self.chance.random() < 0.5:
            self.arrive()
        self.moves.append(f"{command} again")
        finished = finish_prepared(new, clock)
        tidy(new, clock)
        if not finished:
            act(new)

    # -- what must hold --------------------------------------------------------------------------------------------

    def check(self, text: str) -> None:
        """Checks that the tables equal those of a fresh pipeline with the same files in the same batches."""
        definition = self.at(text)
        read: dict[int, list[int]] = {}
        for row in read_table(definition, "source_files").to_pylist():
            read.setdefault(row["batch_id"], []).append(int(Path(row["path"]).stem))
        assert sorted(one for files in read.values() for one in files) == [*range(1, self.arrived + 1)], read
        apart = self.folder / "fresh"
        fresh = clicks(apart, 0, text)
        for _, files in sorted(read.items()):
            for number in files:
                arrive(apart, number, rows_of(self.seed, number), SCHEMA)
            advance(fresh, self._spark, clock=clock)
        found, wanted = outcome(definition), outcome(fresh)
        for table in OUTCOME:
            assert found[table] == wanted[table], f"{table}: {set(found[table]) ^ set(wanted[table])}"


def outcome(definition: Definition) -> dict[str, list[str]]:
    """Rows of the tables without batch ids, which continue across a migration."""
    return {table: _rows(definition, table) for table in OUTCOME}


def _rows(definition: Definition, table: str) -> list[str]:
    found = read_table(definition, table).to_pylist()
    without = ("batch_id", "window_day", "contents_from", "readmitted_by")
    return sorted(str({name: value for name, value in sorted(row.items()) if name not in without}) for row in found)


def rows_of(seed: int, number: int) -> list[dict[str, Any]]:
    """Rows of one file: an hour of clicks, with late events, a duplicate and an event without a key."""
    chance, rows = random.Random(f"{seed} {number}"), list[dict[str, Any]]()
    for row in range(24):
        late_min = chance.choice((0, 0, 0, chance.randrange(200)))
        at_ms = START_MS + (60 * number + chance.randrange(60) - late_min) * MINUTE_MS + chance.randrange(MINUTE_MS)
        names = {"user": f"u{chance.randrange(3)}", "shop": f"s{chance.randrange(2)}"}
        times = {"at_ms": at_ms, "sent_ms": at_ms + chance.randrange(5 * MINUTE_MS)}
        rows.append({"id": f"{number}-{row}", **names, **times, "value": chance.randrange(100)})
    rows[3]["user"] = None
    return [*rows, rows[5]]


def play(folder: Path, seed: int, spark: SparkSession) -> str:
    """Plays one case and returns its description. Deletes the folder after success."""
    place = folder / f"case-{seed}"
    shutil.rmtree(place, ignore_errors=True)  # of one that was interrupted
    what = Case(place, seed, spark).play()
    shutil.rmtree(place)
    return what
