"""Judges a batch before its commit, and stores the outcome for the report.

    checks = check(terms, store, figures, history, result_files)
    if failed := critical_failures(checks):     # then nothing is committed
        print(explain(failed))

Great Expectations takes seconds to import. If `preload` is called first, another process does the import
(`windowlib.quality.judge`), while this process reads and computes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from windowlib.quality.judge import judge_batch, start_judge
from windowlib.quality.number_words import SHARE, number_in_words
from windowlib.quality.suite_files import JUDGED, OF_ROWS
from windowlib.quality.terms import Terms
from windowlib.quality.validations import keep
from windowlib.storage.object_file import ObjectFile
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from windowlib.quality.figures import Figures


EXAMPLES = ", such as "  # separates the observation of a row check from example values
Identity: TypeAlias = tuple[str, str, int]
UNBOUNDED = "no exception"  # `expected` of a check without bounds
OF_VALUES = "expect_column_"  # prefix of expectations whose observation is a column value


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Outcome of a check, in words. `severity` is critical, warning or info."""

    suite: str
    expectation: str
    severity: str
    sentence: str
    success: bool
    observed: str
    expected: str


def preload() -> None:
    """Starts the process that judges batches. Call this before the Spark session is built: both starts take seconds."""
    start_judge()


def check(
    terms: Terms,
    store: Store,
    figures: Figures,
    history: Sequence[Figures] = (),
    result_files: Sequence[ObjectFile] = (),
) -> list[CheckResult]:
    """Judges a batch and returns the outcome of each check. Puts the outcomes into the pipeline's `store`.

    `history` contains the figures of earlier batches. `result_files` contain only the results that this batch adds or
    changes, because earlier results were judged before their own commit. Raises `InvalidSpec` for a mistake in a suite.
    """
    outcomes = judge_batch((terms, figures, history, result_files))
    keep(store, figures, [_without_tracebacks(outcome) for outcome in outcomes])
    return in_words(outcomes, figures)


def in_words(outcomes: Iterable[Mapping[str, Any]], figures: Figures) -> list[CheckResult]:
    """Converts the outcomes of suites that Great Expectations returns to one result per check."""
    return [
        _check_result(outcome["suite_name"], result, figures, of_rows=is_of_rows(outcome))
        for outcome in outcomes
        for result in outcome["results"]
    ]


def failed_in_words(outcomes: Iterable[Mapping[str, Any]], figures: Figures) -> dict[Identity, CheckResult]:
    """Failed checks by identity. Does not convert passed checks, because nearly all checks pass."""
    pairs = [(outcome, result) for outcome in outcomes for result in outcome["results"]]
    names = ((outcome["suite_name"], name_of(result["expectation_config"])) for outcome, result in pairs)
    return {
        identity: _check_result(outcome["suite_name"], result, figures, of_rows=is_of_rows(outcome))
        for identity, (outcome, result) in zip(_identities(names), pairs, strict=True)
        if not result["success"]
    }


def identified(results: Sequence[CheckResult]) -> Iterator[tuple[Identity, CheckResult]]:
    """Checks of a batch with their identities: suite, expectation, and a number that distinguishes equal names.

    >>> twice = [CheckResult("own", "max(total)", "warning", sentence, False, "3", "1") for sentence in ("a", "b")]
    >>> [identity for identity, _ in identified(twice)]
    [('own', 'max(total)', 1), ('own', 'max(total)', 2)]
    """
    return zip(_identities((result.suite, result.expectation) for result in results), results, strict=True)


def _identities(names: Iterable[tuple[str, str]]) -> Iterator[Identity]:
    count = Counter[tuple[str, str]]()
    for name in names:
        count[name] += 1
        yield (*name, count[name])


def is_of_rows(outcome: Mapping[str, Any]) -> bool:
    """Tests if a suite judged rows. Its outcome may contain row values, which not every reader may see."""
    return bool(outcome["meta"].get(JUDGED) == OF_ROWS)


