"""Sail's servers take turns, as each keeps memory for good; computations do not notice."""

import gc
import weakref

import pytest

from windowlib.engines import sail

pytestmark = [pytest.mark.spark, pytest.mark.embedded]


def ask(times: int) -> None:
    for _ in range(times):
        assert sail.is_sail(sail.session())


def test_another_server_takes_over(spark: object) -> None:
    first = sail.session()
    ask(sail.ASKED_AT_MOST)
    assert sail.session() is not first
    assert first.range(3).count() == 3


def test_rows_of_an_earlier_session_stay_readable_and_their_server_ends_after_them(
    spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sail, "ASKED_AT_MOST", 1)
    rows = sail.session().range(3)
    session, server = weakref.ref(rows.sparkSession), sail._serves
    assert server is not None
    client = weakref.ref(server.client)
    ask(3)
    assert server in sail._retired
    assert rows.count() == 3
    del rows
    ask(3)
    assert session() is None
    assert server not in sail._retired
    del server
    gc.collect()
    assert client() is None
