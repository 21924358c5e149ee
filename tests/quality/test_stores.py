"""Stored outcomes as Great Expectations' own stores: its tools open them and find the outcomes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.check_samples import FIGURES, check, definition
from tests.support.disks import folder_of
from windowlib.quality import stores
from windowlib.quality.stores import store
from windowlib.quality.validations import stored_outcomes
from windowlib.storage.disk import Disk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    clicks = definition(tmp_path)
    check(clicks, {**FIGURES, "batch_id": 6})
    check(clicks, {**FIGURES, "batch_id": 7, "windows_touching": 2})
    return folder_of(clicks)


def test_great_expectations_opens_the_stores(root: Path) -> None:
    import great_expectations as gx

    store(Disk(root), stored_outcomes(Disk(root)))
    context = gx.get_context(mode="file", project_root_dir=root)
    found = context.validation_results_store.get_all()
    outcomes = {(one.suite_name, one.meta["run_id"]["run_name"]): one.success for one in found}
    assert len(outcomes) == 2 * 4
    assert (outcomes["state", "batch-000006"], outcomes["state", "batch-000007"]) == (True, False)
    suite = context.suites.get("state")
    assert "Windows of a key never touch." in [one.description for one in suite.expectations]
    [site] = context.build_data_docs().values()
    docs = Path(site.removeprefix("file://")).parent
    assert len(list(docs.glob("validations/*/batch-*/*/batch.html"))) == 2 * 4


def test_only_the_newest_outcomes_are_stored_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, disk = root / "gx", Disk(root)
    store(disk, stored_outcomes(disk))
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("batch.json")}
    store(disk, stored_outcomes(disk))
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("batch.json")} == before
    monkeypatch.setattr(stores, "STORED_BATCHES", 1)
    store(disk, stored_outcomes(disk))
    left = [json.loads(file.read_text(encoding="utf-8")) for file in folder.rglob("batch.json")]
    assert {one["meta"]["run_id"]["run_name"] for one in left} == {"batch-000007"}