def critical_failures(checks: Iterable[CheckResult]) -> list[CheckResult]:
    """Failed checks that prevent the commit of a batch."""
    return [check for check in checks if not check.success and check.severity == "critical"]


def explain(checks: Iterable[CheckResult]) -> str:
    """Formats a line per check: its sentence, the expected and the observed value.

    >>> print(explain([CheckResult("events", "rows", "critical", "Every row is kept.", False, "3", "0")]))
    - Every row is kept. Expected 0, observed 3.
    """
    return "\n".join(f"- {check.sentence} Expected {check.expected}, observed {check.observed}." for check in checks)


def dq_rows(batch_id: int, checks: Iterable[CheckResult]) -> list[dict[str, Any]]:
    """Rows of `dq_results`, without the column `plan_time`."""
    return [{"batch_id": batch_id, **asdict(check)} for check in checks]


def name_of(config: Mapping[str, Any]) -> str:
    """Name of an expectation in `dq_results`: its type and its columns."""
    columns = [str(value) for key, value in config["kwargs"].items() if key.startswith("column")]
    return f"{config['type']}({', '.join(columns)})"


def without_examples(observed: str) -> str:
    """Observation of a check without its example values.

    >>> without_examples("2 unexpected among 9, such as ann, bob"), without_examples("a value, such as ann")
    ('2 unexpected among 9', 'a value')
    """
    return observed.partition(EXAMPLES)[0]


def column_of(name: str) -> str:
    """Columns in the name of an expectation; empty if the name has none.

    >>> column_of("expect_column_max_to_be_between(late_share)"), column_of("expect_table_row_count_to_equal()")
    ('late_share', '')
    """
    return name.partition("(")[2].removesuffix(")")


# -- Great Expectations' outcomes in words ------------------------------------------------------------------------


def _check_result(suite: str, outcome: Mapping[str, Any], figures: Figures, *, of_rows: bool) -> CheckResult:
    config = outcome["expectation_config"]
    name = name_of(config)
    return CheckResult(
        suite=suite,
        expectation=name,
        severity=str(config["severity"]),
        sentence=config.get("description") or f"{name} holds.",
        success=bool(outcome["success"]),
        observed=_row_observation(outcome) if of_rows else _figure_observation(outcome, figures),
        expected=bounds_in_words(config["kwargs"]),
    )


def _figure_observation(outcome: Mapping[str, Any], figures: Figures) -> str:
    """Observed value of a figure check, with the figures from which the value is computed."""
    if problem := _problem(outcome):
        return f"nothing ({problem})"
    result = outcome["result"]
    if _counts(result):
        return _unexpected(result)
    settings = outcome["expectation_config"]["meta"].get("windowlib", {})
    if (rows := figures.get(settings.get("among", ""))) is not None:
        return _among(outcome["expectation_config"]["kwargs"]["column"], result["observed_value"], rows)
    sources = ", ".join(f"{name} {figures[name]}" for name in settings.get("figures", ()) if name in figures)
    column = outcome["expectation_config"]["kwargs"].get("column", "")
    return number_in_words(result.get("observed_value"), column) + (f" ({sources})" if sources else "")


def _among(figure: str, observed: float, rows: int) -> str:
    """Formats a number of rows, or a share of rows, among all rows.

    >>> _among("columns.revenue.min", 4.0, 4313), _among("late_share", 0.25, 4312)
    ('4 of 4,313 rows', '25 % (1,078 of 4,312)')
    """
    if figure.endswith(SHARE):
        return f"{number_in_words(observed, figure)} ({round(observed * rows):,} of {rows:,})"
    return f"{int(observed):,} of {rows:,} rows"


def _row_observation(outcome: Mapping[str, Any]) -> str:
    """Observation of a row check. Row values follow `EXAMPLES`, and so do errors, which may contain row values."""
    if problem := _problem(outcome):
        return f"an error{EXAMPLES}{_in_a_line(problem)}"
    result = outcome["result"]
    if _counts(result):
        return _unexpected(result)
    observed = _in_a_line(result.get("observed_value"))
    is_a_value = str(outcome["expectation_config"]["type"]).startswith(OF_VALUES)
    return f"a value{EXAMPLES}{observed}" if is_a_value else observed


