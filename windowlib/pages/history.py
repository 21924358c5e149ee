"""The checks over the newest batches: what each observed, what was expected, whether it held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from windowlib.quality.check import EXAMPLES, CheckResult, in_words
from windowlib.quality.validations import Validated


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check of one batch."""

    batch_id: int
    result: CheckResult


@dataclass(frozen=True, slots=True)
class CheckHistory:
    """A check and its outcomes, oldest first."""

    suite: str
    sentence: str
    severity: str
    outcomes: Sequence[Outcome]

    @property
    def newest(self) -> CheckResult:
        return self.outcomes[-1].result

    @property
    def failures(self) -> Sequence[Outcome]:
        """Those that did not hold, newest first."""
        return [one for one in reversed(self.outcomes) if not one.result.success]


def results_of(batch: Validated, *, examples: bool) -> list[CheckResult]:
    """The checks of a batch, in words; without `examples` of values that a check of rows has met."""
    found = in_words(batch.suites, batch.figures)
    return found if examples else [replace(one, observed=one.observed.partition(EXAMPLES)[0]) for one in found]


def histories(batches: Iterable[Validated], *, examples: bool) -> list[CheckHistory]:
    """Each check of some batches (newest first): those that failed last first, then by suite."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for batch in batches:
        for result in results_of(batch, examples=examples):
            found.setdefault((result.suite, result.sentence), []).append(Outcome(batch.batch_id, result))
    made = [
        CheckHistory(suite, sentence, outcomes[0].result.severity, outcomes[::-1])
        for (suite, sentence), outcomes in found.items()
    ]
    return sorted(made, key=lambda one: (-max((f.batch_id for f in one.failures), default=0), one.suite))
