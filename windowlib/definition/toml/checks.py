"""`[checks]`: bounds of the quality checks, short tests of result columns, and suites of the author."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from windowlib.definition.toml.column_tests import ColumnTest, RowCountTest, of_one_kind
from windowlib.definition.toml.fields import Positive, Section, Share, duration, resolved
from windowlib.definition.toml.patterns import portable

MAX_WINDOWS_PER_EVENT = 10_000
LARGEST = 2**63
TESTS = ("min", "max", "not_null", "unique", "in", "matches")
Severity = Literal["critical", "warning", "info"]
SEVERITIES = '"critical": a failure holds the batch; "warning": it is reported; "info": it is recorded'


def _number(bound: Any) -> int | float:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
        raise ValueError("must be a finite number")
    if isinstance(bound, int) and not -LARGEST <= bound < LARGEST:
        raise ValueError("must be a number of at most 64 bits")
    return bound


def _values(values: Any) -> tuple[str | int | float | bool, ...]:
    if not of_one_kind(values):
        raise ValueError("must be a list of strings, of numbers, or of booleans, and not be empty")
    return tuple(value if isinstance(value, str | bool) else _number(value) for value in values)


def _matched(pattern: str) -> str:
    portable(pattern)
    return pattern


def _severities(severity: Any) -> dict[str, Severity]:
    """Severity by test; the empty name stands for the other tests."""
    by_test = severity if isinstance(severity, dict) else {"": severity}
    if not all(name in ("", *TESTS) and word in get_args(Severity) for name, word in by_test.items()):
        raise ValueError('must be "critical", "warning" or "info", or one of them by test, as in { max = "warning" }')
    return by_test


class ColumnTests(Section):
    """`[checks.columns]`: tests of result columns, as in `revenue = { min = 0, not_null = true }`. Each test counts the
    rows that fail it, among the rows that a batch, rerun or migration adds or changes."""

    min: Annotated[Any, BeforeValidator(_number)] = Field(default=None, description="lowest allowed number")
    max: Annotated[Any, BeforeValidator(_number)] = Field(default=None, description="highest allowed number")
    not_null: bool = Field(default=False, description="true: no value is null; all other tests ignore nulls")
    unique: bool = Field(default=False, description="true: no value occurs twice among these rows")
    in_: Annotated[Any, BeforeValidator(_values)] = Field(
        default=None, alias="in", description='the allowed values, such as ["DE", "FR"]'
    )
    matches: Annotated[str, AfterValidator(_matched)] | None = Field(
        default=None, description='a pattern of the whole value, such as "[A-Z]{2}[0-9]+"'
    )
    severity: Annotated[dict[str, Severity], BeforeValidator(_severities)] = Field(
        default={"": "critical"},
        description=f'{SEVERITIES}. By test: {{ max = "warning" }}; the other tests are critical',
    )

    @model_validator(mode="after")
    def _has_tests(self) -> Self:
        bounds = self.bounds
        if not bounds:
            raise ValueError(f"has no test; need one of {', '.join(TESTS)}")
        if idle := [name for name in self.severity if name and name not in bounds]:
            raise ValueError(f"has a severity for {idle[0]}, but no test {idle[0]}; add the test, or leave it out")
        if "min" in bounds and "max" in bounds and bounds["min"] > bounds["max"]:
            raise ValueError("has a min above its max, which no value meets; need min <= max")
        return self

    @property
    def bounds(self) -> Mapping[str, Any]:
        """Bound of each test that the author has set."""
        values = (self.min, self.max, self.not_null or None, self.unique or None, self.in_, self.matches)
        return {name: value for name, value in zip(TESTS, values, strict=True) if value is not None}

    def of_column(self, column: str) -> Iterator[ColumnTest]:
        """Yields the tests of a column."""
        for test, bound in self.bounds.items():
            severity = self.severity.get(test) or self.severity.get("", "critical")
            yield ColumnTest(column, test, list(bound) if test == "in" else bound, severity)


class RowCount(Section):
    """`[checks.row_count]`: bounds of the number of results that a batch adds or changes, such as `{ min = 1 }`."""

    min: int | None = Field(default=None, ge=0, description="lowest allowed number of rows")
    max: int | None = Field(default=None, ge=0, description="highest allowed number of rows")
    severity: Severity = Field(default="critical", description=SEVERITIES)

    @model_validator(mode="after")
    def _has_bounds(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("has no bound; need min, max, or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("has a min above its max, which no number meets; need min <= max")
        return self


class ChecksSection(Section):
    """`[checks]`: bounds of the quality checks, short tests, and suites of your own."""

    max_late_share: Share = Field(default=0.1, description="0 to 1: more late events than this are a warning")
    max_unusable_share: Share = Field(default=0.1, description="0 to 1: more unusable rows than this are a warning")
    max_duplicate_share: Share = Field(
        default=0.2, description="0 to 1: more rows with a repeated event id than this are a warning"
    )
    max_windows_per_event: int = Field(
        default=MAX_WINDOWS_PER_EVENT,
        ge=1,
        description="greatest number of windows of an event, or of firings of a window by intervals; a"
        " definition with more is refused",
    )
    columns: dict[str, ColumnTests] = Field(default={})
    row_count: RowCount | None = None
    verify_sample: Share = Field(
        default=0.0, description="0 to 1: share of keys whose windows Airflow verifies after each advance; 0: none"
    )
    verify_last_ms: Positive = duration(
        "verify_last", "time before the watermark in which Airflow verifies windows", "1d"
    )
    suites: Path | None = Field(
        default=None,
        description="a folder of suites as JSON, relative to this file; each replaces the built-in suite of its name,"
        " or is added",
    )
    figures_suite: Path | None = Field(
        default=None, description="a JSON file of expectations about the figures of a batch, relative to this file"
    )
    results_suite: Path | None = Field(
        default=None,
        description="a JSON file of expectations about the results that a batch adds or changes, relative to this file",
    )

    @field_validator("suites", "figures_suite", "results_suite", mode="before")
    @classmethod
    def _exists(cls, path: Any, info: ValidationInfo) -> Path:
        if not isinstance(path, str):
            raise ValueError("must be a string")
        target = resolved((info.context or {})["folder"], path)
        if info.field_name == "suites" and not target.is_dir():
            raise ValueError("no such folder")
        if info.field_name != "suites" and not target.is_file():
            raise ValueError("no such file")
        return target

    @property
    def column_tests(self) -> tuple[ColumnTest, ...]:
        """Tests of result columns, in the order of the file."""
        return tuple(test for column, tests in self.columns.items() for test in tests.of_column(column))

    @property
    def row_count_test(self) -> RowCountTest | None:
        """Bounds of the number of rows; None if the author has set none."""
        rows = self.row_count
        return RowCountTest(rows.min, rows.max, rows.severity) if rows else None
