"""Operations on a pipeline by the command line, with their frequency: files, runs, corrections, decisions, edits, and
changes by another program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tests.support.clicks import MINUTE_MS, START_MS
from tests.support.disks import folder_of
from tests.world.mixed_operations.drawn import ADDED, FILE_MIN, all_time, migrated
from tests.world.mixed_operations.files import a_file, lose, rename, restore_files, rewrite, set_aside, take_back
from tests.world.mixed_operations.world import KILLED, KILLS, WHY, YES, World
from windowlib.cli.exits import DONE, REJECTED, USER
from windowlib.definition.instants import iso_instant

USERS = tuple(f"u{number}" for number in range(7))
FEW_ROWS = {
    "expectations": [
        {
            "type": "expect_column_max_to_be_between",
            "kwargs": {"column": "rows_read", "max_value": 4},
            "severity": "critical",
            "description": "Few rows.",
        }
    ]
}


def run(world: World) -> None:
    if world.chance.random() < 0.7:
        world.arrive()
    together = [one.file for one in world.others if world.chance.random() < 0.5]
    world.command("run", *together, *world.chance.choice(((), (), ("--max-batches", 1))), killed=KILLS)


def finish(world: World) -> None:
    world.recut = True
    world.command("run", "--finish", killed=KILLS)


def plan(world: World) -> None:
    world.command("plan")


def rerun(world: World) -> None:
    """Reruns at once, or applies a dry run; another operation may happen in between."""
    if world.chance.random() < 0.6:
        world.command("rerun", *span(world), *YES, killed=KILLS)
    elif shown := world.said("rerun", *span(world), "--dry-run", *WHY):
        meanwhile = world.is_begun()
        if world.chance.random() < 0.3:
            meanwhile = True
            world.chance.choice((run, edit_lateness, roll_back))(world)
        code = world.command("rerun", "--apply", shown["preview_id"], "--who", "ann", killed=KILLS)
        assert meanwhile or code != USER, "what a dry run has just shown cannot be applied"


def readmit(world: World) -> None:
    key = world.chance.choice(((), (), ("--key", "u0")))
    world.command("late readmit", *span(world), *key, *YES, killed=KILLS)


def roll_back(world: World) -> None:
    """Rolls back to any batch, except one that keeps a foreign deletion, because it lacks rows."""
    if batches := [row["batch_id"] for row in world.commits() if row["batch_id"] not in world.adopted]:
        to = world.chance.choice(batches[-4:] if world.chance.random() < 0.8 else batches)
        world.command("rollback", "--to-batch", to, *YES, killed=KILLS)


def advance_watermark(world: World) -> None:
    newest = [row["watermark_out_ms"] for row in world.commits()][-1:]
    if newest and newest[0] is not None and abs(newest[0]) < 2 * START_MS:
        world.recut = True
        to_ms = newest[0] + world.chance.randrange(-5, 90) * MINUTE_MS
        world.command("advance-watermark", "--to", iso_instant(to_ms), *YES, killed=KILLS)


def maintain(world: World) -> None:
    world.command("maintain", "--who", "ann", killed=KILLS)


def forget(world: World) -> None:
    """A key is erased; killed, the command is given again, at once or at the end."""
    key = world.chance.choice(sorted(world.half) or USERS[:4])
    now = ("--now",) if world.chance.random() < 0.3 else ()
    forget_key(world, key, *now, killed=KILLS)


def forget_key(world: World, key: str, *now: str, killed: float = 0.0) -> int:
    world.restarts, world.recut = world.restarts + bool(now), True
    code = world.command("forget", "--key", key, *now, *YES, killed=killed)
    if code == KILLED:
        world.silent = world.silent or bool(now)
        world.half.add(key)
    elif code == DONE:
        world.half.discard(key)
        world.erased.add(key)
    return code


def migrate(world: World) -> None:
    """Edits a key that needs a migration. A killed command is repeated, a refused edit undone."""
    text = world.drawn.text
    if (other := migrated(world.chance, text)) is None:
        return
    world.recut = True
    world.write(other)
    if world.chance.random() < 0.2:
        world.command("migrate", "--dry-run")
    code = world.command("migrate", *YES, killed=KILLS)
    if code == KILLED:
        if world.chance.random() < 0.3:
            world.arrive()
        code = world.command("migrate", *YES)
    if code == REJECTED:
        code = world.command("migrate", "--approve", *YES)
    if code == DONE:
        world.before_migration = text
    else:
        world.write(text)
        undo_migration(world)  # gives up what was built, or else the migration before


def undo_migration(world: World) -> None:
    if world.given_again("migrate", "--undo") == DONE and world.before_migration:
        world.write(world.before_migration)
        world.before_migration = None


def keep_migration(world: World) -> None:
    if world.command("migrate", "--finish", *YES, killed=KILLS) == DONE:
        world.before_migration = None


def edit_lateness(world: World) -> None:
    world.recut = True
    minutes = world.chance.choice((0, 0, 10, 60, 200))
    world.write(re.sub(r'allowed_lateness = "\d+m"', f'allowed_lateness = "{minutes}m"', world.drawn.text))
    world.moves.append(f"allowed_lateness {minutes}m")


def add_column(world: World) -> None:
    """Adding a column. For windows that keep their elements it takes a migration."""
    free = [name for name in ADDED if f"\n{name} = " not in world.drawn.text]
    if free and "[aggregates]" in world.drawn.text and world.drawn.kind != "evictor":
        name = world.chance.choice(free)
        world.write(f'{world.drawn.text}{name} = "{ADDED[name]}"\n')
        world.moves.append(f"column {name}")


def suspect(world: World) -> None:
    """Runs a batch that its checks refuse; the operator decides now or later."""
    text = world.drawn.text
    (world.folder / "few.json").write_text(json.dumps(FEW_ROWS), encoding="utf-8")
    world.write(text.replace("[checks]\n", '[checks]\nfigures_suite = "few.json"\n'))
    world.arrive()
    code = world.command("run", killed=KILLS)
    world.write(text)
    if code == REJECTED and world.chance.random() < 0.7:
        world.chance.choice((approve, abandon))(world)


def approve(world: World) -> None:
    world.command("approve", *WHY, killed=KILLS)


def abandon(world: World) -> None:
    world.command("abandon", *WHY, killed=KILLS)


def compact(world: World) -> None:
    """Another program puts a table's files together."""
    name = world.chance.choice(("results", "open_windows", "late_events", "source_files", "ledger", "result_changes"))
    if DeltaTable.is_deltatable(str(folder_of(world.definition) / name)):
        with suppress(CommitFailedError):
            DeltaTable(folder_of(world.definition) / name).optimize.compact()
            world.moves.append(f"OPTIMIZE {name}")


