"""Outcome of a verification: compared rows, differences, and windows that were not compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from windowlib.definition.json_text import as_json
from windowlib.ledger.verifications import MOST_DIFFERENCES, Outcome, Verification

MISSING, UNEXPECTED, DIFFERENT = "missing", "unexpected", "different"


@dataclass(frozen=True, slots=True)
class VerifyFinding:
    """One difference between a table and the source.

    `kind` says that the row is missing, that it is unexpected, or that a value differs. `key` holds the values of the
    key columns. `window` holds the bounds of the row by name, with times in ms. `column` is None if the whole row is
    missing or unexpected. In this case `expected` or `found` holds all its values.
    """

    kind: str
    table: str
    key: Mapping[str, Any]
    window: Mapping[str, Any]
    column: str | None
    expected: Any
    found: Any


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Verification of a pipeline as of its newest batch.

    `compared` is the number of expected or found rows by table, whichever is greater. `differing` counts the differing
    rows by table. `differences` lists the first differences. `not_compared` has sentences about windows and rows that
    were left out.
    """

    pipeline: str
    batch_id: int
    from_ms: int | None
    to_ms: int | None
    sample: float
    seed: int
    files: int
    rows_read: int
    compared: Mapping[str, int]
    differing: Mapping[str, int]
    differences: Sequence[VerifyFinding] = field(default_factory=tuple)
    not_compared: Sequence[str] = field(default_factory=tuple)

    @property
    def found_nothing_to_compare(self) -> bool:
        return not any(self.compared.values()) and not self.differs

    @property
    def differs(self) -> bool:
        return any(self.differing.values())

    def json_fields(self) -> dict[str, Any]:
        """Fields of the report's JSON."""
        return {**asdict(self), "nothing_compared": self.found_nothing_to_compare}


def verification(report: VerifyReport, at: datetime) -> Verification:
    """Converts a report to a row of the table of verifications."""
    outcome: Outcome = "different" if report.differs else "equal"
    return Verification(
        at=at,
        batch_id=report.batch_id,
        outcome="nothing compared" if report.found_nothing_to_compare else outcome,
        from_ms=report.from_ms,
        to_ms=report.to_ms,
        sample=report.sample,
        seed=report.seed,
        files=report.files,
        rows_read=report.rows_read,
        compared=report.compared,
        differing=report.differing,
        differences=[as_json(finding) for finding in report.differences[:MOST_DIFFERENCES]],
        not_compared=report.not_compared,
    )
