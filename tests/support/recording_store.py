"""A store that counts requests and rounds, and that fails, waits or stops at a chosen request.

A round is a set of requests that wait for no other of the set. Calls that `windowlib.storage.at_once` sends at once
share rounds, by a logical clock: a call begins one tick after the last request that its caller had waited for. The
caller goes on after the slowest call.
"""

from __future__ import annotations

import errno
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import getitem
from typing import Any, TypeVar

import pytest
from pyarrow import fs

from windowlib.storage.at_once import at_once
from windowlib.storage.store import ObjectInfo, Store

PAGE = 1000
T = TypeVar("T")
_clock = threading.local()


class Stopped(BaseException):
    """The process ends here, as after SIGKILL: no code of the project handles it."""


@dataclass(frozen=True)
class Request:
    """A request: its kind (the method of the store), the full path, and its round."""

    kind: str
    path: str
    round: int

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


@dataclass
class Fault:
    """Makes the next `times` requests of a kind below a path go wrong."""

    kind: str = ""
    path: str = ""
    times: int | None = 1
    after: bool = False  # the request is carried out first: its answer is lost
    delay_s: float = 0.0
    error: OSError | None = field(default_factory=lambda: OSError(errno.EIO, "planted"))

    def takes(self, request: Request) -> bool:
        """Tests if the fault applies to this request, and counts it."""
        if self.times == 0 or self.kind not in ("", request.kind) or self.path not in request.path:
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass
class Record:
    """Requests of a store and of all stores below it. Stops before, or after, the request `stop_at` (from 1)."""

    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    stop_at: int | None = None
    stop_after: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def rounds(self) -> int:
        """Number of rounds so far."""
        return len({request.round for request in self.requests})

    def clear(self) -> None:
        self.requests.clear()

    def lose_answer(self, kind: str = "", path: str = "", times: int | None = 1) -> None:
        """Carries out the next matching requests, and reports an error."""
        self.faults.append(Fault(kind, path, times, after=True))

    def refuse(self, kind: str = "", path: str = "", times: int | None = 1, error: OSError | None = None) -> None:
        """Fails the next matching requests, which have no effect."""
        self.faults.append(Fault(kind, path, times, error=error or OSError(errno.EIO, "planted")))

    def delay(self, seconds: float, kind: str = "", path: str = "", times: int | None = None) -> None:
        """Makes matching requests take longer."""
        self.faults.append(Fault(kind, path, times, delay_s=seconds, error=None))

    def carried_out(self, kind: str, path: str, step: Callable[[], T], requests: int = 1) -> T:
        """Counts a request, or several in one round, and carries it out unless a fault prevents it."""
        tick = getattr(_clock, "tick", 0) + 1
        with self.lock:
            begun = [Request(kind, path, tick)] * requests
            before, self.requests = len(self.requests), self.requests + begun
            stops = self.stop_at is not None and before + requests >= self.stop_at
            fault = next((fault for fault in self.faults if fault.takes(begun[0])), None) if begun else None
        if stops and not (self.stop_after and before < (self.stop_at or 0)):
            raise Stopped(f"before {begun[-1]}")
        if fault:
            time.sleep(fault.delay_s)
            if fault.error and not fault.after:
                raise fault.error
        try:
            result = step()
        finally:
            _clock.tick = max(tick, getattr(_clock, "tick", 0))
        if stops:
            raise Stopped(f"after {begun[-1]}")
        if fault and fault.error:
            raise fault.error
        return result


