"""Rows of the ledger, and the state that they add up to: claim, plan and committed batches.
`windowlib.ledger.reading` reads the rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from windowlib.definition.instants import time_of
from windowlib.ledger.decision import NEWER, Decision, decision_of
from windowlib.ledger.late_bound import bound_ms
from windowlib.ledger.prepare import Prepared
from windowlib.ledger.rerun_request import Rerun, rerun_of
from windowlib.model.errors import StateMismatch
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.plans.partitions import values_of

CLAIM_KINDS = ("claim", "heartbeat", "release")
KINDS = (
    *(*CLAIM_KINDS, "plan", "prepare", "approve", "abandon", "commit"),
    *("restore", "clock", "acknowledge", "migrate_finish", "move"),
)
"""Kinds of rows that this version knows."""
FORMAT = 4
"""Format of a warehouse, stored in its plan, prepare and commit rows. Each change of a stored format raises it."""
KINDS_WITH_FORMAT = ("plan", "prepare", "commit")
COMMIT_COLUMNS = (
    *("batch_id", "versions", "watermark_out_ms", "to_sequence", "fingerprint", "definition", "counts", "at"),
    *("rerun", "plan_time_ms", "decision", "late_out_ms", "terms"),
)
"""Columns of a `Commit`."""
BY_ITSELF = "windowlib"  # `who` of a batch that windowlib abandoned by itself; the reason is the error of the run


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file at its place in arrival order (`sequence` from 1).

    `partition_values` are the values in the log of a Delta source, as JSON; None for other sources.
    """

    path: str
    size_bytes: int
    modified_ns: int
    sequence: int
    partition_values: str | None = None

    @property
    def values(self) -> dict[str, str | None]:
        """Partition values as strings, by column."""
        return values_of(self.path, self.partition_values)


class _OfADefinition:
    """A plan or commit with the stored part of its `definition`, as JSON."""

    __slots__ = ()
    definition: str

    @property
    def stored(self) -> dict[str, Any]:
        return dict(json.loads(self.definition))


@dataclass(frozen=True, slots=True)
class Plan(_OfADefinition):
    """Content of one batch, frozen before any work. The source range is `(from_sequence, to_sequence]`."""

    batch_id: int
    plan_time_ms: int
    watermark_in_ms: int | None
    from_sequence: int
    files: tuple[SourceFile, ...]
    fingerprint: str
    definition: str
    finished: bool = False  # no more events will come: every window fires
    rerun: Rerun | None = None  # set if the batch is a rerun; `files` then replace files that a removal rewrote
    terms: str = "{}"  # JSON of the other values that decide the outcome
    decision: Decision | None = None  # set if an operator decided the batch, which then reads no new file
    replaces: tuple[str, ...] = ()  # in a rerun after a removal: files that were read and are gone for good
    late_in_ms: int = MIN_WATERMARK  # the greatest max_timestamp_ms of a window that is late when the batch begins

    @property
    def to_sequence(self) -> int:
        return self.from_sequence + len(self.files)

    def late_after_ms(self, watermark_out_ms: int | None) -> int:
        """Returns the late bound after the batch, if it ends with this watermark."""
        return bound_ms(self.definition, watermark_out_ms, self.late_in_ms)


@dataclass(frozen=True, slots=True)
class Commit(_OfADefinition):
    """A committed batch: the versions of all tables, the watermark and the source position after it."""

    batch_id: int
    versions: Mapping[str, int]
    watermark_out_ms: int | None
    to_sequence: int
    fingerprint: str
    definition: str
    counts: Mapping[str, int]
    at_ms: int
    plan_time_ms: int
    late_out_ms: int  # the greatest max_timestamp_ms of a window that is late after the batch
    rerun: Rerun | None = None  # set if the batch is a rerun
    decision: Decision | None = None  # set if an operator decided the batch
    terms: str = "{}"  # JSON of the other values that decided the outcome


@dataclass(frozen=True, slots=True)
class Claim:
    """Newest claim of a pipeline.

    `alive_at_ms` is the time of the claim row or of its newest heartbeat, by the clock of the run's machine. `sign` is
    the sequence of that row.
    """

    epoch: int
    owner: str
    alive_at_ms: int
    sign: int
    released: bool = False


@dataclass(frozen=True, slots=True)
class LedgerState:
    """State of the ledger, read back to its newest commit row."""

    version: int | None = None
    sequence: int = 0
    last_batch_id: int = 0
    commit: Commit | None = None
    time_ms: int | None = None  # plan time of the newest batch, or the clock that an operator has accepted since
    claim: Claim | None = None
    plan: Plan | None = None  # frozen, not committed, not abandoned
    prepared: Prepared | None = None  # publication of that plan, fixed before the first table changes
    rejection: str | None = None  # reason why the checks refused the prepared batch
    approved_by: str | None = None
    is_begun: bool = False  # a run has held the pipeline since the plan was frozen or approved
    kept_migration: int | None = None  # batch of a migration that an operator has finished since the newest commit
    moved_to: str | None = None  # address of the folder to which an operator has moved the tables

    def pinned(self, table: str) -> int | None:
        """Version of a table that the newest commit row names; None if the row does not name the table."""
        return self.versions.get(table)

    @property
    def versions(self) -> Mapping[str, int]:
        """Version of each table that the newest commit row names."""
        return self.commit.versions if self.commit else {}

    @property
    def is_refused(self) -> bool:
        """Tests if the checks refused the planned batch and no operator has approved it."""
        return bool(self.rejection) and not self.approved_by

    @property
    def left_by_a_dead_run(self) -> bool:
        """Tests if the newest claim was not released: its run may be dead, or only slow."""
        return self.claim is not None and not self.claim.released


