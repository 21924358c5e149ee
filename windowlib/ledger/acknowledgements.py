"""Situations that an operator has acknowledged. Each is silenced until a given time.

    acknowledge   `decision` is JSON with `situation` and `until_ms`; `who` and `reason` are set

An acknowledgement is a row of the ledger that belongs to no batch. If several rows name the same situation, the newest
counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowlib.contract.tables import LEDGER
from windowlib.delta.tables import Tables
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rows import at_ms_of

KIND = "acknowledge"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A situation that is silenced before `until_ms`."""

    situation: str
    until_ms: int
    at_ms: int
    who: str
    reason: str


def acknowledge(ledger: Ledger, situation: str, until_ms: int, who: str, reason: str) -> None:
    """Silences a situation before `until_ms`. Does not affect a plan in progress."""
    decision = json.dumps({"situation": situation, "until_ms": until_ms}, sort_keys=True)
    ledger.write({"kind": KIND, "decision": decision, "who": who, "reason": reason})


def acknowledged(tables: Tables, now_ms: int) -> dict[str, Acknowledged]:
    """Situations that are silenced at `now_ms`, by name. Reads only the row groups that may hold acknowledgements."""
    table = tables[LEDGER.name]
    rows = rows_of_kinds(table, table.version(), {KIND}, ("sequence", "at", "decision", "who", "reason"))
    newest = {entry.situation: entry for entry in map(_of_row, sorted(rows, key=lambda row: row["sequence"]))}
    return {situation: entry for situation, entry in newest.items() if entry.until_ms > now_ms}


def acknowledgement_of(entries: Mapping[str, Acknowledged], situation: str) -> Acknowledged | None:
    """Acknowledgement of a situation, else of its category (`warning` for `warning.…`); None if neither exists."""
    return entries.get(situation) or entries.get(situation.partition(".")[0])


def _of_row(row: Mapping[str, Any]) -> Acknowledged:
    values = json.loads(row["decision"])
    return Acknowledged(values["situation"], values["until_ms"], at_ms_of(row), row["who"], row["reason"])
