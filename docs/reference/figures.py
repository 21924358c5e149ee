"""`figures.md`: the figures of a batch and its checks."""

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

A failed *critical* check stops the batch before anything is committed; a failed *warning* is printed and recorded. Each
suite is a JSON file in Great Expectations' own format: [read, change and add suites](suites.md).
"""


def page() -> str:
    found = table(("figure", "meaning"), ((f"`{name}`", text) for name, text in FIGURES.items()))
    suites = [_suite(file.stem, json.loads(file.read_text())) for file in sorted(EXPECTATIONS.glob("*.json"))]
    return "\n".join([HEAD, found, CHECKS, *suites]) + "\n"


def _suite(name: str, suite: Mapping[str, Any]) -> str:
    """Section of a suite: its subject, and each rule with its figures."""
    head = ("severity", "rule", "figures")
    rows = ((check["severity"], check["description"], _figures(check)) for check in suite["expectations"])
    return f"\n### {name}\n\nJudges {suite['meta']['windowlib']['judges']}.\n\n{table(head, rows)}"


def _figures(expectation: Mapping[str, Any]) -> str:
    ours = expectation.get("meta", {}).get("windowlib", {})
    return ", ".join(f"`{name}`" for name in ours.get("figures", ()))
