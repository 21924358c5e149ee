"""Object stores behind a network that fails: nothing is lost or written twice, and a refusal is one sentence."""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.storage.conftest import Faulty
from tests.support.fault_proxy import (
    Fault,
    Request,
    Rule,
    answered,
    fault_proxy,
    lost_answer,
    lost_request,
    refused_after_success,
    repeated,
    reset_in_body,
    slow,
    truncated,
)
from tests.support.object_servers import BUCKET, Server
from windowlib.delta.tables import opened
from windowlib.model.errors import InvalidSpec, is_of_storage
from windowlib.storage import clients, objects
from windowlib.storage.at_once import at_once
from windowlib.storage.bucket import BucketAddress
from windowlib.storage.object_listing import PAGE
from windowlib.storage.objects import Objects
from windowlib.storage.probe import require_create_once

PASSING: dict[str, Fault] = {
    "lost answer": lost_answer,
    "lost request": lost_request,
    "repeated request": repeated,
    "408": answered(408, "RequestTimeout"),
    "409": answered(409, "ConditionalRequestConflict"),
    "412": answered(412, "PreconditionFailed"),
    "429": answered(429, "TooManyRequests"),
    "500": answered(500, "InternalError"),
    "500 after success": refused_after_success(500, "InternalError"),
    "503": answered(503, "SlowDown"),
    "503 with Retry-After": answered(503, "SlowDown", ("Retry-After", "1")),
    "slow answer": slow(0.3),
    "silence": slow(1.6),
    "reset in the body": reset_in_body,
    "truncated body": truncated,
}
"""Faults after which every operation has the same result as without them."""

CONTENT = bytes(range(256)) * 400
OPERATIONS: dict[str, Callable[[Objects], Any]] = {
    "get": lambda store: store.get("a"),
    "get_range": lambda store: store.get_range("a", 1000, 90_000),
    "get_many": lambda store: store.get_many(["a"]),
    "sizes": lambda store: store.sizes(["a"]),
    "scan": lambda store: [found.path for found in store.scan(lambda _: True, lambda _: True)],
    "clear": lambda store: store.clear() or [*store.list()],  # type: ignore[func-returns-value]
    "create": lambda store: store.create("new", CONTENT),
    "create what exists": lambda store: store.create("a", b"other"),
    "put": lambda store: store.put("a", b"other") or store.get("a"),  # type: ignore[func-returns-value]
    "copy": lambda store: store.copy("a", store, "b") or store.get("b"),  # type: ignore[func-returns-value]
    "delete": lambda store: store.delete(["a"]) or store.get("a"),  # type: ignore[func-returns-value]
    "list": lambda store: [found.path for found in store.list()],
}
RESULTS: dict[str, Any] = {
    "get": CONTENT,
    "get_range": CONTENT[1000:90_000],
    "get_many": [CONTENT],
    "sizes": [len(CONTENT)],
    "scan": ["a", "c"],
    "clear": [],
    "create": True,
    "create what exists": False,
    "put": b"other",
    "copy": CONTENT,
    "delete": None,
    "list": ["a", "c"],
}


@pytest.mark.promised(
    "no request that is lost, repeated, slow, cut off or answered 408 to 503 changes a result",
    "s3",
    "azure",
    remote=True,
)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_changes_no_result(faulty: Faulty, fault: str, operation: str) -> None:
    for name in "ac":
        faulty.direct.put(name, CONTENT)
    rule = faulty.proxy.plan(PASSING[fault])
    assert OPERATIONS[operation](faulty.store) == RESULTS[operation]
    assert rule.hits == 1


LASTING: dict[str, tuple[Fault, type[OSError], str]] = {
    "503": (answered(503, "SlowDown"), OSError, "answered 503( SlowDown)?, also when asked again"),
    "lost": (lost_request, OSError, "did not answer, also when asked again: expected a reachable endpoint"),
    "denied": (answered(403, "AccessDenied"), PermissionError, "access is denied|refuses the credentials"),
    "unknown key": (answered(401, "InvalidAccessKeyId"), PermissionError, "refuses the credentials .401"),
    "expired": (answered(400, "ExpiredToken"), OSError, "refuses the credentials|answered 400"),
    "clock": (answered(403, "RequestTimeTooSkewed"), OSError, "set the clock|refuses the credentials"),
    "region": (answered(301, "PermanentRedirect"), OSError, "set AWS_REGION=|correct the endpoint"),
    "no bucket": (answered(404, "NoSuchBucket"), OSError, "does not exist: expected a bucket or container"),
}


