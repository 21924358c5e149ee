"""The ledger's rows, and the state they make: who runs, what is planned, which batches exist.

How they are read: `windowlib.ledger.reading`.
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

OF_CLAIMS = ("claim", "heartbeat", "release")
KINDS = (
    *(*OF_CLAIMS, "plan", "prepare", "approve", "abandon", "commit"),
    *("restore", "clock", "acknowledge", "migrate_finish"),
)
"""The kinds of rows that this version knows."""
FORMAT = 4
"""Format of a warehouse, kept in its plan, prepare and commit rows. Each change of what is stored raises it."""
OF_A_FORMAT = ("plan", "prepare", "commit")
OF_COMMITS = (
    *("batch_id", "versions", "watermark_out_ms", "to_sequence", "fingerprint", "definition", "counts", "at"),
    *("rerun", "plan_time_ms", "decision", "late_out_ms"),
)
"""The columns that a `Commit` is made of."""
BY_ITSELF = "windowlib"  # who has abandoned a batch where no person has: the reason is what a run has failed at


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the source at its place in arrival order (`sequence` from 1).

    `partition_values`: of a Delta source the values that its log has for the file, as JSON.
    """

    path: str
    size_bytes: int
    modified_ns: int
    sequence: int
    partition_values: str | None = None

    @property
    def values(self) -> dict[str, str | None]:
        """The texts of its partition columns, by column."""
        return values_of(self.path, self.partition_values)


class _OfADefinition:
    """What is planned or committed with a definition: `definition` is the JSON of what is kept of that."""

    __slots__ = ()
    definition: str

    @property
    def stored(self) -> dict[str, Any]:
        return dict(json.loads(self.definition))


@dataclass(frozen=True, slots=True)
class Plan(_OfADefinition):
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
    terms: str = "{}"  # JSON of what else decides its outcome
    decision: Decision | None = None  # an operator's: no new file is read
    replaces: tuple[str, ...] = ()  # by a rerun that takes a removal: the files that were read and are gone for good
    late_in_ms: int = MIN_WATERMARK  # the greatest max_timestamp_ms of a window that is late when the batch begins

    @property
    def to_sequence(self) -> int:
        return self.from_sequence + len(self.files)

    def late_after_ms(self, watermark_out_ms: int | None) -> int:
        """Returns the greatest max_timestamp_ms of a window that is late when the batch ends with this watermark."""
        return bound_ms(self.definition, watermark_out_ms, self.late_in_ms)


@dataclass(frozen=True, slots=True)
class Commit(_OfADefinition):
    """A run that exists: the versions of all tables, the watermark and the source position it left."""

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
    rerun: Rerun | None = None  # of a rerun
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
    prepared: Prepared | None = None  # what that plan led to, fixed before the first table changes
    rejection: str | None = None  # why the checks refused it
    approved_by: str | None = None
    is_begun: bool = False  # a run has held the pipeline since the plan was frozen, or approved
    kept_migration: int | None = None  # the batch of one that an operator has kept for good since the newest commit

    def pinned(self, table: str) -> int | None:
        """The version of a table that the newest commit row names; None where it names none."""
        return self.versions.get(table)

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of each table that the newest commit row names."""
        return self.commit.versions if self.commit else {}

    @property
    def is_refused(self) -> bool:
        """Whether the checks refuse the batch that is planned, and no operator has approved it."""
        return bool(self.rejection) and not self.approved_by

    @property
    def left_by_a_dead_run(self) -> bool:
        """Whether the run that claimed last did not release: it may be dead, or only slow."""
        return self.claim is not None and not self.claim.released


def plan_row(plan: Plan) -> dict[str, Any]:
    """The row that freezes a plan."""
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
    """The row by which a batch exists, but for the `versions` of the tables; `counts` are its figures."""
    of_plan = {name: value for name, value in plan_row(plan).items() if name not in ("files", "replaces", "finished")}
    about = {"kind": "commit", "watermark_out_ms": watermark_out_ms, "late_out_ms": late_out_ms, "counts": counts}
    return {**of_plan, **about}


def with_format(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row, with the format that it is written in where it has one."""
    return {**row, "format": FORMAT} if row["kind"] in OF_A_FORMAT else row


def abandon_row(batch_id: int, who: str, reason: str) -> dict[str, Any]:
    return {"kind": "abandon", "batch_id": batch_id, "who": who, "reason": reason}


def prepare_row(batch_id: int, prepared: Prepared, refused: str | None = None) -> dict[str, Any]:
    """The row that names a publication; `refused` says why the checks hold it back until an operator approves it."""
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
        case (
            "restore" | "acknowledge"
        ):  # about no batch: in the tables' logs, and in `windowlib.ledger.acknowledgements`
            return state
        case "migrate_finish":
            return replace(state, kept_migration=row["batch_id"])
        case "clock":
            return replace(state, time_ms=row["plan_time_ms"])
        case "heartbeat" | "release":
            return state  # the claim itself is further back than was read
    raise StateMismatch(
        f"row {row['sequence']} of the ledger is of a kind that this version of windowlib does not know:"
        f" {row['kind']}. {NEWER}"
    )


def _check_format(row: Mapping[str, Any]) -> None:
    if row["kind"] in OF_A_FORMAT and (written := row.get("format") or 0) != FORMAT:
        raise StateMismatch(
            f"the warehouse has format {written} (row {row['sequence']} of the ledger, {row['kind']}), this version"
            f" reads format {FORMAT}: use the version that wrote it, or compute the pipeline again under"
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
    )
