"""A disk beyond the promises of every store: folders, flushed files, links, and nothing left of a failed write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from windowlib.storage.disk import Disk
from windowlib.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Disk(tmp_path)


def test_folders_that_a_deletion_leaves_empty_are_removed(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for path in ("a/b/1", "a/b/2", "a/c/d/1"):
        disk.create(path, b"")
    disk.delete(["a/b/1", "a/c/d/1", "a/c/d/2"])
    assert sorted(str(place.relative_to(tmp_path)) for place in tmp_path.rglob("*")) == ["a", "a/b", "a/b/2"]
    disk.below("a/b").delete(["2"])
    assert [*tmp_path.rglob("*")] == [tmp_path / "a", tmp_path / "a" / "b"], "a storage keeps its own folder"


def test_a_write_goes_on_if_its_empty_folder_is_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, mkdir, removed = Disk(tmp_path), Path.mkdir, list[Path]()

    def removed_at_once(folder: Path, *args: Any, **options: Any) -> None:
        mkdir(folder, *args, **options)
        if folder.name == "b" and not removed:
            folder.rmdir()
            removed.append(folder)

    monkeypatch.setattr(Path, "mkdir", removed_at_once)
    assert disk.create("a/b/1", b"content")
    assert (removed, disk.get("a/b/1")) == ([tmp_path / "a" / "b"], b"content")


def test_a_copy_without_links_has_the_same_content(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    store.put("a", b"content")
    monkeypatch.setattr("windowlib.storage.disk.os.link", refused)
    store.copy("a", store, "b")
    assert [file.path for file in store.list()] == ["a", "b"]
    assert store.get("b") == b"content"


def test_a_deletion_removes_the_folders_that_it_empties(store: Store, tmp_path: Path) -> None:
    for path in ("results/day=1/a", "results/day=1/b", "results/day=2/a", "checks/1"):
        store.put(path, b"")
    store.delete(["results/day=1/a", "results/day=2/a", "results/day=3/a"])
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["day=1"]
    store.delete(["results/day=1/b", "checks/1"])
    assert list(tmp_path.iterdir()) == []
    store.below("results").delete(["never there"])
    assert tmp_path.exists()


@pytest.mark.parametrize("write", ["create", "put", "copy"])
def test_a_write_succeeds_if_its_folder_is_removed_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    store.put("source", b"1")
    mkdir, removals = Path.mkdir, list[Path]()

    def removed_at_once(folder: Path, *arguments: object, **named: object) -> None:
        mkdir(folder, *arguments, **named)  # type: ignore[arg-type]
        if len(removals) < 2:
            removals.append(folder)
            folder.rmdir()

    monkeypatch.setattr(Path, "mkdir", removed_at_once)
    if write == "copy":
        store.copy("source", store, "a/b/1")
    else:
        getattr(store, write)("a/b/1", b"1")
    assert store.get("a/b/1") == b"1"
    assert [file.path for file in store.list()] == ["a/b/1", "source"]
    assert len(removals) == 2


def test_a_folder_has_no_size(store: Store) -> None:
    store.put("a/1", b"1")
    assert store.sizes(["a"]) == [None]


def test_a_missing_file_cannot_be_synced(store: Store) -> None:
    store.create("a", b"")
    store.sync(["a"])
    with pytest.raises(FileNotFoundError):
        store.sync(["a", "b"])


def test_a_write_that_fails_leaves_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("windowlib.storage.disk.flush", full)
    with pytest.raises(OSError, match="No space"):
        store.create("a", b"1")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_is_named(store: Store, tmp_path: Path) -> None:
    store.put("a/1", b"")
    assert (store.below("a").no_folder(), store.below("b/c").no_folder()) == (None, None)
    assert store.below("a/1/2").no_folder() == str(tmp_path / "a" / "1")


def test_a_disk_tells_its_free_space(store: Store) -> None:
    free = store.below("not there yet").free_bytes()
    assert free is not None
    assert free > 0
