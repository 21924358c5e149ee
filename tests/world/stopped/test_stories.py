"""Files next to the tables of a stopped pipeline: decisions, certificates, hints, outcomes.

Which folder keeps what is described in `stories.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.clicks import START_MS
from tests.support.disks import folder_of
from tests.world.stopped import truth
from tests.world.stopped.cases import stopped
from tests.world.stopped.stage import a_minute_later
from tests.world.stopped.stories import ERASED, LATE_NAME, SET_ASIDE
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.verdicts import abandon
from windowlib.definition.definition import Definition, load_definition
from windowlib.delta.tables import Tables
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger import last_error, migration, notices, prepare, verifications
from windowlib.ledger import maintenances as maintained
from windowlib.ledger.acknowledgements import acknowledged
from windowlib.ledger.erasures import erased
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.migrations.batch import MigrationRequest
from windowlib.migrations.undo import undo
from windowlib.quality import validations
from windowlib.reruns import previews
from windowlib.runs.advance import advance
from windowlib.source.marker import marker_of
from windowlib.storage.disk import Disk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _own_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)


def left(name: str, folder: Path, built_in: Path) -> Definition:
    return load_definition(stopped(name, folder, built_in))


def test_a_prepared_batch_after_earlier_decisions(tmp_path: Path, built_in: Path) -> None:
    definition = left("prepared", tmp_path, built_in)
    root, state = folder_of(definition), ledger_of(definition).state()
    assert state.plan
    assert state.prepared
    made = prepare.read(Disk(root), state.prepared)
    assert (made.batch_id, [one.name for one in made.changes]) == (state.plan.batch_id, [*COMMIT_ORDER])
    assert state.rejection is None
    assert {path: (one.who, one.reason) for path, one in files_set_aside(Disk(root)).items()} == {
        f"{SET_ASIDE}.parquet": ("ann", "cut off")
    }
    quiet = acknowledged(Tables(Disk(root)), a_minute_later(definition))
    assert {name: (one.who, one.reason) for name, one in quiet.items()} == {"silence": ("ann", "closed")}
    verified, done = verifications.last(Disk(root)), maintained.last(Disk(root))
    assert verified
    assert (verified.outcome, verified.compared["results"] > 0) == ("equal", True)
    assert done
    assert (done.kept_from, done.deleted["open_windows"] > 0) == (13, True)


def test_late_windows_stay_late_after_a_larger_lateness(tmp_path: Path, built_in: Path) -> None:
    definition, hour_ms = left("prepared", tmp_path, built_in), 3_600_000
    commit = ledger_of(definition).state().commit
    assert commit
    assert commit.watermark_out_ms
    assert commit.stored["window"]["allowed_lateness_ms"] == 3 * hour_ms
    assert commit.late_out_ms == START_MS + 235 * 60_000 - 1  # as ten batches with a lateness of one hour left it
    assert commit.late_out_ms > commit.watermark_out_ms - 3 * hour_ms


def test_a_log_is_read_from_the_checkpoint_that_its_hint_names(tmp_path: Path, built_in: Path) -> None:
    root = folder_of(left("prepared", tmp_path, built_in))
    for name in ("ledger", "results", "open_windows"):
        log = root / name / "_delta_log"
        hint = json.loads((log / "_last_checkpoint").read_text())
        assert (log / f"{hint['version']:020}.checkpoint.parquet").exists()
        assert not (log / f"{0:020}.json").exists()
    assert (tmp_path / "incoming" / f"{LATE_NAME}.parquet").exists()


def test_a_source_is_listed_from_the_marker_on(tmp_path: Path, built_in: Path) -> None:
    definition = left("prepared", tmp_path, built_in)
    plan = ledger_of(definition).state().plan
    marker = marker_of(definition.source, definition.store, plan)
    assert plan
    assert marker
    assert (marker.name, marker.by, marker.late) == ("13.parquet", "names", 0)
    assert 0 <= plan.plan_time_ms - marker.full_at_ms < definition.source.full_listing_every_ms
    assert not marker.reaches(f"{LATE_NAME}.parquet")


@pytest.mark.parametrize("name", ["prepared", "kept"])
def test_an_erased_key_is_stored_as_a_hash_only(tmp_path: Path, name: str, built_in: Path) -> None:
    known = erased(left(name, tmp_path, built_in).store)
    assert known
    assert known.until_of({"user": ERASED})
    assert known.until_of({"user": "u2"}) is None


def test_a_migration_that_was_finished_is_over(tmp_path: Path, built_in: Path) -> None:
    definition = left("kept", tmp_path, built_in)
    error, ledger = last_error.last(definition.store), ledger_of(definition)
    assert (migration.switched(ledger), migration.migrations(definition.store)) == (None, [])
    assert migration.migrated_by(ledger.state().commit) == 3
    assert error
    assert (error.command, "4.parquet is not a readable Parquet file" in error.sentence) == ("run", True)
    assert error.at_ms > (ledger.state().time_ms or 0)


def test_a_refused_batch_and_its_notices(tmp_path: Path, built_in: Path) -> None:
    definition = left("waiting", tmp_path, built_in)
    root, ledger = folder_of(definition), ledger_of(definition)
    assert "expect_column_max_to_be_between(rows_read)" in (ledger.state().rejection or "")
    newest = validations.stored_outcomes(definition.store)[0]
    assert (newest.batch_id, newest.figures["rows_read"]) == (5, 5)
    assert [one["expectation_config"]["kwargs"]["column"] for one in newest.failed] == ["rows_read"]
    said = notices.reported(Disk(root)).newest["decision"]
    assert (said.what, said.batch_id, said.delivered) == ("began", 5, False)
    done = migration.switched(ledger)
    assert done
    assert done[0] == 3


@pytest.mark.spark
@pytest.mark.embedded
def test_a_dry_run_is_applied_and_a_migration_undone(spark: SparkSession, tmp_path: Path, built_in: Path) -> None:
    definition = left("waiting", tmp_path, built_in)
    now_ms = a_minute_later(definition)

    def clock() -> int:
        return now_ms

    abandon(definition, "ann", "another way", clock)
    (shown,) = previews.previews(definition.store)
    advance(definition, lambda: spark, clock=clock, rerun=shown.rerun.expecting(shown.preview_id))
    late = ("u1", START_MS + 70 * 60_000, START_MS + 95 * 60_000)
    assert truth.standing(definition).results[late] == (1, 2)
    assert undo(definition, lambda: spark, MigrationRequest("ann", "another way", clock))
    assert migration.switched(ledger_of(definition)) is None
    definition.file.write_text(definition.file.read_text().replace('"25m"', '"10m"'))
    before = load_definition(definition.file)
    advance(before, lambda: spark, clock=clock, max_batches=1)
    assert late not in truth.standing(before).results
    found = verify(before, VerifyRequest(), spark, clock)
    assert not found.differs, found.differences
    assert found.compared["results"] > 0
