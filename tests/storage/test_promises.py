"""Promises of every store, tried on a disk, on S3 and on Azure: whole objects, one creator, sorted listings."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.object_servers import Server
from windowlib.storage import objects
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import opened
from windowlib.storage.objects import Objects
from windowlib.storage.probe import require_create_once
from windowlib.storage.store import Store

RACE = """
import sys
from windowlib.storage.address import store_at
store, name = store_at(sys.argv[1]), sys.argv[2]
store.get("ready")
print("ready", flush=True)
sys.stdin.readline()
print(" ".join(str(number) for number in range(40) if store.create(f"log/{number}", f"{name} {number}".encode())))
"""
NAMES = st.sets(st.text(st.sampled_from("ab-%#~ é\U0001f600/"), min_size=1).filter(lambda name: "/" not in name))


def test_an_object_is_created_once(store: Store) -> None:
    assert store.create("log/1", b"first")
    assert not store.create("log/1", b"second")
    assert store.get("log/1") == b"first"


def test_creating_the_same_bytes_again_is_a_success(store: Store) -> None:
    assert store.create("log/1", b"first")
    assert store.create("log/1", b"first")


def test_a_range_ends_with_the_object(store: Store) -> None:
    store.create("a", b"0123")
    assert (store.get_range("a", 1, 3), store.get_range("a", 2, 9)) == (b"12", b"23")
    assert (store.get_range("a", 4, 9), store.get_range("a", 7, 9), store.get_range("a", 2, 2)) == (b"", b"", b"")
    with pytest.raises(FileNotFoundError):
        store.get_range("b", 0, 1)


def test_missing_objects_have_no_content_and_no_size(store: Store) -> None:
    store.create("a/1", b"123")
    assert [store.get("a/1"), store.get("a/2"), store.get("a/1/2")] == [b"123", None, None]
    assert store.sizes(["a/1", "a/2", "a/1/2", "b"]) == [3, None, None, None]
    assert store.sizes([]) == []


def test_an_empty_object_is_an_object(store: Store) -> None:
    assert store.create("a", b"")
    assert (store.get("a"), store.sizes(["a"])) == (b"", [0])


@given(names=NAMES)
@settings(max_examples=25)
def test_a_listing_is_sorted_by_the_bytes_of_the_paths(new_store: Callable[[], Store], names: set[str]) -> None:
    store = new_store()
    at_once(lambda name: store.put(f"x/{name}", name.encode()), names)
    expected = sorted((f"x/{name}" for name in names), key=str.encode)
    assert [found.path for found in store.list("x/")] == expected
    assert at_once(store.get, expected) == [path.removeprefix("x/").encode() for path in expected]
    for path in expected:
        assert [found.path for found in store.list("x/", after=path)] == expected[expected.index(path) + 1 :]


def test_a_listing_begins_after_a_name_and_looks_into_folders(store: Store) -> None:
    for path in ("a", "b/1", "b/c/2", "b2", "c"):
        store.create(path, b"22" if path == "b/1" else b"")
    assert [found.path for found in store.list()] == ["a", "b/1", "b/c/2", "b2", "c"]
    assert [found.path for found in store.list("b")] == ["b/1", "b/c/2", "b2"]
    assert [found.path for found in store.list("b/", after="b/1")] == ["b/c/2"]
    assert [found.path for found in store.list("b/", after="b/c/")] == ["b/c/2"]
    assert [found.path for found in store.list(after="b//")] == ["b/1", "b/c/2", "b2", "c"]
    assert [found.path for found in store.list("no such folder/")] == []
    assert next(iter(store.list("b/1"))).size_bytes == 2


def test_listings_tell_when_an_object_was_written(store: Store) -> None:
    store.put("a", b"")
    store.put("b", b"")
    first, second = store.list()
    assert 0 <= second.modified_ns - first.modified_ns < 60 * 10**9


def test_put_replaces_an_object(store: Store) -> None:
    store.put("a/hint", b"1")
    store.put("a/hint", b"22")
    assert [file.path for file in store.list()] == ["a/hint"]
    assert store.get("a/hint") == b"22"


def test_a_large_object_is_whole(store: Store) -> None:
    content = os.urandom(40 * 1024 * 1024)
    store.put("large", content)
    assert store.sizes(["large"]) == [len(content)]
    assert store.get_range("large", 35_000_000, 35_000_100) == content[35_000_000:35_000_100]
    assert store.get("large") == content


def test_a_copy_survives_its_source_and_replaces_its_target(store: Store) -> None:
    store.create("a/1", b"content")
    store.create("b/2", b"older")
    for target in ("b/1", "b/2"):
        store.copy("a/1", store, target)
    store.delete(["a/1", "never there", "a/1/2"])
    assert [store.get(path) for path in ("a/1", "b/1", "b/2")] == [None, b"content", b"content"]
    with pytest.raises(FileNotFoundError):
        store.copy("a/1", store, "b/3")


def test_a_copy_reaches_another_folder(store: Store) -> None:
    store.below("staging/7").put("day=1/1", b"content")
    store.below("staging/7").copy("day=1/1", store.below("results"), "day=1/1")
    assert store.get("results/day=1/1") == b"content"


def test_deleting_what_is_missing_deletes_the_others(store: Store) -> None:
    paths = [f"a/{number}" for number in range(30)]
    at_once(lambda path: store.put(path, b""), paths)
    store.delete(path for number in range(30) for path in (f"missing/{number}", f"a/{number}"))
    store.delete([])
    assert [*store.list()] == []


def test_many_objects_are_read_and_described_at_once(store: Store) -> None:
    store.put("a/1", b"1")
    store.put("a/2", b"22")
    assert store.get_many(["a/2", "missing", "a/1"]) == [b"22", None, b"1"]
    first, second = store.list()
    assert store.infos(["a/1", "missing", "a", "a/2"]) == [first, None, None, second]
    assert (store.get_many([]), store.infos([])) == ([], [])


@pytest.mark.parametrize("sizes", [(), (0,), (3, 0, 4), (20, 20, 20), (70,)])
def test_an_object_is_stored_in_pieces(store: Store, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", 5 << 20)  # the smallest part that S3 takes
    content = [os.urandom(size << 18) for size in sizes]
    store.put("a", b"older")
    store.put("a", iter(content))
    assert store.get("a") == b"".join(content)


def test_pieces_that_end_with_an_error_change_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", 5 << 20)

    def broken() -> Iterator[bytes]:
        yield from [os.urandom(6 << 20)] * 3
        raise FileNotFoundError("the source is gone")

    store.put("a", b"older")
    with pytest.raises(FileNotFoundError, match="the source is gone"):
        store.put("a", broken())
    assert store.get("a") == b"older"
    assert [file.path for file in store.list()] == ["a"]


def test_a_cleared_store_is_empty(store: Store) -> None:
    for path in ("a/b/1", "a/2", "ab"):
        store.put(path, b"")
    store.below("a").clear()
    store.below("never there").clear()
    assert [file.path for file in store.list()] == ["ab"]


def test_a_folder_has_a_store_above(store: Store) -> None:
    assert store.below("results").below("1f").above() == (store.below("results"), "1f")
    assert store.below("1f").above() == (store, "1f")
    place, number = store, 0
    while above := place.above():
        place, number = above[0], number + 1
    assert 0 < number < 20


def test_stores_with_one_address_are_equal(store: Store) -> None:
    assert store.below("a").below("b") == store.below("a/b")
    assert hash(store.below("a").below("b")) == hash(store.below("a/b"))
    assert store.below("a") != store
    assert pickle.loads(pickle.dumps(store)) == store


def test_a_scan_yields_wanted_objects_in_entered_folders(store: Store) -> None:
    for path in ("_hidden/1", "a", "b-c/1", "b/_log/1", "b/1.csv", "b/2", "c/d/e"):
        store.put(path, path.encode())
    asked: list[str] = []

    def enters(folder: str) -> bool:
        asked.append(folder)
        return not folder.rpartition("/")[2].startswith("_")

    found = [*store.scan(lambda path: not path.endswith(".csv"), enters)]
    assert [file.path for file in found] == ["a", "b-c/1", "b/2", "c/d/e"]
    assert found == [file for file in store.list() if file in found]
    assert sorted(asked) == ["_hidden", "b", "b-c", "b/_log", "c", "c/d"]
    assert [file.path for file in store.scan(lambda _: True, enters, after="b/1.csv")] == ["b/2", "c/d/e"]


def test_nothing_prevents_the_use_of_a_new_store(store: Store) -> None:
    assert (store.no_folder(), store.unreadable(), store.below("a").no_folder()) == (None, None, None)
    store.sync([])


@pytest.mark.promised("Arrow reads the files", "disk", "s3", "azure")
def test_arrow_reads_the_objects(store: Store) -> None:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), content)
    store.put("table/day=1/my rows.parquet", content.getvalue())
    rows = ds.dataset("day=1/my rows.parquet", filesystem=store.below("table").filesystem()).to_table()
    assert rows.to_pydict() == {"a": [1, 2]}


def test_a_store_below_has_shorter_paths(store: Store) -> None:
    store.below("results").put("day/1", b"1")
    assert store.get("results/day/1") == b"1"
    assert [file.path for file in store.below("results").list("day/")] == ["day/1"]
    assert str(store.below("results")) == f"{store.url}/results"
    assert store.below("results").below("day").get("1") == b"1"


def test_an_object_is_read_like_a_file(store: Store) -> None:
    store.put("a", b"0123456789")
    file = opened(store, "a")
    file.seek(4)
    assert (file.read(3), file.read()) == (b"456", b"789")


@pytest.mark.promised("delta-rs reads and writes the tables", "disk", "s3", "azure")
def test_delta_rs_reaches_the_store(store: Store) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    address, options = f"{store.url}/table", store.options()
    for number in range(3):
        write_deltalake(address, pa.table({"a": [number]}), mode="append", storage_options=options)
    assert DeltaTable(address, storage_options=options).version() == 2
    assert store.get("table/_delta_log/00000000000000000002.json") is not None


def test_every_kind_of_store_passes_the_probe(store: Store) -> None:
    require_create_once(store)
    assert [*store.list()] == []


@pytest.mark.promised("of several writers of one name, exactly one succeeds", "disk", "s3", "azure")
def test_of_several_processes_one_creates_each_object(store: Store) -> None:
    variables = store.access.variables() if isinstance(store, Objects) and isinstance(store.access, Server) else {}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, store.url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        for name in "abcd"
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    won = {name: {*process.communicate()[0].split()} for name, process in zip("abcd", processes, strict=True)}
    assert sorted(map(int, (number for numbers in won.values() for number in numbers))) == [*range(40)]
    for name, numbers in won.items():
        assert {store.get(f"log/{number}") for number in numbers} == {f"{name} {number}".encode() for number in numbers}
    assert len([*store.list()]) == 40