def _counts(result: Mapping[str, Any]) -> bool:
    """Tests if an outcome counts unexpected values and has no observed value."""
    return "observed_value" not in result or (result["observed_value"] is None and "unexpected_count" in result)


def _unexpected(result: Mapping[str, Any]) -> str:
    examples = ", ".join(map(_in_a_line, result.get("partial_unexpected_list", [])))
    among = f" among {result['element_count']}" if "element_count" in result else ""
    return f"{result.get('unexpected_count', 0)} unexpected{among}" + (f"{EXAMPLES}{examples}" if examples else "")


def _in_a_line(value: Any) -> str:
    r"""Formats a value as a single line, because example values are removed from messages line by line.

    >>> _in_a_line("ann"), _in_a_line("two\nlines"), _in_a_line({"user": "é"}), _in_a_line(7.0)
    ('ann', 'two\\nlines', '{"user": "é"}', '7')
    """
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else number_in_words(value)
    return text if len(text.splitlines()) < 2 else json.dumps(text)[1:-1]


def bounds_in_words(arguments: Mapping[str, Any]) -> str:
    """Bounds of an expectation in words. Without bounds, its other arguments as `name=value`.

    >>> bounds_in_words({"column": "n", "min_value": 0.0, "max_value": 0.0})
    '0'
    >>> bounds_in_words({"min_value": 0, "max_value": 0.1})
    '0 to 0.1'
    >>> bounds_in_words({"column": "late_share", "min_value": 0, "max_value": 0.1})
    '0 % to 10 %'
    >>> bounds_in_words({"min_value": 4}), bounds_in_words({"column": "timing", "value_set": ["late"]})
    ('at least 4', "value_set=['late']")
    >>> bounds_in_words({"min_value": 4, "max_value": 9, "strict_max": True})
    'at least 4 and less than 9'
    >>> bounds_in_words({"max_value": 4, "mostly": 0.9})
    'at most 4, in 0.9 of the rows'
    """
    low, high = arguments.get("min_value"), arguments.get("max_value")
    if low is None and high is None:
        about = {key: value for key, value in arguments.items() if key != "batch_id" and not key.startswith("column")}
        parts = (f"{key}={value}" for key, value in about.items() if value is not None)
        return ", ".join(parts) or UNBOUNDED
    mostly = arguments.get("mostly", 1)
    most = f", in {mostly:.6g} of the rows" if isinstance(mostly, int | float) and mostly != 1 else ""
    return f"{_between(arguments, low, high)}{most}"


def _between(arguments: Mapping[str, Any], low: Any, high: Any) -> str:
    strict = [side for side in ("strict_min", "strict_max") if arguments.get(side)]
    lowest, highest = (number_in_words(bound, str(arguments.get("column", ""))) for bound in (low, high))
    if low == high:
        return lowest
    if low is not None and high is not None and not strict:
        return f"{lowest} to {highest}"
    least, most = (
        "more than" if "strict_min" in strict else "at least",
        "less than" if "strict_max" in strict else "at most",
    )
    sides = [f"{least} {lowest}"] * (low is not None) + [f"{most} {highest}"] * (high is not None)
    return " and ".join(sides)


def _exceptions(outcome: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Errors that prevented a judgement. Great Expectations reports a single error, or an entry for each metric."""
    info = outcome["exception_info"]
    problems = [info] if "raised_exception" in info else list(info.values())
    return [problem for problem in problems if problem["raised_exception"]]


def _problem(outcome: Mapping[str, Any]) -> str | None:
    """Message of the error that prevented a judgement; None if there was none."""
    return next((str(problem["exception_message"]) for problem in _exceptions(outcome)), None)


def _without_tracebacks(suite: dict[str, Any]) -> dict[str, Any]:
    for outcome in suite["results"]:
        for problem in _exceptions(outcome):
            problem["exception_traceback"] = problem["exception_message"]
    return suite
