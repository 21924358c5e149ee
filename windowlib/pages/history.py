"""Checks over the newest batches: observed and expected values, success, and some of the wrong rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import Any

from windowlib.definition.definition import Definition
from windowlib.pages.rows import TextRows, text_rows
from windowlib.quality.check import CheckResult, Identity, column_of, identified, in_words, is_of_rows, without_examples
from windowlib.quality.figures import BY_DESIGN
from windowlib.quality.offending import WINDOW, rows_of
from windowlib.quality.suite_files import built_in_names
from windowlib.quality.validations import PAGES_KEEP, Validated

REFUSED = "quarantined_"  # prefix of figures; a reason follows
OF_QUARANTINE = ("rows_quarantined", "quarantine_rows_missing", "rows_without_reason", "rows_unaccounted")
OF_LATE = ("late_share", "rows_late", "late_rows_", "late_by_", "late_unaccounted")  # prefixes
GONE_NULL = "results_gone_null"
SPARKS = 40  # batches of a sparkline


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """One check of one batch. `value` is the judged number. `low` and `high` are its bounds. A missing number or bound
    is None.

    `rows` are some of the wrong results, with key and window.
    """

    batch_id: int
    result: CheckResult
    value: float | None = None
    low: float | None = None
    high: float | None = None
    rows: TextRows = field(default_factory=lambda: TextRows((), ()))


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive batches with the same outcome of a check."""

    first: int
    last: int
    result: CheckResult

    @property
    def batches(self) -> str:
        """Batch numbers in words."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class PageAnchor:
    """Link from a check to its rows on the page. `anchor` is the id of their section. `words` names the rows."""

    anchor: str
    words: str


@dataclass(frozen=True, slots=True)
class CheckHistory:
    """A check and its outcomes, oldest first."""

    suite: str
    sentence: str
    severity: str
    outcomes: Sequence[CheckOutcome]
    places: Sequence[PageAnchor] = ()

    @property
    def is_own(self) -> bool:
        """Tests if the author has written the check."""
        return self.suite not in built_in_names()

    @property
    def values(self) -> Sequence[float]:
        """Judged numbers of the newest batches, oldest first, for a sparkline. A batch without a number counts as 0."""
        return [outcome.value or 0.0 for outcome in self.outcomes[-SPARKS:]]

    @property
    def newest(self) -> CheckResult:
        return self.outcomes[-1].result

    @property
    def failures(self) -> Sequence[CheckOutcome]:
        """Failed outcomes, newest first."""
        return [outcome for outcome in reversed(self.outcomes) if not outcome.result.success]

    @property
    def spans(self) -> Sequence[Span]:
        """All outcomes, newest first. Consecutive batches with the same outcome form one span."""
        runs = (list(same) for _, same in groupby(self.outcomes, key=lambda outcome: _compared(outcome.result)))
        return [Span(same[0].batch_id, same[-1].batch_id, _brief(same[0].result)) for same in runs][::-1]


@lru_cache(maxsize=PAGES_KEEP)
def results_of(batch: Validated, *, examples: bool) -> Sequence[CheckResult]:
    """Results of the checks of a batch. Without `examples`, removes the example values of row checks."""
    results = in_words(batch.suites, batch.figures)
    return tuple(results if examples else map(_without_examples, results))


def outcomes_of(definition: Definition, batch: Validated) -> list[CheckOutcome]:
    """Outcomes of the checks of a batch. If `[pages]` hides columns, example values of checks are hidden too."""
    results = results_of(batch, examples=not definition.pages.hide)
    raw_outcomes = [(suite, raw) for suite in batch.suites for raw in suite["results"]]
    return [
        _outcome(definition, batch.batch_id, result, raw, hides=bool(definition.pages.hide) and is_of_rows(suite))
        for result, (suite, raw) in zip(results, raw_outcomes, strict=True)
    ]


def histories(definition: Definition, batches: Iterable[Validated], on_page: Collection[str]) -> list[CheckHistory]:
    """Each check of some batches (newest first): the author's first, then by newest failure, then by suite.

    `on_page` holds the ids of the page's sections that have rows.
    """
    by_check: dict[Identity, list[CheckOutcome]] = {}
    for batch in batches:
        outcomes = outcomes_of(definition, batch)
        identities = identified([outcome.result for outcome in outcomes])
        for (identity, _), outcome in zip(identities, outcomes, strict=True):
            by_check.setdefault(identity, []).append(outcome)
    checks = [
        CheckHistory(
            suite,
            outcomes[0].result.sentence,
            outcomes[0].result.severity,
            outcomes[::-1],
            [place for place in places(column_of(outcomes[0].result.expectation), on_page) if place.anchor in on_page],
        )
        for (suite, *_), outcomes in by_check.items()
    ]
    return sorted(
        checks,
        key=lambda check: (not check.is_own, -max((f.batch_id for f in check.failures), default=0), check.suite),
    )


def anchor_of(reason: str) -> str:
    """Id of the section with the rows that were refused for a reason."""
    return f"quarantine-{reason}"


def places(figure: str, on_page: Collection[str]) -> Iterator[PageAnchor]:
    """Yields links to the rows that a figure counts.

    >>> here = ["quarantine-null_key", "quarantine-duplicate", "late"]
    >>> [p.anchor for p in places("unusable_share", here)], [p.words for p in places("late_share", here)]
    (['quarantine-null_key'], ['late events'])
    """
    reasons = [anchor.removeprefix(anchor_of("")) for anchor in on_page if anchor.startswith(anchor_of(""))]
    by_figure = {
        "unusable_share": [reason for reason in reasons if f"{REFUSED}{reason}" not in BY_DESIGN],
        "duplicate_share": ["duplicate"],
        **dict.fromkeys(OF_QUARANTINE, reasons),
        **{f"{REFUSED}{reason}": [reason] for reason in reasons},
    }
    for reason in by_figure.get(figure, ()):
        yield PageAnchor(anchor_of(reason), f"rows refused as {reason}")
    if figure.startswith(OF_LATE):
        yield PageAnchor("late", "late events")
    if figure == GONE_NULL:
        yield PageAnchor("results", "the newest results")


def _without_examples(result: CheckResult) -> CheckResult:
    observed = without_examples(result.observed)
    return result if observed == result.observed else replace(result, observed=observed)  # few results have examples


def _brief(result: CheckResult) -> CheckResult:
    """Removes the figures of the batch from a successful result, because they differ in every batch."""
    return replace(result, observed=_compared(result)[-1]) if result.success else result


def _compared(result: CheckResult) -> tuple[bool, str, str, str, str]:
    """Values that are equal in all batches of a span."""
    observed = result.observed.partition(" (")[0].partition(" of ")[0] if result.success else result.observed
    return result.success, result.expectation, result.severity, result.expected, observed


def _outcome(
    definition: Definition, batch_id: int, result: CheckResult, raw: Mapping[str, Any], *, hides: bool
) -> CheckOutcome:
    arguments, details = raw["expectation_config"]["kwargs"], raw["result"]
    value = None if hides else _number(details.get("observed_value"))
    low, high = arguments.get("min_value"), arguments.get("max_value")
    if "observed_value" not in details and "unexpected_count" in details:
        value, low, high = _number(details["unexpected_count"]), None, None if "mostly" in arguments else 0
    return CheckOutcome(batch_id, result, value, _number(low), _number(high), _wrong(definition, raw))


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _wrong(definition: Definition, raw: Mapping[str, Any]) -> TextRows:
    """Wrong rows that an outcome names."""
    if not (rows := rows_of(raw)):
        return TextRows((), ())
    columns = dict.fromkeys([*definition.source.key, *WINDOW, *(name for row in rows for name in row)])
    return text_rows(definition, [{**row, **_times(row)} for row in rows], list(columns))


def _times(row: Mapping[str, Any]) -> dict[str, datetime]:
    return {name: datetime.fromisoformat(row[name]) for name in WINDOW if row.get(name)}
