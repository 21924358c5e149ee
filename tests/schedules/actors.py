"""Who acts on a pipeline, each as often as its command is typed: once. An outcome that its sentence foresees is none
to raise.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import combinations, combinations_with_replacement
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tests.runs.schedules import no_spark
from tests.schedules.explorer import REFUSING
from tests.schedules.pipeline import FILE_MS, LONG_DELAY, NO_DELAY, OUTDATED, RERUN_FILE, SHOWN, pipeline, root_of
from tests.schedules.reader import DELETED
from windowlib.batches.planning import ledger_of
from windowlib.runs.advance import advance
from windowlib.runs.advance_watermark import advance_watermark
from windowlib.runs.maintenance import maintain
from windowlib.runs.operations import NothingToDo, adopt, restore, rollback
from windowlib.runs.verdicts import abandon, approve
from windowlib.tables import delta
from windowlib.tables.acknowledged import acknowledge
from windowlib.tables.foreign import CannotUndo
from windowlib.tables.kept import CutExpired
from windowlib.tables.ledger import NothingToDecide, Rejected, Superseded
from windowlib.tables.opened import Tables
from windowlib.tables.rerun import DoneAlready, Rerun, RerunRefused
from windowlib.tables.roll_forward import ForeignChange

Actor = Callable[[Path], object]
BY = ("ann", "to see what happens")
OUTCOMES = (Superseded, Rejected, ForeignChange, NothingToDecide, NothingToDo, CannotUndo, CutExpired, DoneAlready)


def a_run(folder: Path, delay: str = NO_DELAY) -> None:
    advance(pipeline(folder, delay), no_spark)


def rerun_of(preview_id: str) -> Rerun:
    """What one dry run has shown."""
    return Rerun(10 * RERUN_FILE, 10 * RERUN_FILE + 3, BY[1], BY[0], preview_id=preview_id)


def a_rerun(folder: Path, preview_id: str = SHOWN) -> None:
    advance(pipeline(folder), no_spark, rerun=rerun_of(preview_id))


def outdated_rerun(folder: Path) -> None:
    """Applies what a dry run has shown and does not hold any more."""
    with suppress(RerunRefused):
        a_rerun(folder, OUTDATED)


def optimize(folder: Path) -> None:
    results = root_of(folder) / "results"
    if (results / "_delta_log").exists():
        with suppress(CommitFailedError):
            DeltaTable(results).optimize.compact()


def delete(folder: Path, value: int = DELETED) -> None:
    with suppress(CommitFailedError):
        DeltaTable(root_of(folder) / "results").delete(f"value = {value}")


def lossy_optimize(folder: Path) -> None:
    """Says that it changes no row, and leaves a file out."""
    table = Tables(root_of(folder))["results"]
    newest = delta.version(table)
    assert newest is not None
    lost = tuple(map(delta.logged, delta.files(table, newest)[:1]))
    delta.commit_logged(table, newest, delta.Change(remove=lost, of_rows=False))


ACTORS: dict[str, Actor] = {
    "run": a_run,
    "run under other terms": lambda folder: a_run(folder, LONG_DELAY),
    REFUSING: a_run,
    "rerun": a_rerun,
    "outdated rerun": outdated_rerun,
    "approve": lambda folder: approve(pipeline(folder), *BY),
    "abandon": lambda folder: abandon(pipeline(folder), *BY),
    "rollback": lambda folder: rollback(pipeline(folder), 1, *BY),
    "restore": lambda folder: restore(pipeline(folder), *BY),
    "adopt": lambda folder: adopt(pipeline(folder), *BY),
    "advance-watermark": lambda folder: advance_watermark(pipeline(folder), 50 * FILE_MS, *BY),
    "maintain": lambda folder: maintain(pipeline(folder), BY[0]),
    "acknowledge": lambda folder: acknowledge(ledger_of(pipeline(folder)), "failure", 2**53, *BY),
    "foreign OPTIMIZE": optimize,
    "foreign DELETE": delete,
}
LOSSY = "foreign OPTIMIZE that loses a file"  # no run can go on after it: in no group
PAIRS = [*combinations(ACTORS, 2), ("run", "run"), ("rerun", "rerun"), ("rollback", "rollback")]
TRIPLES = list(combinations_with_replacement(ACTORS, 3))
OWN = [name for name in ACTORS if not name.startswith("foreign")]
KINDS = {
    "run": ("run", REFUSING),
    "run under other terms": ("run under other terms",),
    "rerun": ("rerun", "outdated rerun"),
    "operator": ("approve", "abandon", "rollback", "restore", "adopt", "advance-watermark", "maintain", "acknowledge"),
    "foreign": ("foreign OPTIMIZE", "foreign DELETE"),
}
TRIPLES_OF_KINDS = list(combinations_with_replacement(KINDS, 3))


def act(name: str, folder: Path) -> None:
    """One actor's command, whose foreseen outcomes are not raised."""
    with suppress(*OUTCOMES):
        (lossy_optimize if name == LOSSY else ACTORS[name])(folder)
