"""All suites of a pipeline: the short tests of its definition, then the suites in files (`suite_files`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windowlib.definition.toml.column_tests import ROW_COUNT, ColumnTest, RowCountTest
from windowlib.quality.suite_files import OF_BATCH, OF_RERUN, OWN_TESTS, Expectation, Suite, suites_in_files
from windowlib.quality.terms import Terms

BETWEEN = "expect_column_max_to_be_between"


def suites_of(terms: Terms, parameters: Mapping[str, float | None], judges: str = OF_BATCH) -> list[Suite]:
    """All suites of a pipeline. `judges` says if the tests of the definition judge a batch or a rerun."""
    tests = _tests_of_definition(terms, judges)
    return [*([Suite(OWN_TESTS, judges, tests)] if tests else []), *suites_in_files(terms, parameters)]


def _tests_of_definition(terms: Terms, judges: str) -> tuple[Expectation, ...]:
    """Expectations of `[checks.columns]` and `[checks.row_count]`.

    The number of rows of a rerun is not judged, because a rerun that finds no difference changes no row.
    """
    tests = [_of_column(test) for test in terms.column_tests]
    if terms.row_count and judges != OF_RERUN:
        tests.insert(0, _of_row_count(terms.row_count))
    return tuple(tests)


def _of_column(test: ColumnTest) -> Expectation:
    bounds = {"min_value": 0, "max_value": 0}
    ours = {"figures": [test.figure], "among": ROW_COUNT}
    return _expectation(f"checks.{test.figure}", test.figure, bounds, test.sentence, test.severity, ours)


def _of_row_count(test: RowCountTest) -> Expectation:
    bounds = {"min_value": test.low, "max_value": test.high}
    sides = (("at least", test.low), ("at most", test.high))
    needs = [f"{side} {bound:,}" for side, bound in sides if bound is not None]
    sentence = f"The batch adds or changes {' and '.join(needs)} rows of `results`."
    return _expectation("checks.row_count", ROW_COUNT, bounds, sentence, test.severity, {"figures": [ROW_COUNT]})


def _expectation(
    place: str, figure: str, bounds: dict[str, Any], sentence: str, severity: str, ours: dict[str, Any]
) -> Expectation:
    config = {
        "type": BETWEEN,
        "kwargs": {"column": figure, **{side: bound for side, bound in bounds.items() if bound is not None}},
        "description": sentence,
        "severity": severity,
        "meta": {"windowlib": ours},
    }
    return Expectation(place, config, ours)
