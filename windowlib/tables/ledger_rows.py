"""The ledger's rows, and what they come to: who runs, what is planned, which batches exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from windowlib.model.errors import StateMismatch
from windowlib.tables import data_files, delta, row_groups
from windowlib.tables.decision import Decision
from windowlib.tables.meaning import LEDGER
from windowlib.tables.opened import Table
from windowlib.tables.prepare import Prepared
from windowlib.tables.rerun import Rerun

OF_CLAIMS = ("claim", "heartbeat", "release")
KINDS = (
    *(*OF_CLAIMS, "plan", "prepare", "reject", "approve", "abandon", "commit"),
    *("restore", "clock", "acknowledge", "migrate_finish"),
)
"""The kinds of rows that this version knows."""
OF_COMMITS = (
    "batch_id",
    "versions",
    "watermark_out_ms",
    "to_sequence",
    "fingerprint",
    "definition",
    "counts",
    "at",
    "correction",
    "plan_time_ms",
    "decision",
)
"""The columns that a `Commit` is made of."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the source at its place in arrival order (`sequence` from 1)."""

    path: str
    size_bytes: int
    modified_ns: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What one batch will do, frozen before any work. The source range is `(from_sequence, to_sequence]`."""

    batch_id: int
    plan_time_ms: int
    watermark_in_ms: int | None
    from_sequence: int
    files: tuple[SourceFile, ...]
    fingerprint: str
    definition: str
    finished: bool = False  # no more events will come: every window fires
    rerun: Rerun | None = None  # a rerun: its files are those that a removal has put in the place of others
    terms: str | None = None  # JSON of what else decides its outcome; None where an earlier release planned it
    decision: Decision | None = None  # an operator's: no new file is read
    replaces: tuple[str, ...] = ()  # by a rerun that takes a removal: the files that were read and are gone for good

    @property
    def to_sequence(self) -> int:
        return self.from_sequence + len(self.files)


@dataclass(frozen=True, slots=True)
class Commit:
    """A run that exists: the versions of all tables, the watermark and the source position it left."""

    batch_id: int
    versions: Mapping[str, int]
    watermark_out_ms: int | None
    to_sequence: int
    fingerprint: str
    definition: str
    counts: Mapping[str, int]
    at_ms: int
    rerun: Rerun | None = None  # of a rerun
    plan_time_ms: int | None = None
    decision: Decision | None = None  # of what an operator decided


@dataclass(frozen=True, slots=True)
class Claim:
    """Who runs now, or ran last.

    `alive_at_ms` is the time of the claim's row or of its newest heartbeat's by its own machine's clock, `sign` that
    row's place in the ledger.
    """

    epoch: int
    owner: str
    alive_at_ms: int
    sign: int
    released: bool = False


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The ledger's tail, read back to its newest commit row."""

    version: int | None = None
    sequence: int = 0
    last_batch_id: int = 0
    commit: Commit | None = None
    time_ms: int | None = None  # when the newest batch was planned, or what an operator has accepted as right since
    claim: Claim | None = None
    plan: Plan | None = None  # frozen, not committed, not abandoned
    prepared: Prepared | None = None  # what that plan came to, fixed before the first table changes
    rejection: str | None = None  # why the checks refused it
    approved_by: str | None = None
    kept_migration: int | None = None  # the batch of one that an operator has kept for good since the newest commit

    def pinned(self, table: str) -> int | None:
        """The version of a table that the newest commit row names; None where it names none."""
        return self.commit.versions.get(table) if self.commit else None

    @property
    def left_by_a_dead_run(self) -> bool:
        """Whether the run that claimed last did not release: it may be dead, or only slow."""
        return self.claim is not None and not self.claim.released


