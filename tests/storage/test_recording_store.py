"""The store that tests count requests with: rounds, faults, and stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recording_store import PAGE, RecordingStore, Stopped, recorded
from windowlib.storage.at_once import at_once
from windowlib.storage.disk import Disk


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordingStore]:
    with recorded(Disk(tmp_path)) as store:
        yield store


def test_requests_in_turn_are_rounds_of_their_own(store: RecordingStore) -> None:
    store.put("a", b"1")
    assert store.get("a") == b"1"
    assert [str(request) for request in store.record.requests] == ["put a", "get a"]
    assert store.record.rounds == 2


@pytest.mark.parametrize("times", range(5))
def test_requests_at_once_share_a_round_however_the_threads_run(store: RecordingStore, times: int) -> None:
    at_once(lambda number: store.put(f"a/{number}", b""), range(50))
    assert (len(store.record.requests), store.record.rounds) == (50, 1)
    at_once(lambda number: (store.get(f"a/{number}"), store.get("b")), range(50))
    assert store.record.rounds == 3
    store.get("c")
    assert (len(store.record.requests), store.record.rounds) == (151, 4)


def test_the_longest_chain_of_requests_at_once_counts(store: RecordingStore) -> None:
    def chain(length: int) -> None:
        for _ in range(length):
            store.get("a")

    at_once(chain, [1, 4, 2])
    at_once(lambda _: at_once(chain, [1, 2]), range(3))
    assert store.record.rounds == 4 + 2


def test_sizes_are_a_round_and_listings_one_for_each_page(store: RecordingStore) -> None:
    for number in range(3):
        store.store.put(f"a/{number}", b"")
    store.sizes([f"a/{number}" for number in range(3)])
    assert (len(store.record.requests), store.record.rounds) == (3, 1)
    store.record.clear()
    assert len([*store.list("a/")]) == 3
    assert store.record.rounds == 1
    for number in range(PAGE):
        store.store.put(f"b/{number}", b"")
    store.record.clear()
    assert len([*store.list("b/")]) == PAGE
    assert store.record.rounds == 2


def test_a_store_below_has_the_same_record(store: RecordingStore) -> None:
    store.below("results").below("day").put("1", b"")
    assert [str(request) for request in store.record.requests] == ["put results/day/1"]


def test_a_lost_answer_has_an_effect_and_a_refusal_has_none(store: RecordingStore) -> None:
    store.record.lose_answer("create", "log/")
    store.record.refuse("put")
    with pytest.raises(OSError, match="planted"):
        store.create("log/1", b"1")
    with pytest.raises(OSError, match="planted"):
        store.put("a", b"1")
    store.put("b", b"1")
    assert [found.path for found in store.store.list()] == ["b", "log/1"]


@pytest.mark.parametrize(("stop_after", "left"), [(False, ["a"]), (True, ["a", "b"])])
def test_a_stop_is_final(store: RecordingStore, stop_after: bool, left: list[str]) -> None:
    store.record.stop_at, store.record.stop_after = 2, stop_after
    store.put("a", b"")
    for name in "bcd":
        with pytest.raises(Stopped):
            store.put(name, b"")
    assert [found.path for found in store.store.list()] == left


def test_a_delay_is_waited_for(store: RecordingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("tests.support.recording_store.time.sleep", waited.append)
    store.record.delay(0.03, "get")
    store.get("a")
    store.put("a", b"")
    assert waited == [0.03]
