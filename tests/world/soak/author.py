"""The author of a soak's pipeline: its definition, with terms and a gap that may change at any time."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

FIRST_GAP_MS = 10 * 60_000
GAPS_MS = (FIRST_GAP_MS, 25 * 60_000, 4 * 60_000)
DELAYS = ("1m", "5m", "20m")
LATENESSES = ("1h", "1h", "3h", "10m", "0s")

DEFINITION = """
name = "soak"
warehouse = "warehouse"
engine = "sail"
lease_timeout = "2s"

[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
event_id = "id"
max_files_per_run = {files}
min_file_age = "0s"

[watermark]
out_of_orderness = "{delay}"

[window]
type = "session"
gap = "{gap}m"
allowed_lateness = "{lateness}"

[aggregates]
events = "count(*)"
total = "sum(value)"

[retention]
cuts = "10 batches"
"""


@dataclass(slots=True)
class Author:
    """Edits the definition. Another gap is put into it, or into a copy next to it that takes its place later."""

    folder: Path
    chance: random.Random
    file: Path = field(init=False)  # by which all but a migration run
    gap_ms: int = FIRST_GAP_MS  # in that file
    begun: tuple[Path, int] | None = None  # the file and the gap of a migration that was begun

    def __post_init__(self) -> None:
        self.file = self.folder / "soak.toml"
        self.edit()

    def edit(self) -> None:
        """Other terms, which count from the next batch on."""
        self._write(self.file, self.gap_ms)

    def change(self, in_force_ms: int) -> None:
        """Begins a migration to another gap; runs continue with the copy, or meet it."""
        gap_ms = self.chance.choice([one for one in GAPS_MS if one != in_force_ms])
        file = self.chance.choice((self.file, self.folder / "soak-next.toml"))
        if file == self.file:
            self.gap_ms = gap_ms
        self._write(file, gap_ms)
        self.begun = file, gap_ms

    def follow(self, in_force_ms: int) -> None:
        """Writes the gap in force into the definition, after a migration is done, abandoned or undone."""
        self.gap_ms, self.begun = in_force_ms, None
        self.edit()

    def _write(self, file: Path, gap_ms: int) -> None:
        draft = file.with_suffix(".draft")
        terms = {"delay": self.chance.choice(DELAYS), "lateness": self.chance.choice(LATENESSES)}
        text = DEFINITION.format(**terms, files=self.chance.randint(1, 3), gap=gap_ms // 60_000)
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, file)
