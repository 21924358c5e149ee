"""Actors on a pipeline. Each gives its command once; an allowed outcome is not raised."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tests.support.disks import folder_of
from tests.support.simple_batches import no_spark
from tests.world.schedules.explorer import REFUSING, Explorer
from tests.world.schedules.pipeline import (
    FILE_MS,
    LONG_DELAY,
    NEW,
    NO_DELAY,
    OLD,
    OUTDATED,
    RERUN_FILE,
    SHOWN,
    pipeline,
    root_of,
    rows_of,
)
from tests.world.schedules.reader import DELETED
from windowlib.batches.planning import ledger_of
from windowlib.decisions.adopt import adopt
from windowlib.decisions.advance_watermark import advance_watermark
from windowlib.decisions.forecast import NothingToDo
from windowlib.decisions.restore import restore
from windowlib.decisions.rollback import rollback
from windowlib.decisions.verdicts import abandon, approve
from windowlib.definition.definition import Definition
from windowlib.delta import commits as delta_commits
from windowlib.delta.table_change import FileChange, logged
from windowlib.delta.tables import Tables
from windowlib.erasure import forget
from windowlib.erasure.forget import ForgetRefused
from windowlib.ledger.acknowledgements import acknowledge
from windowlib.ledger.lease import Overtaken
from windowlib.ledger.ledger import DecidedMeanwhile, NothingToDecide, Rejected, Superseded
from windowlib.ledger.rerun_request import Rerun, RerunAlreadyDone, RerunRefused
from windowlib.ledger.retained_batches import CutExpired
from windowlib.maintenance.maintain import maintain
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.shadow import MigrationRefused, NothingToMigrate
from windowlib.migrations.switch import build, switch
from windowlib.migrations.undo import finish, finish_prepared, tidy, undo
from windowlib.model.errors import StateMismatch
from windowlib.publication.foreign_changes import CannotUndo
from windowlib.publication.roll_forward import ForeignChange
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

Actor = Callable[[Path, str], object]  # acts on the pipeline in a folder, whose definition has this gap
BY = ("ann", "to see what happens")
OUTCOMES = (
    *(
        Superseded,
        DecidedMeanwhile,
        Overtaken,
        Rejected,
        ForeignChange,
        NothingToDecide,
        NothingToDo,
        CannotUndo,
        CutExpired,
    ),
    *(RerunAlreadyDone, StateMismatch, MigrationRefused, NothingToMigrate, ForgetRefused),
)
ERASED, UNREAD = 11, 30  # of a file that was read, and of one that was not


def a_run(folder: Path, gap: str = OLD, delay: str = NO_DELAY) -> None:
    advance(pipeline(folder, delay, gap), no_spark)


def rerun_of(preview_id: str) -> Rerun:
    """Rerun of a shown dry run."""
    return Rerun(10 * RERUN_FILE, 10 * RERUN_FILE + 3, BY[1], BY[0], preview_id=preview_id)


def a_rerun(folder: Path, gap: str = OLD, preview_id: str = SHOWN) -> None:
    advance(of(folder, gap), no_spark, rerun=rerun_of(preview_id))


def outdated_rerun(folder: Path, gap: str) -> None:
    """Applies a dry run that is outdated."""
    with suppress(RerunRefused):
        a_rerun(folder, gap, OUTDATED)


def of(folder: Path, gap: str) -> Definition:
    return pipeline(folder, NO_DELAY, gap)


def erase(folder: Path, gap: str, value: int = ERASED, *, now: bool = False) -> None:
    forget.forget(of(folder, gap), no_spark, forget.ForgetRequest([str(value)], *BY, now=now))
    assert value not in _held(folder), f"{value} is erased, says the command, and is there"


def _held(folder: Path) -> set[int]:
    """Values in `results` or in flight, by the ledger's cut."""
    ledger = ledger_of(pipeline(folder))
    versions = commit.versions if (commit := ledger.state().commit) else {}
    paths = (
        folder_of(ledger) / name / file.path
        for name in ("results", "open_windows")
        for file in ledger.tables[name].files(versions.get(name))
    )
    return {value for path in paths for value in rows_of(path)}


def migrate(folder: Path, gap: str = NEW) -> None:
    """Migration without a question."""
    new = of(folder, gap)
    if not _finished(new):
        switch(new, build(new, no_spark, MigrationRequest(*BY)), no_spark, MigrationRequest(*BY))


def undo_migration(folder: Path, *_: str) -> None:
    new = of(folder, NEW)
    if not _finished(new):
        undo(new, no_spark, MigrationRequest(*BY))


