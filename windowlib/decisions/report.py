"""Report of a decision: its subject, its author and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windowlib.definition.instants import iso_instant, time_of


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """Decision of an operator. `about` names its subject: a batch, tables, a file or a time.

    >>> DecisionReport("approve", "ann", "the shops were closed", {"batch_id": 6}).json_fields()
    {'batch_id': 6, 'decision': 'approve', 'who': 'ann', 'reason': 'the shops were closed'}
    """

    decision: str
    who: str
    reason: str
    about: Mapping[str, Any]

    def json_fields(self) -> dict[str, Any]:
        """Fields of the report in JSON."""
        about = {name: _plain(value) for name, value in self.about.items()}
        return {**about, "decision": self.decision, "who": self.who, "reason": self.reason}


def _plain(value: Any) -> Any:
    return iso_instant(time_of(value)) if isinstance(value, datetime) else value
