"""Outcome of each batch's checks, stored as JSON: `checks/<batch_id>.json` in the pipeline's folder.

The report reads these files, because a refused batch commits no rows to a table. `dq_results` and `run_metrics` contain
all committed batches. These files contain only the newest `KEPT_BATCHES` batches.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from windowlib.delta import disk
from windowlib.model.errors import WindowError, reason_of
from windowlib.quality.figures import Figures

FOLDER = "checks"
KEPT_BATCHES = 200
PAGES_KEEP = 64  # cached outcomes: the next page that a process builds needs all but one of these outcomes


class UnreadableOutcome(WindowError):
    """The stored outcome of a batch's checks cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Validated:
    """Checked batch: its figures, and the outcome of each suite in Great Expectations' format.

    Pages built in the same process share an object as long as its file is unchanged.
    """

    batch_id: int
    figures: Figures
    suites: list[dict[str, Any]]

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Outcomes of the failed expectations."""
        return [result for suite in self.suites for result in suite["results"] if not result["success"]]


def keep(root: Path, figures: Figures, suites: list[dict[str, Any]]) -> None:
    """Stores the outcome of a batch, in place of an earlier attempt's outcome. Deletes all but the newest outcomes."""
    folder = root / FOLDER
    disk.put(folder / f"{figures['batch_id']}.json", json.dumps({"figures": figures, "suites": suites}))
    for old in _files(folder)[KEPT_BATCHES:]:
        old.unlink(missing_ok=True)


def stored_outcomes(root: Path, at_most: int = KEPT_BATCHES) -> list[Validated]:
    """At most `at_most` checked batches, newest first."""
    return [_read_once(file, file.stat().st_mtime_ns) for file in _files(root / FOLDER)[:at_most]]


def stored_outcome(root: Path, batch_id: int) -> Validated | None:
    """Outcome of a batch; None if the batch was not checked or its outcome is no longer stored."""
    file = root / FOLDER / f"{batch_id}.json"
    return _read(file) if file.is_file() else None


def _files(folder: Path) -> list[Path]:
    """Files of batches, newest first. Other files are ignored."""
    files = (file for file in folder.glob("*.json") if file.stem.isdecimal())
    return sorted(files, key=lambda file: int(file.stem), reverse=True)


@lru_cache(maxsize=PAGES_KEEP)
def _read_once(file: Path, modified_ns: int) -> Validated:
    return _read(file)


def _read(file: Path) -> Validated:
    try:
        contents = json.loads(file.read_text(encoding="utf-8"))
        return Validated(int(file.stem), contents["figures"], contents["suites"])
    except (ValueError, LookupError, TypeError) as error:
        raise UnreadableOutcome(
            f"{file}, the outcome of the checks of batch {file.stem}, cannot be read ({reason_of(error)})."
            " Restore it or delete it: nothing else depends on it"
        ) from error
