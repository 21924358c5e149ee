"""Promises of every store, tried on a disk: whole objects, one creator, sorted listings, durable names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.storage.disk import Disk
from windowlib.storage.store import UNFINISHED, Store

RACE = """
import sys
from pathlib import Path
from typing import Any
from windowlib.storage.disk import Disk
store, name = Disk(Path(sys.argv[1])), sys.argv[2]
sys.stdin.readline()
print(" ".join(str(number) for number in range(40) if store.create(f"log/{number}", f"{name} {number}".encode())))
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Disk(tmp_path)


def test_an_object_is_created_once(store: Store, tmp_path: Path) -> None:
    assert store.create("log/1", b"first")
    assert not store.create("log/1", b"second")
    assert (tmp_path / "log/1").read_bytes() == b"first"


def test_a_range_ends_with_the_object(store: Store) -> None:
    store.create("a", b"0123")
    assert (store.get_range("a", 1, 3), store.get_range("a", 2, 9)) == (b"12", b"23")
    with pytest.raises(FileNotFoundError):
        store.get_range("b", 0, 1)


def test_missing_objects_have_no_content_and_no_size(store: Store) -> None:
    store.create("a/1", b"123")
    assert [store.get("a/1"), store.get("a/2"), store.get("a/1/2")] == [b"123", None, None]
    assert store.sizes(["a/1", "a/2", "a/1/2", "b"]) == [3, None, None, None]


@given(names=st.sets(st.text(st.sampled_from("ab-é\U0001f600/"), min_size=1).filter(lambda name: "/" not in name)))
def test_a_listing_is_sorted_by_the_bytes_of_the_paths(
    tmp_path_factory: pytest.TempPathFactory, names: set[str]
) -> None:
    store = Disk(tmp_path_factory.mktemp("names"))
    for name in names:
        store.create(f"x/{name}", b"")
    assert [found.path for found in store.list("x/")] == sorted((f"x/{name}" for name in names), key=str.encode)


def test_a_listing_begins_after_a_name_and_looks_into_folders(store: Store) -> None:
    for path in ("a", "b/1", "b/c/2", "b2", "c"):
        store.create(path, b"22" if path == "b/1" else b"")
    assert [found.path for found in store.list()] == ["a", "b/1", "b/c/2", "b2", "c"]
    assert [found.path for found in store.list("b")] == ["b/1", "b/c/2", "b2"]
    assert [found.path for found in store.list("b/", after="b/1")] == ["b/c/2"]
    assert [found.path for found in store.list("no such folder/")] == []
    assert next(store.list("b/1")).size_bytes == 2


def test_put_replaces_an_object(store: Store) -> None:
    store.put("a/hint", b"1")
    store.put("a/hint", b"22")
    assert [file.path for file in store.list()] == ["a/hint"]
    assert store.get("a/hint") == b"22"


def test_a_copy_survives_its_source_and_replaces_its_target(store: Store) -> None:
    store.create("a/1", b"content")
    store.create("b/2", b"older")
    for target in ("b/1", "b/2"):
        store.copy("a/1", store, target)
    store.delete(["a/1", "never there", "a/1/2"])
    assert [store.get(path) for path in ("a/1", "b/1", "b/2")] == [None, b"content", b"content"]
    with pytest.raises(FileNotFoundError):
        store.copy("a/1", store, "b/3")


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


def test_a_store_below_has_shorter_paths(store: Store) -> None:
    store.below("results").put("day/1", b"1")
    assert store.get("results/day/1") == b"1"
    assert [file.path for file in store.below("results").list("day/")] == ["day/1"]
    assert str(store.below("results")) == f"{store.url}/results"
    assert store.below("1f").above() == (store, "1f")


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


def test_of_several_processes_one_creates_each_object(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in "abcd"
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    won = {name: {*process.communicate()[0].split()} for name, process in zip("abcd", processes, strict=True)}
    assert sorted(map(int, (number for numbers in won.values() for number in numbers))) == [*range(40)]
    for name, numbers in won.items():
        stored = {(tmp_path / "log" / number).read_bytes() for number in numbers}
        assert stored == {f"{name} {number}".encode() for number in numbers}
    assert not list(tmp_path.rglob(f"*{UNFINISHED}"))
