"""New place of a pipeline's tables, and the reasons to refuse it."""

from __future__ import annotations

from pathlib import Path

from windowlib.batches.may_run import check_warehouse
from windowlib.definition.definition import Definition
from windowlib.delta.log import DamagedLog
from windowlib.delta.tables import Tables
from windowlib.ledger import moves
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.ledger.moves import UnfinishedMove
from windowlib.model.errors import InvalidSpec
from windowlib.storage import probe
from windowlib.storage.address import is_remote, path_below, store_at
from windowlib.storage.store import Store


def target_of(definition: Definition, warehouse: str) -> Store:
    """Storage of the pipeline's tables in another warehouse. Raises InvalidSpec if they cannot be moved there."""
    if not is_remote(warehouse):
        warehouse = str(Path(store_at(warehouse).url).absolute())
    target = store_at(warehouse).below(definition.name)
    if path_below(target.url, definition.store) is not None or path_below(definition.store.url, target) is not None:
        raise InvalidSpec(
            f"--to {warehouse}: {target} is, holds, or lies in {definition.store}, where the tables are: expected"
            " another warehouse"
        )
    check_warehouse(definition.model_copy(update={"store": target}))
    return target


def is_goal_of(address: str, target: Store) -> bool:
    """Tests if a move went to a place."""
    return path_below(address, target) == ""


def is_open(target: Store) -> bool:
    """Tests if a place has a ledger that a run could use."""
    try:
        return Tables(target)["ledger"].version() is not None
    except DamagedLog:
        return False


def require_ours(source: Store, target: Store) -> None:
    """Marks a place for the move. Raises InvalidSpec if it holds anything that a move has not put there."""
    if moves.moving_from(target) is None:
        require_free(target)
        if path := next((file.path for file in target.list() if not file.path.startswith(probe.FOLDER)), None):
            raise InvalidSpec(
                f"{target} is not empty (it has {path}): expected an empty folder; give --to another address"
            )
        if is_remote(target.url):
            probe.require_create_once(target)
    if path_below(begun := moves.mark(target, source), source) != "":
        raise UnfinishedMove(
            f"{target} is the goal of an unfinished move from {begun}, not from {source}: finish that move, or delete"
            f" {target}, or give --to another address"
        )


def require_free(target: Store) -> None:
    """Raises InvalidSpec if a place has a ledger."""
    if not is_open(target):
        return
    if (moved_to := Ledger(target, wall_clock_ms).state().moved_to) is not None:
        raise InvalidSpec(
            f"{target} holds tables that were moved to {moved_to}: delete them first, or give --to another address"
        )
    raise InvalidSpec(
        f"{target} holds the tables of another pipeline: expected an empty folder; give --to another address"
    )
