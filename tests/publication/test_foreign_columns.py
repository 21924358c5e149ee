"""Another program changes a table's columns but none of its files: the next run names it before it computes
anything.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field

from tests.support.disks import folder_of
from tests.support.simple_batches import Reader, compute_simply, no_spark, pipeline, read_simply
from windowlib.contract.tables import COMMIT_ORDER
from windowlib.decisions.adopt import forecast_adopt
from windowlib.decisions.restore import forecast_restore
from windowlib.definition.definition import Definition
from windowlib.delta import commits as delta_commits
from windowlib.delta.tables import Table, Tables
from windowlib.publication.foreign_changes import CannotUndo
from windowlib.publication.roll_forward import ForeignChange
from windowlib.runs.advance import advance

VALUES = [10 * number + digit for number in (1, 2) for digit in range(3)]


@pytest.fixture(scope="module")
def after_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline that has read one file of two."""
    return read_simply(tmp_path_factory.mktemp("after") / "one", 1)


@pytest.fixture
def begun(after_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """A copy of that folder, for one test."""
    compute_simply(monkeypatch)
    return pipeline(Path(shutil.copytree(after_one, tmp_path / "pipeline")))


def versions(definition: Definition) -> dict[str, int | None]:
    opened = Tables(definition.store)
    return {name: opened[name].version() for name in COMMIT_ORDER}


def add_column(table: DeltaTable) -> None:
    table.alter.add_columns([Field("note", "string")])


@pytest.mark.fault(
    "another program adds a column but no row",
    "the next run stops, names version, operation and user, and says how Spark undoes it",
)
@pytest.mark.parametrize("name", ["results", "open_windows", "source_files"])
@pytest.mark.parametrize("later", [False, True], ids=["", "and changes a setting afterwards"])
def test_a_column_added_by_another_program_stops_the_run(begun: Definition, name: str, later: bool) -> None:
    table = DeltaTable(folder_of(begun) / name)
    left = table.version()
    add_column(table)
    if later:
        set_property(table)
    before = versions(begun)
    said = rf"another program changed table {name}: version {left + 1}, ADD COLUMN, .*TO VERSION AS OF {left}"
    with pytest.raises(ForeignChange, match=said):
        advance(begun, no_spark)
    assert versions(begun) == before
    for forecast in (forecast_restore, forecast_adopt):
        with pytest.raises(CannotUndo, match="columns"):
            forecast(begun)
    DeltaTable(folder_of(begun) / name).restore(left)
    goes_on(begun)


def goes_on(definition: Definition) -> None:
    advance(definition, no_spark)
    assert Reader(definition.file.parent).all_values() == VALUES


def set_property(table: DeltaTable) -> None:
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 400 days"})


def set_comment(table: DeltaTable) -> None:
    table.alter.set_column_metadata("value", {"comment": "what was counted"})


@pytest.mark.parametrize("harmless", [set_property, set_comment])
def test_settings_and_comments_are_not_columns(begun: Definition, harmless: Callable[[DeltaTable], None]) -> None:
    harmless(DeltaTable(folder_of(begun) / "results"))
    goes_on(begun)


def test_a_column_added_while_a_batch_is_prepared(begun: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the column is removed again, the batch is published as it was prepared."""
    with monkeypatch.context() as patch:
        patch.setattr(delta_commits, "commit_logged", stopping(delta_commits.commit_logged, "results"))
        with pytest.raises(RuntimeError, match="stopped"):
            advance(begun, no_spark)
    table = DeltaTable(folder_of(begun) / "results")
    left = table.version()
    add_column(table)
    with pytest.raises(ForeignChange, match=rf"table results: .* ADD COLUMN, .*TO VERSION AS OF {left}"):
        advance(begun, no_spark)
    DeltaTable(folder_of(begun) / "results").restore(left)
    goes_on(begun)


def stopping(commit: Callable[..., int], name: str) -> Callable[..., int]:
    def committing(table: Table, *rest: object) -> int:
        if folder_of(table).name == name:
            raise RuntimeError("stopped")
        return commit(table, *rest)

    return committing
