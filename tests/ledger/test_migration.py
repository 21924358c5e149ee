"""Folder in which a migration builds its tables: a command that builds there notices if another drops them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from windowlib.ledger.migration import (
    ABOUT,
    DROPPED,
    DamagedMigration,
    Migration,
    begin,
    drop_tables,
    forget,
    is_begun,
    is_there,
    leftovers,
    migrations,
)
from windowlib.storage.disk import Disk

BUILT = Migration("one", "window.gap", 0)


@pytest.fixture
def store(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_a_drop_is_seen_before_a_file_is_deleted(store: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(store, BUILT)
    tables = store.below(BUILT.folder)
    tables.put("results/1.parquet", b"")
    states, delete = [is_there(tables)], Disk.delete

    def seen(where: Disk, paths: Iterable[str]) -> None:
        states.append(is_there(tables))
        delete(where, paths)

    monkeypatch.setattr(Disk, "delete", seen)
    drop_tables(store, BUILT)
    assert states == [True, False]
    assert is_begun(tables)
    assert [file.path for file in tables.list()] == [DROPPED, ABOUT]


def test_a_forgotten_migration_never_seems_to_have_tables(store: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(store, BUILT)
    tables = store.below(BUILT.folder)
    states, delete = list[bool](), Disk.delete

    def seen(where: Disk, paths: Iterable[str]) -> None:
        delete(where, paths)
        states.append(is_there(tables))

    monkeypatch.setattr(Disk, "delete", seen)
    forget(store, BUILT)
    assert not any(states)
    assert [*store.list()] == []


@pytest.mark.fault(
    "two commands drop the tables of a migration at once, or one still writes there",
    "both succeed; the tables are gone",
)
def test_two_commands_drop_a_migration_at_once(store: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(store, BUILT)
    tables, delete = store.below(BUILT.folder), Disk.delete
    for path in ("ledger/1.parquet", "results/1.parquet", "seen_ids/1.parquet", "last_error.json"):
        tables.put(path, b"")

    def meanwhile(where: Disk, paths: Iterable[str]) -> None:
        monkeypatch.setattr(Disk, "delete", delete)
        drop_tables(store, BUILT)
        delete(where, paths)

    monkeypatch.setattr(Disk, "delete", meanwhile)
    drop_tables(store, BUILT)
    assert [file.path for file in tables.list()] == [DROPPED, ABOUT]


def test_leftovers_have_no_record_or_belong_to_a_migration_that_is_over(store: Disk) -> None:
    for migration in (BUILT, replace(BUILT, id="two")):
        begin(store, migration)
    built = f"{BUILT.folder}/results/1.parquet"
    store.put(built, b"")
    assert left_of(store) == []
    assert left_of(store, BUILT) == [f"{BUILT.folder}/{ABOUT}", built]
    forget(store, BUILT)
    assert left_of(store) == []
    store.put(built, b"")  # by a command that had not looked yet
    assert left_of(store) == [built]


def left_of(store: Disk, *over: Migration) -> list[str]:
    return leftovers([file.path for file in store.list()], over)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"id": "one"}', '{"id": "one", "more": 1}', "\xff"])
def test_a_migration_that_cannot_be_read_is_named(store: Disk, tmp_path: Path, damage: str) -> None:
    begin(store, BUILT)
    (tmp_path / BUILT.folder / ABOUT).write_bytes(damage.encode("latin-1"))
    with pytest.raises(DamagedMigration, match=rf"one.{ABOUT} is damaged: restore it from a backup"):
        migrations(store)
