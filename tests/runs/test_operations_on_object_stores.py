"""Every operation on a pipeline in an object store has the same results as on a disk, on Sail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import COMPARED, ON_SAIL, START_MS, clock, events, tables
from tests.support.object_servers import Server
from tests.support.stored_pipelines import StoredClicks, delete_rows, reach
from windowlib.decisions.restore import restore
from windowlib.decisions.rollback import rollback
from windowlib.decisions.verdicts import accept_clock
from windowlib.definition.definition import Definition
from windowlib.erasure.forget import ForgetRequest, forget
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.ledger import wall_clock_ms
from windowlib.ledger.rerun_request import Rerun
from windowlib.maintenance.maintain import maintain
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.switch import build, switch
from windowlib.migrations.undo import undo
from windowlib.reruns.dry_run import dry_run
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded, pytest.mark.sail]

BY = ("ann", "a test")
HOUR_MS = 3_600_000
WIDER = ON_SAIL.replace('gap = "10m"', 'gap = "25m"')
Spark = Callable[[], SparkSession]
Outcome = list[tuple[str, dict[str, list[str]]]]


@pytest.fixture(scope="module")
def on_disk(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Tables after each operation on a pipeline on a disk."""
    folder = tmp_path_factory.mktemp("on-disk")
    return [*history(StoredClicks(folder, str(folder / "place")), spark)]


@pytest.mark.promised(
    "rollback, rerun with preview, erasure, restore, migration, undo and maintenance leave the same rows",
    "disk",
    "s3",
    "azure",
)
@pytest.mark.parametrize("cloud", ["s3", pytest.param("azure", marks=pytest.mark.long("S3 is in make test"))])
def test_operations_have_the_same_results_as_on_a_disk(
    on_disk: Outcome,
    spark: SparkSession,
    cloud: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    server: Server = request.getfixturevalue(f"{cloud}_server")
    reach(server, monkeypatch)
    pipeline = StoredClicks(tmp_path, str(server.store()))
    for (step, expected), (_, found) in zip(on_disk, history(pipeline, spark), strict=True):
        assert {name: found[name] for name in found if found[name] != expected[name]} == {}, step
    assert [*tmp_path.iterdir()] == [pipeline.definition().file]


def run(pipeline: StoredClicks, spark: Spark) -> None:
    """Three files, a batch each."""
    for number in (1, 2, 3):
        pipeline.arrive(number, events(number))
    assert [report.batch_id for report in advance(pipeline.definition(), spark, clock=clock)] == [1, 2, 3]


def rerun(pipeline: StoredClicks, spark: Spark) -> None:
    """An edited file, whose hours are previewed and computed again."""
    pipeline.arrive(2, events(2)[::2])
    asked = Rerun(START_MS - 6 * HOUR_MS, START_MS + 24 * HOUR_MS, "the file was edited", "ann")
    shown = dry_run(pipeline.definition(), asked, clock).preview(spark())
    assert shown.summary.windows["changed"]
    advance(pipeline.definition(), spark, clock=clock, rerun=asked.expecting(shown.preview_id))


def go_back(pipeline: StoredClicks, spark: Spark) -> None:
    """The second batch is published again, and the third file is read again."""
    rollback(pipeline.definition(), 2, *BY, clock)
    assert len(advance(pipeline.definition(), spark, clock=clock)) == 1


def erase(pipeline: StoredClicks, spark: Spark) -> None:
    """One user is erased."""
    assert forget(pipeline.definition(), spark, ForgetRequest(["u3"], *BY, clock=clock)).is_published


def delete_and_restore(pipeline: StoredClicks, spark: Spark) -> None:
    """Another program deletes results, and an operator restores them."""
    delete_rows(pipeline.definition(), "results", "clicks > 1")
    assert restore(pipeline.definition(), *BY, clock) == ["results"]


def migrate(pipeline: StoredClicks, spark: Spark) -> None:
    """Sessions get a wider gap."""
    definition, asked = pipeline.definition(WIDER), MigrationRequest(*BY, clock)
    assert switch(definition, build(definition, spark, asked), spark, asked).difference is not None


def undo_migration(pipeline: StoredClicks, spark: Spark) -> None:
    """The tables from before the migration are published again."""
    undo(pipeline.definition(WIDER), spark, MigrationRequest(*BY, clock))


def shorten(pipeline: StoredClicks, spark: Spark) -> None:
    """Maintenance folds small files, and deletes what no reader needs."""
    at = partial(int, wall_clock_ms() + 48 * HOUR_MS)
    accept_clock(pipeline.definition(), *BY, at)
    maintain(pipeline.definition(), "ann", at)


def run_again(pipeline: StoredClicks, spark: Spark) -> None:
    """A fourth file, and a check of all windows against the source."""
    pipeline.arrive(4, events(4))
    assert advance(pipeline.definition(), spark, clock=clock)
    assert verify(pipeline.definition(), VerifyRequest(), spark(), clock).differing == {}


STEPS = (run, go_back, rerun, erase, delete_and_restore, migrate, undo_migration, run_again, shorten)


def history(pipeline: StoredClicks, spark: SparkSession) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Operations, and the tables after each."""
    for step in STEPS:
        step(pipeline, lambda: spark)
        yield step.__name__, compared(pipeline.definition())


def compared(definition: Definition) -> dict[str, list[str]]:
    """Rows of the tables. Times of files differ between storages."""
    return tables(definition, [name for name in COMPARED if name != "source_files"])
