"""What the checks of each batch found, kept as JSON: `checks/<batch_id>.json` in the pipeline's folder.

A refused batch commits nothing, so these files, not a table, are what the report is made from. `dq_results` and
`run_metrics` keep the committed batches; here only the newest are kept.
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
PAGES_KEEP = 64  # one page's: the next one of its process asks for all of them but one


class UnreadableOutcome(WindowError):
    """What was kept of a batch's checks cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Validated:
    """A batch that was checked: its figures, and the outcome of each suite as Great Expectations writes it.

    As long as its file stays as it is, the pages of a process have the same one.
    """

    batch_id: int
    figures: Figures
    suites: list[dict[str, Any]]

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The outcomes of the expectations that were not met."""
        return [one for suite in self.suites for one in suite["results"] if not one["success"]]


def keep(root: Path, figures: Figures, suites: list[dict[str, Any]]) -> None:
    """Keeps the outcome of a batch, in place of an earlier attempt's, and deletes all but the newest batches'."""
    folder = root / FOLDER
    disk.put(folder / f"{figures['batch_id']}.json", json.dumps({"figures": figures, "suites": suites}))
    for old in _files(folder)[KEPT_BATCHES:]:
        old.unlink(missing_ok=True)


def kept(root: Path, at_most: int = KEPT_BATCHES) -> list[Validated]:
    """The newest batches that were checked, newest first."""
    return [_read_once(file, file.stat().st_mtime_ns) for file in _files(root / FOLDER)[:at_most]]


def kept_of(root: Path, batch_id: int) -> Validated | None:
    """The outcome of a batch; None where it was not checked, or is not among those kept."""
    file = root / FOLDER / f"{batch_id}.json"
    return _read(file) if file.is_file() else None


def _files(folder: Path) -> list[Path]:
    """Those of batches, the newest first; what else lies there is not ours."""
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
            f"{file}, what the checks of batch {file.stem} came to, cannot be read ({reason_of(error)}). Restore it,"
            " or delete it: nothing else depends on it"
        ) from error
