"""Outcome of each `windowlib verify`, which compares a pipeline's windows with its source.

Rows are appended outside of any batch. The row with the greatest `number` is the newest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from windowlib.contract.record_tables import VERIFICATIONS
from windowlib.delta import small_tables as small
from windowlib.storage.store import Store

Outcome = Literal["equal", "different", "nothing compared"]
MOST_DIFFERENCES = 50  # differences stored of one verification


@dataclass(frozen=True, slots=True)
class Verification:
    """Comparison of the windows that overlap `[from_ms, to_ms)`, for a `sample` of the keys. Bounds of None mean all
    windows.

    `batch_id` is the newest batch at the time of the comparison. `compared` and `differing` count rows by table.
    `differences` are the first differing rows, as JSON with the fields of
    `windowlib.inspection.verify.report.VerifyFinding`. `not_compared` states in sentences what was not compared.
    """

    at: datetime
    batch_id: int
    outcome: Outcome
    from_ms: int | None
    to_ms: int | None
    sample: float
    seed: int
    files: int
    rows_read: int
    compared: Mapping[str, int]
    differing: Mapping[str, int]
    differences: Sequence[str]
    not_compared: Sequence[str]


def keep(store: Store, verification: Verification) -> None:
    """Appends a verification to the table. Raises OSError or `DeltaError` if the disk refuses the write."""
    small.add_row(store, VERIFICATIONS, _row(verification))


def last(store: Store) -> Verification | None:
    """Newest verification of a pipeline; None if there was none."""
    row = small.newest_row(store, VERIFICATIONS)
    if row is None:
        return None
    counts = {name: dict(row[name]) for name in ("compared", "differing")}
    return small.of_row(Verification, {**row, **counts, "differences": json.loads(row["differences"])})


def _row(verification: Verification) -> dict[str, Any]:
    return {
        **asdict(verification),
        "differences": json.dumps([*verification.differences[:MOST_DIFFERENCES]]),
        "not_compared": list(verification.not_compared),
    }
