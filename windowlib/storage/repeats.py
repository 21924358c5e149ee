"""Requests to an object store, repeated for a while after a failure that may pass.

Expired credentials are renewed. A lasting failure becomes an error that is one sentence (`windowlib.storage.answers`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from windowlib.storage import clients
from windowlib.storage.answers import Refusal, answer_of, error_about
from windowlib.storage.bucket import BucketAddress
from windowlib.storage.clients import Client, client_of, renew_client
from windowlib.storage.credentials import Access

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests to a bucket. `access` gives the endpoint and the credentials, at the first request of each process."""

    bucket: BucketAddress
    access: Callable[[BucketAddress], Access]

    def repeated(self, place: str, step: Callable[[ObjectStore], T]) -> T:
        """Result of a request that may be repeated. Raises OSError with the address `place`."""
        patience = Patience()
        while isinstance(result := self.tried(step), Refusal):
            if not (result.may_pass and patience.waits()):
                raise error_about(result, self.bucket, place)
        return result

    def once(self, place: str, step: Callable[[ObjectStore], T]) -> T:
        """Result of a request that may not be repeated. Raises OSError with the address `place`."""
        if isinstance(result := self._once(step, client_of(self.bucket, self.access)), Refusal):
            raise error_about(result, self.bucket, place)
        return result

    def tried(self, step: Callable[[ObjectStore], T]) -> T | Refusal:
        """Result of a request, or the refusal of the storage. Repeats it if the credentials could be renewed."""
        client = client_of(self.bucket, self.access)
        result = self._once(step, client)
        if isinstance(result, Refusal) and result.may_be_expired and renew_client(self.bucket, self.access, client):
            return self._once(step, client_of(self.bucket, self.access))
        return result

    def _once(self, step: Callable[[ObjectStore], T], client: Client) -> T | Refusal:
        client.credentials.current()  # raises an error of its own, which obstore would wrap
        from obstore.exceptions import BaseError

        try:
            return step(client.store)
        except (BaseError, FileNotFoundError, ValueError) as error:
            return answer_of(error)


@dataclass(slots=True)
class Patience:
    """Time in which an operation is repeated, with growing pauses."""

    end: float = field(default_factory=lambda: time.monotonic() + clients.PATIENCE_S)
    pause_s: float = 0.1

    def waits(self) -> bool:
        """Pauses before the next attempt. False if the time is over."""
        if time.monotonic() + self.pause_s > self.end:
            return False
        time.sleep(random.uniform(self.pause_s / 2, self.pause_s))
        self.pause_s = min(2 * self.pause_s, 5.0)
        return True
