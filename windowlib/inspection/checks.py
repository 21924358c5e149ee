"""The checks of a pipeline, each explained by its subject, its current bound, its last value and its owner.

Suites are read as a run reads them (`windowlib.quality.suite_files`). Bounds are computed as for a batch planned now.
Outcomes are the stored outcomes of the newest batches, including refused batches. Neither Great Expectations nor Spark
is started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from windowlib.batches.planning import ledger_of
from windowlib.definition.commands import THIS, to_paste
from windowlib.definition.definition import Definition
from windowlib.model.errors import InvalidSpec
from windowlib.quality.check import UNBOUNDED, Identity, bounds_in_words, identified, in_words, name_of
from windowlib.quality.figure_words import meaning_of
from windowlib.quality.figures import parameters
from windowlib.quality.judge import check_suites
from windowlib.quality.number_words import number_in_words
from windowlib.quality.pipeline_suites import suites_of
from windowlib.quality.suite_files import OF_ROWS, OWN_TESTS, Expectation, Suite
from windowlib.quality.terms import Terms
from windowlib.quality.validations import Validated, stored_outcomes
from windowlib.runs.history import history

RECENT = 20  # number of newest batches whose outcomes are read
# Parameters that are keys of `[checks]`.
IN_CHECKS = ("max_late_share", "max_unusable_share", "max_duplicate_share")
NOT_SAID, NO_BOUND = "not said", "none yet"


@dataclass(frozen=True, slots=True)
class CheckObservation:
    """Outcome of a check in a batch. `value` is the observed value if it is a number, else None."""

    batch_id: int
    success: bool
    observed: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Check:
    """A check with its outcomes, newest first (`seen`).

    `low` and `high` are the bounds, or None. They are inclusive unless the check is strict.
    """

    name: str
    suite: str
    sentence: str
    severity: str
    owner: str
    judges: str
    observes: list[str]
    bound: str
    low: float | None
    high: float | None
    fails: str
    override: str
    seen: list[CheckObservation]

    @property
    def outcome(self) -> str:
        """The newest outcome, in a word."""
        return "not judged yet" if not self.seen else "met" if self.seen[0].success else "failed"


@dataclass(frozen=True, slots=True)
class PipelineChecks:
    """All checks of a pipeline, in the order in which they are judged. `owner` is None if the pipeline has no owner."""

    pipeline: str
    owner: str | None
    batch_id: int | None
    checks: list[Check]


def checks(definition: Definition, now_ms: int, *, as_judged: bool = False) -> PipelineChecks:
    """Every check, with the bounds of a batch planned at `now_ms`. Raises `InvalidSpec` if a suite has mistakes.

    With `as_judged`, Great Expectations validates the pipeline's own suites too. This takes seconds.
    """
    batches = stored_outcomes(definition.store, RECENT)
    outcomes = list(_outcomes(batches))
    bounds = _parameters(definition, now_ms)
    suites, own = suites_of(Terms.of(definition), bounds), definition.checks
    if as_judged and (own.suites or own.figures_suite or own.results_suite):
        check_suites(suites)
    explained = [_check(definition, listed, bounds, outcomes) for listed in _listed(suites)]
    return PipelineChecks(definition.name, definition.owner, batches[0].batch_id if batches else None, explained)


def check_named(pipeline: PipelineChecks, name: str) -> Check:
    """The check with this name, with or without the suite: `events.late_share`, `late_share`. Raises `InvalidSpec`."""
    by_name = {check.name: check for check in pipeline.checks}
    if name in by_name:
        return by_name[name]
    matches = [check for full_name, check in by_name.items() if full_name.partition(".")[2] == name]
    if len(matches) == 1:
        return matches[0]
    near = [check.name for check in matches] or get_close_matches(name, by_name, 3, 0.4)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise InvalidSpec(f'{pipeline.pipeline} has no check "{name}"{hint} `{to_paste("checks", THIS)}` lists all')


def _parameters(definition: Definition, now_ms: int) -> dict[str, float | None]:
    ledger = ledger_of(definition, lambda: now_ms)
    state = ledger.state()
    watermark_ms = state.commit.watermark_out_ms if state.commit else None
    now = {"plan_time_ms": now_ms, "rows_read": 1, "watermark_out_ms": watermark_ms}
    return parameters(Terms.of(definition), now, history(ledger.tables, state, now_ms))


@dataclass(frozen=True, slots=True)
class _Listed:
    """An expectation of a suite, and the name of its check. `key` identifies the check's outcome in a batch."""

    suite: Suite
    expectation: Expectation
    name: str
    key: Identity


