"""The files that arrive for the pipeline of a soak: events of a few users, an own value for each."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.clicks import SCHEMA, START_MS

FILE_MS = 20 * 60_000  # by so much a file is later than the one before
FORGOTTEN = "carol"  # whose key is erased
USERS = [*(f"u{number}" for number in range(6)), FORGOTTEN]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the source, and its place there."""

    file: str
    number: int
    id: str
    user: str | None
    at_ms: int
    value: int

    @property
    def place(self) -> tuple[str, int]:
        return self.file, self.number


def arrive(folder: Path, number: int, chance: random.Random) -> list[Row]:
    """The next file; some of its events are late by up to ten hours, some come twice, some have no user."""
    name, rows = f"{number:05}.parquet", list[Row]()
    for row in range(chance.randint(1, 40)):
        late_ms = chance.choice((0, 0, 0, chance.randrange(30 * 60_000), chance.randrange(10 * 3_600_000)))
        at_ms = START_MS + number * FILE_MS + chance.randrange(FILE_MS) - late_ms
        user = None if chance.random() < 0.02 else chance.choice(USERS)
        rows.append(Row(name, row, f"{number}-{row}", user, at_ms, chance.randrange(10**12)))
    if chance.random() < 0.2:
        twice = chance.choice(rows)
        rows.append(Row(name, len(rows), twice.id, twice.user, twice.at_ms, twice.value))
    columns = {column: [getattr(row, column) for row in rows] for column in SCHEMA.names}
    draft = folder / name
    pq.write_table(pa.table(columns, SCHEMA), draft)
    os.rename(draft, folder / "incoming" / name)
    return rows
