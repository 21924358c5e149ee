"""Publication of a batch that was computed and judged. No engine runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from tests.support import simple_batches
from tests.support.disks import folder_of
from windowlib.batches.inputs import ComputedBatch
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import COMMIT_ORDER, DQ_RESULTS, RUN_METRICS
from windowlib.decisions.verdicts import approve
from windowlib.definition.instants import utc
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.ledger import prepare
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import Rejected
from windowlib.ledger.prepare import Publication
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Plan, SourceFile
from windowlib.model.errors import StateMismatch
from windowlib.publication.publish import StagedChanges
from windowlib.quality.check import CheckResult
from windowlib.runs import attempt
from windowlib.runs.advance import advance
from windowlib.runs.publication import publication
from windowlib.storage.disk import Disk

FAILED = CheckResult("figures", "at_most(x)", "critical", "x is at most 3", False, "4", "3")
LATENESS = '{"window": {"allowed_lateness_ms": 15}}'
PLAN = Plan(7, 9_000, 50, 3, (SourceFile("a.parquet", 1, 2, 4),), "f", LATENESS, terms="{}", late_in_ms=40)


def made(root: Path, plan: Plan = PLAN, **changes: StagedChanges) -> tuple[Publication, dict[str, bytes]]:
    outcome = ComputedBatch(changes, 60, {"rows_read": 3, "late_by_p50_ms": None})
    return publication(Tables(Disk(root)), "7-2", plan, {}, outcome, [FAILED])


def rows(found: Publication, contents: dict[str, bytes], table: str) -> list[dict[str, Any]]:
    [change] = [one for one in found.changes if one.name == table]
    files = (contents[f"{table}/{file.path}"] for file in change.add)
    return [row for content in files for row in pq.read_table(pa.BufferReader(content)).to_pylist()]


def test_the_commit_row_holds_plan_and_outcome(tmp_path: Path) -> None:
    found, _ = made(tmp_path)
    assert found.row == {
        "kind": "commit",
        "batch_id": 7,
        "plan_time_ms": 9_000,
        "watermark_in_ms": 50,
        "watermark_out_ms": 60,
        "late_in_ms": 40,
        "late_out_ms": 45,
        "from_sequence": 3,
        "to_sequence": 4,
        "fingerprint": "f",
        "definition": LATENESS,
        "terms": "{}",
        "rerun": None,
        "decision": None,
        "counts": {"rows_read": 3},  # what is not known is not counted
    }
    assert [one.name for one in found.changes] == [*COMMIT_ORDER]
    assert (found.batch_id, [CheckResult(**one) for one in found.checks]) == (7, [FAILED])
    assert found.identity.startswith("7-2-")


def test_figures_and_checks_are_kept_with_the_plan_time(tmp_path: Path) -> None:
    (found, contents), about = made(tmp_path), {"batch_id": 7, "plan_time": utc(9_000)}
    figures = {row["figure"]: row for row in rows(found, contents, RUN_METRICS.name)}
    assert figures == {
        name: {**about, "figure": name, "value": value} for name, value in (("rows_read", 3), ("late_by_p50_ms", None))
    }
    [judged] = rows(found, contents, DQ_RESULTS.name)
    assert {name: judged[name] for name in (*about, "sentence", "success")} == {
        **about,
        "sentence": "x is at most 3",
        "success": False,
    }


def test_the_commit_row_names_rerun_and_decision(tmp_path: Path) -> None:
    asked, decided = Rerun(0, 10, "why", "ann"), Decision("advance_watermark", "ann", "why", to_ms=60)
    plan = Plan(7, 9_000, 50, 3, (), "f", "{}", rerun=asked, decision=decided)
    row = made(tmp_path, plan)[0].row
    assert Rerun.from_json(row["rerun"]) == asked
    assert Decision.from_json(row["decision"]) == decided


def test_a_publication_that_cannot_be_made_leaves_no_file(tmp_path: Path) -> None:
    last, tables = COMMIT_ORDER[-1], Tables(Disk(tmp_path))
    there = data_files.write(Disk(tmp_path / last), pa.table({"other": [1]}))
    delta_commits.create(tables[last], Schema.from_arrow(pa.schema([("other", pa.int64())])))
    delta_commits.commit(tables[last], 0, add=[there])
    changes = {last: StagedChanges([there], schema=Schema.from_arrow(pa.schema([("n", pa.int64())])))}
    with pytest.raises(StateMismatch, match=f"table {last} has other columns"):
        publication(tables, "7-2", PLAN, {last: 1}, ComputedBatch(changes, 60, {"x": 1}), [FAILED])
    assert [path.parent.name for path in tmp_path.rglob("*.parquet")] == [last]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline whose first batch the checks refuse."""
    simple_batches.compute_simply(monkeypatch)
    monkeypatch.setattr(attempt, "_judged", lambda *_: [FAILED])
    simple_batches.pipeline(tmp_path)
    simple_batches.arrive(tmp_path, 1)
    return tmp_path


def test_a_refused_batch_waits_and_is_published_when_approved(folder: Path) -> None:
    definition = simple_batches.pipeline(folder)
    with pytest.raises(Rejected, match=r"batch 1 was refused by its checks and waits:\n.*x is at most 3"):
        advance(definition, simple_batches.no_spark)
    state = ledger_of(definition).state()
    assert (state.commit, state.prepared is not None) == (None, True)
    assert "x is at most 3" in (state.rejection or "")
    approve(definition, "ann", "a busy day", batch_id=1)
    [report] = advance(definition, simple_batches.no_spark)
    assert (report.batch_id, report.checks) == (1, [FAILED])
    assert simple_batches.Reader(folder).all_values() == [10, 11, 12]
    assert not (folder_of(definition) / prepare.FOLDER).exists()
