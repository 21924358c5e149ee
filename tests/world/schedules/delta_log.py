"""The log of a table, read as the Delta protocol specifies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq


@dataclass(slots=True)
class Log:
    """The versions of a table: the files that each holds."""

    folder: Path
    versions: list[frozenset[str]] = field(default_factory=list)
    first: int = 0  # the oldest that can be read

    def __post_init__(self) -> None:
        entries = self.folder / "_delta_log"
        checkpoints = sorted(entries.glob("*.checkpoint.parquet"))
        if checkpoints and not (entries / f"{0:020}.json").exists():
            self.first = int(checkpoints[0].name.partition(".")[0])
            found = pq.ParquetFile(checkpoints[0]).read(columns=["add.path"])["add"].to_pylist()
            live = frozenset(unquote(one["path"]) for one in found if one and one["path"])
            self.versions = [frozenset()] * self.first + [live]

    def added(self, version: int) -> list[str]:
        """The files that a version, the newest or the next, brings."""
        removed, added = set(), list[str]()
        file = self.folder / "_delta_log" / f"{version:020}.json"
        for line in file.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                added.append(unquote(action["add"]["path"]))
            elif "remove" in action:
                removed.add(unquote(action["remove"]["path"]))
        before = self.versions[version - 1] if version else frozenset()
        self.versions[version:] = [(before - removed) | frozenset(added)]
        return added

    def has_next(self) -> bool:
        """Tests if there is an unread version."""
        return (self.folder / "_delta_log" / f"{len(self.versions):020}.json").exists()

    def at(self, version: int | None) -> frozenset[str]:
        """The files of a version; None: an empty table."""
        if version is None:
            return frozenset()
        while version >= len(self.versions):
            self.added(len(self.versions))
        return self.versions[version]

    def newest(self) -> frozenset[str]:
        """Files seen by a reader without the ledger."""
        while self.has_next():
            self.added(len(self.versions))
        return self.versions[-1] if self.versions else frozenset()