def plan_row(plan: Plan) -> dict[str, Any]:
    """Row that freezes a plan."""
    return {
        "kind": "plan",
        "batch_id": plan.batch_id,
        "plan_time_ms": plan.plan_time_ms,
        "watermark_in_ms": plan.watermark_in_ms,
        "late_in_ms": plan.late_in_ms,
        "from_sequence": plan.from_sequence,
        "to_sequence": plan.to_sequence,
        "files": [{name: getattr(f, name) for name in SourceFile.__dataclass_fields__} for f in plan.files],
        "replaces": list(plan.replaces),
        "fingerprint": plan.fingerprint,
        "definition": plan.definition,
        "finished": plan.finished,
        "rerun": plan.rerun.to_json() if plan.rerun else None,
        "terms": plan.terms,
        "decision": plan.decision.to_json() if plan.decision else None,
    }


def commit_row(plan: Plan, watermark_out_ms: int | None, late_out_ms: int, counts: Mapping[str, int]) -> dict[str, Any]:
    """Row that commits a batch, without the `versions` of the tables. `counts` are its figures."""
    of_plan = {name: value for name, value in plan_row(plan).items() if name not in ("files", "replaces", "finished")}
    about = {"kind": "commit", "watermark_out_ms": watermark_out_ms, "late_out_ms": late_out_ms, "counts": counts}
    return {**of_plan, **about}


def with_format(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds the format to a row if rows of its kind store the format."""
    return {**row, "format": FORMAT} if row["kind"] in KINDS_WITH_FORMAT else row


def abandon_row(batch_id: int, who: str, reason: str) -> dict[str, Any]:
    return {"kind": "abandon", "batch_id": batch_id, "who": who, "reason": reason}


def prepare_row(batch_id: int, prepared: Prepared, refused: str | None = None) -> dict[str, Any]:
    """Row that names a publication. `refused` is the reason why the checks refused the batch, or None.

    A refused batch waits for an operator's approval.
    """
    about = {"kind": "prepare", "batch_id": batch_id, "reason": refused}
    return {**about, "prepared": prepared.path, "sha256": prepared.sha256}


def applied(state: LedgerState, row: Mapping[str, Any]) -> LedgerState:
    at_ms = at_ms_of(row)
    _check_format(row)
    if row["batch_id"] is not None:
        state = replace(state, last_batch_id=max(state.last_batch_id, row["batch_id"]))
    match row["kind"]:
        case "claim":
            claim = Claim(row["epoch"], row["owner"], at_ms, row["sequence"])
            return replace(state, claim=claim, is_begun=state.plan is not None)
        case "heartbeat" if state.claim:
            return replace(state, claim=replace(state.claim, alive_at_ms=at_ms, sign=row["sequence"]))
        case "release" if state.claim:
            return replace(state, claim=replace(state.claim, released=True))
        case "plan":
            return replace(_without_plan(state), plan=_plan(row), is_begun=state.left_by_a_dead_run)
        case "prepare":
            prepared = Prepared(row["prepared"], row["sha256"])
            return replace(state, prepared=prepared, rejection=row["reason"], approved_by=None)
        case "approve":
            return replace(state, approved_by=row["who"], is_begun=False)
        case "abandon":
            return _without_plan(state)
        case "commit":
            commit = commit_of(row, at_ms)
            state = replace(state, commit=commit, time_ms=row["plan_time_ms"], kept_migration=None)
            return _without_plan(state)
        case "restore" | "acknowledge" | "heartbeat" | "release":  # no batch; or of a claim before the rows read
            return state
        case "migrate_finish":
            return replace(state, kept_migration=row["batch_id"])
        case "clock":
            return replace(state, time_ms=row["plan_time_ms"])
        case "move":
            return replace(state, moved_to=json.loads(row["decision"])["to"])
    raise StateMismatch(f"row {row['sequence']} of the ledger has the unknown kind {row['kind']}. {NEWER}")


def _check_format(row: Mapping[str, Any]) -> None:
    if row["kind"] in KINDS_WITH_FORMAT and (written := row.get("format") or 0) != FORMAT:
        raise StateMismatch(
            f"the warehouse has format {written} (row {row['sequence']} of the ledger, {row['kind']}), but this"
            f" version reads format {FORMAT}. Use the version that wrote it, or compute the pipeline again under"
            " another name or warehouse"
        )


def _without_plan(state: LedgerState) -> LedgerState:
    return replace(state, plan=None, prepared=None, rejection=None, approved_by=None, is_begun=False)


def at_ms_of(row: Mapping[str, Any]) -> int:
    return time_of(row["at"])


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
        decision=decision_of(row),
        replaces=tuple(row["replaces"] or ()),
        late_in_ms=row["late_in_ms"],
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
        plan_time_ms=row["plan_time_ms"],
        late_out_ms=row["late_out_ms"],
        rerun=rerun_of(row),
        decision=decision_of(row),
        terms=row["terms"] or "{}",
    )
