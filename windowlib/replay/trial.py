"""Trial of a pipeline in its own folder: each step feeds events, and reads the results from the pipeline's tables.

A step writes its events to a Parquet file. Each batch is planned, checked and committed as in `windowlib run`. Only the
parser for the pipeline's own file format does not run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.batches.planning import ledger_of
from windowlib.contract.change import REMOVED
from windowlib.definition.commands import PROGRAM, commands_in
from windowlib.definition.definition import Definition
from windowlib.definition.instants import utc
from windowlib.definition.toml.source import FileDialect, Source
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.model.windows import GLOBAL_WINDOW
from windowlib.publication.readers import UnknownTable, read_table
from windowlib.runs.advance import advance
from windowlib.source.columns.column_types import declared_type
from windowlib.storage.address import store_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]
_PARTS = re.compile(r"(?:`[^`]*`|[^`;.]|[.](?![ \n])|;(?! ))+(?:[;.]\s*|$)")  # clauses of a message, each with ; or .
_OF_A_BATCH = "nothing of this batch"  # start of "… has been committed", which does not matter in a trial


class Trial:
    """Pipeline of a definition that reads from, and writes to, folders below `folder`."""

    def __init__(self, definition: Definition, folder: Path, spark: Callable[[], SparkSession]) -> None:
        self.spark, self.incoming = spark, folder / "incoming"
        self.incoming.mkdir(parents=True)
        files: dict[str, Any] = {
            "format": "parquet",
            "path": self.incoming,
            "columns": {},
            "nested": {},
            "include": (),
            "exclude": (),
        }
        files["dialect"] = FileDialect(
            time_zone=local_zone(definition.source)
        )  # the other keys only apply to text files
        source = definition.source.model_copy(update={**files, "max_files_per_run": 0, "min_file_age_ms": 0})
        # The trial has its own warehouse, even if an environment variable names another.
        root = folder / "warehouse" / definition.name
        self.definition = definition.model_copy(update={"source": source, "store": store_at(str(root))})
        self.steps = 0
        self.watermark_ms = MIN_WATERMARK
        self.batch_ids: set[int] = set()

    def feed(self, events: pa.Table | None, now_ms: int, *, finish: bool = False) -> None:
        """Runs one step at `now_ms`, with the events in a new file. Raises the errors of `advance`."""
        self.steps += 1
        if events is not None:
            path = self.incoming / f"{self.steps:06d}.parquet"
            pq.write_table(events, path)
            os.utime(path, ns=(self.steps, self.steps))
        reports = advance(self.definition, self.spark, clock=lambda: now_ms, finish=finish)
        self.batch_ids = {report.batch_id for report in reports}
        if reports:
            self.watermark_ms = reports[-1].watermark_out_ms

    def step_message(self, sentence: str) -> str:
        """Rewrites a message of a run: names steps instead of files, and removes commands.

        The commands would change the tables of the real pipeline.
        """
        text = re.sub(rf"{re.escape(str(self.incoming))}/0*(\d+)\.parquet", r"step \1", sentence)
        text = text.replace(str(self.incoming), "the events").replace(str(self.definition.store), "the tables")
        parts = _PARTS.findall(text.replace(f"; {_OF_A_BATCH} has been committed", ""))
        kept = "".join(part for part in parts if not _has_command(part) and _OF_A_BATCH not in part)
        return kept.rstrip(" ;.") or text

    def fired(self) -> list[Row]:
        """Rows of `results` that the last step wrote."""
        return self._written("results")

    def removed(self) -> list[Row]:
        """Rows of `results` that the last step removed, with their former values."""
        return [row for row in self._written("result_changes") if row["change"] == REMOVED]

    def late(self) -> list[Row]:
        """Late events of the last step, with the columns of the source and of `late_events`."""
        return [_as_it_came(row) for row in self._written("late_events")]

    def quarantined(self) -> list[Row]:
        """Quarantined rows of the last step, with the columns of the source and of `quarantine`, such as `reason`."""
        return [_as_it_came(row) for row in self._written("quarantine")]

    def in_flight(self) -> list[Row]:
        """Windows in flight: key, window_start and window_end (not for the global window), and number of events."""
        key, plan = self.definition.source.key, self.definition.plan
        commit = ledger_of(self.definition).state().commit
        late_up_to_ms = commit.late_out_ms if commit else MIN_WATERMARK
        return [
            {**dict(zip(key, values, strict=True)), **_bounds(*window.bounds_ms), "events": window.elements}
            for values, rows in _by(self.state(), key)
            for window in plan.in_flight(rows, self.definition.spec, late_up_to_ms)
        ]

    def state(self) -> list[Row]:
        """Rows of `open_windows`; none before the first batch."""
        try:
            return [*read_table(self.definition, "open_windows").to_pylist()]
        except UnknownTable:
            return []

    def _written(self, table: str) -> list[Row]:
        rows = read_table(self.definition, table).to_pylist() if self.batch_ids else []
        return [row for row in rows if row["batch_id"] in self.batch_ids]


def local_zone(source: Source) -> str | None:
    """Time zone of the local event times in a trial's files; None if the times are instants or numbers.

    Event times of JSON and CSV files become instants in a trial, unless their type is date or timestamp_ntz.
    """
    kind = declared_type(source.kinds.get(source.in_files(source.timestamp)))
    is_local = kind is not None and (pa.types.is_date(kind) or kind == pa.timestamp("us"))
    return source.dialect.time_zone if is_local or not source.is_text else None


def _has_command(text: str) -> bool:
    return any(PROGRAM in text[begin:end] for begin, end in commands_in(text))


def _by(rows: Iterable[Row], columns: Iterable[str]) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Groups rows by the values of some columns, in order of appearance."""
    names, groups = tuple(columns), dict[tuple[Any, ...], list[Row]]()
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return iter(groups.items())


def _bounds(start_ms: int, end_ms: int) -> Row:
    is_global = (start_ms, end_ms) == (GLOBAL_WINDOW.start_ms, GLOBAL_WINDOW.end_ms)
    return {} if is_global else {"window_start": utc(start_ms), "window_end": utc(end_ms)}


def _as_it_came(row: Row) -> Row:
    """Restores a source row from the JSON column `raw`, and adds the table's other columns."""
    source = json.loads(row["raw"])
    return {**(source if isinstance(source, dict) else {}), **{name: x for name, x in row.items() if name != "raw"}}
