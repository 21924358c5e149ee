"""Damage to any entry of any table's log: the next run names it, or its tables equal those of an undisturbed run."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.simple_batches import Reader, compute_simply, no_spark, pipeline_of, read_simply
from tests.support.strategies import ALL
from windowlib.contract.tables import LEDGER, TABLES
from windowlib.decisions.verdicts import abandon
from windowlib.delta.log import DamagedLog
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.prepare import Unreadable
from windowlib.publication.roll_forward import LostRows
from windowlib.runs.advance import advance

BATCHES = 2
EACH = 1 if ALL else 11
"""Each damage of each entry, or every eleventh in `make test`, as each copies the pipeline and runs it."""
VALUES = [10 * number + digit for number in range(1, BATCHES + 2) for digit in range(3)]


def emptied(entry: Path, following: Path) -> None:
    entry.write_bytes(b"")


def cut(entry: Path, following: Path) -> None:
    text = entry.read_bytes()
    entry.write_bytes(text[: len(text) // 2])


def shortened(entry: Path, following: Path) -> None:
    """Cuts the entry off exactly after a line."""
    entry.write_text("".join(entry.read_text().splitlines(keepends=True)[:-1]))


def removed(entry: Path, following: Path) -> None:
    entry.unlink()


def exchanged(entry: Path, following: Path) -> None:
    """Swaps two entries."""
    if following.exists():
        text = entry.read_bytes()
        entry.write_bytes(following.read_bytes())
        following.write_bytes(text)


def reordered(entry: Path, following: Path) -> None:
    """Reorders the lines of an entry. Their order has no meaning."""
    entry.write_text("\n".join(reversed(entry.read_text().splitlines())) + "\n")


def replaced(entry: Path, following: Path) -> None:
    """Replaces the entry by JSON that has no actions."""
    entry.write_text("null\n")


NAMED = (emptied, cut, removed, replaced)
DAMAGES: tuple[Callable[[Path, Path], None], ...] = (*NAMED, exchanged, reordered, shortened)


@pytest.fixture(scope="module")
def after_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline that has read all its files but the last."""
    return read_simply(tmp_path_factory.mktemp("after") / "two", BATCHES)


@pytest.fixture
def committed(after_two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, for one test."""
    compute_simply(monkeypatch)
    monkeypatch.setattr(Ledger, "_is_free", lambda *_: True)  # who has released a claim may be in the damaged entry
    return Path(shutil.copytree(after_two, tmp_path / "committed"))


@pytest.mark.fault(
    "any log entry of a table is empty, cut, missing, foreign or swapped",
    "the error names the entry and how to recover, or no row is lost",
)
def test_all_damage_to_a_log_is_noticed(committed: Path, tmp_path: Path) -> None:
    logs = [sorted((committed / "warehouse" / "values" / name / "_delta_log").glob("*.json")) for name in TABLES]
    entries = [entry.relative_to(committed) for log in logs for entry in log]
    assert len(entries) > 15
    ends = set()
    for entry, damage in itertools.islice(itertools.product(entries, DAMAGES), 0, None, EACH):
        folder = Path(shutil.copytree(committed, tmp_path / "damaged"))
        try:
            ends.add((damage.__name__, end(folder, folder / entry, damage)))
        except BaseException as error:
            error.add_note(f"{entry}: {damage.__name__}")
            raise
        shutil.rmtree(folder)
    assert {(damage.__name__, "named") for damage in NAMED} <= ends


def end(folder: Path, entry: Path, damage: Callable[[Path, Path], None]) -> str:
    """Outcome of a run: `named` or `whole`."""
    following = entry.with_name(f"{int(entry.stem) + 1:020}.json")
    newest = not following.exists()
    checkpoints = entry.parent.glob("*.checkpoint.parquet")
    is_repeated = any(entry.stem <= checkpoint.name.partition(".")[0] for checkpoint in checkpoints)  # and not needed
    damage(entry, following)
    said = None
    try:
        advance(pipeline_of(folder), no_spark)
    except (DamagedLog, LostRows) as error:
        said = str(error)
    except Unreadable:  # the entry of the newest commit row is gone; its prepared file was deleted after the commit
        assert (damage, newest, entry.parents[1].name) == (removed, True, LEDGER.name)
        abandon(pipeline_of(folder), "ann", "the commit row is gone")  # as the error says
        advance(pipeline_of(folder), no_spark)
    if said is None:
        Reader(folder).watch()
        assert Reader(folder).all_values() == VALUES
        assert damage not in NAMED or is_repeated or (damage is removed and newest), "the damage went unnoticed"
        return "whole"
    assert "\n" not in said
    assert str(entry if damage in NAMED else entry.parent.parent.name) in said
    assert "from a backup" in said
    return "named"


@pytest.mark.parametrize("name", ["results", "source_files", "open_windows"])
@pytest.mark.fault(
    "the newest log entry of a table is cut exactly after a line",
    "noticed, because a commit states how many files it adds and removes",
)
def test_an_entry_cut_after_a_line_is_named(committed: Path, name: str) -> None:
    entry = max((committed / "warehouse" / "values" / name / "_delta_log").glob("*.json"))
    shortened(entry, entry)
    with pytest.raises(DamagedLog, match=rf"{name}/_delta_log/{entry.name} is cut off: it names fewer files"):
        advance(pipeline_of(committed), no_spark)


@pytest.mark.parametrize("left", [0, 1_000], ids=["empty", "cut"])
@pytest.mark.parametrize("name", ["ledger", "results", "source_files", "open_windows"])
@pytest.mark.fault(
    "a power cut leaves the newest checkpoint of a log empty or cut",
    "the error names the file and how to recover; nothing is lost without it",
)
def test_a_damaged_checkpoint_is_named(committed: Path, name: str, left: int) -> None:
    folder = committed / "warehouse" / "values" / name
    DeltaTable(folder).create_checkpoint()
    checkpoint = max((folder / "_delta_log").glob("*.checkpoint.parquet"))
    os.truncate(checkpoint, left)
    with pytest.raises(DamagedLog, match=rf"{checkpoint.name} is cut off.*delete this checkpoint and _last_checkpoint"):
        advance(pipeline_of(committed), no_spark)
    checkpoint.unlink()
    checkpoint.with_name("_last_checkpoint").unlink()
    advance(pipeline_of(committed), no_spark)
    Reader(committed).watch()
    assert Reader(committed).all_values() == VALUES
