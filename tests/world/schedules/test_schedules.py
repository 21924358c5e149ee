"""Actors in any order of steps: nothing is lost, counted twice, or published unseen."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError

from tests.support.strategies import ALL
from tests.world.schedules.actors import (
    ACTORS,
    KINDS,
    LOSSY,
    PAIRS,
    PAIRS_OF_CHANGES,
    TRIPLES,
    TRIPLES_OF_CHANGES,
    TRIPLES_OF_KINDS,
    no_spark,
)
from tests.world.schedules.explore import (
    BEGUN,
    MIGRATED,
    REFUSED,
    begin,
    explore,
    explore_many,
    fast_folder,
    power_cuts,
)
from tests.world.schedules.explorer import REFUSING
from windowlib.contract.tables import COMMIT_ORDER, LEDGER
from windowlib.decisions import rollback, verdicts
from windowlib.delta import commits as delta_commits
from windowlib.delta.tables import Table, Tables
from windowlib.erasure import forget
from windowlib.ledger import erasures, lease, prepare
from windowlib.ledger import retained_batches as kept
from windowlib.ledger.ledger import Ledger, Superseded
from windowlib.migrations import switch
from windowlib.model.errors import WindowError
from windowlib.publication import roll_forward
from windowlib.publication import start_versions as standing
from windowlib.publication.roll_forward import LostRows
from windowlib.runs import attempt
from windowlib.runs import claimed_pipeline as at_work
from windowlib.runs.attempt import begin as begin_attempt
from windowlib.runs.attempt import complete
from windowlib.storage import disk as storage_disk
from windowlib.storage.disk import Disk
from windowlib.storage.store import UNFINISHED

MANY = 4_000


@pytest.fixture(scope="module")
def begun() -> Iterator[Path]:
    """Pipelines from which schedules begin."""
    with fast_folder() as folder:
        begin(folder)
        yield folder


def assert_right(schedules: Iterable[Exception | None]) -> None:
    """Raises the first fault of some schedules."""
    for error in filter(None, schedules):
        raise error


@pytest.mark.fault(
    "two of: runs, reruns, operators, a foreign OPTIMIZE or DELETE; in any order of steps, killed anywhere",
    "each event is in one place of the cut; nothing refused or abandoned is published",
)
def test_every_pair_of_actors_leaves_every_value_in_one_place(begun: Path) -> None:
    """Ten schedules in `make test`, with each actor in one of them."""
    groups = PAIRS if ALL else random.Random(120).sample(PAIRS, 10)
    assert {*ACTORS} <= {actor for pair in groups for actor in pair}
    assert_right(explore_many(begun, 0, groups))


@pytest.mark.fault("three of them", "the same")
def test_every_triple_of_kinds_of_actors_leaves_every_value_in_one_place(begun: Path) -> None:
    chance = random.Random(0)
    groups = [[chance.choice(KINDS[kind]) for kind in kinds] for kinds in TRIPLES_OF_KINDS]
    assert_right(explore_many(begun, 1_000, groups if ALL else groups[::5]))


@pytest.mark.fault(
    "erasures, migrations and other commands; in any order of steps, killed anywhere",
    "an erased key stays erased, nothing else is lost; readers see tables of one definition",
)
def test_erasures_and_migrations_lose_nothing_and_bring_nothing_back(begun: Path) -> None:
    chance = random.Random(0)
    assert_right(explore_many(begun, 3_000, chance.sample(PAIRS_OF_CHANGES, 10 if ALL else 6)))


@pytest.mark.long("a sample of them, in make test")
def test_every_pair_and_many_triples_with_erasures_and_migrations(begun: Path) -> None:
    chance = random.Random(1)
    assert_right(explore_many(begun, 4_000, [*PAIRS_OF_CHANGES, *chance.choices(TRIPLES_OF_CHANGES, k=300)]))


@pytest.mark.long("thousands of schedules: in make test each actor is in some pairs, and each kind in some triples")
def test_thousands_of_schedules_leave_every_value_in_one_place(begun: Path) -> None:
    assert_right(explore_many(begun, 2_000, islice(cycle([*PAIRS, *TRIPLES]), MANY)))
    assert_right(power_cuts(begun, 2_000, MANY // 10))


@pytest.mark.fault(
    "the power fails at any moment while runs, reruns and operators work",
    "nothing is lost: at most the newest log entry is empty, and the error says how to recover",
)
def test_a_power_cut_at_any_moment_loses_nothing(begun: Path) -> None:
    assert_right(power_cuts(begun, 0, 12 if ALL else 5))


# -- each guard is needed ---------------------------------------------------------------------------------------------


def without_epochs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "check", lambda *_: None)


def without_compare_and_set(patch: pytest.MonkeyPatch) -> None:
    commit = delta_commits.commit_logged

    def on_the_newest(table: Table, expected: int, *rest: Any) -> int:
        newest = table.version()
        assert newest is not None
        return commit(table, newest, *rest)

    patch.setattr(delta_commits, "commit_logged", on_the_newest)


def without_prepare(patch: pytest.MonkeyPatch) -> None:
    """Lets each attempt compute its publication again, on top of earlier commits."""

    def as_they_are(tables: Tables, *_: object) -> dict[str, int]:
        found = {name: tables[name].version() for name in COMMIT_ORDER}
        return {name: version for name, version in found.items() if version is not None}

    def again(run: Any, claim: Any, due: Any, follow: Any) -> Any:
        return complete(begin_attempt(run, claim, due, no_spark()), follow)

    patch.setattr(at_work, "roll_forward", again)
    patch.setattr(attempt, "standing", as_they_are)
    patch.setattr(attempt, "check_counts", lambda *_: None)


def without_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(storage_disk, "flush", lambda path: None)


def is_data(file: Path) -> bool:
    return file.suffix == ".parquet" and not is_log(file) and not is_of_ledger(file)


def is_log(file: Path) -> bool:
    return "_delta_log" in file.parts


def is_of_ledger(file: Path) -> bool:
    return LEDGER.name in file.parts


def is_log_of_a_table(file: Path) -> bool:
    return is_log(file) and not is_of_ledger(file)


def without_flush_of(
    chosen: Callable[[Path], bool], until: Callable[[Path], bool] = lambda _: False
) -> Callable[[pytest.MonkeyPatch], None]:
    """Writes chosen files without a flush, and leaves them out of `sync`. Flushes them once `until` is written."""

    def switch_off(patch: pytest.MonkeyPatch) -> None:
        write, sync, waiting = Disk._write, Disk.sync, list[Path]()

        def written(store: Disk, place: Path, data: bytes, name: Callable[[Path, Path], Any]) -> Any:
            if not chosen(place):
                outcome = write(store, place, data, name)
                if until(place):
                    sync(
                        Disk(store.top or store.root),
                        [os.path.relpath(file, store.top or store.root) for file in waiting if file.exists()],
                    )
                    waiting.clear()
                return outcome
            place.parent.mkdir(parents=True, exist_ok=True)
            unflushed = place.with_name(f"{place.name}.unflushed{UNFINISHED}")
            unflushed.write_bytes(data)
            outcome = name(unflushed, place)
            unflushed.unlink(missing_ok=True)
            waiting.append(place)
            return outcome

        def synced(store: Disk, paths: Iterable[str]) -> None:
            files = [store.root / path for path in paths]
            waiting.extend(file for file in files if chosen(file))
            sync(store, [str(file.relative_to(store.root)) for file in files if not chosen(file)])

        patch.setattr(Disk, "_write", written)
        patch.setattr(Disk, "sync", synced)

    return switch_off


def without_sync_of_others(patch: pytest.MonkeyPatch) -> None:
    """Accepts commits of another program without a check."""
    patch.setattr(delta_commits, "sync_commits", lambda *_: None)


def without_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "check_counts", lambda *_: None)
    for module in (standing, roll_forward):
        patch.setattr(module, "check_same_count", lambda *_: None)


def without_approval(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "why_it_waits", lambda *_: None)


def without_list_of_erased(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(erasures, "erased", lambda *_: None)


def without_row_before(patch: pytest.MonkeyPatch) -> None:
    """Writes the row of an erased key last: after a kill no row says that the key is gone."""
    keep, publish, waiting = erasures.keep, forget.publish_decision, list[Any]()

    def published(*of: Any) -> int:
        batch_id = publish(*of)
        keep(*waiting.pop())
        return batch_id

    patch.setattr(erasures, "keep", lambda *of: waiting.append(of))
    patch.setattr(forget, "publish_decision", published)


def without_end_of_builds(patch: pytest.MonkeyPatch) -> None:
    """Lets a migration switch tables that were built before an erasure."""
    patch.setattr(forget.migration, "migrations", lambda root: [])


def without_bar_to_rollback(patch: pytest.MonkeyPatch) -> None:
    """Lets rollbacks cross erasures."""
    patch.setattr(rollback, "_check_between", lambda *_: None)


def without_spared_cut(patch: pytest.MonkeyPatch) -> None:
    """Maintenance deletes what undoing a migration goes back to."""
    patch.setattr(kept, "undo_target", lambda *_: None)


def without_finish_before_erasure(patch: pytest.MonkeyPatch) -> None:
    """Erases a key although a migration can be undone."""
    patch.setattr(forget.migration, "switched", lambda ledger: None)


def without_look_at_the_build(patch: pytest.MonkeyPatch) -> None:
    """Lets a switch ignore that another command has abandoned its tables."""
    patch.setattr(switch, "still_there", lambda shadow: nullcontext())


def without_claim_in_abandon(patch: pytest.MonkeyPatch) -> None:
    """Lets `abandon` undo whatever is newest."""
    give_up = verdicts.give_up
    patch.setattr(verdicts, "give_up", lambda tables, pinned, made, _: give_up(tables, pinned, made, lambda: None))


def without_second_look(patch: pytest.MonkeyPatch) -> None:
    """Treats any conflict as another run at work."""
    patch.setattr(lease, "TRIES", 1)
    patch.setattr(lease, "Overtaken", Superseded)


Guard = tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...], dict[str, Any]]
GUARDS: dict[str, Guard] = {
    "epochs": (without_epochs, ("run", "run", "abandon"), {}),
    "compare-and-set": (without_compare_and_set, ("run", "run"), {}),
    "prepare": (without_prepare, ("run", "run under other terms"), {"kills": 2}),
    "sync": (without_sync, ("run", "run"), {"power_cut": True}),
    "sync of what others committed": (without_sync_of_others, ("foreign DELETE", "restore"), {"power_cut": True}),
    "counts": (without_counts, (LOSSY, "run"), {}),
    "approval": (without_approval, (REFUSING, "run"), {}),
}
SYNCS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "sync of data": without_flush_of(is_data),
    "sync of data before the prepare row": without_flush_of(is_data, until=is_log_of_a_table),
    "sync of log entries": without_flush_of(is_log_of_a_table),
    "sync of log entries before the next batch": without_flush_of(
        is_log_of_a_table, until=lambda file: prepare.FOLDER in file.parts
    ),
    "sync of the ledger's rows": without_flush_of(lambda file: is_of_ledger(file) and not is_log(file)),
    "sync of the ledger's entries": without_flush_of(lambda file: is_of_ledger(file) and is_log(file)),
}
OF_SYNC: dict[str, Guard] = {name: (off, ("run", "run"), {"power_cut": True}) for name, off in SYNCS.items()}
SELDOM: dict[str, Guard] = {
    "the claim in abandon": (without_claim_in_abandon, ("abandon", "run"), {"start": REFUSED, "seeds": 400}),
    "the second look": (without_second_look, ("run", "foreign OPTIMIZE"), {"seeds": 400}),
}
OF_CHANGES: dict[str, Guard] = {
    "the list of erased keys": (without_list_of_erased, ("forget", "rerun"), {}),
    "the row before the removal": (without_row_before, ("forget", "forget", "rerun"), {"kills": 1}),
    "the end of builds": (without_end_of_builds, ("forget", "migrate"), {}),
    "the bar to rollbacks": (without_bar_to_rollback, ("forget", "rollback"), {}),
    "the spared cut": (without_spared_cut, ("maintain", "migrate --undo"), {"start": MIGRATED}),
    "finish before erasure": (without_finish_before_erasure, ("forget", "migrate --undo"), {"start": MIGRATED}),
    "the look at the build": (without_look_at_the_build, ("migrate", "migrate --undo"), {}),
    "epochs of a switch": (without_epochs, ("migrate", "run", "migrate"), {}),
}


SLOW = pytest.mark.long("other guards of erasures and migrations are switched off in make test")
RARE = pytest.mark.long("of fifteen schedules one notices it; the sync of data is switched off in make test")
ONCE = pytest.mark.long("of sixty schedules one notices it; test_zombies plays that one in make test")
OTHERS = pytest.mark.long("epochs, counts, the list of erased keys and single syncs are switched off in make test")
OFTEN = ("epochs", "counts", "the list of erased keys")  # of those whose schedules are not those of syncs


@pytest.mark.parametrize(
    "guard",
    [
        pytest.param(one, marks=[] if one in OFTEN else [SLOW if one in OF_CHANGES else OTHERS])
        for one in [*GUARDS, *OF_CHANGES]
    ]
    + [pytest.param(one, marks=[RARE] if one == "sync of data before the prepare row" else []) for one in OF_SYNC]
    + [pytest.param(one, marks=ONCE) for one in SELDOM],
)
@pytest.mark.fault(
    "a guard is switched off, such as epochs, compare-and-set or a sync", "the schedules above notice it"
)
def test_schedules_notice_each_missing_guard(begun: Path, guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    switch_off, group, how = {**GUARDS, **OF_SYNC, **OF_CHANGES, **SELDOM}[guard]
    seeds, how = how.get("seeds", 40), {name: value for name, value in how.items() if name != "seeds"}
    if guard == "counts":  # no run goes on after what it notices: it is the guard itself that says so
        with pytest.raises(LostRows):
            explore_seeds(begun, 1, group, how)
    elif guard not in OF_SYNC:  # whose schedules are those of all syncs
        explore_seeds(begun, 3 if ALL else 1, group, how)
    switch_off(monkeypatch)
    if guard == "counts":  # a batch is published without the rows, and the reader sees it
        with pytest.raises(AssertionError, match="results holds"):
            explore_seeds(begun, 1, group, how)
        return
    with pytest.raises((AssertionError, WindowError, DeltaError, pa.ArrowInvalid, FileNotFoundError)):
        explore_seeds(begun, seeds, group, how)


def explore_seeds(begun: Path, seeds: int, group: tuple[str, ...], how: dict[str, Any]) -> None:
    for seed in range(seeds):
        explore(begun, seed, group, **{"start": BEGUN, **how})
