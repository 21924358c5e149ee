"""The ledger's state is that of all its rows, however many files hold them and however few of these are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.disks import folder_of
from tests.support.strategies import ALL
from tests.world.stopped.cases import CASES, stopped
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import LEDGER
from windowlib.definition.definition import load_definition
from windowlib.delta import commits as delta_commits
from windowlib.delta import row_groups
from windowlib.delta import small_tables as small
from windowlib.delta.data_files import ROWS_PER_GROUP, shaped
from windowlib.delta.tables import Table
from windowlib.ledger import reading as ledger_read
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Superseded
from windowlib.ledger.reading import fold
from windowlib.ledger.rows import LedgerState, applied
from windowlib.maintenance import compaction
from windowlib.maintenance.ledger_compaction import compact_history, groups_of_history
from windowlib.storage import disk as storage_disk
from windowlib.storage.disk import Disk


@pytest.mark.parametrize("name", CASES)
def test_a_compacted_file_gives_the_same_state(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_in: Path
) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    found = Table(load_definition(stopped(name, tmp_path, built_in)).store.below(LEDGER.name))
    files = found.files(found.version())
    rows = sorted(found.rows(files, LEDGER.columns), key=_sequence)
    for count in range(len(rows), 0, -1 if ALL else -31):
        one_file = Table(Disk(tmp_path / f"ledger-{count}"))
        delta_commits.create(one_file, LEDGER.schema())
        small.append_rows(one_file, 0, rows[:count])
        expected = LedgerState(version=1)
        for row in rows[:count]:
            expected = applied(replace(expected, sequence=row["sequence"]), row)
        assert fold(one_file, one_file.version()) == expected


def test_few_rows_of_a_long_history_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_in: Path) -> None:
    from tests.support.long_history import lengthen

    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = load_definition(stopped("tumbling", tmp_path, built_in))
    lengthen(definition, 300)
    table = Table(definition.store.below(LEDGER.name))
    assert sum(file.rows for file in table.files(table.version())) > 900
    version = table.version()
    assert version is not None
    read: list[int] = []
    monkeypatch.setattr(row_groups, "shaped", lambda rows, schema: read.append(rows.num_rows) or shaped(rows, schema))
    assert len(ledger_read._tail(table, version)) < 10
    assert sum(read) <= ROWS_PER_GROUP


def test_compacted_history_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_in: Path) -> None:
    from tests.support.long_history import lengthen

    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    monkeypatch.setattr(small, "SMALL_BYTES", 8_000)
    definition = load_definition(stopped("tumbling", tmp_path, built_in))
    for _ in range(compaction.OPEN):
        lengthen(definition, 40)
    ledger = ledger_of(definition)
    (held := ledger.state().claim) and ledger.write({"kind": "release"}, held.epoch)
    _, claim = ledger.claim()
    said, commits = replace(ledger.state(), version=None), commits_of(ledger.tables)
    assert len(groups_of_history(ledger.tables)) == 1
    with monkeypatch.context() as patch:
        patch.setattr(delta_commits, "commit", lambda *given, **more: _conflict())
        there = set(folder_of(ledger.tables[LEDGER.name]).glob("*.parquet"))
        compact_history(ledger, claim.epoch, "9-9")
        assert set(folder_of(ledger.tables[LEDGER.name]).glob("*.parquet")) == there
    synced: set[Path] = set()
    monkeypatch.setattr(storage_disk, "flush", synced.add)
    compact_history(ledger, claim.epoch, "9-9")
    assert groups_of_history(ledger.tables) == []
    assert {path for path in folder_of(ledger.tables[LEDGER.name]).glob("*.parquet") if path not in there} <= synced
    for one in (ledger, ledger_of(definition)):
        assert replace(one.state(), version=None) == said
        assert commits_of(one.tables) == commits
    ledger.write({"kind": "release"}, claim.epoch)
    ledger.claim()
    with pytest.raises(Superseded):
        compact_history(ledger, claim.epoch, "9-9")


def _conflict() -> None:
    raise delta_commits.Conflict("another run was faster")


def _sequence(row: object) -> int:
    assert isinstance(row, dict)
    return int(row["sequence"])
