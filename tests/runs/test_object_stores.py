"""A pipeline whose source and warehouse are in an object store, named by addresses in its definition."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.object_servers import Server
from tests.support.simple_batches import DEFINITION, GAP, compute_simply, no_spark
from windowlib.batches.planning import ledger_of
from windowlib.decisions.set_aside import path_in
from windowlib.definition.definition import Definition, load_definition
from windowlib.ledger.ledger import wall_clock_ms
from windowlib.maintenance.maintain import maintain
from windowlib.model.errors import InvalidSpec
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.objects import Objects
from windowlib.storage.store import Store


@pytest.fixture(params=["s3", "azure"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Objects:
    """An empty folder in an object store, which addresses in this process reach, too."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    for name, value in server.variables().items():
        monkeypatch.setenv(name, value)
    return server.store()


def defined(folder: Path, place: Store, warehouse: str = "warehouse") -> Definition:
    """The pipeline of simple batches in an object store."""
    text = DEFINITION.format(delay="0s", gap=GAP)
    text = text.replace('"incoming"', f'"{place}/incoming"').replace('"warehouse"', f'"{place}/{warehouse}"')
    file = folder / "values.toml"
    file.write_text(text, encoding="utf-8")
    return load_definition(file)


def arrive(place: Store, number: int) -> None:
    """File `number` of the source: the values 10 * number + 0, 1, 2."""
    values, content = [10 * number + digit for digit in range(3)], io.BytesIO()
    pq.write_table(pa.table({"value": values, "ts": values}), content)
    place.put(f"incoming/{number}.parquet", content.getvalue())


def later() -> int:
    """A time at which the files of the source are complete."""
    return wall_clock_ms() + 10_000


def test_a_pipeline_runs_in_an_object_store(place: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute_simply(monkeypatch)
    definition = defined(tmp_path, place)
    assert (definition.store.url, definition.source.store.url) == (f"{place}/warehouse/values", f"{place}/incoming")
    for number in range(1, 13):
        arrive(place, number)
        advance(definition, no_spark, clock=later)
    ledger = ledger_of(definition)
    commit = ledger.state().commit
    assert commit is not None
    assert commit.to_sequence == 12
    wanted = [10 * number + digit for number in range(1, 13) for digit in range(3) if (number, digit) != (12, 1)]
    assert sorted(read_table(definition, "results")["value"].to_pylist()) == wanted
    maintain(definition, "ann", later)
    assert sorted(read_table(definition, "results")["value"].to_pylist()) == wanted
    assert not [file.path for file in place.list() if file.path.startswith("warehouse/values/_probe")]
    stored = {file.path.split("/")[2] for file in place.list("warehouse/")}
    assert stored >= {
        "ledger",
        "results",
        "open_windows",
        "source_files",
    }
    assert [*tmp_path.iterdir()] == [definition.file]


def test_a_source_without_objects_is_empty(place: Objects, tmp_path: Path) -> None:
    assert advance(defined(tmp_path, place), no_spark) == []


def test_a_file_of_the_source_is_named_by_path_or_address(place: Objects, tmp_path: Path) -> None:
    definition = defined(tmp_path, place)
    place.put("incoming/a/1.parquet", b"")
    assert path_in(definition, "a/1.parquet") == path_in(definition, f"{place}/incoming/a/1.parquet") == "a/1.parquet"


def test_a_warehouse_in_the_source_is_refused(place: Objects, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=f"the warehouse {place}/incoming/all/values lies in the source folder"):
        advance(defined(tmp_path, place, "incoming/all"), no_spark)


def test_a_warehouse_in_a_table_is_refused(place: Objects, tmp_path: Path) -> None:
    place.put("_delta_log/00000000000000000000.json", b"{}")
    with pytest.raises(InvalidSpec, match=f"values lies in the Delta table {place}. Maintenance of that table"):
        advance(defined(tmp_path, place), no_spark)
