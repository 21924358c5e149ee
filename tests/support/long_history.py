"""A pipeline with thousands of batches: copies of the newest one, as that many runs would leave them."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.disks import folder_of
from windowlib.contract.tables import LEDGER
from windowlib.definition.definition import Definition
from windowlib.delta import commits as delta_commits
from windowlib.delta import small_tables as small
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.quality.validations import KEPT_BATCHES

BY_FILES = ("results", "result_changes", "late_events", "quarantine")  # each batch adds files
BY_ROWS = ("watermarks", "source_files", "run_metrics", "dq_results")  # whose small files are folded
MINUTE = timedelta(minutes=1)


def lengthen(definition: Definition, runs: int) -> None:
    """Adds so many batches, one a minute, each with the rows and files of the newest."""
    ledger = Ledger(definition.store, wall_clock_ms)
    commit = ledger.state().commit
    assert commit is not None
    tables, versions = ledger.tables, dict(commit.versions)
    for name in BY_FILES:
        if name in versions:
            versions[name] = _more_files(tables, name, versions[name], commit.batch_id, runs)
    for name in BY_ROWS:
        versions[name] = _more_rows(definition, tables, name, versions[name], commit.batch_id, runs)
    _more_ledger(tables, commit.batch_id, runs, versions)
    newest = max((folder_of(definition) / "checks").glob("*.json"), key=lambda file: int(file.stem))
    for number in range(max(1, runs - KEPT_BATCHES), runs + 1):
        file = newest.with_name(f"{commit.batch_id + number}.json")
        file.write_text(newest.read_text(encoding="utf-8"), encoding="utf-8")


def _more_files(tables: Tables, name: str, version: int, batch_id: int, runs: int) -> int:
    table, added = tables[name], list[DataFile]()
    newest = [file for file in table.files(version) if file.high.get("batch_id") == batch_id][:3]
    for number in range(1, runs + 1):
        for file in newest:
            path = str(Path(file.path).with_name(f"{number}-{Path(file.path).name}"))
            os.link(folder_of(table) / file.path, folder_of(table) / path)
            bounds = {"batch_id": batch_id + number}
            added.append(replace(file, path=path, low={**file.low, **bounds}, high={**file.high, **bounds}))
    return delta_commits.commit(table, version, add=added) if added else version


def _more_rows(definition: Definition, tables: Tables, name: str, version: int, batch_id: int, runs: int) -> int:
    table = tables[name]
    rows = list(table.rows(table.files(version), None))
    newest = [row for row in rows if row["batch_id"] == batch_id]
    more = [_later(row, number) for number in range(1, runs + 1) for row in newest]
    if name == "source_files":
        for row in more:
            number = row["batch_id"] - batch_id
            old, row["path"] = row["path"], f"{number}-{row['path']}"
            row["sequence"] += number * len(newest)
            os.link(definition.source.path / old, definition.source.path / row["path"])
    return small.append_rows(table, version, more)


def _more_ledger(tables: Tables, batch_id: int, runs: int, versions: dict[str, int]) -> None:
    table = tables[LEDGER.name]
    version = table.version()
    rows = sorted(table.rows(table.files(version), LEDGER.columns), key=lambda row: row["sequence"])
    claim = next(row for row in reversed(rows) if row["kind"] == "claim")
    newest = [claim, *(row for row in rows if row["batch_id"] == batch_id)]
    last = rows[-1]["sequence"]
    more = []
    for number in range(1, runs + 1):
        for row in newest:
            later = _later(row, number) | {"sequence": (last := last + 1)}
            if row["kind"] == "commit":
                later["versions"] = list(versions.items())
                later["counts"] = [(key, value) for key, value in dict(row["counts"]).items()]
            more.append(later)
    small.append_rows(table, version, more)


def _later(row: dict[str, Any], number: int) -> dict[str, Any]:
    batch_id = None if row["batch_id"] is None else row["batch_id"] + number
    return {**row, "batch_id": batch_id, **({"at": row["at"] + number * MINUTE} if "at" in row else {})}
