"""Promises of every store, tried on a disk: whole objects, one creator, sorted listings, durable names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib.storage.disk import TEMPORARY, Disk
from windowlib.storage.store import Store

RACE = """
import sys
from pathlib import Path
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
    assert not list(tmp_path.rglob(f"*{TEMPORARY}"))
