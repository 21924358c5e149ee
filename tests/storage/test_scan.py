"""Folders of other programs: sorted scans, folders that are not entered, links, and files that vanish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from windowlib.storage import object_file
from windowlib.storage.disk import Disk
from windowlib.storage.disk_scan import UnusableLink
from windowlib.storage.object_file import pieces
from windowlib.storage.store import Store

EVERY: Callable[[str], bool] = lambda path: True  # noqa: E731  # for two parameters


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Disk(tmp_path)
    for path in ("b/2", "b/1", "a", "b-c/1", "_hidden/1"):
        store.put(path, path.encode())
    return store


def scanned(store: Store, after: str = "") -> list[str]:
    return [file.path for file in store.scan(EVERY, EVERY, after)]


def test_a_scan_is_sorted_like_a_listing(store: Store) -> None:
    """A folder sorts by its name with a slash, as its objects do."""
    assert scanned(store) == [file.path for file in store.list()] == ["_hidden/1", "a", "b-c/1", "b/1", "b/2"]


@pytest.mark.parametrize("after", ["", "_hidden/1", "a", "b", "b-", "b-c/1", "b/", "b/1", "b/2", "c"])
def test_a_scan_and_a_listing_begin_after_a_path(store: Store, after: str) -> None:
    later = [path for path in scanned(store) if path > after]
    assert scanned(store, after) == later
    assert [file.path for file in store.list(after=after)] == later


def test_a_scan_asks_for_each_folder_even_before_its_start(store: Store) -> None:
    asked: list[str] = []

    def enters(folder: str) -> bool:
        asked.append(folder)
        return folder != "b"

    assert [file.path for file in store.scan(EVERY, enters, "b")] == ["b-c/1"]
    assert sorted(asked) == ["_hidden", "b", "b-c"]


def test_a_missing_folder_and_a_file_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError):
        scanned(Disk(tmp_path / "missing"))
    with pytest.raises(NotADirectoryError):
        scanned(Disk(tmp_path / "file"))


def test_a_file_that_vanishes_is_omitted(store: Store, tmp_path: Path) -> None:
    def wanted(path: str) -> bool:
        (tmp_path / "b/1").unlink(missing_ok=True)
        return True

    assert "b/1" not in [file.path for file in store.scan(wanted, EVERY)]


def test_links_without_a_file_of_their_own_are_refused(store: Store, tmp_path: Path) -> None:
    for name, to, read_as, is_broken in (("c", "a", "a", False), ("c", "b", None, False), ("c", "gone", None, True)):
        (tmp_path / name).symlink_to(to)
        with pytest.raises(UnusableLink) as refused:
            scanned(store)
        assert (refused.value.path, refused.value.read_as, refused.value.is_broken) == (name, read_as, is_broken)
        (tmp_path / name).unlink()


def test_descriptions_agree_with_a_listing(store: Store) -> None:
    listed = [*store.list()]
    assert store.infos([file.path for file in listed]) == listed
    assert store.infos(["b", "missing", "a/b"]) == [None, None, None]


def test_an_object_is_stored_and_read_in_pieces(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_file, "PIECE_BYTES", 4)
    store.put("long", (part for part in (b"012", b"345", b"6")))
    assert [*pieces(store, "long", 7)] == [b"0123", b"456"]
    assert [*pieces(store, "long", 0)] == []


def test_the_folder_above_follows_links(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("b")
    assert Disk(tmp_path / "link").above() == (Disk(tmp_path.resolve()), "b")
    assert Disk(Path("/")).above() is None
