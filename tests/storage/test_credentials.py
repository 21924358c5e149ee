"""Credentials of object stores: where they come from, when they are renewed, and that they appear nowhere."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import google.auth
import pytest

from tests.support.fault_proxy import TOKEN, FaultProxy, Request, Rule, answered, fault_proxy
from tests.support.object_servers import Server
from windowlib.storage import credentials
from windowlib.storage.bucket import BucketAddress
from windowlib.storage.credentials import Access, Credentials, RenewedCredentials, usual_access
from windowlib.storage.objects import Objects

ROOT = Path(__file__).parents[2]
BUCKET = BucketAddress("s3", "events")
SECRET = "SECRET-which-nobody-may-see"
CHAIN = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION"),
    *("AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
    *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_ENDPOINT"),
)


@pytest.fixture(autouse=True)
def no_chain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of this machine."""
    for name in CHAIN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@dataclass
class Issuer:
    """A source of credentials that expire, as an STS has it. The newest token alone is valid."""

    lifetime: timedelta = timedelta(hours=1)
    fails: bool = False
    issued: int = 0
    asked: list[datetime] = field(default_factory=list)

    def __call__(self) -> Credentials:
        self.asked.append(datetime.now(UTC))
        if self.fails:
            raise ValueError(f"the login service failed with {SECRET}")
        self.issued += 1
        secrets = {"access_key_id": "key", "secret_access_key": SECRET, "token": self.token}
        return Credentials(secrets, datetime.now(UTC) + self.lifetime)

    @property
    def token(self) -> str:
        return f"token-{self.issued}"


def test_credentials_are_asked_once_while_they_last() -> None:
    issuer = Issuer()
    renewed = RenewedCredentials(BUCKET, issuer)
    assert {renewed()["token"] for _ in range(5)} == {"token-1"}


def test_credentials_are_renewed_a_quarter_of_an_hour_before_they_expire() -> None:
    issuer = Issuer(timedelta(minutes=14))
    renewed = RenewedCredentials(BUCKET, issuer)
    assert renewed()["token"] == "token-1"
    assert renewed()["token"] == "token-1"  # just asked
    renewed._asked_at -= credentials.ASK_AGAIN_AFTER
    issuer.lifetime = timedelta(hours=1)
    assert [renewed()["token"] for _ in range(3)] == ["token-2"] * 3


def test_credentials_that_still_last_survive_a_failed_renewal() -> None:
    issuer = Issuer(timedelta(minutes=5))
    renewed = RenewedCredentials(BUCKET, issuer)
    renewed()
    issuer.fails = True
    renewed._asked_at -= credentials.ASK_AGAIN_AFTER
    assert renewed()["token"] == "token-1"
    assert len(issuer.asked) == 2


def test_credentials_that_a_renewal_does_not_prolong_are_refused_before_a_batch() -> None:
    issuer = Issuer(timedelta(minutes=14, seconds=59))
    renewed = RenewedCredentials(BUCKET, issuer)
    with pytest.raises(PermissionError, match="expire in 14 minutes, but a batch needs 15 minutes, and a renewal"):
        renewed.require_lasting()
    renewed._asked_at -= credentials.ASK_AGAIN_AFTER
    issuer.lifetime = timedelta(minutes=15, seconds=10)
    renewed.require_lasting()
    RenewedCredentials(BUCKET, lambda: Credentials({})).require_lasting()


def test_credentials_that_have_expired_are_refused() -> None:
    renewed = RenewedCredentials(BUCKET, Issuer(-timedelta(seconds=1)))
    with pytest.raises(PermissionError, match="s3://events: the credentials have expired and were not renewed"):
        renewed()


def test_a_source_that_fails_is_one_sentence_without_its_text() -> None:
    with pytest.raises(PermissionError, match=r"could not get credentials \(ValueError\): expected .* AWS") as caught:
        RenewedCredentials(BUCKET, Issuer(fails=True))()
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@dataclass(frozen=True)
class Issued:
    """Access to a server with an issuer's credentials."""

    server: Server
    port: int
    number: int
    issuers: tuple[Issuer, ...] = field(compare=False)

    def __call__(self, bucket: BucketAddress) -> Access:
        return Access(self.server.behind(self.port)(bucket).settings, self.issuers[self.number])


@contextmanager
def watched(server: Server, issuer: Issuer) -> Iterator[tuple[FaultProxy, Objects]]:
    """A store whose proxy accepts the newest token of an issuer only."""

    def is_old(request: Request) -> bool:
        return request.headers.get(TOKEN) != issuer.token

    with fault_proxy(server.port) as proxy:
        proxy.rules.append(Rule(answered(400, "ExpiredToken"), times=None, chosen=is_old))
        yield proxy, replace(server.store(), access=Issued(server, proxy.port, 0, (issuer,)))


@pytest.mark.promised("credentials that are refused are renewed", "s3", remote=True)
def test_a_token_that_the_storage_takes_for_expired_is_renewed(s3_server: Server) -> None:
    issuer = Issuer()
    with watched(s3_server, issuer) as (proxy, store):
        store.put("a", b"1")
        issuer.issued += 1  # as after a change of the key, or with a clock an hour behind
        assert store.create("b", b"2")
        assert (store.get("a"), store.sizes(["a", "b"])) == (b"1", [1, 1])
        issuer.issued += 1
        assert [found.path for found in store.list()] == ["a", "b"]
        store.delete(["a"])
        assert len(issuer.asked) == 3
        assert {request.headers[TOKEN] for request in proxy.requests} == {"token-1", "token-3", "token-5"}


