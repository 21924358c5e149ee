"""A reader that watches a pipeline all along, and knows from the ledger's rows alone what its tables must hold.

It reads the logs as the Delta protocol has them, with no code of windowlib: a fault of the code that reads is seen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from tests.schedules.pipeline import FILE_MS, RERUN_FILE, Rows, root_of, rows_of, values_of

FOLLOWED = ("results", "open_windows", "source_files")
DELETED = 10  # the value that a foreign DELETE takes out of `results`


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
        """Whether there is a version that was not read."""
        return (self.folder / "_delta_log" / f"{len(self.versions):020}.json").exists()

    def at(self, version: int | None) -> frozenset[str]:
        """The files of a version; None: an empty table."""
        if version is None:
            return frozenset()
        while version >= len(self.versions):
            self.added(len(self.versions))
        return self.versions[version]

    def newest(self) -> frozenset[str]:
        """The files that a reader sees who knows nothing of the ledger."""
        while self.has_next():
            self.added(len(self.versions))
        return self.versions[-1] if self.versions else frozenset()


@dataclass(frozen=True, slots=True)
class Truth:
    """What the tables must hold after a batch."""

    results: Rows = field(default_factory=dict)
    waiting: Rows = field(default_factory=dict)
    files: tuple[str, ...] = ()
    watermark_ms: int = 0


@dataclass(slots=True)
class Reader:
    """Watches the pipeline in a folder: `watch` raises AssertionError for the first thing that must not be."""

    folder: Path
    truths: dict[int, Truth] = field(default_factory=lambda: {0: Truth()})  # by batch
    newest: int = 0  # batch
    decided: list[str] = field(default_factory=list)
    _sequence: int = 0
    _open: dict[str, dict[str, Any]] = field(default_factory=dict)  # rows of the batch that is planned, by kind
    _logs: dict[str, Log] = field(default_factory=dict)

    def watch(self) -> None:
        """Looks at what the ledger has gained; of the tables' logs nothing may be deleted before it was read."""
        ledger = self._log("ledger")
        for name in FOLLOWED:
            self._log(name).newest()
        while ledger.has_next():
            rows = []
            for path in ledger.added(len(ledger.versions)):
                rows += pq.ParquetFile(ledger.folder / path).read().to_pylist()
            for row in sorted(rows, key=lambda row: row["sequence"]):
                if row["sequence"] > self._sequence:  # else an old row in a file that small ones were folded into
                    assert row["sequence"] == self._sequence + 1, f"the ledger has no row {self._sequence + 1}"
                    self._sequence += 1
                    self._row(row)

    @property
    def truth(self) -> Truth:
        """What the newest batch left."""
        return self.truths[self.newest]

    def results_alone(self) -> list[int]:
        """The values that a reader sees who opens the newest version of `results`."""
        log = self._log("results")
        return sorted(value for path in log.newest() for value in rows_of(log.folder / path))

    def _row(self, row: dict[str, Any]) -> None:
        match row["kind"]:
            case "plan":
                planned = self._open.get("plan")
                assert not planned or planned["batch_id"] == row["batch_id"], f"{row} while {planned} is not finished"
                self._open = {"plan": row}
            case "prepare" | "approve":
                assert self._open.get("plan", {}).get("batch_id") == row["batch_id"], f"{row} of no planned batch"
                self._open[row["kind"]] = row
            case "abandon":
                self._open = {}
            case "commit":
                self._committed(row)

    def _committed(self, row: dict[str, Any]) -> None:
        batch_id, opened = row["batch_id"], self._open
        assert opened.get("plan", {}).get("batch_id") == batch_id, f"batch {batch_id} was not planned, or given up"
        assert "prepare" in opened, f"batch {batch_id} was not prepared"
        assert not opened["prepare"]["reason"] or "approve" in opened, f"batch {batch_id} was refused"
        assert batch_id > self.newest, f"batch {batch_id} came after {self.newest}"
        self.truths[batch_id] = self._truth(batch_id, opened["plan"])
        self.newest, self._open = batch_id, {}
        versions = dict(row["versions"])
        assert row["to_sequence"] == len(self.truth.files), f"{self.truth.files} are not {row['to_sequence']} files"
        assert row["watermark_out_ms"] == self.truth.watermark_ms, f"{row['watermark_out_ms']}: {self.truth}"
        if any(versions.get(name, 0) < self._log(name).first for name in FOLLOWED if name in versions):
            return  # maintenance has given this cut up
        log = self._log("source_files")
        paths = log.at(versions.get("source_files"))
        read = [pq.ParquetFile(log.folder / path).read()["path"].to_pylist() for path in paths]
        assert sorted(path for paths in read for path in paths) == sorted(self.truth.files), f"{read} were read"
        for name, wanted in (("results", self.truth.results), ("open_windows", self.truth.waiting)):
            log = self._log(name)
            found = [one for path in log.at(versions.get(name)) for one in rows_of(log.folder / path).items()]
            assert sorted(found) == sorted(wanted.items()), f"batch {batch_id}: {name} holds {found}, not {wanted}"

    def _truth(self, batch_id: int, plan: dict[str, Any]) -> Truth:
        """What batch `batch_id` must leave, by its plan."""
        before, decision = self.truth, json.loads(plan["decision"] or "{}")
        if decision:
            self.decided.append(decision["kind"])
        if plan["correction"]:
            self.decided.append("rerun")
            again = {value: batch_id for value in values_of(RERUN_FILE) if value not in before.waiting}
            return Truth({**before.results, **again}, before.waiting, before.files, before.watermark_ms)
        match decision.get("kind"):
            case "maintain":
                return before
            case "rollback":
                return self.truths[decision["to_batch_id"]]
            case "adopt":
                kept = {value: batch for value, batch in before.results.items() if value != DELETED}
                return Truth(kept, before.waiting, before.files, before.watermark_ms)
        files = tuple(file["path"] for file in plan["files"] or ())
        new = [value for path in files for value in values_of(int(Path(path).stem))]
        soon = json.loads(plan["terms"])["watermark.out_of_orderness"] != "5h"
        fired = [*before.waiting, *(value for value in new if value % 2 == 0 and soon)]
        read = (*before.files, *files)
        watermark_ms = max(before.watermark_ms, len(read) * FILE_MS, decision.get("to_ms") or 0)
        waiting = dict.fromkeys((value for value in new if value not in fired), batch_id)
        return Truth({**before.results, **dict.fromkeys(fired, batch_id)}, waiting, read, watermark_ms)

    def _log(self, name: str) -> Log:
        return self._logs.setdefault(name, Log(root_of(self.folder) / name))
