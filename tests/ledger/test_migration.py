"""Folder in which a migration builds its tables: a command that builds there notices if another drops them."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from windowlib.ledger.migration import (
    ABOUT,
    DamagedMigration,
    Migration,
    begin,
    drop_tables,
    forget,
    given_up,
    mark,
    migrations,
)

BUILT = Migration("one", "window.gap", 0)


def test_a_drop_changes_the_mark_before_it_deletes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(tmp_path, BUILT)
    folder = BUILT.folder(tmp_path)
    (folder / "results").mkdir()
    marks, delete = [mark(folder)], shutil.rmtree

    def seen(path: Path) -> None:
        marks.append(mark(folder))
        delete(path)

    monkeypatch.setattr(shutil, "rmtree", seen)
    drop_tables(tmp_path, BUILT)
    marks.append(mark(folder))
    assert None not in marks
    assert len(set(marks)) == len(marks) == 3  # before, meanwhile, and after: who began meanwhile may have lost files


@pytest.mark.fault(
    "two commands drop the tables of a migration at once, or one still writes there",
    "both succeed; the tables are gone",
)
def test_two_commands_drop_a_migration_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(tmp_path, BUILT)
    folder, delete = BUILT.folder(tmp_path), shutil.rmtree
    for name in ("ledger", "results", "seen_ids"):
        (folder / name).mkdir()
        (folder / name / "1.parquet").touch()
    (folder / "last_error.json").touch()

    def meanwhile(path: Path) -> None:
        monkeypatch.setattr(shutil, "rmtree", delete)
        for other in folder.iterdir():
            if other.is_dir() and other != path:
                delete(other)
        (folder / "last_error.json").unlink()
        raise OSError(errno.ENOTEMPTY, "Directory not empty", path)

    monkeypatch.setattr(shutil, "rmtree", meanwhile)
    drop_tables(tmp_path, BUILT)
    assert [path.name for path in folder.iterdir()] == ["migration.json"]


def test_given_up_lists_folders_of_abandoned_migrations(tmp_path: Path) -> None:
    begin(tmp_path, BUILT)
    folder = BUILT.folder(tmp_path)
    assert given_up(tmp_path) == []
    forget(tmp_path, BUILT)
    assert (mark(folder), given_up(tmp_path)) == (None, [])
    (folder / "results").mkdir(parents=True)  # by a command that had not looked yet
    assert given_up(tmp_path) == [folder]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"id": "one"}', '{"id": "one", "more": 1}', "\xff"])
def test_a_migration_that_cannot_be_read_is_named(tmp_path: Path, damage: str) -> None:
    begin(tmp_path, BUILT)
    (BUILT.folder(tmp_path) / ABOUT).write_bytes(damage.encode("latin-1"))
    with pytest.raises(DamagedMigration, match=rf"one.{ABOUT} is damaged: restore it from a backup"):
        migrations(tmp_path)