def _listed(suites: Sequence[Suite]) -> Iterator[_Listed]:
    """Names each expectation `suite.column` or `suite.type`. Repeated names get a number, from `_2` on."""
    names, keys = Counter[str](), Counter[tuple[str, str]]()
    for suite in suites:
        for expectation in suite.expectations:
            column, kind = expectation.config["kwargs"].get("column"), str(expectation.config["type"])
            of_figure = column is not None and suite.judges != OF_ROWS
            name = f"{suite.name}.{column if of_figure else kind.removeprefix('expect_')}"
            expected = suite.name, name_of(expectation.config)
            names[name] += 1
            keys[expected] += 1
            numbered = name if names[name] == 1 else f"{name}_{names[name]}"
            yield _Listed(suite, expectation, numbered, (*expected, keys[expected]))


def _check(
    definition: Definition,
    listed: _Listed,
    bounds: Mapping[str, float | None],
    outcomes: Sequence[Mapping[Identity, CheckObservation]],
) -> Check:
    suite, expectation, config = listed.suite, listed.expectation, listed.expectation.config
    filled = {key: _filled(value, bounds) for key, value in config["kwargs"].items()}
    mine = [batch[listed.key] for batch in outcomes if listed.key in batch]
    low, high = (_bound(filled.get(side)) for side in ("min_value", "max_value"))
    bound = NO_BOUND if _is_open(expectation, low, high) else bounds_in_words(filled)
    return Check(
        name=listed.name,
        suite=suite.name,
        sentence=config.get("description") or f"{name_of(config)} holds.",
        severity=str(config.get("severity", "critical")),
        owner=str((config.get("meta") or {}).get("owner") or definition.owner or NOT_SAID),
        judges=suite.judges,
        observes=_observes(expectation),
        bound=bound,
        low=low,
        high=high,
        fails=_fails(filled, suite.judges, bound, mine[:1]),
        override=_override(definition, suite, expectation),
        seen=mine,
    )


def _outcomes(batches: Sequence[Validated]) -> Iterator[Mapping[Identity, CheckObservation]]:
    """Yields the outcomes of each batch, newest batch first, by identity of the check."""
    for batch in batches:
        raw = [result for suite in batch.suites for result in suite["results"]]
        outcomes = dict[Identity, CheckObservation]()
        for (identity, result), outcome in zip(identified(in_words(batch.suites, batch.figures)), raw, strict=True):
            value = (outcome.get("result") or {}).get("observed_value")
            number = float(value) if isinstance(value, int | float) else None
            outcomes[identity] = CheckObservation(batch.batch_id, result.success, result.observed, number)
        yield outcomes


def _filled(value: Any, bounds: Mapping[str, float | None]) -> Any:
    """Replaces a parameter by its value, and a formula of parameters by its text. Returns other values unchanged."""
    if isinstance(value, dict) and "$PARAMETER" in value:
        return bounds.get(value["$PARAMETER"], f"({value['$PARAMETER']})")
    return value


