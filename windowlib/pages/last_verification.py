"""Outcome of the last `windowlib verify`, for a page."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant, time_of
from windowlib.definition.plurals import counted
from windowlib.ledger.verifications import Verification
from windowlib.pages.rows import TextRows, text_rows
from windowlib.reruns.preview_text import HIDDEN

SHOWN = 20


@dataclass(frozen=True, slots=True)
class LastVerification:
    """Last comparison with the source: `outcome` is equal, different or nothing compared; `about` has its scope."""

    at_ms: int
    outcome: str
    about: str
    differences: TextRows


def last_verification(definition: Definition, last: Verification | None) -> LastVerification | None:
    """Last comparison; None if there was none."""
    if last is None:
        return None
    which = "all windows" if last.from_ms is None else f"windows from {instant(last.from_ms)}"
    share = "" if last.sample == 1 else f" of {last.sample:g} of the keys"
    rows = ", ".join(counted(count, f"row of {table}") for table, count in last.compared.items())
    wrong = ", ".join(f"{count:,} of {table}" for table, count in last.differing.items() if count)
    about = f"as of batch {last.batch_id}: {which}{share}; {rows or 'no rows'} compared"
    return LastVerification(
        time_of(last.at), last.outcome, f"{about}; {wrong} differ" if wrong else about, _differences(definition, last)
    )


def _differences(definition: Definition, last: Verification) -> TextRows:
    keys = definition.source.key
    rows = [_row(json.loads(difference), definition.hidden) for difference in last.differences[:SHOWN]]
    return text_rows(definition, rows, ["difference", "table", *keys, "window", "column", "expected", "found"])


def _row(difference: Mapping[str, Any], hide: Collection[str]) -> dict[str, Any]:
    """A difference as a row of strings. Values of columns in `hide` are hidden."""
    bounds, column = " to ".join(_bound(value) for value in difference["window"].values()), difference["column"] or ""
    values = {side: HIDDEN if column in hide else _text(difference[side], hide) for side in ("expected", "found")}
    about = {"difference": difference["kind"], "table": difference["table"], "window": bounds, "column": column}
    return {**difference["key"], **values, **about}


def _text(value: Any, hide: Collection[str]) -> str:
    """Text of a value, or of all values of a row by column."""
    if isinstance(value, dict):
        value = {name: HIDDEN if name in hide else cell for name, cell in value.items()}
    return "" if value is None else str(value)


def _bound(value: Any) -> str:
    return instant(value) if isinstance(value, int) else str(value)
