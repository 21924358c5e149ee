"""Move of a pipeline's tables to another storage: the row that closes the old place, and the mark of the new one.

    move   `decision` is JSON with the address of the new folder; `who` and `reason` are set. No row follows it

Until the copy is complete, the new folder holds the object `MARK`, which names the old folder. The log of the ledger is
copied last, so a run that starts there too early finds no ledger, or an incomplete log. In both cases it meets the
mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from windowlib.definition.commands import OPEN, THIS, to_paste
from windowlib.delta.log import DamagedLog
from windowlib.model.errors import WindowError
from windowlib.storage.address import is_remote
from windowlib.storage.probe import require_create_once
from windowlib.storage.store import Store

KIND = "move"
MARK = "_move.json"


class Moved(WindowError):
    """The tables were moved. This place takes no more rows; readers still find the batches from before the move."""


class UnfinishedMove(WindowError):
    """The tables of another place are being moved to this place, and the copy is not complete."""


def require_stays(moved_to: str | None) -> None:
    """Raises `Moved` if the tables were moved to an address."""
    if moved_to is not None:
        raise Moved(
            f"the tables of this pipeline were moved to {moved_to}, and this place takes no more batches: set"
            f' warehouse = "{moved_to.rpartition("/")[0]}" in {THIS}'
        )


def require_new_place(store: Store) -> None:
    """Raises `UnfinishedMove` if tables are being moved to a place, and InvalidSpec if its storage loses commits."""
    if (source := moving_from(store)) is not None:
        raise UnfinishedMove(_unfinished(store, source))
    if is_remote(store.url):
        require_create_once(store)


@contextmanager
def explained(store: Store) -> Iterator[None]:
    """Raises `UnfinishedMove` if the block finds a damaged log because the ledger is not copied completely."""
    try:
        yield
    except DamagedLog as error:
        if (source := moving_from(store)) is None:
            raise
        raise UnfinishedMove(_unfinished(store, source)) from error


def moving_from(store: Store) -> str | None:
    """Address of the folder from which tables are being moved to a place; None without such a move."""
    mark = store.get(MARK)
    return None if mark is None else str(json.loads(mark)["from"])


def mark(store: Store, source: Store) -> str:
    """Marks a place as the goal of a move from `source`, unless it is marked. Returns the address that the mark has."""
    store.create(MARK, json.dumps({"from": source.url}).encode())
    return moving_from(store) or source.url


def _unfinished(store: Store, source: str) -> str:
    again = to_paste("move", THIS, "--to", OPEN)
    return (
        f"{store} is the goal of a move from {source} that is not finished: set `warehouse` in {THIS} to the old"
        f" address, and finish the move with `{again}`"
    )
