"""Credentials of object stores from the usual chain of each cloud, and their renewal.

- S3: environment, profile and SSO, web identity, instance role (`boto3`).
- Azure: account key or SAS token of the environment, else `azure-identity` (environment, workload, managed identity).
- Google Cloud: application default credentials (`google-auth`).

Errors name the class of a library's error, but not its text, which may hold a secret.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from windowlib.model.errors import TryAgain
from windowlib.storage.bucket import ACCOUNT_VARIABLE, AZURE, GCS, S3, BucketAddress

RENEW_WHEN_LEFT = timedelta(minutes=15)
ASK_AGAIN_AFTER = timedelta(seconds=30)  # if a renewal brought no longer life
AZURE_SCOPE = "https://storage.azure.com/.default"
GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
NAMES = {S3: "AWS", AZURE: "Azure", GCS: "Google Cloud"}
HINTS = {
    S3: "log in (`aws sso login`), or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    AZURE: "log in (`az login`), or set AZURE_STORAGE_ACCOUNT_KEY, or give the machine a managed identity",
    GCS: "log in (`gcloud auth application-default login`), or set GOOGLE_APPLICATION_CREDENTIALS",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Secrets under the names that obstore gives them. Credentials without `expires_at` do not expire."""

    secrets: Mapping[str, str] = field(repr=False)
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Way to a bucket: settings without secrets (endpoint, region, account), and a source of credentials.

    advice: what to do about refused credentials, if it is not to log in with the cloud's own tools
    """

    settings: Mapping[str, str]
    source: Callable[[], Credentials] = field(repr=False)
    advice: str = ""


class RenewedCredentials:
    """Cached credentials, which are renewed when less than `RENEW_WHEN_LEFT` remains. Threads may share them.

    obstore calls the object when less than five minutes of its own copy remain, then at every request.
    """

    def __init__(self, bucket: BucketAddress, source: Callable[[], Credentials]) -> None:
        self._bucket, self._source = bucket, source
        self._lock = threading.Lock()
        self._current: Credentials | None = None
        self._asked_at = datetime.min.replace(tzinfo=UTC)

    def __repr__(self) -> str:
        return f"RenewedCredentials({self._bucket})"

    def __call__(self) -> dict[str, Any]:
        """Credentials in the form that obstore expects."""
        current = self.current()
        return {**current.secrets, "expires_at": current.expires_at}

    def current(self) -> Credentials:
        """Credentials that are valid now. Raises `AccessDenied` if there are none."""
        now = datetime.now(UTC)
        with self._lock:
            if self._current is None or (_left(self._current, now) < RENEW_WHEN_LEFT and self._may_ask(now)):
                self._renew(now)
            if self._current is None or _left(self._current, now) <= timedelta(0):
                raise refused(f"{self._bucket}: the credentials have expired and were not renewed", self._bucket)
            return self._current

    def require_lasting(self) -> None:
        """Raises `AccessDenied` if less than `RENEW_WHEN_LEFT` remains after a renewal."""
        left = _left(self.current(), datetime.now(UTC))
        if left < RENEW_WHEN_LEFT:
            minutes, wanted = int(left / timedelta(minutes=1)), int(RENEW_WHEN_LEFT / timedelta(minutes=1))
            raise refused(
                f"{self._bucket}: the credentials expire in {minutes} minutes, but a batch needs {wanted} minutes, and"
                " a renewal brought no longer life",
                self._bucket,
            )

    def renew(self) -> bool:
        """Asks the source after the store has refused the credentials. Tests if others came."""
        with self._lock:
            before, self._current = self._current, None
            self._renew(datetime.now(UTC))
            return self._current is not None and (before is None or self._current.secrets != before.secrets)

    def _may_ask(self, now: datetime) -> bool:
        return now - self._asked_at >= ASK_AGAIN_AFTER

    def _renew(self, now: datetime) -> None:
        """Asks the source. If it fails, credentials that are still there stay."""
        self._asked_at = now
        try:
            self._current = self._source()
            return
        except AccessDenied as error:
            failure = error
        except Exception as error:
            failure = refused(f"{self._bucket}: could not get credentials ({type(error).__name__})", self._bucket)
        if self._current is None:
            raise failure


def _left(credentials: Credentials, now: datetime) -> timedelta:
    return timedelta.max if credentials.expires_at is None else credentials.expires_at - now


class AccessDenied(TryAgain, PermissionError):
    """An object store refuses the credentials, or there are none. The message is one sentence."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.errno = errno.EACCES


_advice: dict[BucketAddress, str] = {}


def give_advice(bucket: BucketAddress, advice: str) -> None:
    """Sets what later errors about the credentials of a bucket advise."""
    _advice[bucket] = advice


def refused(what: str, bucket: BucketAddress) -> AccessDenied:
    """Error about missing or refused credentials."""
    advice = _advice.get(bucket) or HINTS[bucket.cloud]
    return AccessDenied(f"{what}: expected credentials of {NAMES[bucket.cloud]}; {advice}")


def usual_access(bucket: BucketAddress) -> Access:
    """Access by the usual chain of the cloud, with the endpoint and the region of the environment or the profile."""
    if bucket.cloud == S3:
        return Access(_s3_settings(), lambda: _s3_credentials(bucket))
    if bucket.cloud == AZURE:
        return Access(_azure_settings(bucket), _azure_credentials)
    return Access({}, _google_credentials)


def _s3_settings() -> dict[str, str]:
    import boto3

    region = os.environ.get("AWS_REGION") or boto3.Session().region_name or "us-east-1"
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return {"region": region} | ({"endpoint": endpoint} if endpoint else {})


def _s3_credentials(bucket: BucketAddress) -> Credentials:
    import boto3

    chosen = boto3.Session().get_credentials()
    if chosen is None:
        raise refused(f"{bucket}: found no credentials", bucket)
    return of_botocore(chosen)


def of_botocore(chosen: Any) -> Credentials:
    """Credentials of S3 that botocore chose, with the time at which they expire if botocore can renew them."""
    frozen = chosen.get_frozen_credentials()
    secrets = {"access_key_id": frozen.access_key, "secret_access_key": frozen.secret_key}
    if frozen.token:
        secrets["token"] = frozen.token
    return Credentials(secrets, getattr(chosen, "_expiry_time", None))


def _azure_settings(bucket: BucketAddress) -> dict[str, str]:
    account = bucket.account or os.environ.get(ACCOUNT_VARIABLE, "")
    endpoint = os.environ.get("AZURE_STORAGE_ENDPOINT")
    return {"account_name": account} | ({"endpoint": endpoint} if endpoint else {})


def _azure_credentials() -> Credentials:
    if key := os.environ.get("AZURE_STORAGE_ACCOUNT_KEY"):
        return Credentials({"access_key": key})
    if token := os.environ.get("AZURE_STORAGE_SAS_TOKEN") or os.environ.get("AZURE_STORAGE_SAS_KEY"):
        return Credentials({"sas_token": token.removeprefix("?")})
    from azure.identity import DefaultAzureCredential

    with DefaultAzureCredential() as chain:
        issued = chain.get_token(AZURE_SCOPE)
    return Credentials({"token": issued.token}, datetime.fromtimestamp(issued.expires_on, UTC))


def _google_credentials() -> Credentials:
    import google.auth
    from google.auth.transport.requests import Request

    issued: Any = google.auth.default(scopes=[GOOGLE_SCOPE])[0]
    issued.refresh(Request())
    return Credentials({"token": issued.token}, issued.expiry.replace(tzinfo=UTC) if issued.expiry else None)
