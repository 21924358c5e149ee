"""Source files that an operator has set aside. No plan reads them until the operator takes them back.

Rows are appended outside of any batch. If several rows are about the same file, the newest row counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from windowlib.contract.record_tables import SET_ASIDE
from windowlib.delta import small_tables as small
from windowlib.ledger.migration import pipeline_of
from windowlib.storage.store import Store


@dataclass(frozen=True, slots=True)
class SetAsideDecision:
    """Decision of an operator about a file. With `back`, runs may read it again. `path` is relative to the source."""

    path: str
    at: datetime
    who: str
    reason: str
    back: bool = False


def decide(store: Store, decision: SetAsideDecision) -> None:
    """Appends a decision to the table."""
    small.add_row(store, SET_ASIDE, asdict(decision))


def files_set_aside(store: Store) -> dict[str, SetAsideDecision]:
    """Files that are set aside now, by path."""
    return {decision.path: decision for decision in newest_decisions(store) if not decision.back}


def newest_decisions(store: Store) -> list[SetAsideDecision]:
    """Newest decision about each file. A file with a decision `back` may be read again."""
    newest = {row["path"]: row for row in small.numbered_rows(pipeline_of(store), SET_ASIDE)}
    return [small.of_row(SetAsideDecision, row) for row in newest.values()]
