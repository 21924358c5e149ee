"""Situations that an operator has acknowledged: they are kept quiet until a time.

    acknowledge   `decision` is JSON of `situation` and `until_ms`; who and why

A row of the ledger, which concerns no batch. Of several rows about one situation the newest counts.
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
    """A situation that is kept quiet before `until_ms`."""

    situation: str
    until_ms: int
    at_ms: int
    who: str
    reason: str


def acknowledge(ledger: Ledger, situation: str, until_ms: int, who: str, reason: str) -> None:
    """Keeps a situation quiet before `until_ms`. A plan in progress goes on."""
    decision = json.dumps({"situation": situation, "until_ms": until_ms}, sort_keys=True)
    ledger.write({"kind": KIND, "decision": decision, "who": who, "reason": reason})


def acknowledged(tables: Tables, now_ms: int) -> dict[str, Acknowledged]:
    """By situation, what is kept quiet at a time. Reads of the ledger only what may hold such a row."""
    table = tables[LEDGER.name]
    rows = rows_of_kinds(table, table.version(), {KIND}, ("sequence", "at", "decision", "who", "reason"))
    newest = {one.situation: one for one in map(_of_row, sorted(rows, key=lambda row: row["sequence"]))}
    return {situation: one for situation, one in newest.items() if one.until_ms > now_ms}


def quiet(found: Mapping[str, Acknowledged], situation: str) -> Acknowledged | None:
    """What keeps a situation quiet: that it was acknowledged, or all of its kind (`warning` of `warning.…`)."""
    return found.get(situation) or found.get(situation.partition(".")[0])


def _of_row(row: Mapping[str, Any]) -> Acknowledged:
    said = json.loads(row["decision"])
    return Acknowledged(said["situation"], said["until_ms"], at_ms_of(row), row["who"], row["reason"])