@pytest.mark.promised(
    "a failure that lasts is one sentence without an address of a request", "s3", "azure", remote=True
)
@pytest.mark.parametrize("operation", sorted(OPERATIONS.keys() - {"get_many", "sizes", "scan", "clear", "delete"}))
@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_lasts_is_one_sentence(
    faulty: Faulty, fault: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted, kind, sentence = LASTING[fault]
    for limit in ("RETRY_S", "PATIENCE_S"):
        monkeypatch.setattr(clients, limit, 0.2)
    faulty.direct.put("a", CONTENT)
    faulty.proxy.plan(planted, times=None)
    began = time.monotonic()
    with pytest.raises(kind, match=sentence) as caught:
        OPERATIONS[operation](faulty.store)
    assert time.monotonic() - began < 8
    assert str(caught.value).startswith((faulty.store.url, faulty.store.bucket.url))
    assert "\n" not in str(caught.value)
    assert "planted" not in str(caught.value)
    assert is_of_storage(caught.value)
    assert caught.value.__context__ is None  # obstore's own text holds addresses with signatures


@pytest.mark.parametrize("fault", LASTING)
def test_an_error_of_delta_rs_is_the_same_sentence(faulty: Faulty, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "RETRY_S", 0.2)
    write_deltalake(f"{faulty.direct}/table", pa.table({"a": [1]}), storage_options=faulty.direct.options())
    planted, kind, sentence = LASTING[fault]
    faulty.proxy.plan(planted, times=None)
    with pytest.raises(kind, match=sentence) as caught:
        opened(faulty.store.below("table"))
    assert str(caught.value).startswith((faulty.store.url, faulty.store.bucket.url))
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_region_that_the_storage_names_is_in_the_sentence(faulty: Faulty) -> None:
    wrong = answered(400, "AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region><Code>")
    faulty.proxy.plan(wrong, times=None)
    with pytest.raises(OSError, match=r"is in eu-west-1, .* AWS_REGION=eu-west-1|correct the endpoint"):
        faulty.store.get("a")


def test_a_conflict_without_an_object_is_tried_again(faulty: Faulty) -> None:
    rule = faulty.proxy.plan(answered(409, "ConditionalRequestConflict"), "PUT", times=3)
    assert faulty.store.create("log/1", b"ours")
    assert (rule.hits, faulty.direct.get("log/1")) == (3, b"ours")


@pytest.mark.promised(
    "an answer that was lost is read back: ours is success, that of another writer is a conflict",
    "s3",
    "azure",
    remote=True,
)
@pytest.mark.parametrize("ours", [True, False])
def test_a_lost_answer_is_read_back_by_identity(faulty: Faulty, ours: bool) -> None:
    if not ours:
        faulty.direct.put("log/1", b"another's")
    faulty.proxy.plan(lost_answer, "PUT")
    assert faulty.store.create("log/1", b"ours") is ours


def test_the_answer_to_the_reading_back_may_be_lost_too(faulty: Faulty) -> None:
    faulty.proxy.plan(refused_after_success(500, "InternalError"), "PUT", times=20)
    faulty.proxy.plan(lost_answer, "GET", times=2)
    assert faulty.store.create("log/1", b"ours")


def test_a_listing_that_breaks_off_goes_on_after_the_last_name(s3_server: Server) -> None:
    direct = s3_server.store()
    paths = [f"many/{number:05}" for number in range(PAGE + 100)]
    at_once(lambda path: direct.put(path, b""), paths)
    with fault_proxy(s3_server.port) as proxy:
        pages = replace(direct, access=s3_server.behind(proxy.port)).list("many/")
        listed = [next(pages).path for _ in range(PAGE // 2)]
        rule = proxy.plan(truncated, "GET", "prefix=", times=2)
        listed += [found.path for found in pages]
    assert (listed, rule.hits) == (paths, 2)
    assert [found.path for found in direct.list("many/", after=paths[PAGE + 9])] == paths[PAGE + 10 :]


def test_a_store_that_lists_in_another_order_is_refused(faulty: Faulty) -> None:
    for name in "abc":
        faulty.direct.put(name, b"1")
    begin, end = ("<Contents>", "</Contents>") if faulty.store.bucket.cloud == "s3" else ("<Blob>", "</Blob>")

    def turned(exchange: Any) -> None:
        before, *entries = exchange.forward().sent().split(begin.encode())
        *_, rest = entries[-1].partition(end.encode())
        entries[-1] = entries[-1][: len(entries[-1]) - len(rest)]
        exchange.send(begin.encode().join([before, *reversed(entries)]) + rest)

    faulty.proxy.plan(turned, "GET")
    with pytest.raises(OSError, match="lists names in another order"):
        [*faulty.store.list()]


def test_a_storage_without_conditional_writes_is_refused_by_name(faulty: Faulty) -> None:
    def unconditional(exchange: Any) -> None:
        exchange.request.headers.pop("if-none-match", None)
        exchange.send(exchange.forward().sent())

    faulty.proxy.plan(unconditional, "PUT", times=None)
    if faulty.store.bucket.cloud == "azure":
        pytest.skip("Azure signs the condition, so that no proxy can remove it")
    with pytest.raises(InvalidSpec, match=f"{faulty.store.url}: . of 5 writers created the same name: expected one"):
        require_create_once(faulty.store)


@pytest.mark.long("a tenth as many creates run in make test")
@pytest.mark.parametrize("creates", [1000])
def test_no_create_is_lost_and_none_succeeds_twice(faulty: Faulty, creates: int) -> None:
    check_creates(faulty, creates)


def test_a_hundred_creates_are_not_lost_and_none_succeeds_twice(faulty: Faulty) -> None:
    check_creates(faulty, 100)


def check_creates(faulty: Faulty, creates: int) -> None:
    """Two writers create the same names through a proxy that swallows 5 % of the answers."""
    chance = random.Random(5)

    def swallowed(_: Request) -> bool:
        return chance.random() < 0.05

    faulty.proxy.rules.append(Rule(lost_answer, times=None, chosen=swallowed))

    def write(task: tuple[str, int]) -> bool:
        writer, number = task
        return faulty.store.create(f"log/{number:020}.json", f"{writer} {number}".encode())

    tasks = [(writer, number) for number in range(creates) for writer in "ab"]
    won = [task for task, created in zip(tasks, at_once(write, tasks), strict=True) if created]
    assert sorted(number for _, number in won) == [*range(creates)]
    assert {task: faulty.direct.get(f"log/{task[1]:020}.json") for task in won} == {
        (writer, number): f"{writer} {number}".encode() for writer, number in won
    }
    assert [found.path for found in faulty.direct.list()] == [f"log/{number:020}.json" for number in range(creates)]
    assert faulty.proxy.rules[0].hits > creates / 20


def test_an_object_that_is_too_large_for_a_copy_is_read(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    if faulty.store.bucket.cloud == "azure":
        pytest.skip("Azure copies objects of any size")
    faulty.direct.put("a", CONTENT)
    rule = faulty.proxy.plan(answered(400, "InvalidRequest"), "PUT", times=2)
    with pytest.raises(OSError, match="answered 400 InvalidRequest"):
        faulty.store.copy("a", faulty.store, "b")
    monkeypatch.setattr(objects, "LARGEST_COPY", 1000)
    faulty.store.copy("a", faulty.store.below("folder"), "b")
    assert (faulty.direct.get("folder/b"), rule.hits) == (CONTENT, 2)


def test_a_copy_to_another_bucket_is_refused() -> None:
    with pytest.raises(ValueError, match="s3://others is not in s3://events: expected a folder of the same bucket"):
        Objects(BucketAddress("s3", "events")).copy("a", Objects(BucketAddress("s3", "others")), "a")


def test_a_part_that_cannot_be_stored_ends_the_upload(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", 5 << 20)
    monkeypatch.setattr(clients, "RETRY_S", 0.2)
    faulty.direct.put("a", b"older")
    faulty.proxy.plan(answered(503, "SlowDown"), "PUT", times=None)
    with pytest.raises(OSError, match=f"{faulty.store.url}/a: the storage answered 503"):
        faulty.store.put("a", iter([bytes(6 << 20)] * 4))
    assert faulty.direct.get("a") == b"older"


def test_markers_of_folders_are_no_files(s3_server: Server) -> None:
    store = s3_server.store()
    for path in ("a-b/1", "a/1", "empty", "with/2"):
        store.put(path, b"" if path == "empty" else b"1")
    for marker in ("a/", "with/", "lonely/", "z/"):
        put_raw(s3_server, f"{store.folder}/{marker}")
    put_raw(s3_server, f"{store.folder}/")
    found = [file.path for file in store.scan(lambda _: True, lambda _: True)]
    assert found == ["a-b/1", "a/1", "empty", "with/2"]


def put_raw(server: Server, key: str) -> None:
    """Stores an empty object whose name windowlib would not use."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("PUT", f"/{BUCKET}/{key}", headers={"Content-Length": "0"})
    assert connection.getresponse().status == 200
    connection.close()
