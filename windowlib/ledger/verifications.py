"""What `windowlib verify` has found, each time it compared a pipeline's windows with its source.

The table is appended to outside of any batch; the row with the greatest number is the last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from windowlib.contract.record_tables import VERIFICATIONS
from windowlib.delta import small_tables as small

Outcome = Literal["equal", "different", "nothing compared"]
MOST_DIFFERENCES = 50  # that are kept of one


@dataclass(frozen=True, slots=True)
class Verification:
    """One comparison, of the windows that meet `[from_ms, to_ms)` (None: all) of a `sample` of keys.

    `batch_id` is the newest batch then; `compared` and `differing` count rows by table. `differences` are the first of
    them as JSON with the fields of `windowlib.inspection.verify.report.VerifyFinding`, `not_compared` sentences.
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


def keep(root: Path, made: Verification) -> None:
    """Adds a verification to those that are kept. Raises OSError, `DeltaError` where the disk refuses."""
    small.add_row(root, VERIFICATIONS, _row(made))


def last(root: Path) -> Verification | None:
    """The newest verification of a pipeline; None without any."""
    row = small.newest_row(root, VERIFICATIONS)
    if row is None:
        return None
    counts = {name: dict(row[name]) for name in ("compared", "differing")}
    return small.of_row(Verification, {**row, **counts, "differences": json.loads(row["differences"])})


def _row(made: Verification) -> dict[str, Any]:
    return {
        **asdict(made),
        "differences": json.dumps([*made.differences[:MOST_DIFFERENCES]]),
        "not_compared": list(made.not_compared),
    }
