"""Outcomes of the last run of all cells, written by the test of the matrix and shown by the page.

`make matrix` runs every cell on both engines and keeps the outcome, right or wrong, next to this file.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

KEPT = Path(__file__).with_name("outcomes.json")
IS_KEPT = bool(os.environ.get("WINDOWLIB_KEEP_MATRIX"))  # as `make matrix` sets it


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one engine and one kind of windows: day, commit, numbers of cells compared and wrong."""

    date: str
    commit: str
    cells: int
    wrong: int


def keep(engine: str, window: str, cells: int, wrong: int) -> None:
    """Writes an outcome over the one before of the same engine and windows."""
    now = Outcome(datetime.now(UTC).date().isoformat(), _commit(), cells, wrong)
    known = {name: asdict(one) for name, one in kept().items()} | {f"{engine}, {window}": asdict(now)}
    KEPT.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def kept() -> Mapping[str, Outcome]:
    """The outcomes by engine and windows."""
    return {name: Outcome(**one) for name, one in json.loads(KEPT.read_text()).items()} if KEPT.exists() else {}


def _commit() -> str:
    """The commit of the code, and whether it was changed since; outcomes that were kept since do not count."""

    def git(*asked: str) -> str:
        return subprocess.run(
            ["git", *asked], cwd=KEPT.parent, capture_output=True, text=True, check=True
        ).stdout.strip()

    changed = git("diff", "--name-only", "HEAD", "--", ":/", f":!{KEPT.name}")
    return git("rev-parse", "--short=7", "HEAD") + (", changed" if changed else "")