@dataclass(frozen=True)
class RecordingStore:
    """A store whose requests are recorded. It implements `windowlib.storage.store.Store`."""

    store: Store
    record: Record = field(default_factory=Record, compare=False)
    folder: str = ""

    @property
    def url(self) -> str:
        return self.store.url

    def __str__(self) -> str:
        return str(self.store)

    def __reduce__(self) -> tuple[Any, ...]:
        """Becomes the store itself in a worker of an engine, whose requests are not recorded."""
        return getitem, ((self.store,), 0)

    def below(self, folder: str) -> RecordingStore:
        return RecordingStore(self.store.below(folder), self.record, self._full(folder))

    def get(self, path: str) -> bytes | None:
        return self._asked("get", path, lambda: self.store.get(path))

    def get_many(self, paths: Sequence[str]) -> list[bytes | None]:
        first = paths[0] if paths else ""
        return self._asked("get", first, lambda: self.store.get_many(paths), len(paths))

    def get_range(self, path: str, start: int, end: int) -> bytes:
        return self._asked("get_range", path, lambda: self.store.get_range(path, start, end))

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        first = paths[0] if paths else ""
        return self._asked("sizes", first, lambda: self.store.sizes(paths), len(paths))

    def infos(self, paths: Sequence[str]) -> list[ObjectInfo | None]:
        first = paths[0] if paths else ""
        return self._asked("sizes", first, lambda: self.store.infos(paths), len(paths))

    def create(self, path: str, data: bytes) -> bool:
        return self._asked("create", path, lambda: self.store.create(path, data))

    def put(self, path: str, data: bytes | Iterable[bytes]) -> None:
        self._asked("put", path, lambda: self.store.put(path, data))

    def copy(self, source: str, to: Store, target: str) -> None:
        self._asked("copy", f"{to}/{target}", lambda: self.store.copy(source, to, target))

    def delete(self, paths: Iterable[str]) -> None:
        chosen = [*paths]
        first = chosen[0] if chosen else ""
        self._asked("delete", first, lambda: self.store.delete(chosen), -(-len(chosen) // PAGE))

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """A request and a round for each thousand names."""
        yield from self._pages(prefix, self.store.list(prefix, after))

    def scan(
        self, wanted: Callable[[str], bool], enters: Callable[[str], bool], after: str = ""
    ) -> Iterator[ObjectInfo]:
        yield from self._pages("", self.store.scan(wanted, enters, after))

    def clear(self) -> None:
        self._asked("clear", "", self.store.clear, 2)

    def above(self) -> tuple[Store, str] | None:
        return self.store.above()

    def unreadable(self, path: str = "") -> str | None:
        return self.store.unreadable(path)

    def require_lasting_access(self) -> None:
        self.store.require_lasting_access()

    def no_folder(self) -> str | None:
        return self.store.no_folder()

    def free_bytes(self) -> int | None:
        return self.store.free_bytes()

    def filesystem(self) -> fs.FileSystem:
        return self.store.filesystem()

    def options(self) -> dict[str, str]:
        return self.store.options()

    def environment(self) -> dict[str, str]:
        return self.store.environment()

    def sync(self, paths: Iterable[str]) -> None:
        self.store.sync(paths)

    def _pages(self, prefix: str, listing: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
        def page() -> Sequence[ObjectInfo]:
            return [info for info, _ in zip(listing, range(PAGE), strict=False)]

        while found := self._asked("list", prefix, page):
            yield from found
            if len(found) < PAGE:
                return

    def _asked(self, kind: str, path: str, step: Callable[[], T], requests: int = 1) -> T:
        return self.record.carried_out(kind, self._full(path), step, requests)

    def _full(self, path: str) -> str:
        return f"{self.folder}/{path}" if self.folder else path


def replace_at_once(patch: pytest.MonkeyPatch, instead: Callable[..., list[Any]]) -> None:
    """Lets all modules send requests that they send at once by `instead`."""
    for module in [module for module in sys.modules.values() if vars(module).get("at_once") is at_once]:
        patch.setattr(module, "at_once", instead)


def _clocked(step: Callable[[Any], T], items: Iterable[Any], _threads: int = 0) -> list[T]:
    """Calls that begin at the logical time of their caller. The caller goes on after the last of them."""
    begun, ended, results, errors = getattr(_clock, "tick", 0), list[int](), list[T](), list[Exception]()
    for item in items:
        _clock.tick = begun
        try:
            results.append(step(item))
        except Exception as error:
            errors.append(error)
        ended.append(_clock.tick)
    _clock.tick = max(ended, default=begun)
    if errors:
        raise errors[0]
    return results


@contextmanager
def recorded(store: Store) -> Iterator[RecordingStore]:
    """The store, recorded. Within the block, `at_once` shares rounds."""
    with pytest.MonkeyPatch.context() as patch:
        replace_at_once(patch, _clocked)
        yield RecordingStore(store)
