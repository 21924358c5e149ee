"""Values that the suites need from a definition, so that the judging process need not load the definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.definition.toml.column_tests import ColumnTest, RowCountTest

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition


@dataclass(frozen=True, slots=True)
class Terms:
    """Values of a definition by which the suites judge its batches. Paths are absolute."""

    key: tuple[str, ...]
    fires_often: bool
    fires_at_the_end: bool  # windows fire at their end in event time, and at no other moment
    by_function: bool  # a window may have several results
    out_of_orderness_ms: int
    idle_timeout_ms: int | None
    max_late_share: float
    max_unusable_share: float
    max_duplicate_share: float
    suites: Path | None
    figures_suite: Path | None
    results_suite: Path | None
    column_tests: tuple[ColumnTest, ...] = ()
    row_count: RowCountTest | None = None

    @classmethod
    def of(cls, definition: Definition) -> Terms:
        """Takes the values from a definition."""
        checks, watermark = definition.checks, definition.watermark
        return cls(
            key=tuple(definition.source.key),
            fires_often=not definition.spec.updates_results,
            fires_at_the_end=definition.spec.fires_at_the_end,
            by_function=definition.window.function is not None,
            out_of_orderness_ms=watermark.out_of_orderness_ms,
            idle_timeout_ms=watermark.idle_timeout_ms,
            max_late_share=checks.max_late_share,
            max_unusable_share=checks.max_unusable_share,
            max_duplicate_share=checks.max_duplicate_share,
            suites=checks.suites and checks.suites.absolute(),
            figures_suite=checks.figures_suite and checks.figures_suite.absolute(),
            results_suite=checks.results_suite and checks.results_suite.absolute(),
            column_tests=checks.column_tests,
            row_count=checks.row_count_test,
        )

    @classmethod
    def from_json(cls, terms: Mapping[str, Any]) -> Terms:
        """Restores the values from JSON, in which paths are strings, the key is a list, and tests are objects."""
        paths = {name: Path(terms[name]) for name in ("suites", "figures_suite", "results_suite") if terms[name]}
        tests = {
            "column_tests": tuple(ColumnTest(**test) for test in terms["column_tests"]),
            "row_count": terms["row_count"] and RowCountTest(**terms["row_count"]),
        }
        return cls(**{**terms, "key": tuple(terms["key"]), **paths, **tests})
