"""The README is short, and its twelve lines are twelve. What it prints, and its commands: `test_pages`."""

from __future__ import annotations

import tomllib

from tests.docs.pages import PROJECT, Page

README = Page(PROJECT / "README.md")
LONGEST = 1_500


def test_the_readme_is_short() -> None:
    assert len(README.text.split()) <= LONGEST


def test_twelve_lines() -> None:
    definition = next(block.text for block in README.blocks if block.language == "toml")
    assert len(definition.splitlines()) == 12
    assert tomllib.loads(definition)["name"] == "clicks"
