"""Plays a seed: operations with their invariants, then the end of all unfinished work and a last comparison."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from tests.world.mixed_operations.drawn import ADDED, all_time
from tests.world.mixed_operations.files import restore_files, take_back
from tests.world.mixed_operations.incoming import Incoming
from tests.world.mixed_operations.invariants import (
    Cuts,
    Follower,
    Name,
    check_explained,
    check_places,
    different,
    name_of,
    values_of,
)
from tests.world.mixed_operations.operations import OPERATIONS, approve, forget_key
from tests.world.mixed_operations.world import YES, World
from windowlib.cli.exits import DIFFERS, DONE, REJECTED, USER

LOOKING = (
    ("status",),
    ("status", "--json"),
    ("plan",),
    ("late list", "--all"),
    ("late list", "--by", "key"),
    ("late what-if",),
    ("checks",),
    ("report",),
    ("explain-plan",),
    ("forget",),
    ("read", "results"),
    ("read", "verifications"),
)


def play(folder: Path, seed: int, steps: int, engine: str = "sail") -> World:
    """Plays operations in an empty folder. Raises with the past operations for a fault."""
    chance = random.Random(f"play {seed}")
    world = World(Incoming(folder, chance), seed, engine)
    worlds = [world, *([world.next_to_it()] if chance.random() < 0.3 else [])]
    try:
        _play(worlds, steps)
        for one in worlds:
            end(one)
    except Exception as error:
        error.add_note(
            f"seed {seed}, {' and '.join(one.drawn.kind for one in worlds)}, {folder}:\n" + "\n".join(world.moves)
        )
        raise
    return world


def _play(worlds: list[World], steps: int) -> None:
    watched = {one.name: (one, Follower(), Follower(), Cuts()) for one in worlds}
    for step in range(steps):
        world = worlds[0].chance.choice(worlds)
        (operation,) = world.chance.choices([*OPERATIONS], [*OPERATIONS.values()]) if step else [next(iter(OPERATIONS))]
        world.moves.append(f"-- {operation.__name__} {world.name}")
        operation(world)
        for one, eager, lazy, cuts in watched.values():
            cuts.look(one)
            check_places(one)
            eager.catch_up(one)
            if one.chance.random() < 0.2:
                lazy.catch_up(one)
        if world.chance.random() < 0.5:
            verify(world)
        if world.chance.random() < 0.4:
            check_explained(world)
        if world.chance.random() < 0.4:
            words, *arguments = world.chance.choice(LOOKING)
            world.command(words, *arguments)
    for one, eager, lazy, _ in watched.values():
        lazy.catch_up(one)
        eager.catch_up(one)


def verify(world: World) -> None:
    """Checks that the tables equal the reference."""
    if world.drawn.rules is not None:
        assert world.command("verify") != DIFFERS, world.moves[-1]


def end(world: World) -> None:
    """All that waits is decided, all that was begun is ended, all time is rerun, twice: as of a new pipeline."""
    recut = world.recut
    come_to_rest(world)
    check_places(world)
    verify(world)
    if world.drawn.in_time:
        assert world.command("rerun", *all_time(), *YES) == DONE
        check_places(world)
        verify(world)
        before = world.rows("results")
        world.command("rerun", *all_time(), *YES)
        assert world.rows("results") == before, "a rerun of what was just rerun changes rows"
    if world.drawn.rules or not (recut or world.drawn.kind == "processing time"):
        check_fresh(world)


def come_to_rest(world: World) -> None:
    """Decides on waiting batches, finishes unfinished work, and reads one more file, which brings added columns."""
    world.arrive()
    while world.aside:
        take_back(world)
    for _ in range(10):
        restore_files(world)  # once more where a batch that was killed has read a file since
        if world.command("run", "--finish") == REJECTED:
            approve(world)
            continue
        for key in sorted(world.half):
            if forget_key(world, key) == USER:  # a migration came after that was killed
                world.command("migrate", "--finish", *YES)
        if not world.half and world.command("run", "--finish") == DONE:
            return
    raise AssertionError("the pipeline does not come to rest")


def check_fresh(world: World) -> None:
    """`results` are those of a new pipeline that reads the same files, in the same order."""
    fresh = World(Incoming(world.folder / "fresh", world.chance), world.seed, world.engine, world.name)
    fresh.write(world.drawn.text)
    for order, read in enumerate(world.read().values(), 1):
        rows = [row for row in read if row.user not in world.erased]
        if rows:
            fresh.incoming.lay(tuple(row._replace(order=(order, row.order[1])) for row in rows))
    fresh.command("run", "--finish")
    if world.drawn.in_time:
        fresh.command("rerun", *all_time(), *YES)
    found, wanted = as_computed(world), as_computed(fresh)
    assert found == wanted, f"not as of a new pipeline: {different(found, wanted)}"
    shutil.rmtree(fresh.folder)


def as_computed(world: World) -> dict[Name, dict[str, Any]]:
    """Results without values that depend on the number of computations or, if no rerun can compute them, on the time of
    an added column.
    """
    each_firing = world.drawn.each_firing
    counted = () if world.drawn.rules is None else ("firing", "timing")
    counted = counted if world.drawn.in_time else (*counted, *ADDED)
    rows = world.rows("results")
    return {name_of(row, each_firing=each_firing): values_of(row, *counted, "filled_columns") for row in rows}
