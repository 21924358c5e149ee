"""Whatever the order in which runs, operators and maintenance take their steps: nothing lost, nothing twice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from tests.runs.schedules import Disk, Explorer, Reader, arrive, explored, pipeline
from windowlib.model.errors import WindowError
from windowlib.runs import advance as advance_module
from windowlib.runs import attempt
from windowlib.runs.advance import advance
from windowlib.runs.attempt import begin, complete
from windowlib.runs.verdicts import abandon
from windowlib.tables import delta, disk
from windowlib.tables.ledger import Ledger, NothingToDecide, Superseded
from windowlib.tables.log import DamagedLog
from windowlib.tables.meaning import COMMIT_ORDER
from windowlib.tables.opened import Table, Tables

SCHEDULES = 500 if os.environ.get("WINDOWLIB_TEST_ALL") else 3
FILES = 3


def no_spark() -> Any:
    return None


def a_run(folder: Path, delay: str = "0s") -> None:
    with suppress(Superseded):
        advance(pipeline(folder, delay), no_spark)


def an_operator(folder: Path) -> None:
    with suppress(NothingToDecide, Superseded):
        abandon(pipeline(folder), "ann", "to see what happens")


def maintenance(folder: Path) -> None:
    results = folder / "warehouse" / "values" / "results"
    if (results / "_delta_log").exists():
        with suppress(CommitFailedError):
            DeltaTable(results).optimize.compact()


def faulty_maintenance(folder: Path) -> None:
    """Says that it changes no row, and leaves a file out."""
    table = Tables(folder / "warehouse" / "values")["results"]
    newest = delta.version(table)
    assert newest is not None
    lost = tuple(map(delta.logged, delta.files(table, newest)[:1]))
    delta.commit_logged(table, newest, delta.Change(remove=lost, of_rows=False))


ACTORS: dict[str, Callable[[Path], None]] = {
    "run": a_run,
    "another run": a_run,
    "run with other terms": lambda folder: a_run(folder, "5h"),
    "operator": an_operator,
    "maintenance": maintenance,
    "maintenance that loses a file": faulty_maintenance,
}
GROUPS = [
    ("run", "another run"),
    ("run", "run with other terms"),
    ("run", "operator"),
    ("run", "maintenance"),
    ("run", "another run", "operator"),
    ("run", "run with other terms", "operator"),
    ("run", "another run", "maintenance"),
    ("run", "run with other terms", "maintenance"),
    ("run", "another run", "run with other terms"),
    ("run", "operator", "maintenance"),
]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline that has read one file."""
    folder = tmp_path_factory.mktemp("begun")
    arrive_and_run(folder)
    return folder


def arrive_and_run(folder: Path) -> None:
    pipeline(folder)
    arrive(folder, 1)
    with pytest.MonkeyPatch.context() as patch, explored(Explorer(0, lambda: None), Disk(folder), patch):
        advance(pipeline(folder), no_spark)


def explore(folder: Path, seed: int, group: tuple[str, ...], kills: int = 0, power_cut: bool = False) -> None:
    """One schedule, then a last run that ends all that is left."""
    pipeline(folder)
    for number in range(2, 1 + FILES):
        arrive(folder, number)
    reader, safe = Reader(folder), Disk(folder / "warehouse")
    safe.keep()
    explorer = Explorer(seed, reader.watch, kills, power_cut)
    for name in group:
        explorer.add(name, lambda act=ACTORS[name]: act(folder))  # type: ignore[misc]
    with pytest.MonkeyPatch.context() as patch, explored(explorer, safe, patch):
        try:
            explorer.run()
            if power_cut:
                safe.cut(explorer.random)
            last_run(folder)
            reader.watch()
            values = [10 * number + digit for number in range(1, 1 + FILES) for digit in range(3)]
            assert reader.all_values() == values
            assert set(reader.results_alone()) <= set(values)
            assert len(reader.results_alone()) == len(set(reader.results_alone()))
        except BaseException as error:
            error.add_note(f"seed {seed} of {group}:\n" + "\n".join(explorer.moves[-60:]))
            raise