def _bound(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _observes(expectation: Expectation) -> list[str]:
    """The figure that an expectation checks, then the figures behind that figure, each with its meaning."""
    column = str(expectation.config["kwargs"].get("column", ""))
    names = dict.fromkeys([*([column] if meaning_of(column) else []), *expectation.ours.get("figures", ())])
    named = [f"{name}: {meaning_of(name) or 'a figure'}" for name in names]
    return named or [f"{name_of(expectation.config)} of Great Expectations"]


def _fails(filled: Mapping[str, Any], judges: str, bound: str, newest: Sequence[CheckObservation]) -> str:
    """Sentences that state when a check fails, and the newest value.

    >>> share, figures = {"column": "late_share", "min_value": 0.0, "max_value": 0.1}, "figures of a batch"
    >>> _fails(share, figures, "0 to 0.1", [CheckObservation(7, True, "0.025", 0.025)])
    'It fails if late_share is above 10 %. Batch 7 had 2.5 %: 25 % of the bound.'
    >>> _fails({"column": "rows_unaccounted", "min_value": 0.0, "max_value": 0.0}, figures, "0", [])
    'It fails if rows_unaccounted is not 0. The check has judged no batch yet.'
    >>> _fails({"column": "timing", "value_set": ["late"]}, figures, "value_set=['late']", [])
    "It fails if timing does not meet the check: value_set=['late']. The check has judged no batch yet."
    >>> _fails({"column": "windows_fired", "min_value": 0.0, "max_value": None}, figures, NO_BOUND, [])
    'It cannot fail now: earlier batches do not give a bound yet.'
    """
    column, limits = filled.get("column"), _limits(filled)
    if judges == OF_ROWS:
        text = "It fails if a row that the batch wrote to results does not meet the check" + (limits and f": {limits}")
    elif bound == NO_BOUND:
        return "It cannot fail now: earlier batches do not give a bound yet."
    elif limits:
        text = f"It fails if {limits}"
    else:
        text = f"It fails if {column or 'a batch'} does not meet the check"
        text += f": {bound}" if bound != UNBOUNDED else ""
    if not newest:
        return f"{text}. The check has judged no batch yet."
    return f"{text}. {_newest(filled, judges, newest[0])}"


def _newest(filled: Mapping[str, Any], judges: str, last: CheckObservation) -> str:
    """Value of the newest batch, and its share of the upper bound."""
    if not last.success:
        return f"Batch {last.batch_id} failed: observed {last.observed}."
    if last.value is None or judges == OF_ROWS:
        return f"Batch {last.batch_id} met the check: observed {last.observed}."
    low, high = _bound(filled.get("min_value")), _bound(filled.get("max_value"))
    near = f": {last.value / high:.0%} of the bound".replace("%", " %") if high and not low else ""
    value = number_in_words(last.value, str(filled.get("column", "")))
    return f"Batch {last.batch_id} had {value}{near}."


def _is_open(expectation: Expectation, low: float | None, high: float | None) -> bool:
    """Tests if the bound is derived from earlier batches and has no value yet."""
    return high is None and not low and any(isinstance(value, dict) for value in expectation.config["kwargs"].values())


def _limits(filled: Mapping[str, Any]) -> str:
    """Condition for a number outside its bounds; empty if there are no numeric bounds.

    >>> _limits({"column": "n", "min_value": 1, "max_value": 9, "strict_max": True}), _limits({"column": "n"})
    ('n is below 1 or not below 9', '')
    >>> _limits({"column": "n", "min_value": 0})
    'n is below 0'
    """
    column, low, high = filled.get("column"), _bound(filled.get("min_value")), _bound(filled.get("max_value"))
    if column is None or (low is None and high is None):
        return ""
    if low == high:
        return f"{column} is not {number_in_words(low, column)}"
    under, over = (
        "not above" if filled.get("strict_min") else "below",
        "not below" if filled.get("strict_max") else "above",
    )
    sides = [f"{under} {number_in_words(low, column)}"] * (low is not None and (high is None or low != 0))
    return f"{column} is {' or '.join([*sides, *[f'{over} {number_in_words(high, column)}'] * (high is not None)])}"


def _override(definition: Definition, suite: Suite, expectation: Expectation) -> str:
    """Place where the user can change the bound."""
    named = {value["$PARAMETER"] for value in expectation.config["kwargs"].values() if isinstance(value, dict)}
    for key in IN_CHECKS:
        if key in named:
            now = getattr(definition.checks, key)
            return f"in {definition.file}, under [checks]: {key} = …   (0 to 1, now {number_in_words(now)})"
    file = expectation.place.partition(": expectation")[0]
    own = definition.checks.suites
    if suite.name == OWN_TESTS:
        return f"in {definition.file}: {expectation.place}"
    if suite.name.startswith("own_") or (own and Path(file).is_relative_to(own.absolute())):
        return f"edit {file}"
    return (
        f'in {definition.file}, under [checks]: suites = "FOLDER", and in that folder a copy of {file} with another'
        " bound or severity; the copy replaces ours"
    )