def delete(world: World) -> None:
    """Deletes rows as another program; the deletion is restored, or adopted and then rolled back."""
    name = world.chance.choice(("results", "results", "open_windows", "late_events"))
    batches = [row["batch_id"] for row in world.commits()]
    if not batches or not DeltaTable.is_deltatable(str(folder_of(world.definition) / name)):
        return
    DeltaTable(folder_of(world.definition) / name).delete("\"user\" = 'u0'")
    world.moves.append(f"DELETE {name}")
    if world.chance.random() < 0.3:
        world.command("run")
    if world.chance.random() < 0.8:
        world.given_again("restore")
        return
    world.given_again("adopt")
    world.adopted |= {row["batch_id"] for row in world.commits()} - {*batches}
    world.restarts += 1
    world.command("rollback", "--to-batch", batches[-1], *YES)


def span(world: World) -> tuple[str, ...]:
    """A range of time, sometimes all of it."""
    from_ms = START_MS + world.chance.randrange(-300, len(world.incoming.files) * FILE_MIN + 60) * MINUTE_MS
    to_ms = from_ms + world.chance.choice((1, 30, 120, 600)) * MINUTE_MS
    return all_time() if world.chance.random() < 0.2 else ("--from", iso_instant(from_ms), "--to", iso_instant(to_ms))


OPERATIONS: dict[Callable[[World], None], float] = {
    **{a_file: 6, run: 26, finish: 0.7, plan: 2},
    **{rerun: 9, readmit: 6, roll_back: 7, advance_watermark: 4, maintain: 5, forget: 4},
    **{migrate: 4, undo_migration: 3, keep_migration: 2, edit_lateness: 4, add_column: 4},
    **{suspect: 3, approve: 2, abandon: 3, set_aside: 2, take_back: 2, compact: 3, delete: 4},
    **{rename: 2, rewrite: 5, lose: 2, restore_files: 8},
}
