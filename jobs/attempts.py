"""Where one attempt at a batch begins: every table as the newest commit row names it, and no older attempt at work.

A table may have moved on since that row: by a dead attempt at the same batch, whose commits stay; by an abandoned
batch or by a user, whose changes are taken back here, in a commit of its own; by a fence, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jobs import delta
from jobs.tables import COMMIT_ORDER

APP_ID = "windowlib"  # names our transactions in the tables' logs


def fence(root: Path) -> None:
    """Moves every table on by an empty commit: attempts that looked at them before cannot commit any more."""
    for name in COMMIT_ORDER:
        while (version := delta.version(root / name)) is not None:
            try:
                delta.commit(root / name, version)
            except delta.Conflict:
                continue  # the other attempt was faster once more: its next table is fenced, or this one now
            break


def begin(root: Path, batch_id: int, pinned: Mapping[str, int]) -> tuple[dict[str, int | None], set[str]]:
    """The version of each table (None: no table), and the tables that this batch has committed already.

    All others hold what they held at `pinned`, the versions of the newest commit row. Raises `Conflict` when another
    attempt is committing.
    """
    seen: dict[str, int | None] = {}
    done: set[str] = set()
    for name in COMMIT_ORDER:
        seen[name], newest_batch = delta.standing(root / name, APP_ID)
        if newest_batch == batch_id:
            done.add(name)
        elif seen[name] != pinned.get(name):
            seen[name] = delta.restore(root / name, pinned.get(name))
    return seen, done


def give_up(root: Path, pinned: Mapping[str, int]) -> None:
    """Brings every table back to what it held at `pinned`."""
    for name in COMMIT_ORDER:
        delta.restore(root / name, pinned.get(name))
