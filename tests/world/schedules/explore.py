"""Explores schedules: of every pair and every triple of actors in turn, from one seed.

    python -m tests.world.schedules.explore --schedules 5000 --seed 7
    python -m tests.world.schedules.explore --schedules 5000 --seed 7 --after 2500    # the second half of the same ones

Each is played on a copy of a pipeline that has run before; after every step the reader looks; at the end the operator
decides what waits, a last run reads what is left, and everything must be there, once. A schedule that fails is printed
with its moves, and the next one follows.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.support.disks import folder_of
from tests.support.log_files import file_of
from tests.world.schedules.actors import (
    BY,
    FOREIGN,
    OWN,
    PAIRS,
    PAIRS_OF_CHANGES,
    TRIPLES,
    TRIPLES_OF_CHANGES,
    a_run,
    act,
    act_rightly,
    delete,
    erase,
    keep_migration,
    migrate,
    of,
)
from tests.world.schedules.explorer import REFUSING, Explorer, VolatileDisk, explored
from tests.world.schedules.pipeline import arrive, pipeline, root_of, rows_of, values_of
from tests.world.schedules.reader import DELETED, Erased, Reader
from windowlib.batches.planning import ledger_of
from windowlib.decisions.adopt import adopt
from windowlib.decisions.restore import restore
from windowlib.decisions.verdicts import abandon, approve
from windowlib.delta import log
from windowlib.delta.log import DamagedLog
from windowlib.delta.tables import Tables
from windowlib.erasure.forget import ForgetRefused
from windowlib.ledger import maintenances as maintained
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Ledger, Rejected, wall_clock_ms
from windowlib.maintenance.maintain import maintain
from windowlib.publication.foreign_changes import CannotUndo
from windowlib.publication.roll_forward import ForeignChange
from windowlib.runs.operation import held
from windowlib.storage.disk import Disk

GROUPS = [*PAIRS, *PAIRS_OF_CHANGES, *TRIPLES, *TRIPLES_OF_CHANGES]
FILES = 4  # two of them are read before
HOLDING = {"results", "result_changes", "open_windows"}  # the tables that name values
DECISIONS = 9  # at most, before the last run ends
BEGUN, REFUSED, CHANGED, MIGRATED = "begun", "refused", "changed", "migrated"


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A folder in memory where the machine has one."""
    shared = Path("/dev/shm")
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    with tempfile.TemporaryDirectory(prefix="schedules-", dir=shared if usable else None) as name:
        yield Path(name)


def begin(folder: Path) -> None:
    """Pipelines that have run, from which schedules begin: one at rest, a refused batch, a foreign change, a
    migration that can be undone.
    """
    for name in (BEGUN, REFUSED, CHANGED, MIGRATED):
        place = folder / name
        pipeline(place)
        explorer = Explorer(0, lambda: None)
        with pytest.MonkeyPatch.context() as patch, explored(explorer, VolatileDisk(place), patch):
            for number in (1, 2):
                arrive(place, number)
                a_run(place)
            if name == MIGRATED:
                migrate(place)
            for number in range(3, 1 + FILES):
                arrive(place, number)
            if name == REFUSED:
                explorer.add(REFUSING, lambda place=place: act(REFUSING, place))  # type: ignore[misc]
                explorer.run()
            if name == CHANGED:
                delete(place)
        DeltaTable(root_of(place) / "ledger").optimize.compact()  # one file is read sooner than a dozen


