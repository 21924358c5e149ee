"""Rows that are appended to the ledger in one commit, and the state after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from windowlib.contract.tables import LEDGER
from windowlib.definition.instants import utc
from windowlib.delta import data_files
from windowlib.ledger import moves
from windowlib.ledger.rows import LedgerState, applied, with_format

Row = Mapping[str, Any]
Rows = Sequence[Row]
Follow = Callable[[LedgerState], Rows] | None
"""Returns the rows to append together with another row, for the state after that row. None appends no further row."""


def entry(state: LedgerState, rows: Rows, now_ms: int) -> list[dict[str, Any]]:
    """Rows with all columns, numbered after the state, as they are read back.

    A row without an epoch gets the epoch of the newest claim, which may be an earlier one of these rows. Raises
    `moves.Moved` if no row may follow, because the tables were moved.
    """
    moves.require_stays(state.moved_to)
    epoch, numbered = state.claim.epoch if state.claim else 0, list[Row]()
    for sequence, row in enumerate(rows, state.sequence + 1):
        epoch = row.get("epoch", epoch)
        numbered.append({**with_format(row), "sequence": sequence, "epoch": epoch, "at": utc(now_ms)})
    return data_files.rows_of(pa.Table.from_pylist(numbered, schema=LEDGER.columns))


def after(state: LedgerState, rows: Iterable[Row]) -> LedgerState:
    """State after rows that are complete and numbered."""
    for row in rows:
        state = applied(replace(state, sequence=row["sequence"]), row)
    return state


def decided_since(state: LedgerState, before: LedgerState) -> bool:
    """Tests if anything but heartbeats and plans of new files was appended between two states."""
    return _decides(_without_new_plan(state, before)) != _decides(before)


def _without_new_plan(state: LedgerState, before: LedgerState) -> LedgerState:
    """Returns `state` without a plan of new files that was frozen after the state `before`.

    No run starts such a plan while the claim holds. `windowlib plan` and a task of Airflow plan without a claim.
    """
    plan = state.plan
    if plan is None or before.plan or state.prepared or plan.rerun or plan.decision:
        return state
    return replace(state, plan=None)


def _decides(state: LedgerState) -> tuple[object, ...]:
    """Parts of a state that a decision about the tables depends on. The commit is represented by its batch id, because
    an erasure may rewrite its other fields.
    """
    return state.plan, state.prepared, state.commit and state.commit.batch_id, state.kept_migration
