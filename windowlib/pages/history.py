"""The checks over the newest batches: what each observed, what was expected, whether it held, which rows were wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import Any

from windowlib.definition.definition import Definition
from windowlib.pages.rows import TextRows, shown
from windowlib.quality.check import CheckResult, Identity, column_of, identified, in_words, is_of_rows, without_examples
from windowlib.quality.figures import BY_DESIGN
from windowlib.quality.offending import WINDOW, rows_of
from windowlib.quality.validations import PAGES_KEEP, Validated

REFUSED = "quarantined_"  # of figures: before a reason
OF_QUARANTINE = ("rows_quarantined", "quarantine_rows_missing", "rows_without_reason", "rows_unaccounted")
OF_LATE = ("late_share", "rows_late", "late_rows_", "late_by_", "late_unaccounted")  # beginnings
GONE_NULL = "results_gone_null"


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """One check of one batch. `value` is the number that was judged, `low` and `high` its bounds; None: there is none.

    `rows` are a few of the results that were wrong, with key and window.
    """

    batch_id: int
    result: CheckResult
    value: float | None = None
    low: float | None = None
    high: float | None = None
    rows: TextRows = field(default_factory=lambda: TextRows((), ()))


@dataclass(frozen=True, slots=True)
class Span:
    """Batches one after the other of which a check said the same."""

    first: int
    last: int
    result: CheckResult

    @property
    def batches(self) -> str:
        """Which, in words."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class PageAnchor:
    """Where a page has rows that a check is about: the id of a part of it, and what they are."""

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
    def newest(self) -> CheckResult:
        return self.outcomes[-1].result

    @property
    def failures(self) -> Sequence[CheckOutcome]:
        """Those that did not hold, newest first."""
        return [one for one in reversed(self.outcomes) if not one.result.success]

    @property
    def spans(self) -> Sequence[Span]:
        """All of them in few lines, newest first: batches that say the same stand together."""
        runs = (list(same) for _, same in groupby(self.outcomes, key=lambda one: _said(one.result)))
        return [Span(same[0].batch_id, same[-1].batch_id, _brief(same[0].result)) for same in runs][::-1]


@lru_cache(maxsize=PAGES_KEEP)
def results_of(batch: Validated, *, examples: bool) -> Sequence[CheckResult]:
    """The checks of a batch, in words; without `examples` of values that a check of rows has met."""
    found = in_words(batch.suites, batch.figures)
    return tuple(found if examples else map(_without_examples, found))


def outcomes_of(definition: Definition, batch: Validated) -> list[CheckOutcome]:
    """The checks of a batch; what `[pages]` hides is not shown, nor are then values that a check has met."""
    results = results_of(batch, examples=not definition.pages.hide)
    given = [(suite, one) for suite in batch.suites for one in suite["results"]]
    return [
        _outcome(definition, batch.batch_id, result, one, hides=bool(definition.pages.hide) and is_of_rows(suite))
        for result, (suite, one) in zip(results, given, strict=True)
    ]


def histories(definition: Definition, batches: Iterable[Validated], on_page: Collection[str]) -> list[CheckHistory]:
    """Each check of some batches (newest first): those that failed last first, then by suite.

    `on_page`: the ids of the parts of the page that have rows.
    """
    found: dict[Identity, list[CheckOutcome]] = {}
    for batch in batches:
        outcomes = outcomes_of(definition, batch)
        for (identity, _), one in zip(identified([one.result for one in outcomes]), outcomes, strict=True):
            found.setdefault(identity, []).append(one)
    made = [
        CheckHistory(
            suite,
            outcomes[0].result.sentence,
            outcomes[0].result.severity,
            outcomes[::-1],
            [one for one in places(column_of(outcomes[0].result.expectation), on_page) if one.anchor in on_page],
        )
        for (suite, *_), outcomes in found.items()
    ]
    return sorted(made, key=lambda one: (-max((f.batch_id for f in one.failures), default=0), one.suite))


def anchor_of(reason: str) -> str:
    """The id of the part of a page with the rows that were refused for a reason."""
    return f"quarantine-{reason}"


def places(figure: str, on_page: Collection[str]) -> Iterator[PageAnchor]:
    """Where the rows are that a figure counts.

    >>> here = ["quarantine-null_key", "quarantine-duplicate", "late"]
    >>> [one.anchor for one in places("unusable_share", here)], [one.words for one in places("late_share", here)]
    (['quarantine-null_key'], ['late events'])
    """
    reasons = [one.removeprefix(anchor_of("")) for one in on_page if one.startswith(anchor_of(""))]
    by_figure = {
        "unusable_share": [one for one in reasons if f"{REFUSED}{one}" not in BY_DESIGN],
        "duplicate_share": ["duplicate"],
        **dict.fromkeys(OF_QUARANTINE, reasons),
        **{f"{REFUSED}{one}": [one] for one in reasons},
    }
    for reason in by_figure.get(figure, ()):
        yield PageAnchor(anchor_of(reason), f"rows refused as {reason}")
    if figure.startswith(OF_LATE):
        yield PageAnchor("late", "late events")
    if figure == GONE_NULL:
        yield PageAnchor("results", "the newest results")


def _without_examples(result: CheckResult) -> CheckResult:
    observed = without_examples(result.observed)
    return result if observed == result.observed else replace(result, observed=observed)  # few have any


def _brief(result: CheckResult) -> CheckResult:
    """Of one that held, without the figures that its value was made of, which differ from batch to batch."""
    return replace(result, observed=_said(result)[-1]) if result.success else result


def _said(result: CheckResult) -> tuple[bool, str, str, str, str]:
    """What is compared of one batch and the next."""
    observed = result.observed.partition(" (")[0] if result.success else result.observed
    return result.success, result.expectation, result.severity, result.expected, observed


def _outcome(
    definition: Definition, batch_id: int, result: CheckResult, given: Mapping[str, Any], *, hides: bool
) -> CheckOutcome:
    arguments, seen = given["expectation_config"]["kwargs"], given["result"]
    value = None if hides else _number(seen.get("observed_value"))
    low, high = arguments.get("min_value"), arguments.get("max_value")
    if "observed_value" not in seen and "unexpected_count" in seen:
        value, low, high = _number(seen["unexpected_count"]), None, None if "mostly" in arguments else 0
    return CheckOutcome(batch_id, result, value, _number(low), _number(high), _wrong(definition, given))


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _wrong(definition: Definition, given: Mapping[str, Any]) -> TextRows:
    """The wrong rows that an outcome names."""
    if not (rows := rows_of(given)):
        return TextRows((), ())
    named = dict.fromkeys([*definition.source.key, *WINDOW, *(name for row in rows for name in row)])
    return shown(definition, [{**row, **_times(row)} for row in rows], list(named))


def _times(row: Mapping[str, Any]) -> dict[str, datetime]:
    return {name: datetime.fromisoformat(row[name]) for name in WINDOW if row.get(name)}
