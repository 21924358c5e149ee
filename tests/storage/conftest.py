"""Stores of every kind, for the promises that all of them keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.object_servers import Server
from windowlib.storage import clients
from windowlib.storage.disk import Disk
from windowlib.storage.objects import Objects
from windowlib.storage.store import Store


@pytest.fixture(scope="session", params=["disk", "s3", "azure"])
def new_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Store]:
    """Makes empty stores of one kind."""
    if request.param == "disk":
        return lambda: Disk(tmp_path_factory.mktemp("store"))
    server: Server = request.getfixturevalue(f"{request.param}_server")
    return server.store


@pytest.fixture
def store(new_store: Callable[[], Store]) -> Store:
    """An empty store."""
    return new_store()


@pytest.fixture(scope="session", params=["s3", "azure"])
def server(request: pytest.FixtureRequest) -> Server:
    """A server of each kind of object store."""
    reached: Server = request.getfixturevalue(f"{request.param}_server")
    return reached


@dataclass(frozen=True)
class Faulty:
    """A store whose requests pass a fault proxy, and the same store without it."""

    proxy: FaultProxy
    store: Objects
    direct: Objects


@pytest.fixture
def faulty(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faulty]:
    """A store behind a proxy. Operations are repeated for seconds only."""
    monkeypatch.setattr(clients, "RETRY_S", 1.0)
    monkeypatch.setattr(clients, "PATIENCE_S", 4.0)
    monkeypatch.setattr(clients, "SILENCE_S", 1.0)
    with fault_proxy(server.port) as proxy:
        direct = server.store()
        yield Faulty(proxy, replace(direct, access=server.behind(proxy.port)), direct)
