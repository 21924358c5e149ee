"""Plays a seed: an operation, what must hold, the next; then all that was begun is ended, and compared once more."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.mixed_operations.drawn import ADDED
from tests.mixed_operations.invariants import (
    Cuts,
    Follower,
    Name,
    check_explained,
    check_places,
    different,
    name_of,
    values_of,
)
from tests.mixed_operations.operations import OPERATIONS, all_time, approve, forget_key, take_back
from tests.mixed_operations.world import YES, World
from tests.random_pipelines import play as random_pipelines
from windowlib.runs.exits import DIFFERS, DONE, REJECTED

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
    """Plays so many operations in an empty folder. Raises with what was done where something is wrong."""
    world = World(folder, seed, engine)
    try:
        _play(world, steps)
        end(world)
    except Exception as error:
        error.add_note(f"seed {seed}, {world.drawn.kind}, {folder}:\n" + "\n".join(world.moves))
        raise
    return world


def _play(world: World, steps: int) -> None:
    eager, lazy, cuts = Follower(), Follower(), Cuts()
    for step in range(steps):
        (operation,) = world.chance.choices([*OPERATIONS], [*OPERATIONS.values()]) if step else [next(iter(OPERATIONS))]
        world.moves.append(f"-- {operation.__name__}")
        operation(world)
        cuts.look(world)
        check_places(world)
        eager.catch_up(world)
        if world.chance.random() < 0.2:
            lazy.catch_up(world)
        if world.chance.random() < 0.5:
            verify(world)
        if world.chance.random() < 0.4:
            check_explained(world)
        if world.chance.random() < 0.4:
            words, *arguments = world.chance.choice(LOOKING)
            world.command(words, *arguments)
    lazy.catch_up(world)
    eager.catch_up(world)


def verify(world: World) -> None:
    """Nothing differs from what the reference makes of the source."""
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
    """Decides what waits, ends what was begun, and reads one file more, with which added columns come."""
    world.arrive()
    while world.aside:
        take_back(world)
    for _ in range(10):
        if world.command("run", "--finish") == REJECTED:
            approve(world)
            continue
        for key in sorted(world.half):
            forget_key(world, key)
        if not world.half and world.command("run", "--finish") == DONE:
            return
    raise AssertionError("the pipeline does not come to rest")


def check_fresh(world: World) -> None:
    """`results` are those of a new pipeline that reads the same files, in the same order."""
    fresh = World(world.folder / "fresh", world.seed, world.engine)
    fresh.write(world.drawn.text)
    read = sorted(world.rows("source_files"), key=lambda row: int(row["sequence"]))
    for order, name in enumerate((Path(row["path"]).name for row in read), 1):
        rows = [row for row in world.files[name] if row.user not in world.erased]
        if rows:
            random_pipelines.write(fresh.folder, tuple(row._replace(order=(order, row.order[1])) for row in rows))
    fresh.command("run", "--finish")
    if world.drawn.in_time:
        fresh.command("rerun", *all_time(), *YES)
    found, wanted = as_computed(world), as_computed(fresh)
    assert found == wanted, f"not as of a new pipeline: {different(found, wanted)}"
    shutil.rmtree(fresh.folder)


def as_computed(world: World) -> dict[Name, dict[str, Any]]:
    """The results, without what depends on how often a window was computed; of those that no rerun computes again, on
    when a column was added."""
    each_firing = world.drawn.each_firing
    counted = () if world.drawn.rules is None else ("firing", "timing")
    counted = counted if world.drawn.in_time else (*counted, *ADDED)
    rows = world.rows("results")
    return {name_of(row, each_firing=each_firing): values_of(row, *counted, "filled_columns") for row in rows}
