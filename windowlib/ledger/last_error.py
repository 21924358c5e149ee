"""The error that the last `run` of a pipeline ended with, or the last `plan` by a scheduler, for its status and pages.

It is kept until one succeeds. A `plan` in a shell neither keeps an error nor clears one (`windowlib.cli.notifying`).
A file next to the tables and not a row of one: a pipeline that cannot be planned may have no ledger yet, and a mistake
that every plan meets, every five minutes for a week, would be two thousand commits. Of two processes the later counts.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from windowlib.definition.instants import instant
from windowlib.delta import disk

FILE = "last_error.json"
LONGEST = 500  # characters of a sentence

Command = Literal["plan", "run"]


@dataclass(frozen=True, slots=True)
class LastError:
    """Error of a command in a sentence, with its time and the absolute path of the definition."""

    command: Command
    sentence: str
    at_ms: int
    file: str

    @property
    def words(self) -> str:
        """The error with its command, definition and time.

        >>> LastError("run", "no space left", 0, "/pipelines/clicks.toml").words
        'the last run of /pipelines/clicks.toml ended at 1970-01-01 00:00:00 UTC with: no space left'
        """
        at = instant(self.at_ms // 1000 * 1000)
        return f"the last {self.command} of {self.file} ended at {at} with: {self.sentence}"

    def is_over(self, commit_ms: int | None) -> bool:
        """Whether a batch was committed since, by a program that does not clear what the commands keep.

        >>> error = LastError("run", "no space left", 5, "clicks.toml")
        >>> error.is_over(5), error.is_over(6)
        (False, True)
        """
        return commit_ms is not None and commit_ms > self.at_ms


def keep(root: Path, error: LastError) -> None:
    """Keeps an error, in place of an earlier one; of several lines the first. Raises OSError."""
    first = error.sentence.splitlines()[0] if error.sentence else "an error without a message"
    disk.put(root / FILE, json.dumps({**asdict(error), "sentence": first[:LONGEST]}))


def clear(root: Path, commands: Collection[Command]) -> None:
    """Forgets the error, if it is one of these commands'. Raises OSError."""
    if (error := last(root)) and error.command in commands:
        (root / FILE).unlink(missing_ok=True)


def last(root: Path) -> LastError | None:
    """The error that is kept; None without any."""
    try:
        return LastError(**json.loads((root / FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def standing(root: Path, commit_ms: int | None) -> LastError | None:
    """The error that is kept, unless it is over; `commit_ms` is when the newest batch was committed."""
    error = last(root)
    return None if error is None or error.is_over(commit_ms) else error
