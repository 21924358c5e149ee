"""Source files that an operator has set aside: no plan takes them until they are taken back.

The table is appended to by operators, outside of any batch; of several rows about one file the newest counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from windowlib.contract.record_tables import SET_ASIDE
from windowlib.delta import small_tables as small
from windowlib.ledger.migration import pipeline_of


@dataclass(frozen=True, slots=True)
class SetAsideDecision:
    """Decision of an operator about a file; with `back` it may be read again. `path` is relative to the source."""

    path: str
    at: datetime
    who: str
    reason: str
    back: bool = False


def decide(root: Path, decision: SetAsideDecision) -> None:
    """Adds a decision to those that are kept."""
    small.add_row(root, SET_ASIDE, asdict(decision))


def files_set_aside(root: Path) -> dict[str, SetAsideDecision]:
    """By path, the files that are set aside now."""
    return {one.path: one for one in _newest(root) if not one.back}


def files_taken_back(root: Path) -> list[str]:
    """The paths of files that were set aside and may be read again."""
    return [one.path for one in _newest(root) if one.back]


def _newest(root: Path) -> list[SetAsideDecision]:
    """The newest decision about each file."""
    newest = {row["path"]: row for row in small.numbered_rows(pipeline_of(root), SET_ASIDE)}
    return [small.of_row(SetAsideDecision, row) for row in newest.values()]
