"""Changes of results by batch, day and cause: windows added, changed, extended and removed, and the change of sums.

Each batch is compared with the batch before it, once. `pages/changes.json`, next to the tables, stores the outcome, so
a page compares only new batches. Changes of several batches add up (`since_moment`).

A result belongs to the day of its window's last millisecond. The day begins at midnight of the zone of the pages
(`page_zone`). Windows without an end in event time belong to no day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.contract.result_tables import FORGET
from windowlib.definition.definition import Definition
from windowlib.delta.data_files import DataFile, without
from windowlib.delta.log import CutLog, DamagedLog
from windowlib.delta.statistics import overlapping
from windowlib.delta.tables import Tables
from windowlib.model.errors import WindowError
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.pages.changes.changed_windows import (
    CAUSE,
    END,
    FIRING,
    START,
    by_kind,
    extended,
    newest_firings,
    values_before,
)
from windowlib.pages.changes.last_change import REPLACING
from windowlib.pages.counts.count_cache import CountCache
from windowlib.pages.counts.hour_counts import times_ms
from windowlib.pages.counts.row_counts import (
    NumericOutput,
    PeriodCount,
    by_day,
    by_hour,
    by_place,
    parsed_number,
    plain_number,
    total,
)
from windowlib.pages.days import why_no_days
from windowlib.pages.local_hours import hours_in, page_zone, zone_terms
from windowlib.pages.newest_rows import RecentRun
from windowlib.reruns.totals import Number
from windowlib.source.columns.column_types import as_in_parquet
from windowlib.storage.object_file import opened

FILE = "pages/changes.json"
MOST_BATCHES = 400  # the newest batches are compared
MOST_ROWS = 2_000_000  # rows that a page reads
EXTENDED = "extended"  # a session that grew, in the place of removed sessions of its key
NUMBERED = "result_number"
NOTHING = pa.table({})


@dataclass(frozen=True, slots=True)
class DayCause:
    """Changed windows of a day, for one cause. `windows` counts them by kind: added, changed, extended, removed.

    `day` is None if windows belong to no day. `sums` has the change of the sum of each output, None if unknown.
    """

    day: date | None
    cause: str
    windows: Mapping[str, int]
    sums: Sequence[Number | None]


BatchChange: TypeAlias = Sequence[DayCause]
FilesOf: TypeAlias = Callable[[str], tuple[Sequence[DataFile], Sequence[DataFile]]]
"""Files of a table that only the tables before a batch have, and those that only the batch has."""


class NotKnown(WindowError):
    """The changes of a batch cannot be counted: its files are gone, or they have too many rows."""


def changes_by_batch(
    definition: Definition, tables: Tables, runs: Sequence[RecentRun], outputs: Sequence[NumericOutput], *,
    is_whole: bool, keep: bool = False,
) -> dict[int, BatchChange]:  # fmt: skip
    """Changes of the newest batches, back to the first batch whose changes are not known.

    `runs` are newest first. `outputs` add up. `is_whole` is true if `runs` has all batches of the pipeline. With
    `keep`, changes are stored for the next page.
    """
    zone = ZoneInfo(page_zone(definition))
    terms = " ".join(["1", zone_terms(zone.key), *(output.name for output in outputs)])
    cache = CountCache[BatchChange].read(definition.store, FILE, terms, parsed, plain)
    reader = BatchReader(definition, tables, outputs, zone, MOST_ROWS)
    changes = dict[int, BatchChange]()
    for place, run in enumerate(runs[:MOST_BATCHES]):
        before = runs[place + 1] if place + 1 < len(runs) else None
        if before is None and not is_whole:
            break
        try:
            changes[run.batch_id] = cache.of(f"{run.batch_id} {run.at_ms}", partial(reader.compared, before, run))
        except NotKnown:
            break
    if keep:
        cache.write()
    return changes


class Part(NamedTuple):
    """Rows of a change. They count as windows of a `kind` unless it is None, and their values count `sign` times."""

    kind: str | None
    sign: int
    rows: pa.Table

    def of_cause(self, cause: str) -> Part:
        """The rows with one cause."""
        return self._replace(rows=self.rows.filter(pc.equal(self.rows[CAUSE], cause))) if len(self.rows) else self


@dataclass(slots=True)
class BatchReader:
    """Compares batches. `left` is the number of rows that may still be read."""

    definition: Definition
    tables: Tables
    outputs: Sequence[NumericOutput]
    zone: ZoneInfo
    left: int

    def compared(self, before: RecentRun | None, run: RecentRun) -> BatchChange:
        """Changes that a batch made to the results of the batch `before` it. Raises `NotKnown`."""
        files_of, fires_early = partial(self._files, before, run), bool(run.figures.get("windows_fired_early"))
        try:
            if run.decision is not None and run.decision.kind in REPLACING:
                return [*self._of_decision(run.decision.kind, files_of)]
            return [*self.of_feed(files_of, fires_early=fires_early)]
        except (DeltaError, FileNotFoundError, CutLog, DamagedLog, pa.ArrowException) as error:
            raise NotKnown(f"the changes of batch {run.batch_id} are not known") from error

    def _of_decision(self, kind: str, files_of: FilesOf) -> Iterator[DayCause]:
        """Changes of a rollback or an adoption. They are not in `result_changes`."""
        names = [*self._identity, "batch_id"]
        old, new = (self._rows("results", files, names) for files in files_of("results"))
        kinds = by_kind(old, new, [name for name in self._identity if name in {*old.column_names, *new.column_names}])
        counted = [Part(change, 0, rows) for change, rows in kinds.items()]
        yield from self._by_day(kind, [*counted, Part(None, 1, new), Part(None, -1, old)])

    def of_feed(self, files_of: FilesOf, *, fires_early: bool) -> Iterator[DayCause]:
        """Changes of a batch by its rows in `result_changes`. Raises `NotKnown`."""
        _, files = files_of("result_changes")
        by_change = {
            kind: [file for file in files if file.partition["change"] == kind] for kind in (ADDED, CHANGED, REMOVED)
        }
        merges = geometry_of(self.definition.spec.assigner).merges and bool(by_change[ADDED] and by_change[REMOVED])
        repeats = bool(by_change[CHANGED]) and fires_early
        needed = {ADDED: merges or repeats, CHANGED: True, REMOVED: merges}
        added, changed, removed = (
            self._rows("result_changes", by_change[kind], [*self._identity, FIRING] if needed[kind] else [END])
            for kind in by_change
        )
        identity = [name for name in self._identity if name in changed.column_names]
        if repeats:
            added, changed = newest_firings(added, changed, identity)
        grown, replaced, past = NOTHING, NOTHING, NOTHING
        if merges:
            mask, replaced, removed = extended(added, removed, self.definition.source.key)
            grown, added = added.filter(mask), added.filter(pc.invert(mask))
        if len(changed):
            published = self._published(files_of, changed)
            if not len(published):
                raise NotKnown("the changed results are in no file that the batch replaced")
            past = values_before(published, changed, identity)
            if len(past) > len(changed):
                raise NotKnown("each firing is a result of its own")
        parts = [Part(ADDED, 1, added), Part(CHANGED, 1, changed), Part(EXTENDED, 1, grown)]
        parts += [Part(REMOVED, -1, removed), Part(None, -1, replaced), Part(None, -1, past)]
        causes = sorted({str(file.partition[CAUSE]) for file in files})
        for cause in causes:
            yield from self._by_day(cause, parts if len(causes) == 1 else [part.of_cause(cause) for part in parts])

    @property
    def _identity(self) -> list[str]:
        """Columns that tell results apart. Not every pipeline has the last one."""
        return [*self.definition.source.key, START, END, NUMBERED]

    def _files(self, before: RecentRun | None, run: RecentRun, name: str) -> tuple[list[DataFile], list[DataFile]]:
        """Files of a table that only the batch `before` has, and those that only this batch has."""
        now, then = (batch.versions.get(name) if batch else None for batch in (run, before))
        new, old = ([], []) if now == then else [self.tables[name].files(version) for version in (now, then)]
        return without(old, new), without(new, old)

    def _published(self, files_of: FilesOf, changed: pa.Table) -> pa.Table:
        """Published rows that this batch may have changed: those of the files that it replaced."""
        ends_ms = times_ms(changed[END])
        span = TimeRange(int(ends_ms.min()), int(ends_ms.max()) + 1)
        files = overlapping(files_of("results")[0], END, END, span)
        return self._rows("results", files, self._identity)

    def _rows(self, table: str, files: Sequence[DataFile], columns: Sequence[str]) -> pa.Table:
        """Columns of files, the outputs and, if a partition has it, the cause. Columns that a file lacks are null."""
        self.left -= sum(file.rows for file in files)
        if self.left < 0:
            raise NotKnown("too many rows")
        parts, wanted = [], {*columns, *(output.name for output in self.outputs)}
        for file in files:
            stored = pq.ParquetFile(opened(self.tables[table].store, file.path, file.size_bytes))
            rows = stored.read([name for name in stored.schema_arrow.names if name in wanted])
            rows = rows.cast(pa.schema([(field.name, as_in_parquet(field.type)) for field in rows.schema]))
            cause = file.partition.get(CAUSE)
            parts.append(rows if cause is None else rows.append_column(CAUSE, pa.repeat(cause, len(rows))))
        return pa.concat_tables(parts, promote_options="default") if parts else NOTHING

    def _by_day(self, cause: str, parts: Sequence[Part]) -> Iterator[DayCause]:
        """Counts of windows by day, and sums. The values of an erased key are never stored."""
        counted = [(part, self._counted(part.rows)) for part in parts]
        days = {day for _, counts in counted for day in counts}
        for day in sorted(days, key=lambda day: day or date.min):
            of_day = [(part, counts[day]) for part, counts in counted if day in counts]
            windows = {part.kind: count.rows for part, count in of_day if part.kind}
            changed = [
                total(part.sign * (count.values[place].sum or 0) for part, count in of_day if part.sign)
                for place in range(len(self.outputs))
            ]
            yield DayCause(day, cause, windows, [None] * len(changed) if cause == FORGET else changed)

    def _counted(self, rows: pa.Table) -> Mapping[date | None, PeriodCount]:
        if not len(rows):
            return {}
        values = rows.select([output.name for output in self.outputs if output.name in rows.column_names])
        if why_no_days(self.definition):
            return {None: by_place(np.zeros(len(rows), np.int64), values, self.outputs)[0]}
        counts = by_hour(hours_in(self.zone.key), times_ms(rows[END]) - 1, values, self.outputs)
        return dict[date | None, PeriodCount](by_day(counts, self.zone).items())


def plain(change: BatchChange) -> Any:
    """Changes of a batch as JSON values. Decimals are strings."""
    return [
        [part.day and part.day.isoformat(), part.cause, part.windows, [plain_number(value) for value in part.sums]]
        for part in change
    ]


def parsed(stored: Any) -> BatchChange:
    """Changes of a batch from the JSON values of `plain`.

    >>> from decimal import Decimal
    >>> change = [DayCause(date(2026, 3, 5), "late", {"changed": 2}, [Decimal("1.50"), None])]
    >>> parsed(plain(change)) == change
    True
    """
    return [
        DayCause(day and date.fromisoformat(day), cause, windows, [parsed_number(value) for value in sums])
        for day, cause, windows, sums in stored
    ]
