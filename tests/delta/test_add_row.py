"""Rows added by several processes at once: each is added once, under its own number."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from windowlib.contract.record_tables import SET_ASIDE
from windowlib.delta.tables import Table
from windowlib.ledger.set_aside_files import SetAsideDecision, decide, files_set_aside
from windowlib.storage.disk import Disk

AT = datetime(2026, 3, 2, tzinfo=UTC)


def test_several_at_once(tmp_path: Path) -> None:
    paths = [f"{number}.parquet" for number in range(12)]
    with ThreadPoolExecutor(4) as several:
        list(several.map(lambda path: decide(Disk(tmp_path), SetAsideDecision(path, AT, "ann", "broken")), paths))
    assert sorted(files_set_aside(Disk(tmp_path))) == sorted(paths)
    table = Table(Disk(tmp_path / SET_ASIDE.name))
    rows = list(table.rows(table.files(table.version()), SET_ASIDE.columns))
    assert len({row["number"] for row in rows}) == len(rows) == len(paths)


def test_the_newest_decision_about_a_file_counts(tmp_path: Path) -> None:
    decide(Disk(tmp_path), SetAsideDecision("a", AT, "ann", "broken"))
    decide(Disk(tmp_path), SetAsideDecision("a", AT, "bob", "repaired", back=True))
    assert files_set_aside(Disk(tmp_path)) == {}