def last_run(folder: Path) -> None:
    """Runs all that is left; goes the way back that an error about a damaged log names."""
    for _ in range(9):
        try:
            advance(pipeline(folder), no_spark)
            return
        except DamagedLog as error:
            found = error
        damaged = Path(str(found).split(" is ")[0])
        newer = [file for file in damaged.parent.glob("*.json") if file.stem > damaged.stem]
        assert not newer, found
        assert "if no later version exists, delete it" in str(found)
        damaged.unlink()
    raise AssertionError("the log is damaged again and again")


def explore_many(begun: Path, folder: Path, group: tuple[str, ...], schedules: int, **how: Any) -> None:
    for seed in range(schedules):
        shutil.copytree(begun, folder / str(seed))
        explore(folder / str(seed), seed, group, **how)
        shutil.rmtree(folder / str(seed))


@pytest.mark.parametrize("group", GROUPS, ids=", ".join)
@pytest.mark.fault(
    "runs, operators and maintenance in any order of their steps, killed anywhere",
    "each event is in one place at any time",
)
def test_every_value_is_in_one_place_at_any_time(begun: Path, tmp_path: Path, group: tuple[str, ...]) -> None:
    explore_many(begun, tmp_path, group, SCHEDULES)
    explore_many(begun, tmp_path / "killed", group, SCHEDULES, kills=2)


def test_a_power_cut_at_any_moment_loses_nothing(begun: Path, tmp_path: Path) -> None:
    explore_many(begun, tmp_path, ("run", "another run"), 10 * SCHEDULES, power_cut=True)


# -- each guard is needed ---------------------------------------------------------------------------------------------


def without_epochs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "check", lambda ledger, epoch: None)


def without_compare_and_set(patch: pytest.MonkeyPatch) -> None:
    commit = delta.commit_logged

    def on_the_newest(table: Table, expected: int, *rest: Any) -> int:
        newest = delta.version(table)
        assert newest is not None
        return commit(table, newest, *rest)

    patch.setattr(delta, "commit_logged", on_the_newest)


def without_prepare(patch: pytest.MonkeyPatch) -> None:
    """Each attempt computes what it publishes, on top of what an earlier one has committed."""

    def as_they_are(tables: Tables, *_: object) -> dict[str, int]:
        found = {name: delta.version(tables[name]) for name in COMMIT_ORDER}
        return {name: version for name, version in found.items() if version is not None}

    patch.setattr(advance_module, "roll_forward", lambda run, claim, due: complete(begin(run, claim, due, no_spark())))
    patch.setattr(attempt, "standing", as_they_are)
    patch.setattr(attempt, "check_counts", lambda *_: None)


def without_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(disk, "sync", lambda files, root: None)


def without_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "check_counts", lambda *_: None)


GUARDS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...], dict[str, Any]]] = {
    "epochs": (without_epochs, ("run", "another run", "operator"), {}),
    "compare-and-set": (without_compare_and_set, ("run", "another run"), {}),
    "prepare": (without_prepare, ("run", "run with other terms"), {"kills": 2}),
    "sync": (without_sync, ("run",), {"power_cut": True}),
    "counts": (without_counts, ("maintenance that loses a file", "run"), {}),
}


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.fault(
    "one of the guards (epochs, compare-and-set, prepare, sync, counts) is switched off",
    "the schedules above notice it",
)
def test_without_a_guard_something_is_lost(
    begun: Path, tmp_path: Path, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off, group, how = GUARDS[guard]
    switch_off(monkeypatch)
    with pytest.raises((AssertionError, WindowError, DeltaError, pa.ArrowInvalid)):
        explore_many(begun, tmp_path, group, 40, **how)
