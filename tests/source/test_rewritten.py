"""Files of a Delta table that are written again, and deleted, before and after they are read: each row is read once.

Tables, and what reads them, are drawn by chance: their logs are real, their files have names alone. What a batch
takes, and how far the cursor comes, is what a plan would say.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.clicks import CLICKS, clicks
from tests.support.log_files import file_of
from windowlib.definition.toml.source import Source
from windowlib.delta import log
from windowlib.model.rerun import TimeRange
from windowlib.source.delta.removals import Arrived, arrived
from windowlib.source.delta.source import Cursor, beginning, cursor_after, delta_files, taken_back
from windowlib.storage.disk import Disk

Kinds = tuple[str, ...]
SCHEMA = {"type": "struct", "fields": [{"name": "row", "type": "long", "nullable": True, "metadata": {}}]}
CREATED: list[dict[str, Any]] = [
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    {
        "metaData": {
            "id": "a table",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(SCHEMA),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": 1,
        }
    },
]


@dataclass
class Table:
    """A table of numbers; `rows` has the rows of each file that ever existed."""

    folder: Path
    chance: random.Random
    rows: dict[str, list[int]] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)
    versions: int = 0
    numbers: count[int] = field(default_factory=count)

    def commit(
        self, operation: str, removed: Sequence[str], added: Sequence[list[int]], *, changes: bool = True
    ) -> None:
        names = [f"{self.versions}-{number}.parquet" for number in range(len(added))]
        self.rows |= dict(zip(names, added, strict=True))
        for name in names:
            (self.folder / name).touch()
        self.write(operation, removed, names, changes=changes)

    def write(self, operation: str, removed: Sequence[str], added: Sequence[str], *, changes: bool) -> None:
        """A version, of files that are there."""
        same = {"dataChange": changes}
        removes = [{"remove": {"path": path, "deletionTimestamp": 1, **same}} for path in removed]
        about = {"partitionValues": {}, "size": 0, "modificationTime": 1 + self.versions, **same}
        adds = [{"add": {"path": name, **about}} for name in added]
        entry = [{"commitInfo": {"operation": operation}}, *([] if self.versions else CREATED), *removes, *adds]
        file = file_of(self.folder, self.versions)
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(map(json.dumps, entry)))
        self.held = [path for path in self.held if path not in removed] + [*added]
        self.versions += 1

    def some(self, least: int) -> list[str]:
        return self.chance.sample(self.held, self.chance.randint(least, min(4, len(self.held))))

    def cut(self, rows: Sequence[int]) -> list[list[int]]:
        """The rows in one file or in two."""
        at = self.chance.choice((0, len(rows) // 2))
        return [part for part in ([*rows[:at]], [*rows[at:]]) if part]

    def append(self) -> None:
        files = [[next(self.numbers), next(self.numbers)] for _ in range(self.chance.choice((1, 1, 2)))]
        self.commit("WRITE", [], files)

    def compact(self) -> None:
        if len(self.held) > 1:
            together = self.some(2)
            rows = [row for path in together for row in self.rows[path]]
            self.commit("OPTIMIZE", together, self.cut(rows), changes=False)

    def delete(self) -> None:
        if self.held:
            files = self.some(1)
            rows = [row for path in files for row in self.rows[path] if self.chance.random() < 0.8]
            rows += [next(self.numbers)] if self.chance.random() < 0.5 else []
            self.commit("MERGE", files, self.cut(rows))

    def restore(self) -> None:
        """Restores the version before the newest, if its files exist."""
        if self.versions < 2:
            return
        actions = log.actions(Disk(self.folder), self.versions - 1)
        added = [one["add"]["path"] for one in actions if "add" in one]
        removed = [one["remove"]["path"] for one in actions if "remove" in one]
        if all((self.folder / path).exists() for path in removed):
            self.write("RESTORE", added, removed, changes=True)

    def vacuum(self) -> None:
        for path in self.folder.glob("*.parquet"):
            if path.name not in self.held:
                path.unlink()


@dataclass
class Reader:
    """Files of a table that a pipeline has read, according to `source_files` and its cursor."""

    source: Source
    table: Table
    at_most: int
    cursor: Cursor | None = None
    read: dict[str, TimeRange | None] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)
    back: set[str] = field(default_factory=set)

    def look(self) -> Arrived:
        self.cursor = self.cursor or beginning(self.source)
        listed = delta_files(self.source, self.cursor)
        if self.cursor.version >= 0:
            found = {file.path for file in listed.files}
            listed = taken_back(self.source, listed, self.back - self.read.keys() - found, self.cursor)
        return arrived(self.source, listed, lambda: dict(self.read), self.aside)

    def set_aside(self) -> None:
        if waiting := [file.path for file in self.look().files if file.path not in self.read]:
            self.aside.add(self.table.chance.choice(waiting))
            self.back -= self.aside

    def clean_log(self) -> None:
        """The entries that were read are gone, as after `delta.logRetentionDuration`."""
        DeltaTable(self.table.folder).create_checkpoint()
        read = self.cursor.version if self.cursor else -1
        for version in range(min(read + 1, self.table.versions - 1)):  # the newest says what RESTORE takes back
            file_of(self.table.folder, version).unlink(missing_ok=True)

    def take_back(self) -> None:
        self.back |= self.aside
        self.aside.clear()

    def batch(self) -> bool:
        """Reads some files, or does the required rerun; returns true if there was work."""
        look = self.look()
        new = sorted((file for file in look.files if file.path not in {*self.read, *self.aside}), key=lambda f: f.order)
        if new:
            taken, left = new[: self.at_most], new[self.at_most :]
            self.take(file.path for file in taken)
            assert self.cursor
            self.cursor = cursor_after(left, look.up_to, self.cursor)
        elif look.removal and not look.removal.aside:
            assert look.removal.gone <= self.read.keys()
            for path in look.removal.gone:
                del self.read[path]
            self.take(file.path for file in look.removal.fresh)
            self.cursor = Cursor(look.removal.last)
        else:
            return False
        return True

    def take(self, paths: Any) -> None:
        for path in paths:
            assert path not in self.read
            assert (self.table.folder / path).exists()
            self.read[path] = TimeRange(0, 1)

    def rows(self) -> Counter[int]:
        return Counter(row for path in self.read for row in self.table.rows[path])


def reader(folder: Path, seed: int, removals: str) -> Reader:
    definition = clicks(folder, 0, CLICKS.replace('"parquet"', '"delta"'))
    source = definition.source.model_copy(update={"removals": removals})
    chance = random.Random(seed)
    return Reader(source, Table(folder / "incoming", chance), chance.choice((1, 2, 100)))


def changed_and_read(one: Reader, kinds: Kinds) -> None:
    """Changes and reads the table in turns; no row is read twice."""
    table = one.table
    table.append()
    for _ in range(table.chance.randrange(3, 14)):
        kind = table.chance.choice(kinds)
        getattr(table if hasattr(table, kind) else one, kind)()
        while table.chance.random() < 0.4 and one.batch():
            assert max(one.rows().values(), default=1) == 1
    one.take_back()
    for _ in range(100):
        if not one.batch():
            return
        assert max(one.rows().values(), default=1) == 1
    raise AssertionError("something is left forever")


MOVING: Kinds = ("append", "append", "compact", "compact", "vacuum")
REMOVING: Kinds = ("delete", "restore")
ASIDE: Kinds = ("set_aside", "take_back")
SEEDS = 60


def check(folder: Path, removals: str, kinds: Kinds) -> None:
    for seed in range(SEEDS):
        one = reader(folder / str(seed), seed, removals)
        changed_and_read(one, kinds)
        assert one.rows() == Counter(row for path in one.table.held for row in one.table.rows[path]), seed


@pytest.mark.parametrize("removals", ["rerun", "skip"])
def test_compactions_and_vacuum_neither_hide_nor_repeat_rows(tmp_path: Path, removals: str) -> None:
    check(tmp_path, removals, MOVING)


def test_after_any_removal_the_rows_read_equal_the_table(tmp_path: Path) -> None:
    check(tmp_path, "rerun", (*MOVING, *REMOVING))


def test_a_file_taken_back_is_read_after_any_change(tmp_path: Path) -> None:
    check(tmp_path, "rerun", (*MOVING, *ASIDE))


def test_the_log_may_be_cleaned_up_behind_the_cursor(tmp_path: Path) -> None:
    check(tmp_path, "rerun", (*MOVING, *REMOVING, "clean_log"))


def test_no_row_is_read_twice_if_removals_are_skipped(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        changed_and_read(reader(tmp_path / str(seed), seed, "skip"), (*MOVING, *REMOVING))