def explore(
    begun: Path, seed: int, group: Sequence[str], *, start: str | None = None, kills: int = 0, power_cut: bool = False
) -> None:
    """Plays one schedule of a group to its end. Raises AssertionError with the last moves for a fault."""
    chance = random.Random(f"{seed} {group} {kills} {power_cut}")
    starts = (BEGUN, MIGRATED) if any(name.startswith("migrate") for name in group) else (BEGUN, REFUSED, CHANGED)
    start = start or chance.choice((BEGUN, *starts))
    folder = begun / "explored"  # always the same, so that its definition is read once
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(begun / start, folder, copy_function=shutil.copy2 if power_cut else os.link)
    reader, safe = Reader(root_of(folder)), VolatileDisk(folder / "warehouse")
    safe.keep()
    explorer = Explorer(chance.randrange(1 << 30), reader.watch, kills, power_cut)
    others = start == CHANGED or any(name.startswith("foreign") for name in group)
    for name in group:
        explorer.add(name, lambda name=name: act_rightly(explorer, name, folder, others))  # type: ignore[misc]
    with pytest.MonkeyPatch.context() as patch, explored(explorer, safe, patch):
        try:
            reader.watch()
            explorer.run()
            if power_cut:
                safe.cut(explorer.random, of_others(folder))
                reader = Reader(root_of(folder))
            settle(folder, chance)
            tidy(folder)
            reader.watch()
            erase_again(folder, reader)
            check_all_is_there(reader, changed=start == CHANGED or "foreign DELETE" in group)
            check_is_gone(folder, reader)
        except BaseException as error:
            moves = "\n".join(explorer.moves[-80:])
            error.add_note(f"seed {seed} of {group} from {start}, kills={kills}, power_cut={power_cut}:\n{moves}")
            raise


def of_others(folder: Path) -> set[Path]:
    """Values of `results` written by another program on which nothing is built yet."""
    table = Tables(Disk(root_of(folder)))["results"]
    newest, commit = table.version(), ledger_of(pipeline(folder)).state().commit
    after = commit.versions.get("results", -1) if commit else -1
    spared = set[Path]()
    for one in reversed([*log.entries(table.store, after, newest or 0)]):
        if one.identity is not None:
            break
        spared |= {file_of(folder_of(table), one.version), *(folder_of(table) / path for path in one.added)}
    return spared


def settle(folder: Path, chance: random.Random) -> None:
    """Decides on waiting batches, follows the advice of errors, and runs the rest."""
    decide: Callable[..., object] | None = None
    for _ in range(DECISIONS):
        try:
            gap = gap_in_force(folder)
            if decide is None:
                a_run(folder, gap)
                return
            decide(of(folder, gap), *BY)
            decide = None
        except Rejected:
            decide = chance.choice((approve, abandon))
        except ForeignChange:
            decide = chance.choice((restore, adopt))
        except CannotUndo:
            decide = restore
        except DamagedLog as error:
            repair(error)
    raise AssertionError(f"not settled after {DECISIONS} decisions")


def gap_in_force(folder: Path) -> str:
    """Gap of the definition in force."""
    state = ledger_of(pipeline(folder)).state()
    switching = state.plan and state.plan.decision and state.plan.decision.switches
    found = state.plan if switching else state.commit
    assert found, "the pipeline has run"
    return f"{found.stored['window']['gap_ms']}ms"


def erase_again(folder: Path, reader: Reader) -> None:
    """Repeats each erasure that was killed before its batch, as its certificate says.

    Where a migration can still be undone, that is kept first, as the refusal says.
    """
    for value in {one.value for one in reader.erased if not one.is_done}:
        try:
            erase(folder, gap_in_force(folder), value)
        except ForgetRefused as refused:
            if "--finish" not in str(refused):
                raise
            keep_migration(folder)
            erase(folder, gap_in_force(folder), value)
    reader.watch()
    assert all(one.is_done for one in reader.erased if one == _newest_of(reader, one.value)), reader.erased


def _newest_of(reader: Reader, value: int) -> Erased:
    return [one for one in reader.erased if one.value == value][-1]


def check_is_gone(folder: Path, reader: Reader) -> None:
    """Checks that no file holds an erased value after maintenance has deleted old cuts."""
    gone = {one.value for one in reader.erased}
    if not gone:
        return
    root = root_of(folder)
    for _ in range(2):  # the rows that informed followers of it go with the second
        maintain(of(folder, gap_in_force(folder)), BY[0], only_newest=True)
    for path in root.rglob("*.parquet"):
        if {*path.parts} & HOLDING and ".checkpoint." not in path.name:
            held = gone & {*pq.ParquetFile(path).read(columns=["value"])["value"].to_pylist()}
            assert not held, f"{path.relative_to(root)} holds {held}, which were erased"


def tidy(folder: Path) -> None:
    """Checks that the next run leaves nothing of dead runs: all present files are committed."""
    ledger = ledger_of(pipeline(folder))
    with held(ledger):
        left = [path for name in ("_prepared", "_staging") for path in (folder_of(ledger) / name).glob("*")]
        assert not left, f"{left} belong to no table"


