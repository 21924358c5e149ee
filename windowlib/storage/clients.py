"""Clients of object stores: one for each bucket and process, made at the first request.

obstore has threads of its own, which a forked child lacks, so that its requests there would never end. A child of a
process that has used obstore is refused with a sentence.

A request ends within `REQUEST_S`. obstore sends it again after a lost connection, after 408, 429 and 5xx, for at most
`RETRY_S`. `windowlib.storage.repeats` repeats an operation for at most `PATIENCE_S`. So an operation ends within five
minutes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windowlib.storage.answers import StorageFailed
from windowlib.storage.bucket import AZURE, GCS, S3, BucketAddress
from windowlib.storage.credentials import Access, RenewedCredentials, give_advice

if TYPE_CHECKING:
    from obstore.store import ObjectStore

REQUEST_S = 120.0
CONNECT_S = 5.0
SILENCE_S = 30.0  # without a byte of the answer
RETRY_S = 45.0
PATIENCE_S = 90.0
SETTINGS = {
    S3: {
        "endpoint": "AWS_ENDPOINT_URL",
        "region": "AWS_REGION",
        "access_key_id": "AWS_ACCESS_KEY_ID",
        "secret_access_key": "AWS_SECRET_ACCESS_KEY",
        "token": "AWS_SESSION_TOKEN",
    },
    AZURE: {
        "endpoint": "AZURE_STORAGE_ENDPOINT",
        "account_name": "AZURE_STORAGE_ACCOUNT_NAME",
        "access_key": "AZURE_STORAGE_ACCOUNT_KEY",
        "sas_token": "AZURE_STORAGE_SAS_KEY",
        "token": "AZURE_STORAGE_TOKEN",
    },
    GCS: {"token": "GOOGLE_BEARER_TOKEN"},
}
"""Names of settings and secrets: those of obstore, and those of delta-rs."""

ALLOW_HTTP = {S3: "AWS_ALLOW_HTTP", AZURE: "AZURE_ALLOW_HTTP"}


@dataclass(frozen=True, slots=True)
class Client:
    """Connection of this process to a bucket."""

    store: ObjectStore
    credentials: RenewedCredentials
    settings: dict[str, str]

    def options(self, cloud: str, *, secrets: bool = True) -> dict[str, str]:
        """Settings for delta-rs and for engines, with credentials that are valid now unless `secrets` is false."""
        named = {**self.settings, **(self.credentials.current().secrets if secrets else {})}
        options = {SETTINGS[cloud][name]: value for name, value in named.items()}
        return options | ({ALLOW_HTTP[cloud]: "true"} if _is_http(self.settings) else {})


_clients: dict[tuple[BucketAddress, Callable[[BucketAddress], Access]], Client] = {}
_used_in: list[int] = []  # the process that used obstore first
_lock, _renewal = threading.Lock(), threading.Lock()


def client_of(bucket: BucketAddress, access: Callable[[BucketAddress], Access]) -> Client:
    """Client of this process for a bucket. Raises `StorageFailed` in a forked child of a process that used obstore."""
    if _used_in and _used_in[0] != os.getpid():
        raise StorageFailed(
            f"{bucket}: this process was forked from one that uses object stores, and its requests would never end;"
            " start it by spawn or as a program of its own"
        )
    with _lock:
        if (bucket, access) not in _clients:
            way = access(bucket)
            give_advice(bucket, way.advice)
            _clients[bucket, access] = _client(bucket, dict(way.settings), RenewedCredentials(bucket, way.source))
        return _clients[bucket, access]


def renew_client(bucket: BucketAddress, access: Callable[[BucketAddress], Access], refused: Client) -> bool:
    """Renews the credentials after the store has refused those of a client. Tests if others came.

    The client is replaced, because obstore keeps credentials until five minutes before they expire. If several requests
    are refused together, the first renews for all.
    """
    with _renewal:
        if client_of(bucket, access) is not refused:
            return True
        if not refused.credentials.renew():
            return False
        with _lock:
            _clients[bucket, access] = _client(bucket, refused.settings, refused.credentials)
        return True


def _client(bucket: BucketAddress, settings: dict[str, str], credentials: RenewedCredentials) -> Client:
    from obstore.store import AzureStore, GCSStore, S3Store

    _used_in[:] = [os.getpid()]
    kinds: dict[str, Callable[..., ObjectStore]] = {S3: S3Store, AZURE: AzureStore, GCS: GCSStore}
    store = kinds[bucket.cloud](
        bucket.name,
        config=settings,
        client_options=_client_options(settings),
        retry_config={
            "max_retries": 10,
            "retry_timeout": timedelta(seconds=RETRY_S),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
        },
        credential_provider=credentials,
    )
    return Client(store, credentials, settings)


def _client_options(settings: dict[str, str]) -> dict[str, Any]:
    return {
        "timeout": timedelta(seconds=REQUEST_S),
        "connect_timeout": timedelta(seconds=CONNECT_S),
        "read_timeout": timedelta(seconds=SILENCE_S),
        "allow_http": _is_http(settings),
    }


def _is_http(settings: dict[str, str]) -> bool:
    return settings.get("endpoint", "").startswith("http://")
