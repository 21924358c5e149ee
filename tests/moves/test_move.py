"""Moves of a pipeline's tables between a disk and object stores: whole, refused, killed, and with lost answers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest

from tests.support.fault_proxy import FaultProxy, Rule, fault_proxy, lost_answer
from tests.support.object_servers import Server
from tests.support.simple_batches import compute_simply
from tests.support.stored_pipelines import (
    WRITES,
    StoredPipeline,
    killed_at,
    later,
    reach,
    stored_pipeline,
    values_until,
)
from tests.support.strategies import ALL
from windowlib.batches.planning import ledger_of, plan
from windowlib.definition.definition import Definition
from windowlib.ledger.ledger import Superseded
from windowlib.ledger.moves import MARK, Moved, UnfinishedMove
from windowlib.maintenance.maintain import maintain
from windowlib.model.errors import InvalidSpec
from windowlib.moves.move import MoveReport, move
from windowlib.moves.target import is_open
from windowlib.publication.damage import LostFiles
from windowlib.storage.address import store_at

REQUESTS = (*WRITES, "GET", "HEAD")


def moved(warehouse: str, definition: Definition) -> str:
    """Moves the tables of a pipeline. Tells the new address."""
    return move(definition, warehouse, "ann", "a test", clock=later).moved_to


@dataclass(frozen=True)
class Moving:
    """A pipeline whose source stays where it is, and whose tables move between a disk and an object store."""

    pipeline: StoredPipeline
    disk: Path

    def place(self, cloud: bool, number: int = 0) -> str:
        """A warehouse on the disk, or in the object store."""
        return f"{self.pipeline.place}/{number}" if cloud else str(self.disk / str(number))

    def name(self, warehouse: str) -> None:
        """Lets the definition name a warehouse."""
        file = self.pipeline.file
        text = re.sub("^warehouse = .*$", f'warehouse = "{warehouse}"', file.read_text(), flags=re.MULTILINE)
        file.write_text(text, encoding="utf-8")

    def begin(self, warehouse: str, batches: int) -> None:
        """Runs the pipeline in a new warehouse, a batch each time."""
        self.name(warehouse)
        for number in range(1, batches + 1):
            self.pipeline.arrive(number)
            self.pipeline.run()

    def move(self, warehouse: str) -> MoveReport:
        return move(self.pipeline.definition, warehouse, "ann", "a test", clock=later)


@pytest.fixture(params=["s3", pytest.param("azure", marks=pytest.mark.long("S3 is in make test"))])
def server(request: pytest.FixtureRequest) -> Server:
    """A server of each kind of object store."""
    reached: Server = request.getfixturevalue(f"{request.param}_server")
    return reached


@pytest.fixture
def moving(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moving:
    """A new pipeline, whose batches need no engine."""
    compute_simply(monkeypatch)
    return Moving(stored_pipeline(tmp_path, server, monkeypatch), tmp_path)


@pytest.fixture
def proxy(server: Server) -> Iterator[FaultProxy]:
    """A proxy in front of the server."""
    with fault_proxy(server.port) as proxy:
        yield proxy


def test_tables_move_to_an_object_store_and_back(moving: Moving) -> None:
    pipeline = moving.pipeline
    moving.begin(moving.place(cloud=False), 3)
    maintain(pipeline.definition, "ann", later)  # with checkpoints
    pipeline.arrive(4)
    pipeline.run()
    places = [moving.place(cloud=True), moving.place(cloud=False, number=1), moving.place(cloud=False, number=2)]
    for file, place in enumerate(places, 5):
        before = pipeline.definition.store
        report = moving.move(place)
        rows = {table.table: table.rows for table in report.tables}
        assert rows["results"] + rows["open_windows"] == len(values_until(file - 1))
        assert (report.moved_from, report.warehouse) == (before.url, place)
        moving.name(place)
        pipeline.arrive(file)
        assert len(pipeline.run()) == 1
        assert pipeline.values() == values_until(file)
        assert pipeline.committed() == sorted({*pipeline.committed()})
        assert pipeline.definition.store.get(MARK) is None
        assert ledger_of(pipeline.definition.model_copy(update={"store": before})).state().moved_to == report.moved_to
    maintain(pipeline.definition, "ann", later)
    assert pipeline.values() == values_until(7)


def test_a_place_that_was_left_takes_no_batch(moving: Moving) -> None:
    pipeline = moving.pipeline
    moving.begin(moving.place(cloud=False), 2)
    moving.move(moving.place(cloud=True))
    pipeline.arrive(3)
    attempts: list[Callable[[], object]] = [
        pipeline.run,
        lambda: plan(pipeline.definition, later),
        lambda: maintain(pipeline.definition, "ann", later),
        lambda: moving.move(moving.place(cloud=True, number=1)),
    ]
    for attempt in attempts:
        with pytest.raises(Moved, match=f'set warehouse = "{moving.place(cloud=True)}" in PIPELINE.toml'):
            attempt()
    assert pipeline.values() == values_until(2)
    assert moving.move(moving.place(cloud=True)).done_already


@pytest.mark.fault(
    "SIGKILL at any request of `windowlib move`",
    "the next move finishes; runs begin in the old place or in the new one",
)
@pytest.mark.promised("a move of the tables that is killed is finished by the next one", "disk", "s3", "azure")
@pytest.mark.parametrize("to_cloud", [True, False])
def test_a_killed_move_is_finished_by_the_next(moving: Moving, proxy: FaultProxy, to_cloud: bool) -> None:
    """Before the old place is closed, a run continues there. After that, none does in either place."""
    pipeline, seen = moving.pipeline, set[str]()
    methods, step = (WRITES, 1 if ALL else 13) if to_cloud else (REQUESTS, 5 if ALL else 53)
    for attempt, after in zip(range(1000), cycle((False, True)), strict=False):
        old, new = moving.place(not to_cloud, attempt), moving.place(to_cloud, 1000 + attempt)
        moving.begin(old, 2)
        came = killed_at(pipeline, proxy, 1 + step * attempt, after=after, work=partial(moved, new), methods=methods)
        seen.add(what_runs(moving, old, new))
        moving.name(old)
        assert moving.move(new).warehouse == new
        moving.name(new)
        pipeline.arrive(3)
        pipeline.run()
        assert pipeline.values() == values_until(3)
        for file in range(1, 4):
            pipeline.place.delete([f"incoming/{file:05}.parquet"])
        if not came:
            break
    assert attempt > 2
    assert {"old", "new"} <= seen


def what_runs(moving: Moving, old: str, new: str) -> str:
    """The place in which a run can begin, after a move was killed: "old", "new" or none."""
    moving.name(old)
    is_old = ledger_of(moving.pipeline.definition).state().moved_to is None
    is_new = is_open(store_at(f"{new}/values"))
    assert not (is_old and is_new)
    return "old" if is_old else "new" if is_new else "none"


def test_a_run_in_the_new_place_waits_for_the_end_of_the_move(moving: Moving, proxy: FaultProxy) -> None:
    old, new = moving.place(cloud=False), moving.place(cloud=True)
    moving.begin(old, 1)
    assert killed_at(moving.pipeline, proxy, 12, after=True, work=partial(moved, new))
    moving.name(new)
    unfinished = f"{new}/values is the goal of a move from {old}/values that is not finished"
    with pytest.raises(UnfinishedMove, match=unfinished):
        moving.pipeline.run()
    moving.name(old)
    other = moving.place(cloud=False, number=1)
    moving.begin(other, 1)
    with pytest.raises(UnfinishedMove, match=f"an unfinished move from {old}/values, not from {other}/values"):
        moving.move(new)


def test_lost_answers_change_no_move(moving: Moving, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    moving.begin(moving.place(cloud=False), 2)
    chance = random.Random(7)
    proxy.rules.append(Rule(lost_answer, times=None, chosen=lambda _: chance.random() < 0.05))
    with monkeypatch.context() as patch:
        reach(moving.pipeline.server.behind(proxy.port), patch)
        moving.move(moving.place(cloud=True))
    assert proxy.rules[0].hits
    moving.name(moving.place(cloud=True))
    assert moving.pipeline.values() == values_until(2)


def test_a_run_in_progress_is_not_disturbed(moving: Moving) -> None:
    moving.begin(moving.place(cloud=False), 1)
    ledger = ledger_of(moving.pipeline.definition)
    _, claim = ledger.claim()
    with pytest.raises(Superseded, match="another run holds this pipeline"):
        moving.move(moving.place(cloud=True))
    ledger.check(claim.epoch)


def test_unfit_places_are_refused(moving: Moving) -> None:
    pipeline, old = moving.pipeline, moving.place(cloud=False)
    moving.name(old)
    with pytest.raises(InvalidSpec, match="has no tables yet: set `warehouse`"):
        moving.move(moving.place(cloud=True))
    moving.begin(old, 1)
    pipeline.place.put("full/values/notes.txt", b"mine")
    moving.name(moving.place(cloud=True, number=5))
    pipeline.run()
    moving.name(old)
    refused = {
        old: "is, holds, or lies in",
        f"{old}/values/more": "is, holds, or lies in",
        f"{pipeline.place}/full": r"is not empty \(it has notes.txt\): expected an empty folder",
        moving.place(cloud=True, number=5): "holds the tables of another pipeline",
        f"{pipeline.place}/incoming": "lies in the source folder",
    }
    for warehouse, sentence in refused.items():
        with pytest.raises(InvalidSpec, match=sentence):
            moving.move(warehouse)
    pipeline.run()
    moving.move(moving.place(cloud=True))
    moving.name(moving.place(cloud=True))
    with pytest.raises(InvalidSpec, match=r"holds tables that were moved to .*: delete them first"):
        moving.move(old)
    store_at(old).clear()
    assert moving.move(old).warehouse == old


def test_a_lost_file_is_named_before_the_copy(moving: Moving) -> None:
    moving.begin(moving.place(cloud=False), 2)
    store = moving.pipeline.definition.store
    files = [file.path for file in store.list("results/") if file.path.endswith(".parquet")]
    store.delete(files)
    with pytest.raises(LostFiles, match="a file of table results is gone"):
        moving.move(moving.place(cloud=True))
    assert [file.path for file in store_at(f"{moving.place(cloud=True)}/values").list()] == [MARK]
