"""The README is short, its twelve lines are twelve, and what it prints are the results. Its commands: `test_pages`."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.docs.pages import PROJECT, Page, Reader, table
from windowlib.definition.definition import load_definition
from windowlib.tables.read import read_table

README = Page(PROJECT / "README.md")
LONGEST = 1_500


def test_the_readme_is_short() -> None:
    assert len(README.text.split()) <= LONGEST


def test_twelve_lines() -> None:
    definition = next(block.text for block in README.blocks if block.language == "toml")
    assert len(definition.splitlines()) == 12
    assert tomllib.loads(definition)["name"] == "clicks"


@pytest.mark.spark
@pytest.mark.slow
def test_the_results_are_those_of_the_table(reader: Reader) -> None:
    printed = table(README.text, "| user |")
    rows = read_table(load_definition(reader.follow(README)[0] / "clicks.toml"), "results").to_pylist()
    found = [{name: cell(row[name]) for name in printed[0]} for row in rows]
    assert sorted(found, key=str) == sorted(printed, key=str)


def cell(value: Any) -> str:
    return str(value).removesuffix("+00:00")
