"""A reader that watches a pipeline and derives the right contents of its tables from the ledger.

It reads with no code of windowlib: a fault of the code that reads is seen.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.world.schedules.delta_log import Log
from tests.world.schedules.pipeline import AT_ONCE, FILE_MS, RERUN_FILE, Rows, rows_of, values_of

FOLLOWED = ("results", "open_windows", "source_files")
EVERY_VALUE = [value for number in range(1, 10) for value in values_of(number)]
DELETED = 10  # the value that a foreign DELETE takes out of `results`


@dataclass(frozen=True, slots=True)
class Truth:
    """Right contents of the tables after a batch."""

    results: Rows = field(default_factory=dict)
    waiting: Rows = field(default_factory=dict)
    files: tuple[str, ...] = ()
    watermark_ms: int = 0

    @property
    def values(self) -> frozenset[int]:
        """Values in either place."""
        return frozenset({*self.results, *self.waiting})

    def without(self, value: int) -> Truth:
        """The same, with a value erased."""
        kept = ({one: batch for one, batch in rows.items() if one != value} for rows in (self.results, self.waiting))
        return Truth(*kept, self.files, self.watermark_ms)

    def later(self, batches: int) -> Truth:
        """The same values, with higher batch numbers."""
        moved = ({one: batch + batches for one, batch in rows.items()} for rows in (self.results, self.waiting))
        return Truth(*moved, self.files, self.watermark_ms)


@dataclass(slots=True)
class Erased:
    """A value that was erased by a batch, and where the ledger stood when that was first seen.

    `digest` tells its batch from the one with the same id that overtook it.
    """

    value: int
    digest: str
    batch_id: int
    sequence: int
    is_done: bool = False


@dataclass(slots=True)
class Reader:
    """Watches the pipeline in a folder: `watch` raises AssertionError for the first thing that must not be.

    `built` are the readers of the tables that migrations build next to the pipeline's, by the migration's id.
    """

    root: Path
    home: Path | None = None  # the pipeline's folder, where `root` is one in which a migration builds
    truths: dict[int, Truth] = field(default_factory=lambda: {0: Truth()})  # by batch
    newest: int = 0  # batch
    decided: list[str] = field(default_factory=list)
    erased: list[Erased] = field(default_factory=list)
    built: dict[str, Reader] = field(default_factory=dict)
    _sequence: int = 0
    _claims: dict[int, int] = field(default_factory=dict)  # by epoch: where its row stands
    _open: dict[str, dict[str, Any]] = field(default_factory=dict)  # rows of the batch that is planned, by kind
    _logs: dict[str, Log] = field(default_factory=dict)
    _switch: tuple[str, dict[str, int]] | None = None  # the migration in force, and the versions that undo goes back to
    _versions: dict[str, int] = field(default_factory=dict)  # of the newest batch
    _began: tuple[int, int] | None = None  # what distinguishes the ledger from another in its place

    def watch(self) -> None:
        """Reads the new ledger rows. Log entries of the tables must not be deleted before they were read."""
        self._watch_erasures()
        for folder in () if self.home else (self.root / "_migration").glob("*"):
            self._watch_built(folder)
        ledger = self._log("ledger")
        for name in FOLLOWED:
            self._log(name).newest()
        if not self._sequence and ledger.versions:  # its log was shortened before this reader began
            self._rows(ledger, ledger.versions[-1])
        while ledger.has_next():
            self._rows(ledger, ledger.added(len(ledger.versions)))
        self._check_can_undo()

    def _rows(self, ledger: Log, paths: Iterable[str]) -> None:
        rows = [row for path in paths for row in pq.ParquetFile(ledger.folder / path).read().to_pylist()]
        for row in sorted(rows, key=lambda row: row["sequence"]):
            if row["sequence"] > self._sequence:  # else an old row in a file that small ones were folded into
                assert row["sequence"] == self._sequence + 1, f"the ledger has no row {self._sequence + 1}"
                self._sequence += 1
                self._row(row)

    def _watch_erasures(self) -> None:
        if "erasures" not in self._logs:
            self._logs["erasures"] = log = Log((self.home or self.root) / "erasures")
            self._erasures(log, log.versions[-1] if log.versions else ())
        log = self._logs["erasures"]
        while log.has_next():
            self._erasures(log, log.added(len(log.versions)))

    def _erasures(self, log: Log, paths: Iterable[str]) -> None:
        for path in paths:
            for row in pq.ParquetFile(log.folder / path).read().to_pylist():
                of = next(value for value in EVERY_VALUE if digest_of(row["secret"], value) == row["digest"])
                self.erased.append(Erased(of, row["digest"], row["batch_id"], self._sequence))

    def _watch_built(self, folder: Path) -> None:
        try:
            first = (folder / "ledger" / "_delta_log" / f"{0:020}.json").stat()
        except OSError:
            return  # not begun, or deleted
        began = first.st_ino, first.st_mtime_ns
        if folder.name not in self.built or self.built[folder.name]._began != began:
            self.built[folder.name] = Reader(folder, self.root, _began=began)
        self.built[folder.name].watch()

    def _check_can_undo(self) -> None:
        """As long as a migration can be undone, the files from before it are there."""
        if self._switch and (self.root / "_migration" / self._switch[0] / "migration.json").exists():
            for name, version in self._switch[1].items():
                log = self._logs.get(name)
                for path in log.versions[version] if log else ():
                    assert (log.folder / path).exists(), f"{name}/{path} is gone, which --undo needs"

    @property
    def truth(self) -> Truth:
        """Contents after the newest batch."""
        return self.truths[self.newest]

    def results_alone(self) -> list[int]:
        """Values of the newest version of `results`."""
        log = self._log("results")
        return sorted(value for path in log.newest() for value in rows_of(log.folder / path))

    def _row(self, row: dict[str, Any]) -> None:
        match row["kind"]:
            case "claim":
                self._claims[row["epoch"]] = row["sequence"]
            case "plan":
                planned = self._open.get("plan")
                assert not planned or planned["batch_id"] == row["batch_id"], f"{row} while {planned} is not finished"
                self._open = {"plan": row}
            case "prepare" | "approve":
                assert self._open.get("plan", {}).get("batch_id") == row["batch_id"], f"{row} of no planned batch"
                self._open[row["kind"]] = row
            case "abandon":
                self._open = {}
            case "migrate_finish":
                self._switch = None
            case "commit":
                self._committed(row)

    def _committed(self, row: dict[str, Any]) -> None:
        batch_id, opened = row["batch_id"], self._open
        assert opened.get("plan", {}).get("batch_id") == batch_id, f"batch {batch_id} was not planned, or given up"
        assert "prepare" in opened, f"batch {batch_id} was not prepared"
        assert not opened["prepare"]["reason"] or "approve" in opened, f"batch {batch_id} was refused"
        assert batch_id > self.newest, f"batch {batch_id} came after {self.newest}"
        versions = dict(row["versions"])
        before, self._versions = self._versions, versions
        self.truths[batch_id] = self._truth(batch_id, opened["plan"], before, self._unread(opened["prepare"], versions))
        self.newest, self._open = batch_id, {}
        back = self.truth.values & {one.value for one in self.erased if one.is_done}
        assert not back, f"batch {batch_id} brings {back} back, which were erased"
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

    def _unread(self, prepared: dict[str, Any], versions: dict[str, int]) -> set[int]:
        """The values that a batch has not read, as they were erased before; where that came while it was at work, those
        that it did not write.
        """
        claimed, number = self._claims.get(prepared["epoch"], 0), prepared["batch_id"]
        found = {one.value for one in self.erased}
        if any(one.sequence >= claimed for one in self.erased):
            logs = {name: self._log(name) for name in ("results", "open_windows")}
            paths = ((log.folder / path) for name, log in logs.items() for path in log.at(versions.get(name)))
            written = {value for path in paths for value, batch in rows_of(path).items() if batch == number}
            found -= {one.value for one in self.erased if one.sequence >= claimed} & written
        return found

    def _truth(self, batch_id: int, plan: dict[str, Any], versions: dict[str, int], unread: set[int]) -> Truth:
        """Right contents after batch `batch_id`, by its plan; before it the tables stood at `versions`."""
        before, decision = self.truth, json.loads(plan["decision"] or "{}")
        if decision:
            self.decided.append(decision["kind"])
        if plan["rerun"]:
            self.decided.append("rerun")
            again = {value: batch_id for value in values_of(RERUN_FILE) if value not in (*before.waiting, *unread)}
            return Truth({**before.results, **again}, before.waiting, before.files, before.watermark_ms)
        match decision.get("kind"):
            case "maintain":
                return before
            case "rollback":
                return self.truths[decision["to_batch_id"]]
            case "migrate":
                self._switch = decision["migration"], versions
                cuts = [cut["batch_id"] for cut in decision["cuts"]]
                assert cuts == [*range(batch_id - len(cuts) + 1, batch_id + 1)], f"batch {batch_id} is in {cuts}"
                built = self.built.get(decision["migration"])
                if built is None:  # before this reader began
                    return self._read(Truth(), before.files, plan, unread)
                return built.truths[len(cuts)].later(batch_id - len(cuts))
            case "migrate_undo":
                self._switch = None
                return self.truths[decision["to_batch_id"]]
            case "forget":
                for one in self.erased:
                    if (one.batch_id, one.digest) == (batch_id, decision["digest"]):
                        one.is_done, before = True, before.without(one.value)
                return before
            case "adopt":
                kept = {value: batch for value, batch in before.results.items() if value != DELETED}
                return Truth(kept, before.waiting, before.files, before.watermark_ms)
        files = tuple(file["path"] for file in plan["files"] or ())
        return self._read(before, files, plan, unread, decision.get("to_ms") or 0)

    def _read(
        self, before: Truth, files: tuple[str, ...], plan: dict[str, Any], unread: set[int], to_ms: int = 0
    ) -> Truth:
        """Contents after a batch that reads files; the watermark rises to `to_ms` at least."""
        new = [value for path in files for value in values_of(int(Path(path).stem)) if value not in unread]
        soon = json.loads(plan["terms"] or "{}").get("watermark.out_of_orderness") != "5h"
        rest = AT_ONCE[json.loads(plan["definition"])["window"]["gap_ms"]]
        fired = [*before.waiting, *(value for value in new if value % 2 == rest and soon)]
        read = (*before.files, *files)
        watermark_ms = max(before.watermark_ms, len(read) * FILE_MS, to_ms)
        batch_id = plan["batch_id"]
        waiting = dict.fromkeys((value for value in new if value not in fired), batch_id)
        return Truth({**before.results, **dict.fromkeys(fired, batch_id)}, waiting, read, watermark_ms)

    def _log(self, name: str) -> Log:
        return self._logs.setdefault(name, Log(self.root / name))


def digest_of(secret: str, value: int) -> str:
    """Digest of an erased value, as the page about tables defines it."""
    return hmac.new(bytes.fromhex(secret), f"{len(str(value))}:{value}".encode(), hashlib.sha256).hexdigest()
