"""Files of the pipelines of a play: their present and past rows."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.world.mixed_operations.drawn import rows_of
from tests.world.random_pipelines import play
from tests.world.random_pipelines.truth import Row


@dataclass(slots=True)
class Incoming:
    """A folder and its files, by their names, each with its rows.

    `contents` are the rows that any file ever had, by its checksum; `known` the events that have an id, by that.
    """

    folder: Path
    chance: random.Random
    files: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    contents: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    known: dict[str, Row] = field(default_factory=dict)
    times: Iterator[int] = field(default_factory=count)  # each file is written at another

    def __post_init__(self) -> None:
        (self.folder / "incoming").mkdir(parents=True)

    def arrive(self) -> str:
        """One more file; its name."""
        number = len(self.files) + 1
        rows = rows_of(self.chance, number, self.known, 1000 * number)
        self.lay(rows)
        return rows[0].place[0]

    def lay(self, rows: tuple[Row, ...]) -> None:
        """A file has these rows from now on."""
        name = rows[0].place[0]
        self.files[name] = rows
        play.write(self.folder, rows, after_ns=next(self.times))
        self.contents[str(self.checksum(name))] = rows

    def cut_off(self, name: str) -> None:
        """A file cannot be read from now on."""
        (self.folder / "incoming" / name).write_bytes(b"PAR1 cut off")

    def rename(self, name: str) -> None:
        play.rename(self.folder, name)

    def delete(self, name: str) -> None:
        (self.folder / "incoming" / name).unlink()

    def lies(self, name: str) -> bool:
        """Tests if a file is there and was not renamed."""
        return (self.folder / "incoming" / name).exists()

    def checksum(self, name: str) -> str | None:
        """Checksum of a file, renamed or not; None if it is gone."""
        lies = self.folder / "incoming"
        found = next((path for path in (lies / name, lies / "archive" / name) if path.exists()), None)
        return found and hashlib.sha256(found.read_bytes()).hexdigest()
