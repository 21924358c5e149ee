"""A Delta source that other programs change, and the windows of the rows that it holds."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support import from_scratch
from tests.support.clicks import CLICKS, MINUTE_MS, SCHEMA, clock, events
from tests.support.from_scratch import Event, Window
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.verify import verify
from windowlib.ledger.history import commits_of
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

GAP_MS, HOUR_MS = 10 * MINUTE_MS, 60 * MINUTE_MS
IN_TIME = (  # no event comes too late
    CLICKS.replace('"parquet"', '"delta"').replace("max_files_per_run = 1\n", "").replace('"5m"', '"8h"')
)
BY_ITSELF = IN_TIME.replace("[watermark]", 'removals = "rerun"\n[watermark]')


def table_of(folder: Path) -> DeltaTable:
    return DeltaTable(folder / "incoming")


def append(folder: Path, number: int) -> None:
    write_deltalake(folder / "incoming", pa.Table.from_pylist(events(number), schema=SCHEMA), mode="append")


def run(definition: Definition, spark: SparkSession, **how: Any) -> list[Rerun | None]:
    """Advances and returns the batches that were reruns."""
    done = {report.batch_id for report in advance(definition, lambda: spark, clock=clock, **how)}
    return [commit.rerun for commit in commits_of(ledger_of(definition).tables) if commit.batch_id in done]


def events_of(folder: Path) -> list[Event]:
    """The events that the table holds, each once."""
    rows = {row["id"]: row for row in table_of(folder).to_pyarrow_table().to_pylist() if row["user"]}
    return [(row["user"], row["at_ms"], row["value"]) for row in rows.values()]


def sessions(folder: Path) -> list[Window]:
    """The sessions of the rows that the table holds."""
    return from_scratch.sessions(events_of(folder), GAP_MS)


def hours(folder: Path) -> list[Window]:
    """The tumbling windows of the rows that the table holds."""
    return from_scratch.tumbling(events_of(folder), HOUR_MS)


def published(definition: Definition) -> list[Window]:
    rows = read_table(definition, "results").to_pylist()
    return sorted(Window(r["user"], ms(r["window_start"]), ms(r["window_end"]), r["clicks"], r["total"]) for r in rows)


def ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def check(definition: Definition, spark: SparkSession) -> None:
    assert verify(definition, VerifyRequest(), spark, clock).differences == []


def ended(definition: Definition, spark: SparkSession, truth: list[Window]) -> None:
    """Fires every window, and checks that it follows from the rows of the table."""
    run(definition, spark, finish=True)
    assert published(definition) == sorted(truth)
    for table in ("late_events", "open_windows"):
        assert read_table(definition, table).num_rows == 0, table
    check(definition, spark)


class Changes:
    """Random changes of a table by other programs."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance, self.number = folder, random.Random(seed), 0

    def one(self) -> str:
        kinds: list[Callable[[], None]] = [self.append, self.append, self.delete, self.update, self.compact]
        kinds += [self.replace_some, self.restore, self.upsert, self.vacuum]
        change = self.chance.choice(kinds) if self.number else self.append
        change()
        return change.__name__

    def append(self) -> None:
        self.number += 1
        append(self.folder, self.number)

    def delete(self) -> None:
        table_of(self.folder).delete(f"{self._some()} AND value > {self.chance.randrange(100)}")

    def update(self) -> None:
        table_of(self.folder).update(updates={"value": "value + 1000"}, predicate=self._some())

    def compact(self) -> None:
        table_of(self.folder).optimize.compact()

    def vacuum(self) -> None:
        table_of(self.folder).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def restore(self) -> None:
        table = table_of(self.folder)
        if table.version() and not any("VACUUM" in one["operation"] for one in table.history()):
            table.restore(table.version() - 1)

    def replace_some(self) -> None:
        mine = self._some()
        kept = [row for row in self._rows(mine) if self.chance.random() < 0.7]
        data = pa.Table.from_pylist(kept, schema=SCHEMA)
        write_deltalake(self.folder / "incoming", data, mode="overwrite", predicate=mine)

    def upsert(self) -> None:
        rows = self._rows(self._some())[:5]
        late = [{**row, "id": f"{row['id']}-{self.chance.randrange(10**9)}"} for row in rows]
        changed = {row["id"]: {**row, "at_ms": row["at_ms"] + MINUTE_MS} for row in rows}
        data = pa.Table.from_pylist([*changed.values(), *late], schema=SCHEMA)
        merge = table_of(self.folder).merge(data, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def _some(self) -> str:
        return f"user IN ('u{self.chance.randrange(8)}', 'u{self.chance.randrange(8)}')"

    def _rows(self, predicate: str) -> list[dict[str, Any]]:
        users = predicate.split("'")[1::2]
        rows: list[dict[str, Any]] = table_of(self.folder).to_pyarrow_table().to_pylist()
        return [row for row in rows if row["user"] in users]
