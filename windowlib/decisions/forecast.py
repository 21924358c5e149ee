"""Forecast of a decision: its effect on the tables, shown before anything changes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from windowlib.model.errors import WindowError
from windowlib.publication.foreign_changes import RowChange


class NothingToDo(WindowError):
    """The operation would change nothing, or its batch does not exist."""


@dataclass(frozen=True, slots=True)
class DecisionForecast:
    """Effect of a decision.

    rows:  row changes of each table that changes; None if only the next run computes them
    notes: a sentence for each further effect
    """

    title: str
    rows: tuple[RowChange, ...] | None
    notes: tuple[str, ...]

    def json_fields(self) -> dict[str, Any]:
        """Fields of the forecast in JSON. The key `forecast` distinguishes it from the report of a decision."""
        return {"forecast": asdict(self)}
