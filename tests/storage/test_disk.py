"""What every store promises, tried on a disk: whole objects, one creator, sorted listings, durable names."""

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
    return Disk(tmp_path / "root")


def test_an_object_is_created_once(store: Store) -> None:
    assert store.create("log/1", b"first")
    assert not store.create("log/1", b"second")
    assert store.get("log/1") == b"first"


def test_of_several_objects_only_the_missing_ones_are_created(store: Store) -> None:
    store.create("b/2", b"there")
    assert store.create_many({"a/1": b"new", "b/2": b"other", "c/3": b"new"}) == [True, False, True]
    assert store.get_many(["a/1", "b/2", "c/3", "d/4"]) == [b"new", b"there", b"new", None]


def test_an_object_is_replaced_by_put(store: Store) -> None:
    store.put("hint", b"1")
    store.put("hint", b"22")
    assert store.get("hint") == b"22"
    assert store.get_range("hint", 1, 9) == b"2"


def test_a_range_of_a_missing_object_is_an_error(store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        store.get_range("hint", 0, 1)


@given(names=st.sets(st.text(st.sampled_from("ab-é\U0001f600/"), min_size=1).filter(lambda name: "/" not in name)))
def test_a_listing_is_sorted_by_the_bytes_of_the_paths(
    tmp_path_factory: pytest.TempPathFactory, names: set[str]
) -> None:
    store = Disk(tmp_path_factory.mktemp("names"))
    store.create_many({f"x/{name}": b"" for name in names})
    assert [found.path for found in store.list("x/")] == sorted((f"x/{name}" for name in names), key=str.encode)


def test_a_listing_begins_after_a_name_and_looks_into_folders(store: Store) -> None:
    store.create_many({"a": b"", "b/1": b"22", "b/c/2": b"", "b2": b"", "c": b""})
    assert [found.path for found in store.list()] == ["a", "b/1", "b/c/2", "b2", "c"]
    assert [found.path for found in store.list("b")] == ["b/1", "b/c/2", "b2"]
    assert [found.path for found in store.list("b/", after="b/1")] == ["b/c/2"]
    assert [found.path for found in store.list("no such folder/")] == []
    assert next(store.list("b/1")).size_bytes == 2


def test_a_tag_changes_with_the_content(store: Store) -> None:
    store.put("a", b"1")
    before = next(store.list("a")).tag
    store.put("a", b"2")
    assert next(store.list("a")).tag != before


def test_a_copy_holds_the_content_and_survives_its_source(store: Store) -> None:
    store.create("a/1", b"content")
    store.copy_many([("a/1", "b/1"), ("a/1", "b/2")])
    store.delete(["a/1", "never there"])
    assert store.get_many(["a/1", "b/1", "b/2"]) == [None, b"content", b"content"]


def test_a_missing_file_cannot_be_synced(store: Store) -> None:
    store.create("a", b"")
    store.sync(["a"])
    with pytest.raises(FileNotFoundError):
        store.sync(["a", "b"])


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    store = Disk(tmp_path)
    monkeypatch.setattr("windowlib.storage.disk.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.create_many({"a": b"1", "b": b"2"})
    with pytest.raises(OSError, match="No space"):
        store.put("c", b"3")
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
        assert {Disk(tmp_path).get(f"log/{number}") for number in numbers} == {
            f"{name} {number}".encode() for number in numbers
        }
    assert not list(tmp_path.rglob(f"*{TEMPORARY}"))
