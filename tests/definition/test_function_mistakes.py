"""Mistakes in functions, aggregates and result columns: each names its key and the allowed values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.window_toml import FUNCTION, SESSION, TUMBLING, definition, mistakes
from windowlib.definition.definition import Definition

COUNT_OF_3 = '{type = "count", n = 3}'


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ('function = "own:Top"', 'window.output: missing, and needed with function; allowed: column = "spark type"'),
        (
            'output = {n = "bigint"}',
            'window.output: has no meaning without function = "module:Class"; leave it out',
        ),
        ("parameters = {n = 1}", 'window.parameters: has no meaning without function = "module:Class"; leave it out'),
        (
            'reads = ["page"]',
            "window.reads: has no meaning without Python code (function, or a class); leave it out",
        ),
        (
            'function = "own"\noutput = {n = "bigint"}',
            'window.function: must have the form "module:Class", given "own"; allowed: "module:Class", a module next to'
            " this"
            " file: a process function or an aggregate",
        ),
        (
            'function = "own:Top"\noutput = "bigint"',
            'window.output: must be a table, given "bigint"; allowed: [window.output] with column = "spark type"',
        ),
        (
            'function = "own:Top"\noutput = {n = "bignt"}',
            'window.output.n: unknown type, given "bignt"; did you mean bigint?; allowed: string, boolean, tinyint,'
            " smallint, int, bigint, float, double, decimal(p,s), date, timestamp, timestamp_ntz, binary, array<…>,"
            " map<…,…>, struct<name:…>",
        ),
        (
            'function = "own:Top"\noutput = {n = 3}',
            'window.output.n: must be a string, given 3; allowed: [window.output] with column = "spark type"',
        ),
        (
            'function = "own:Top"\noutput = {"a b" = "int"}',
            "window.output.a b: cannot name an output column (letters, digits and _, without a digit at the start),"
            ' given "a b"',
        ),
        (
            'function = "own:Top"\noutput = {User = "string"}',
            'window.output.User: "User" is a key column already; choose another name',
        ),
        (
            'function = "own:Top"\noutput = {firing = "int"}',
            'window.output.firing: "firing" is a column that windowlib adds itself; choose another name',
        ),
        (
            'function = "own:Top"\noutput = {a = "int", A = "int"}',
            'window.output.A: differs from "a" only in case, and Spark ignores case',
        ),
        (
            FUNCTION + 'reads = "page"',
            'window.reads: must be a list, given "page"; allowed: columns that Python code sees, as in ["page",'
            ' "price"]',
        ),
        (
            FUNCTION + 'reads = ["pages", "value"]',
            'window.reads: column "pages" is not in source.schema; did you mean page?; columns: user, at, page,'
            " value, price,"
            " gap_ms",
        ),
        (FUNCTION + 'reads = ["page", "page"]', 'window.reads: names "page" twice'),
    ],
)
def test_mistakes_about_a_function(tmp_path: Path, function: str, message: str) -> None:
    assert mistakes(tmp_path, f"{TUMBLING}{function}") == [message]


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (f"{TUMBLING}trigger = {COUNT_OF_3}\n", "the trigger count is asked at every element or timer"),
        (TUMBLING + "stagger = true\n", "each key's windows are shifted by a share of its own"),
        (TUMBLING + FUNCTION, "own:Top is Python code"),
    ],
)
def test_an_aggregate_that_only_spark_computes(tmp_path: Path, window: str, reason: str) -> None:
    visitors = '[aggregates]\nevents = "count(*)"\npages = "approx_count_distinct(page)"\n'
    assert mistakes(tmp_path, window, visitors) == [
        "aggregates.pages: only Spark computes approx_count_distinct(`page`), but these windows run in"
        f" Python, element by element. Remove it, or fire when the watermark passes the window's end ({reason})"
    ]
    assert definition(tmp_path, TUMBLING, visitors).plan.name == "aligned"


@pytest.mark.parametrize(
    ("aggregates", "message"),
    [
        (
            'mean = "sum(value) / count(*)"',
            'aggregates.mean: given "sum(value) / count(*)"; need a single aggregate, such as sum(`value`), because'
            " own:Top computes with its value",
        ),
        (
            'mean = "round(avg(value))"',
            'aggregates.mean: given "round(avg(value))"; need a single aggregate, such as avg(`value`), because own:Top'
            " computes with its value",
        ),
        (
            'a = "sum(value)"\nb = "SUM( value )"',
            'aggregates.b: is the same as aggregates.a, given "SUM( value )"; leave one of them out',
        ),
    ],
)
def test_a_function_is_given_plain_aggregates(tmp_path: Path, aggregates: str, message: str) -> None:
    assert mistakes(tmp_path, TUMBLING + FUNCTION, f"[aggregates]\n{aggregates}") == [message]
    assert definition(tmp_path, TUMBLING, f"[aggregates]\n{aggregates}").aggregates


def test_aggregates_before_a_function_are_not_columns_of_the_results(tmp_path: Path) -> None:
    named = '[aggregates]\nelements = "count(*)"\npage = "last(page)"\ntotal = "sum(value) filter (where value > 0)"\n'
    found = definition(tmp_path, TUMBLING + FUNCTION, named)
    assert [column.sql for column in found.aggregates.columns] == ["{0}", "{1}", "{2}"]


def test_neither_aggregates_nor_a_function(tmp_path: Path) -> None:
    assert mistakes(tmp_path, TUMBLING, "") == [
        'aggregates: missing; allowed: [aggregates] with output_column = "expression"'
    ]


GENERAL = f"{TUMBLING}trigger = {COUNT_OF_3}\n"
COUNTED = 'type = "tumbling_count"\nsize = 3\n'
KEPT = SESSION + 'allowed_lateness = "1h"\n'


@pytest.mark.parametrize(
    ("name", "refused", "taken"),
    [
        ("elements", (TUMBLING, SESSION, COUNTED, GENERAL), ()),
        ("End_Partition", (TUMBLING, SESSION, COUNTED, GENERAL), ()),
        ("state", (GENERAL,), (TUMBLING, SESSION, COUNTED)),
        ("window_end_ms", (SESSION, GENERAL), (TUMBLING, COUNTED)),
        ("published", (KEPT,), (SESSION, TUMBLING, COUNTED, GENERAL)),
        ("slice_index", (COUNTED,), (TUMBLING, SESSION, GENERAL)),
    ],
)
def test_results_avoid_columns_of_their_plan(
    tmp_path: Path, name: str, refused: tuple[str, ...], taken: tuple[str, ...]
) -> None:
    aggregates = f'[aggregates]\n{name} = "count(*)"\n'
    message = f'aggregates.{name}: "{name}" is a column that windowlib adds itself; choose another name'
    for window in refused:
        assert mistakes(tmp_path, window, aggregates) == [message]
    for window in taken:
        assert isinstance(definition(tmp_path, window, aggregates), Definition)