def plan_row(plan: Plan) -> dict[str, Any]:
    """What a `plan` row says."""
    return {
        "batch_id": plan.batch_id,
        "plan_time_ms": plan.plan_time_ms,
        "watermark_in_ms": plan.watermark_in_ms,
        "from_sequence": plan.from_sequence,
        "to_sequence": plan.to_sequence,
        "files": [{name: getattr(f, name) for name in SourceFile.__dataclass_fields__} for f in plan.files],
        "replaces": list(plan.replaces),
        "fingerprint": plan.fingerprint,
        "definition": plan.definition,
        "finished": plan.finished,
        "correction": plan.rerun.to_json() if plan.rerun else None,
        "terms": plan.terms,
        "decision": plan.decision.to_json() if plan.decision else None,
    }


def abandon_row(plan: Plan) -> dict[str, Any]:
    reason = "planned under other terms; under those of now there is nothing to do"
    return {"kind": "abandon", "batch_id": plan.batch_id, "who": "windowlib", "reason": reason}


def fold(table: Table) -> LedgerState:
    version = delta.version(table)
    if version is None:
        return LedgerState()
    state = LedgerState(version=version)
    for row in _tail(table, version):
        state = _apply(replace(state, sequence=row["sequence"]), row)
    return state


def _tail(table: Table, version: int) -> Sequence[Mapping[str, Any]]:
    """The rows from the newest commit row on, and the newest claim before it, oldest first.

    Files are read newest first and only as far as needed, so the ledger's length does not matter.
    """
    rows: list[Mapping[str, Any]] = []
    newest_first = sorted(delta.files(table, version), key=lambda f: -f.high["sequence"])
    for file in newest_first:
        rows += _end_of_file(table.folder / file.path)
        kinds = {row["kind"] for row in rows}
        if {"claim", "commit"} <= kinds:
            break
    return sorted(rows, key=lambda row: row["sequence"])


@lru_cache(maxsize=256)
def _end_of_file(file: Path) -> Sequence[Mapping[str, Any]]:
    """The rows of one of the ledger's files without those that a later commit row in it has made history.

    A file into which small ones were folded has thousands of rows, and a few that count: the last of its row groups
    are read. They are looked for without pyarrow's functions, which would import pandas: half a second of a run with
    nothing new.
    """
    parts, newest = list[pa.Table](), dict[str, int]()
    for part, left in row_groups.newest_first(file, "sequence", LEDGER.columns):
        parts.append(part)
        for kind, sequence in zip(part["kind"].to_pylist(), part["sequence"].to_pylist(), strict=True):
            newest[kind] = max(newest.get(kind, 0), sequence)
        if left is None or ({"commit", "claim"} <= newest.keys() and min(newest["commit"], newest["claim"]) > left):
            break
    rows = pa.concat_tables(parts)
    if not {"commit", "claim"} <= newest.keys():
        return data_files.rows_of(rows)
    count = [
        sequence >= newest["commit"] or kind not in KINDS or (kind in OF_CLAIMS and sequence >= newest["claim"])
        for kind, sequence in zip(rows["kind"].to_pylist(), rows["sequence"].to_pylist(), strict=True)
    ]
    return data_files.rows_of(pa.concat_tables(rows.slice(n, 1) for n, counts in enumerate(count) if counts))


def rows_of_kinds(
    table: Table, version: int | None, kinds: Collection[str], columns: Collection[str]
) -> Iterator[dict[str, Any]]:
    """The ledger's rows of some kinds as of a version, each file's in the order in which they lie there.

    `columns` are those that they are asked for; others than those and `kind` are not read.
    """
    assert LEDGER.columns is not None, "they are the same for every pipeline"
    schema = pa.schema([field for field in LEDGER.columns if field.name == "kind" or field.name in columns])

    def may_hold(low: str, high: str) -> bool:
        return any(low <= kind <= high for kind in kinds)

    for file in delta.files(table, version):
        if "kind" not in file.low or may_hold(file.low["kind"], file.high["kind"]):
            yield from _of_kinds(row_groups.holding(table.folder / file.path, "kind", may_hold, schema), kinds)


