"""Promises of every store, tried on a disk: whole objects, one creator, durable names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
