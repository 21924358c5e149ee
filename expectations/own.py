"""Checks that a pipeline's author adds: a JSON file of built-in expectations, beside the definition.

    [checks]
    figures_suite = "clicks_figures.json"   # about the figures of a batch, a frame of one row
    results_suite = "clicks_results.json"   # about the first 10,000 result rows that the batch wrote

The file is what Great Expectations itself writes; only `type` and `kwargs` are needed:

    {"expectations": [{"type": "expect_column_min_to_be_between",
                       "kwargs": {"column": "rows_read", "min_value": 1},
                       "severity": "critical", "description": "There is something to read."}]}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from great_expectations.core import ExpectationSuite
from great_expectations.exceptions.exceptions import GreatExpectationsError
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

from windowlib.errors import InvalidSpec


def own_suite(name: str, file: Path) -> ExpectationSuite:
    """The suite in `file`. Raises `InvalidSpec` where the file holds no expectation, or one that is not known."""
    try:
        given = json.loads(file.read_text(encoding="utf-8"))["expectations"]
        expectations = [_expectation(config) for config in given]
    except (OSError, ValueError, KeyError, TypeError, GreatExpectationsError) as error:
        raise InvalidSpec(
            f'{file}: need {{"expectations": [{{"type": "expect_…", "kwargs": {{…}}}}, …]}} with types and arguments of'
            f" Great Expectations, got {type(error).__name__}: {error}"
        ) from error
    return ExpectationSuite(name=name, expectations=expectations)


def _expectation(config: dict[str, Any]) -> Expectation:
    return ExpectationConfiguration(**config).to_domain_obj()
