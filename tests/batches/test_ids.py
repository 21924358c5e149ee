"""Files of `seen_ids` that a batch reads: those that may hold one of its ids."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from tests.support.simple_batches import no_spark
from windowlib.batches import figures
from windowlib.batches.figures import ids_repeated
from windowlib.batches.ids import seen_files
from windowlib.batches.pinned import Pinned
from windowlib.contract.tables import SEEN_IDS
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.publication.publish import StagedChanges
from windowlib.source.listed import ListedFile
from windowlib.storage.disk import Disk

SEEN = pa.schema([("event_id", pa.string()), ("timestamp_ms", pa.int64())])
BATCHES = 30


@pytest.fixture
def inputs(tmp_path: Path) -> Any:
    """Inputs after batches 0 to 29, each of which admitted the ids N-0 to N-9; the next batch has a file to read."""
    tables = Tables(Disk(tmp_path / "warehouse"))
    created = delta_commits.create(tables[SEEN_IDS.name], Schema.from_arrow(SEEN))
    files = [seen(tables, [f"{number:03}-{digit}" for digit in range(10)]) for number in range(BATCHES)]
    version = delta_commits.commit(tables[SEEN_IDS.name], created, add=files)
    source = SimpleNamespace(is_text=False, event_id="id", store=Disk(tmp_path), in_files=lambda column: column)
    return SimpleNamespace(
        source=source,
        tables=Pinned(tables, {SEEN_IDS.name: version}, no_spark()),
        plan=SimpleNamespace(files=[file_named("new.parquet")]),
    )


def file_named(path: str, size_bytes: int = 0) -> ListedFile:
    return ListedFile(path, size_bytes, 0, (0, path))


def seen(tables: Tables, ids: list[str]) -> DataFile:
    rows = [{"event_id": one, "timestamp_ms": 1} for one in ids]
    return data_files.write(tables[SEEN_IDS.name].store, pa.Table.from_pylist(rows, SEEN))


def looked_at(inputs: Any, ids: pa.Array) -> list[str]:
    """Least id of each file that a batch with these ids reads."""
    file = inputs.source.store.root / "new.parquet"
    pq.write_table(pa.table({"id": ids}), file)
    inputs.plan.files[0] = file_named(file.name, file.stat().st_size)
    return sorted(file.low["event_id"] for file in seen_files(inputs))


def test_one_new_event_reads_only_the_files_that_may_hold_its_id(inputs: Any) -> None:
    assert looked_at(inputs, pa.array(["030-0", "031-9"])) == []
    assert looked_at(inputs, pa.array(["007-3", None])) == ["007-0"]
    assert looked_at(inputs, pa.array([None, None], pa.string())) == []


@pytest.mark.parametrize("ids", [pa.array([7, 8]), pa.array([b"007-3"]), pa.array(["000-5", "029-5"])])
def test_all_files_of_ids_are_read_without_bounds_in_footers(inputs: Any, ids: pa.Array) -> None:
    assert len(looked_at(inputs, ids)) == BATCHES


@pytest.mark.parametrize("folder", ["id=029-5", "ID=029-5"])
def test_an_id_in_a_folder_name_overrides_the_id_in_the_file(inputs: Any, folder: str) -> None:
    """The bounds in the footer are those of other values."""
    (inputs.source.store.root / folder).mkdir()
    pq.write_table(pa.table({"id": ["007-3"]}), inputs.source.store.root / folder / "new.parquet")
    inputs.plan.files[0] = file_named(f"{folder}/new.parquet")
    assert len(seen_files(inputs)) == BATCHES


def test_footers_are_not_read_if_the_batch_has_more_files_than_seen_ids(inputs: Any) -> None:
    inputs.plan.files *= BATCHES + 1
    assert len(seen_files(inputs)) == BATCHES


def test_the_figure_of_repeated_ids_opens_the_files_that_may_have_them(
    inputs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    rows_of = figures.rows_of
    monkeypatch.setattr(figures, "rows_of", lambda of, one, names: opened.append(one.path) or rows_of(of, one, names))
    for ids, repeated, files in ((["030-0"], 0, 1), (["007-3", "007-99"], 1, 2)):
        opened.clear()
        new = seen(inputs.tables.opened, ids)
        assert ids_repeated(inputs, {SEEN_IDS.name: StagedChanges(add=[new])}) == repeated
        assert len(set(opened)) == files
