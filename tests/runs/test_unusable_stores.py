"""Commands on object stores that cannot be used: one sentence, and the exit code of the page about exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.support.fault_proxy import Exchange, Fault, FaultProxy, Rule, answered, fault_proxy
from tests.support.object_servers import BUCKET, Server
from tests.support.simple_batches import compute_simply, no_spark
from tests.support.stored_pipelines import WRITES, StoredPipeline, later, stored_pipeline, values_until
from windowlib.cli.main import app
from windowlib.runs.advance import advance
from windowlib.storage import clients

FAILED, MISTAKE = 1, 2


def unconditional(exchange: Exchange) -> None:
    """The server ignores the condition of a write."""
    exchange.request.headers.pop("if-none-match", None)
    exchange.send(exchange.forward().sent())


@dataclass(frozen=True)
class Place:
    """A new pipeline behind a proxy."""

    pipeline: StoredPipeline
    proxy: FaultProxy


@pytest.fixture(params=["s3", "azure"])
def place(request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A pipeline without an engine, whose requests are repeated for a moment only."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    compute_simply(monkeypatch)
    monkeypatch.setattr(clients, "RETRY_S", 0.2)
    monkeypatch.setattr(clients, "PATIENCE_S", 0.2)
    with fault_proxy(server.port) as proxy:
        yield Place(stored_pipeline(tmp_path, server.behind(proxy.port), monkeypatch), proxy)


def run(pipeline: StoredPipeline) -> Result:
    """The command `windowlib run`, which must not start an engine."""
    return CliRunner().invoke(app, ["run", str(pipeline.file)], env={"COLUMNS": "2000"})


def assert_ends(ended: Result, code: int, *parts: str) -> None:
    """Checks the exit code, and that one line on stderr has these parts."""
    assert ended.exit_code == code, ended.output
    [line] = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert all(part in line for part in parts), line
    assert "Traceback" not in ended.output


@pytest.mark.promised("a missing bucket is one sentence and exit code 2", "s3", "azure", remote=True)
@pytest.mark.fault("a bucket does not exist", "one sentence names it; exit code 2")
def test_a_missing_bucket_is_one_sentence(place: Place) -> None:
    file = place.pipeline.file
    file.write_text(file.read_text(encoding="utf-8").replace(f"//{BUCKET}/", f"//{BUCKET}-typo/"), encoding="utf-8")
    assert_ends(run(place.pipeline), MISTAKE, f"//{BUCKET}-typo does not exist: expected a bucket or container")


@pytest.mark.promised("a bucket in another region is one sentence and exit code 2", "s3", "azure", remote=True)
@pytest.mark.fault("a bucket is in another region", "one sentence names the region; exit code 2")
def test_a_bucket_in_another_region_is_one_sentence(place: Place) -> None:
    place.proxy.plan(answered(301, "PermanentRedirect</Code><Region>eu-west-1</Region><Code>"), times=None)
    wanted = "set AWS_REGION=" if place.pipeline.server.cloud == "s3" else "correct the endpoint"
    assert_ends(run(place.pipeline), MISTAKE, f"//{BUCKET} is ", wanted)


REFUSALS: dict[str, tuple[Fault, str]] = {
    "read-only": (answered(403, "AccessDenied"), "access is denied (403 AccessDenied): expected credentials with"),
    "no login": (answered(401, "InvalidAccessKeyId"), "refuses the credentials (401 InvalidAccessKeyId): expected"),
    "busy": (answered(503, "SlowDown"), "the storage answered 503 SlowDown, also when asked again"),
}


@pytest.mark.promised(
    "a storage that refuses writes is one sentence and exit code 1, and the next run finishes", "s3", "azure"
)
@pytest.mark.fault("a bucket is read-only, refuses the login, or is too busy", "one sentence; exit code 1")
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_bucket_that_refuses_writes_is_one_sentence(place: Place, refusal: str) -> None:
    fault, sentence = REFUSALS[refusal]
    place.pipeline.arrive(1)
    rule = Rule(fault, times=None, chosen=lambda request: request.method in WRITES)
    place.proxy.rules.append(rule)
    assert_ends(run(place.pipeline), FAILED, str(place.pipeline.place.bucket), sentence)
    place.proxy.rules.remove(rule)
    place.pipeline.run()
    assert place.pipeline.values() == values_until(1)


@pytest.mark.promised("a storage without conditional writes is refused by the first run", "s3", remote=True)
@pytest.mark.fault("a storage ignores the conditions of writes", "refused by name at the first run; exit code 2")
def test_a_storage_without_conditional_writes_is_refused(place: Place) -> None:
    if place.pipeline.server.cloud == "azure":
        pytest.skip("Azure signs the condition, so that no proxy can remove it")
    place.pipeline.arrive(1)
    place.proxy.plan(unconditional, "PUT", times=None)
    assert_ends(run(place.pipeline), MISTAKE, "writers created the same name: expected one, by conditional writes")


@pytest.mark.promised("missing credentials are one sentence and exit code 1", "s3", remote=True)
@pytest.mark.fault("there are no credentials", "one sentence names the ways to give them; exit code 1")
def test_missing_credentials_are_one_sentence(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if place.pipeline.server.cloud == "azure":
        pytest.skip("its chain asks the network of this machine")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(place.pipeline.file.with_name("none")))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(clients, "_clients", {})
    assert_ends(run(place.pipeline), FAILED, "found no credentials: expected credentials of AWS; log in")


@pytest.mark.promised("a deleted file of a table is named, and nothing is published", "s3", "azure")
@pytest.mark.fault("a lifecycle rule deletes objects of a table", "one sentence names the file; nothing is published")
def test_an_object_that_a_rule_has_deleted_is_named(place: Place) -> None:
    pipeline = place.pipeline
    for number in (1, 2):
        pipeline.arrive(number)
        pipeline.run()
    lost = [file.path for file in pipeline.place.list("warehouse/values/open_windows/1-")]
    newest = [file.path for file in pipeline.place.list("warehouse/values/open_windows/2-")]
    pipeline.place.delete([*lost, *newest])
    pipeline.arrive(3)
    ended = run(pipeline)
    assert_ends(ended, MISTAKE, newest[0].rpartition("/")[2])
    assert pipeline.committed() == [1, 2]


@pytest.mark.promised("machines with clocks an hour apart lose nothing", "s3", "azure")
@pytest.mark.fault("an object store is reached by machines whose clocks are an hour apart", "no file is lost or twice")
def test_clocks_an_hour_apart_lose_nothing(place: Place) -> None:
    pipeline, hour_ms = place.pipeline, 3_600_000
    for number, apart_ms in enumerate((hour_ms, -hour_ms, 0, -hour_ms), 1):
        pipeline.arrive(number)
        advance(pipeline.definition, no_spark, clock=partial(int, later() + apart_ms))
        advance(pipeline.definition, no_spark, clock=partial(int, later() + hour_ms))
        assert pipeline.values() == values_until(number)
    assert pipeline.committed() == sorted({*pipeline.committed()})
