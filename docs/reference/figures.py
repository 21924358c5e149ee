"""`figures.md`: what is counted of each batch, and what must hold of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.reference.markdown import table
from windowlib.quality.figure_words import FIGURES

EXPECTATIONS = Path(__file__).parents[2] / "expectations"
HEAD = Path(__file__).with_name("figures-head.txt").read_text(encoding="utf-8")
CHECKS = """
## Checks

A *critical* check that fails stops the batch before anything is committed; a *warning* is printed and kept. Each suite
is a JSON file in Great Expectations' own format: [how to read, change and add one](suites.md).
"""


def page() -> str:
    found = table(("figure", "is"), ((f"`{name}`", text) for name, text in FIGURES.items()))
    suites = [_suite(file.stem, json.loads(file.read_text())) for file in sorted(EXPECTATIONS.glob("*.json"))]
    return "\n".join([HEAD, found, CHECKS, *suites]) + "\n"


def _suite(name: str, suite: Mapping[str, Any]) -> str:
    """A suite: what it judges, and its sentences with the figures they look at."""
    head = ("severity", "what must hold", "figures")
    rows = ((one["severity"], one["description"], _figures(one)) for one in suite["expectations"])
    return f"\n### {name}\n\nJudges {suite['meta']['windowlib']['judges']}.\n\n{table(head, rows)}"


def _figures(expectation: Mapping[str, Any]) -> str:
    ours = expectation.get("meta", {}).get("windowlib", {})
    return ", ".join(f"`{name}`" for name in ours.get("figures", ()))
