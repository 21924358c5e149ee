"""Bounds that an old pipeline must keep, relative to its hundredth batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.support.disks import folder_of
from tests.world.growth.growth import Growth, Measured
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER, OUTSIDE
from windowlib.definition.definition import Definition
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Clock
from windowlib.ledger.maintenances import kept_from
from windowlib.quality.validations import KEPT_BATCHES

YOUNG, SETTLED = 100, 500  # batches: what costs are compared with; from where on a process must not grow
COST, MEMORY = 1.2, 1.1
OTHERS = KEPT_BATCHES + 60 * len((*COMMIT_ORDER, *OUTSIDE))
"""Files that there may be apart from data files of kept cuts, right after maintenance: the outcomes of checks, and of
each log the entries and checkpoints of twenty kept batches, of which each writes some entries of the ledger."""


def broken(growth: Growth, young: Growth) -> Iterator[str]:
    """Sentences about broken bounds; call it right after maintenance, with a pipeline of `YOUNG` batches."""
    yield from _files(growth)
    yield from _memory(growth.all_measured())
    for what, (young_ms, old_ms) in growth.in_turns_with(young).items():
        print(f"{what}: {young_ms:.0f} ms of batch {YOUNG}, {old_ms:.0f} ms now", flush=True)
        if old_ms > COST * young_ms:
            yield f"{what} takes {old_ms / young_ms:.2f} times what it took at batch {YOUNG}"


def _files(growth: Growth) -> Iterator[str]:
    files, needed = (
        len([path for path in folder_of(growth.definition).rglob("*") if path.is_file()]),
        needed_files(growth.definition, growth.clock),
    )
    if files > needed + OTHERS:
        yield f"{files} files, of which kept cuts need {needed}, and {OTHERS} others are allowed"


def _memory(rows: Sequence[Measured]) -> Iterator[str]:
    """Memory of processes that were measured at least twice after their own batch `SETTLED`."""
    for sitting in dict.fromkeys(one.sitting for one in rows):
        flat = [one for one in rows if one.sitting == sitting and one.batch - one.since >= SETTLED]
        first, most = (flat[0], max(flat, key=lambda one: one.memory_mb)) if flat else (None, None)
        if first and most and most.memory_mb > MEMORY * first.memory_mb:
            yield f"memory grew from {first.memory_mb:.0f} MB at {first.batch} to {most.memory_mb:.0f} at {most.batch}"


def needed_files(definition: Definition, clock: Clock) -> int:
    """The data files that kept cuts name, and those of tables that no batch publishes."""
    ledger = ledger_of(definition, clock)
    cuts = commits_of(ledger.tables, kept_from(definition.store))
    needed = {
        (name, file.path)
        for one in cuts
        for name, version in one.versions.items()
        for file in ledger.tables[name].files(version)
    }
    live = ((name, ledger.tables[name].files(ledger.tables[name].version())) for name in OUTSIDE)
    return len(needed | {(name, file.path) for name, files in live for file in files})
