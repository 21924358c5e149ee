"""Input of the search for results, and of the page that explains one, with what they found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windowlib.definition.plurals import counted
from windowlib.pages.rows import RESULTS_FOUND, TextRows
from windowlib.pages.served.explained import ExplainedResult


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Search input as typed, and the rows that match, or a `problem` with the input.

    `key` holds a string for each column that can be searched.
    """

    key: Mapping[str, str]
    since: str
    until: str
    rows: TextRows
    problem: str | None = None

    @property
    def is_filtered(self) -> bool:
        """Tests if a field is filled."""
        return any((self.since, self.until, *self.key.values()))

    @property
    def found_words(self) -> str:
        """Number of results found. The search reads only the newest files, and ends at `RESULTS_FOUND`."""
        count, matching = len(self.rows.cells), " that match" if self.is_filtered else ""
        if count >= RESULTS_FOUND:
            return f"The newest {count} results{matching}. There may be more."
        return f"{counted(count, 'result')}{matching} among the newest."


@dataclass(frozen=True, slots=True)
class ExplainSearch:
    """Input of the page that explains a result, as typed, and its `result`, or a `problem` with the input."""

    key: Mapping[str, str]
    at: str
    result: ExplainedResult | None = None
    problem: str | None = None
