"""Rows of the ledger that another version of windowlib writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from windowlib.contract.tables import LEDGER
from windowlib.delta import commits as delta_commits
from windowlib.delta import small_tables
from windowlib.ledger.ledger import Ledger


def written_by_another_version(ledger: Ledger, row: Mapping[str, Any]) -> None:
    """Appends a row without the checks of this version."""
    table, state = ledger.tables[LEDGER.name], ledger.state()
    version = delta_commits.create(table, LEDGER.schema()) if state.version is None else state.version
    common = {"epoch": 0, "sequence": state.sequence + 1, "at": datetime.now(tz=UTC)}
    small_tables.append_rows(table, version, [{**common, **row}])
