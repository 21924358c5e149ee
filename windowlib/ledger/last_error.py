"""Record of the last error of `run`, or of a `plan` that a scheduler started, for the pipeline's status and pages.

The record stays until a command succeeds. A `plan` in a shell neither writes nor clears the record
(`windowlib.cli.notifying`). If two processes write at the same time, the later write wins.

The record is a file next to the tables, not a row of a table, for two reasons. A pipeline that cannot be planned may
have no ledger yet. An error in every plan, every five minutes, would add two thousand commits a week.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Literal

from windowlib.definition.instants import instant
from windowlib.storage.store import Store

FILE = "last_error.json"
LONGEST = 500  # characters of a sentence

Command = Literal["plan", "run"]


@dataclass(frozen=True, slots=True)
class LastError:
    """Error of a command in one sentence, with its time and the absolute path of the definition."""

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
        """Tests if a batch was committed after the error. A program that does not clear errors made that commit.

        >>> error = LastError("run", "no space left", 5, "clicks.toml")
        >>> error.is_over(5), error.is_over(6)
        (False, True)
        """
        return commit_ms is not None and commit_ms > self.at_ms


def keep(store: Store, error: LastError) -> None:
    """Records at most `LONGEST` characters of an error's first line. Replaces the last error. Raises OSError."""
    first = error.sentence.splitlines()[0] if error.sentence else "an error without a message"
    store.put(FILE, json.dumps({**asdict(error), "sentence": first[:LONGEST]}).encode())


def clear(store: Store, commands: Collection[Command]) -> None:
    """Deletes the recorded error if it is an error of one of `commands`. Raises OSError."""
    if (error := last(store)) and error.command in commands:
        store.delete([FILE])


def last(store: Store) -> LastError | None:
    """Recorded error; None if there is none."""
    content = store.get(FILE)
    return None if content is None else LastError(**json.loads(content))


def unresolved(store: Store, commit_ms: int | None) -> LastError | None:
    """Recorded error; None if there is none, or if a later commit ended it (`is_over`).

    `commit_ms` is the time of the newest commit.
    """
    error = last(store)
    return None if error is None or error.is_over(commit_ms) else error