def repair(error: DamagedLog) -> None:
    """Follows the advice of an error about a damaged log."""
    damaged = Path(str(error).split(" is ")[0])
    if damaged.name == "_last_checkpoint":
        assert "delete it" in str(error)
        damaged.unlink()
        return
    if ".checkpoint." in damaged.name:
        earlier = [path.stem for path in damaged.parent.glob("*.json") if path.stem < damaged.name]
        assert earlier, error
        assert "delete this checkpoint and _last_checkpoint" in str(error)
        damaged.unlink()
        damaged.with_name("_last_checkpoint").unlink()
        return
    newer = [file for file in damaged.parent.glob("*.json") if file.stem > damaged.stem]
    assert not newer, error
    assert "no later version, delete it" in str(error)
    damaged.unlink()


def check_all_is_there(reader: Reader, *, changed: bool = False) -> None:
    """Checks that every value is in one place, unless its deletion was adopted, and that `results` equals the ledger's
    cut.

    `changed`: another program may have deleted one since the newest batch.
    """
    values = {value for number in range(1, 1 + FILES) for value in values_of(number)}
    truth, alone = reader.truth, reader.results_alone()
    deleted = {DELETED} if "adopt" in reader.decided else set()
    erased = {one.value for one in reader.erased}
    missing = values - truth.values
    assert missing <= deleted | erased, f"{missing} are lost: {truth}"
    assert erased <= missing, f"{erased - missing} are there, and were erased"
    check_kept_cuts(reader)
    assert len(truth.files) == FILES, f"{truth.files} were read"
    wanted = sorted(truth.results)
    deleted_since = [value for value in wanted if value != DELETED] if changed else wanted
    assert alone in (wanted, deleted_since), f"results alone holds {alone}, not {wanted}"


def check_kept_cuts(reader: Reader) -> None:
    """Checks that every kept cut holds the rows of its batch."""
    made, tables = maintained.last(Disk(reader.root)), Tables(Disk(reader.root))
    for commit in commits_of(Ledger(Disk(reader.root), wall_clock_ms).tables):
        if made is None or commit.batch_id >= made.kept_from:
            for name, wanted in (
                ("results", reader.truths[commit.batch_id].results),
                ("open_windows", reader.truths[commit.batch_id].waiting),
            ):
                files = tables[name].files(commit.versions.get(name))
                held = [one for file in files for one in rows_of(reader.root / name / file.path).items()]
                assert sorted(held) == sorted(wanted.items()), f"the cut of batch {commit.batch_id}: {held}, {wanted}"


def explore_many(begun: Path, seed: int, groups: Iterable[Sequence[str]]) -> Iterator[Exception | None]:
    """Plays a schedule of each group and returns the failed ones; in half of them one or two actors are killed."""
    for number, group in enumerate(groups, seed):
        yield _failed(begun, number, group, kills=random.Random(number).choice((0, 0, 1, 2)))


def power_cuts(begun: Path, seed: int, schedules: int) -> Iterator[Exception | None]:
    """Plays schedules of two actors, sometimes with another program, in which the power fails."""
    for number in range(seed, seed + schedules):
        chance = random.Random(number)
        group = [chance.choice(OWN), chance.choice([*OWN, *FOREIGN, *FOREIGN])]
        yield _failed(begun, number, group, power_cut=True)


def _failed(begun: Path, *schedule: Any, **how: Any) -> Exception | None:
    try:
        explore(begun, *schedule, **how)
    except Exception as error:
        return error
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=len(GROUPS))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--after", type=int, default=0, help="leave out so many of them, which were explored before")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    began = time.process_time()
    with fast_folder() as folder:
        begin(folder)
        groups = islice(cycle(GROUPS), asked.after, asked.schedules)
        cuts = power_cuts(folder, asked.seed + asked.after // 10, (asked.schedules - asked.after) // 10)
        played = failed = 0
        for error in chain(explore_many(folder, asked.seed + asked.after, groups), cuts):
            played += 1
            if error:
                failed += 1
                traceback.print_exception(error)
            if played % 100 == 0:
                print(f"{played} schedules, {failed} failed: {time.process_time() - began:.0f} s of CPU", flush=True)
    if failed:
        raise SystemExit(f"{failed} of {played} schedules failed")
    print(f"{played} schedules, nothing lost, nothing twice: {time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
