"""The page of JSON on disk has every key that pipelines with a longer life have written; each part is in one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from docs.reference.on_disk import PARTS
from tests.world.stopped.cases import stopped
from tests.world.stopped.stories import STORIES

KEYS = {part.where: {*part.keys} for part in PARTS}
SUMMARY, DEFINITION, DECISION = "`previews.summary`", "`ledger.definition`", "`ledger.decision` of plan and commit"
RERUN = "`ledger.rerun`, `previews.rerun`"
OTHER_DECISION = "`ledger.decision` of acknowledge, migrate_finish and move"
NOT_HERE = {
    "_listing.json",  # no full listing found nothing
    "one of `verifications.differences`",  # nothing differed
    "pages/changes.json",  # tests/pages/test_changes.py
    "pages/days.json",  # tests/pages/test_days.py
    "pages/hours.json",  # tests/pages/test_hours.py
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, built_in: Path) -> dict[str, list[set[str]]]:
    """By the part of the page, the keys of each object in the folders."""
    found: dict[str, list[set[str]]] = {}
    for name in STORIES:
        folder = tmp_path_factory.mktemp(name)
        stopped(name, folder, built_in)
        for where, value in _objects(folder / "warehouse" / "stopped"):
            found.setdefault(where, []).append({*value})
    return found


def test_every_part_is_written_by_some_pipeline(written: dict[str, list[set[str]]]) -> None:
    assert {*written} == {*KEYS} - NOT_HERE


@pytest.mark.parametrize("where", sorted({*KEYS} - NOT_HERE))
def test_every_key_is_on_the_page(where: str, written: dict[str, list[set[str]]]) -> None:
    for keys in written[where]:
        assert not keys - KEYS[where]


def _objects(root: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in ("last_error.json", "_migration/*/migration.json", "checks/*.json", "_prepared/*.json"):
        for file in root.glob(name):
            where = name.replace("checks/*", "checks/&lt;batch_id&gt;").replace(
                "_prepared/*", "_prepared/&lt;identity&gt;"
            )
            value = json.loads(file.read_text())
            yield where.replace("*", "&lt;id&gt;"), value
            if name.startswith("_prepared"):
                yield from _of_publication(value)
    for file in root.glob("previews/*.parquet"):
        for row in pq.read_table(file).to_pylist():
            yield SUMMARY, json.loads(row["summary"])
            yield RERUN, json.loads(row["rerun"])
    for file in root.glob("ledger/*.parquet"):
        for row in pq.read_table(file).to_pylist():
            yield from _of_row(row)


def _of_publication(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from (("one of its `checks`", check) for check in value["checks"])
    for change in value["changes"]:
        yield "one of its `changes`", change
        yield from (("a file in `add` and `remove`", file) for file in (*change["add"], *change["remove"]))


def _of_row(row: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if row["owner"]:
        yield "`ledger.owner`", json.loads(row["owner"])
    if row["rerun"]:
        yield RERUN, json.loads(row["rerun"])
    if row["definition"]:
        definition = json.loads(row["definition"])
        yield DEFINITION, definition
        if "source_marker" in definition:
            yield "its `source_marker`", definition["source_marker"]
    if row["decision"]:
        decision = json.loads(row["decision"])
        yield (DECISION if row["kind"] in ("plan", "commit") else OTHER_DECISION), decision
        yield from (("one of its `cuts`", cut) for cut in decision.get("cuts", ()))