def test_a_long_run_uses_the_token_of_its_time(s3_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "ASK_AGAIN_AFTER", timedelta(0))
    issuer = Issuer(timedelta(minutes=1))  # so near its end that obstore asks at each request
    with watched(s3_server, issuer) as (_, store):
        for number in range(5):
            assert store.create(f"log/{number}", b"")
    assert issuer.issued > 5


def test_refused_credentials_that_cannot_be_renewed_are_one_sentence(s3_server: Server) -> None:
    issuer = Issuer()
    with watched(s3_server, issuer) as (_, store):
        store.put("a", b"1")
        issuer.issued, issuer.fails = 7, True
        with pytest.raises(PermissionError, match=r"could not get credentials \(ValueError\)"):
            store.get("a")


def test_the_options_have_the_credentials_of_now(s3_server: Server) -> None:
    issuer = Issuer()
    with watched(s3_server, issuer) as (_, store):
        before = store.options()
        store.put("a", b"1")
        issuer.issued += 1
        store.put("a", b"1")
        after = store.options()
    assert (before["AWS_SESSION_TOKEN"], after["AWS_SESSION_TOKEN"]) == ("token-1", "token-3")
    assert before | {"AWS_SESSION_TOKEN": ""} == after | {"AWS_SESSION_TOKEN": ""}


def test_secrets_are_in_no_text(s3_server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    issuer = Issuer()
    access = Access({"region": "eu-west-1"}, issuer)
    renewed = RenewedCredentials(BUCKET, issuer)
    texts = [repr(access), repr(renewed), str(renewed), repr(renewed.current()), str(renewed.current())]
    with watched(s3_server, issuer) as (proxy, store):
        store.put("a", b"1")
        proxy.rules.insert(0, Rule(answered(403, f"SignatureDoesNotMatch</Code>{SECRET}<Code>"), times=None))
        for operation in (store.get, lambda path: [*store.list(path)], lambda path: store.create(path, b"")):
            with pytest.raises(PermissionError) as caught:
                operation("a")
            texts += traceback.format_exception(caught.value)
        texts += [repr(store), str(store), store.url, repr(store.below("a"))]
    assert SECRET not in "".join([*texts, caplog.text])


def test_a_store_is_pickled_without_credentials() -> None:
    store = Objects(BUCKET, "shop")
    assert pickle.loads(pickle.dumps(store)) == store


def test_a_forked_child_of_a_process_that_used_a_store_is_refused(s3_server: Server) -> None:
    code = """
import os, sys
from windowlib.storage.address import store_at
store = store_at(sys.argv[1])
def child():
    if pid := os.fork():
        return os.waitpid(pid, 0)
    try:
        print(store.get("a"), flush=True)
    except OSError as error:
        print(error, flush=True)
    os._exit(0)
child()
print(store.get("a"), flush=True)
child()
"""
    store = s3_server.store()
    store.put("a", b"1")
    variables = {"PATH": "/usr/bin:/bin", **s3_server.variables()}
    command = [sys.executable, "-c", code, store.url]
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    first, own, second = done.stdout.splitlines()
    assert (first, own) == ("b'1'", "b'1'")
    assert "was forked from one that uses object stores" in second


def test_aws_credentials_come_from_the_environment_or_a_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text(f"[shop]\naws_access_key_id=of-profile\naws_secret_access_key={SECRET}\n")
    (tmp_path / "config").write_text("[profile shop]\nregion=eu-central-1\n")
    monkeypatch.setenv("AWS_PROFILE", "shop")
    access = usual_access(BUCKET)
    assert access.settings == {"region": "eu-central-1"}
    assert access.source().secrets["access_key_id"] == "of-profile"
    monkeypatch.delenv("AWS_PROFILE")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, f"{name} of the environment")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    access = usual_access(BUCKET)
    assert access.settings == {"region": "us-east-1", "endpoint": "http://127.0.0.1:9"}
    assert access.source().secrets["token"] == "AWS_SESSION_TOKEN of the environment"


def test_missing_aws_credentials_are_one_sentence() -> None:
    with pytest.raises(PermissionError, match=r"^s3://events: found no credentials: expected .*; log in .*AWS_PROFILE"):
        Objects(BUCKET, "missing").get("a")


def test_azure_takes_a_key_or_a_token_of_the_environment_before_an_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = SimpleNamespace(token="of-identity", expires_on=2_000_000_000)
    fake = _FakeIdentity(lambda *_: identity)
    monkeypatch.setattr("azure.identity.DefaultAzureCredential", lambda: fake)
    access = usual_access(BucketAddress("abfss", "events", "shop"))
    assert access.settings == {"account_name": "shop"}
    assert access.source() == Credentials({"token": "of-identity"}, datetime.fromtimestamp(2_000_000_000, UTC))
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?sig=of-environment")
    assert access.source().secrets == {"sas_token": "sig=of-environment"}
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "key-of-environment")
    assert access.source().secrets == {"access_key": "key-of-environment"}


@dataclass
class _FakeIdentity:
    get_token: Callable[..., SimpleNamespace]

    def __enter__(self) -> _FakeIdentity:
        return self

    def __exit__(self, *_: object) -> None:
        self.get_token = lambda *_: SimpleNamespace()


def test_google_credentials_are_the_default_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    issued = SimpleNamespace(token="", expiry=None)

    def refresh(_: object) -> None:
        issued.token, issued.expiry = "of-google", datetime(2033, 1, 1)  # as the library has it

    issued.refresh = refresh
    monkeypatch.setattr(google.auth, "default", lambda scopes: (issued, "project"))
    access = usual_access(BucketAddress("gs", "events"))
    assert access.source() == Credentials({"token": "of-google"}, datetime(2033, 1, 1, tzinfo=UTC))