def keep_migration(folder: Path, *_: str) -> None:
    new = of(folder, NEW)
    if not _finished(new):
        finish(new, MigrationRequest(*BY))


def _finished(definition: Definition) -> bool:
    """Tests if a killed command had prepared a batch that is published now."""
    done = finish_prepared(definition)
    tidy(definition)
    return done is not None


def optimize(folder: Path, *_: str) -> None:
    results = root_of(folder) / "results"
    if (results / "_delta_log").exists():
        with suppress(CommitFailedError):
            DeltaTable(results).optimize.compact()


def delete(folder: Path, *_: str, value: int = DELETED) -> None:
    with suppress(CommitFailedError):
        DeltaTable(root_of(folder) / "results").delete(f"value = {value}")


def lossy_optimize(folder: Path, *_: str) -> None:
    """Commits a compaction that claims to change no row but leaves out a file."""
    table = Tables(Disk(root_of(folder)))["results"]
    newest = table.version()
    assert newest is not None
    lost = tuple(map(logged, table.files(newest)[:1]))
    delta_commits.commit_logged(table, newest, FileChange(remove=lost, of_rows=False))


ACTORS: dict[str, Actor] = {
    "run": a_run,
    "run under other terms": lambda folder, gap: a_run(folder, gap, LONG_DELAY),
    REFUSING: a_run,
    "rerun": a_rerun,
    "outdated rerun": outdated_rerun,
    "approve": lambda *at: approve(of(*at), *BY),
    "abandon": lambda *at: abandon(of(*at), *BY),
    "rollback": lambda *at: rollback(of(*at), 1, *BY),
    "restore": lambda *at: restore(of(*at), *BY),
    "adopt": lambda *at: adopt(of(*at), *BY),
    "advance-watermark": lambda *at: advance_watermark(of(*at), 50 * FILE_MS, *BY),
    "maintain": lambda *at: maintain(of(*at), BY[0]),
    "acknowledge": lambda *at: acknowledge(ledger_of(of(*at)), "failure", 2**53, *BY),
    "foreign OPTIMIZE": optimize,
    "foreign DELETE": delete,
}
CHANGING: dict[str, Actor] = {
    "forget": erase,
    "forget --now": lambda *at: erase(*at, UNREAD, now=True),
    "migrate": lambda folder, _: migrate(folder),
    "migrate --undo": undo_migration,
    "migrate --finish": keep_migration,
}
LOSSY = "foreign OPTIMIZE that loses a file"  # no run can go on after it: in no group
PAIRS = [*combinations(ACTORS, 2), ("run", "run"), ("rerun", "rerun"), ("rollback", "rollback")]
TRIPLES = list(combinations_with_replacement(ACTORS, 3))
PAIRS_OF_CHANGES = [*product(CHANGING, ACTORS), *combinations_with_replacement(CHANGING, 2)]
TRIPLES_OF_CHANGES = [
    *((one, *others) for one in CHANGING for others in combinations_with_replacement([*ACTORS, *CHANGING], 2))
]
FOREIGN = [name for name in ACTORS if name.startswith("foreign")]
OWN = [name for name in ACTORS if name not in FOREIGN]
KINDS = {
    "run": ("run", REFUSING),
    "run under other terms": ("run under other terms",),
    "rerun": ("rerun", "outdated rerun"),
    "operator": ("approve", "abandon", "rollback", "restore", "adopt", "advance-watermark", "maintain", "acknowledge"),
    "foreign": FOREIGN,
}
TRIPLES_OF_KINDS = list(combinations_with_replacement(KINDS, 3))


def act(name: str, folder: Path) -> None:
    """Gives an actor's command, and does not raise its allowed outcomes."""
    with suppress(*OUTCOMES):
        given(name, folder)


def given(name: str, folder: Path) -> None:
    """One actor's command; under the new definition where that is in force."""
    actor = lossy_optimize if name == LOSSY else {**ACTORS, **CHANGING}[name]
    try:
        actor(folder, OLD)
    except StateMismatch:
        actor(folder, NEW)


def act_rightly(explorer: Explorer, name: str, folder: Path, others: bool) -> None:
    """Runs an actor's command. Raises AssertionError if it leaves for another actor that is not there; `others`:
    foreign programs.
    """
    with suppress(*OUTCOMES):
        try:
            given(name, folder)
        except Superseded as error:
            claim = ledger_of(pipeline(folder)).state().claim
            if claim is None or explorer.is_alone(claim.epoch):
                raise AssertionError("it leaves to another run, and there is none") from error
            raise
        except (ForeignChange, Overtaken) as error:
            if not others:
                raise AssertionError("it names another program, and there is none") from error
            raise
