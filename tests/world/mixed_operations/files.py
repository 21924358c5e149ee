"""Changes of source files: they arrive whole or cut, are renamed, rewritten, lost, and come back."""

from __future__ import annotations

from tests.world.mixed_operations.drawn import all_time, rewritten
from tests.world.mixed_operations.world import WHY, World
from windowlib.cli.exits import DONE


def a_file(world: World) -> None:
    world.arrive()


def set_aside(world: World) -> None:
    """Sets a cut file aside; runs continue without it."""
    world.recut = True
    name = world.arrive(readable=False)
    if world.chance.random() < 0.5:
        world.command("run")
    if [one.command("set-aside", name, *WHY) for one in world.readers].count(DONE):
        world.aside.add(name)
    else:
        world.incoming.lay(world.incoming.files[name])


def take_back(world: World) -> None:
    """A file that was set aside came again, whole."""
    for name in sorted(world.aside)[:1]:
        world.incoming.lay(world.incoming.files[name])
        world.aside.discard(name)
        for one in world.readers:
            one.command("set-aside", name, "--back", *WHY)


def rename(world: World) -> None:
    if name := a_file_that_was_read(world):
        world.incoming.rename(name)
        world.moves.append(f"{name} is renamed")


def rewrite(world: World) -> None:
    """Upstream repairs a file that was read."""
    if name := a_file_that_was_read(world):
        values = 1_000_000 + 1000 * len(world.incoming.contents)
        world.incoming.lay(rewritten(world.chance, world.incoming.files[name], values))
        world.moves.append(f"{name} is rewritten")


def lose(world: World) -> None:
    """A file that was read is deleted."""
    if name := a_file_that_was_read(world):
        world.incoming.delete(name)
        world.moves.append(f"{name} is deleted")


def a_file_that_was_read(world: World) -> str | None:
    """Name and place of a file that is as it was read; None if there is none."""
    other = world.other_now()
    names = [name for name in world.read() if world.incoming.lies(name) and name not in other]
    return world.chance.choice(names) if names else None


def restore_files(world: World) -> None:
    """Files that were read and are gone come back; of those that have other rows now, windows are recomputed, or they
    get the old ones."""
    for name, rows in world.other_now().items():
        if world.incoming.checksum(name) is None:
            world.incoming.lay(rows)
            world.moves.append(f"{name} comes back")
    if world.other_now() and world.drawn.in_time and world.chance.random() < 0.7:
        world.given_again("rerun", *all_time())
    for name, rows in world.other_now().items():
        world.incoming.lay(rows)
        world.moves.append(f"{name} is as it was")
