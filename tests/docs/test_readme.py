"""The README is short, and its twelve lines are twelve. What it prints, and its commands: `test_pages`."""

from __future__ import annotations

import tomllib

from tests.support.doc_pages import PROJECT, Page

README = Page(PROJECT / "README.md")
MOST_WORDS = 1_000


def test_the_readme_is_short() -> None:
    words = [word for word in README.text.split() if any(map(str.isalnum, word))]  # no bars of tables
    assert len(words) <= MOST_WORDS


def test_twelve_lines() -> None:
    definition = next(block.text for block in README.blocks if block.language == "toml")
    assert len(definition.splitlines()) == 12
    assert tomllib.loads(definition)["name"] == "clicks"