def _of_kinds(rows: pa.Table, kinds: Collection[str]) -> list[dict[str, Any]]:
    wanted = [rows.slice(number, 1) for number, kind in enumerate(rows["kind"].to_pylist()) if kind in kinds]
    return data_files.rows_of(pa.concat_tables(wanted)) if wanted else []


def _apply(state: LedgerState, row: Mapping[str, Any]) -> LedgerState:
    at_ms = at_ms_of(row)
    if row["batch_id"] is not None:
        state = replace(state, last_batch_id=max(state.last_batch_id, row["batch_id"]))
    match row["kind"]:
        case "claim":
            return replace(state, claim=Claim(row["epoch"], row["owner"], at_ms, row["sequence"]))
        case "heartbeat" if state.claim:
            return replace(state, claim=replace(state.claim, alive_at_ms=at_ms, sign=row["sequence"]))
        case "release" if state.claim:
            return replace(state, claim=replace(state.claim, released=True))
        case "plan":
            return replace(state, plan=_plan(row), prepared=None, rejection=None, approved_by=None)
        case "prepare":
            prepared = Prepared(row["prepared"], row["sha256"])
            return replace(state, prepared=prepared, rejection=row["reason"], approved_by=None)
        case "reject":  # of earlier releases, whose approved batches are computed again
            return replace(state, rejection=row["reason"], approved_by=None)
        case "approve":
            return replace(state, approved_by=row["who"])
        case "abandon":
            return replace(state, plan=None, prepared=None, rejection=None, approved_by=None)
        case "commit":
            commit = commit_of(row, at_ms)
            state = replace(state, commit=commit, time_ms=row["plan_time_ms"], kept_migration=None)
            return replace(state, plan=None, prepared=None, rejection=None, approved_by=None)
        case "restore":
            return state  # what was taken back stands in the tables' logs
        case "acknowledge":
            return state  # what is kept quiet decides about no batch: `windowlib.tables.acknowledged`
        case "migrate_finish":
            return replace(state, kept_migration=row["batch_id"])
        case "clock":
            return replace(state, time_ms=row["plan_time_ms"])
        case "heartbeat" | "release":
            return state  # the claim itself is further back than was read
    raise StateMismatch(
        f"row {row['sequence']} of the ledger is of a kind that this version of windowlib does not know:"
        f" {row['kind']}. A newer version has written it: use that one"
    )


def at_ms_of(row: Mapping[str, Any]) -> int:
    return int(row["at"].timestamp() * 1000)


def _plan(row: Mapping[str, Any]) -> Plan:
    return Plan(
        batch_id=row["batch_id"],
        plan_time_ms=row["plan_time_ms"],
        watermark_in_ms=row["watermark_in_ms"],
        from_sequence=row["from_sequence"],
        files=tuple(SourceFile(**f) for f in row["files"] or ()),
        fingerprint=row["fingerprint"],
        definition=row["definition"],
        finished=bool(row["finished"]),
        rerun=rerun_of(row),
        terms=row["terms"],
        decision=_decision(row),
        replaces=tuple(row["replaces"] or ()),
    )


def commit_of(row: Mapping[str, Any], at_ms: int) -> Commit:
    return Commit(
        batch_id=row["batch_id"],
        versions=dict(row["versions"]),
        watermark_out_ms=row["watermark_out_ms"],
        to_sequence=row["to_sequence"],
        fingerprint=row["fingerprint"],
        definition=row["definition"],
        counts=dict(row["counts"]),
        at_ms=at_ms,
        rerun=rerun_of(row),
        plan_time_ms=row["plan_time_ms"],
        decision=_decision(row),
    )


def _decision(row: Mapping[str, Any]) -> Decision | None:
    return Decision.from_json(row["decision"]) if row["decision"] else None


def rerun_of(row: Mapping[str, Any]) -> Rerun | None:
    return Rerun.from_json(row["correction"]) if row["correction"] else None
