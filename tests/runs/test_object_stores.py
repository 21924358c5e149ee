"""A pipeline whose source and warehouse are in an object store, named by addresses in its definition."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path

import pytest

from tests.support.fault_proxy import FaultProxy, Rule, fault_proxy, lost_answer
from tests.support.object_servers import Server
from tests.support.simple_batches import compute_simply
from tests.support.stored_pipelines import (
    StoredPipeline,
    child,
    forking,
    killed_at,
    later,
    paused_at,
    reach,
    stored_pipeline,
    values_until,
)
from tests.support.strategies import ALL
from windowlib.decisions.set_aside import path_in
from windowlib.maintenance.maintain import maintain
from windowlib.model.errors import InvalidSpec


@pytest.fixture(params=["s3", "azure"])
def server(request: pytest.FixtureRequest) -> Server:
    """A server of each kind of object store."""
    reached: Server = request.getfixturevalue(f"{request.param}_server")
    return reached


@pytest.fixture
def pipeline(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredPipeline:
    """A new pipeline, whose batches need no engine."""
    compute_simply(monkeypatch)
    return stored_pipeline(tmp_path, server, monkeypatch)


@pytest.fixture
def proxy(server: Server) -> Iterator[FaultProxy]:
    """A proxy in front of the server."""
    with fault_proxy(server.port) as proxy:
        yield proxy


def test_a_pipeline_runs_in_an_object_store(pipeline: StoredPipeline) -> None:
    definition, place = pipeline.definition, pipeline.place
    assert (definition.store.url, definition.source.store.url) == (f"{place}/warehouse/values", f"{place}/incoming")
    for number in range(1, 13):  # enough for a checkpoint
        pipeline.arrive(number)
        assert pipeline.run() == [number]
    assert pipeline.run() == []
    assert (pipeline.read_files(), pipeline.values()) == (12, values_until(12))
    maintain(definition, "ann", later)
    assert pipeline.values() == values_until(12)
    stored = {file.path.split("/")[2] for file in place.list("warehouse/")}
    assert stored >= {"ledger", "results", "open_windows", "source_files"}
    assert "_probe" not in stored
    assert [*pipeline.file.parent.iterdir()] == [pipeline.file]


def test_a_source_without_objects_is_empty(pipeline: StoredPipeline) -> None:
    assert pipeline.run() == []


def test_a_file_of_the_source_is_named_by_path_or_address(pipeline: StoredPipeline) -> None:
    definition, place = pipeline.definition, pipeline.place
    place.put("incoming/a/1.parquet", b"")
    assert path_in(definition, "a/1.parquet") == path_in(definition, f"{place}/incoming/a/1.parquet") == "a/1.parquet"


def test_a_warehouse_in_the_source_is_refused(pipeline: StoredPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDOWLIB_WAREHOUSE", f"{pipeline.place}/incoming/all")
    with pytest.raises(InvalidSpec, match=f"the warehouse {pipeline.place}/incoming/all/values lies in the source"):
        pipeline.run()


def test_a_warehouse_in_a_table_is_refused(pipeline: StoredPipeline) -> None:
    pipeline.place.put("_delta_log/00000000000000000000.json", b"{}")
    with pytest.raises(InvalidSpec, match=f"values lies in the Delta table {pipeline.place}. Maintenance of that"):
        pipeline.run()


# -- processes that end or stop at a request --------------------------------------------------------------------------


@pytest.mark.promised(
    "a run that is killed at any write loses nothing, and the next run finishes its batch", "s3", "azure"
)
@pytest.mark.fault(
    "SIGKILL at any write to an object store", "the next run finishes the batch; no row is lost or twice"
)
def test_a_run_killed_at_a_write_loses_nothing(pipeline: StoredPipeline, proxy: FaultProxy) -> None:
    """Each run finishes the batch of the run that was killed. The store carries out every other write of these."""
    pipeline.arrive(1)
    pipeline.run()
    kills = product(range(1, 1000), (False, True)) if ALL else zip(range(1, 1000, 4), cycle((False, True)))
    for file, (number, after) in enumerate(kills, 2):
        pipeline.arrive(file)
        came = killed_at(pipeline, proxy, number, after=after)
        pipeline.run()
        assert pipeline.values() == values_until(file)
        if not came:
            break
    assert file > 4
    assert_no_batch_is_twice(pipeline)


@pytest.mark.promised("a write of a superseded run that arrives late changes nothing", "s3", "azure")
@pytest.mark.fault(
    "a run on an object store stops at any write, which arrives after another run took its batch over",
    "it changes nothing and leaves",
)
def test_a_write_that_arrives_late_changes_nothing(pipeline: StoredPipeline, proxy: FaultProxy) -> None:
    pipeline.arrive(1)
    pipeline.run()
    step, told = 1 if ALL else 5, set[str | None]()
    for number in range(1, 1000, step):
        pipeline.arrive(number // step + 2)
        told.add(last := paused_at(pipeline, proxy, number, pipeline.run))
        assert pipeline.values() == values_until(number // step + 2)
        if last is None:
            break
    assert number > 2 * step
    assert "Superseded" in told
    assert_no_batch_is_twice(pipeline)


@pytest.mark.promised("of several runs at once, one does each batch", "s3", "azure")
@pytest.mark.fault("four runs on an object store start at once", "each batch is done once")
def test_of_several_runs_at_once_one_does_each_batch(pipeline: StoredPipeline) -> None:
    for number in range(1, 4 if ALL else 3):
        pipeline.arrive(number)
        answers = forking().SimpleQueue()
        runs = [child(pipeline, answers=answers) for _ in range(4)]
        for run in runs:
            run.start()
        told = [answers.get() for _ in runs]
        for run in runs:
            run.join()
        assert sorted(text for text in told if text not in ("Superseded", "batches []")) == [f"batches [{number}]"]
        assert pipeline.values() == values_until(number)
    assert_no_batch_is_twice(pipeline)


@pytest.mark.promised(
    "of a thousand batches whose answers are lost at 5 %, none is lost and none is done twice",
    "s3",
    "azure",
    remote=True,
)
@pytest.mark.parametrize("batches", [60, pytest.param(1000, marks=pytest.mark.long("60 batches are in make test"))])
@pytest.mark.fault("a network swallows 5 % of an object store's answers", "no batch is lost, and none is done twice")
def test_lost_answers_lose_no_batch_and_repeat_none(
    pipeline: StoredPipeline, proxy: FaultProxy, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.file.write_text(pipeline.file.read_text().replace("[source]", "[source]\nmax_files_per_run = 1"))
    if pipeline.server.cloud == "azure":
        batches //= 3  # its server takes thrice as long
    for number in range(1, batches + 1):
        pipeline.arrive(number)
    chance = random.Random(5)
    proxy.rules.append(Rule(lost_answer, times=None, chosen=lambda _: chance.random() < 0.05))
    with monkeypatch.context() as patch:
        reach(pipeline.server.behind(proxy.port), patch)
        assert pipeline.run() == [*range(1, batches + 1)]
    assert proxy.rules[0].hits > batches
    assert pipeline.committed() == [*range(1, batches + 1)]
    assert pipeline.values() == values_until(batches)


def assert_no_batch_is_twice(pipeline: StoredPipeline) -> None:
    committed = pipeline.committed()
    assert committed == sorted({*committed})
