"""Events of one key, read from the source files, with file, row and values.

Only files that a batch has read, and that had an admitted event in the span, are opened. Missing and changed files are
not read, because the current rows may differ from the rows that the batch read. A renamed file is read at its current
path and named as in the tables (`windowlib.reruns.source.KnownFile`).

Parquet is read without Spark, JSON and CSV as a run reads them (`windowlib.inspection.lineage.text_events`). Row
numbers start at 0, as in all tables (`windowlib.source.rows.SourceRows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant, of_local
from windowlib.definition.plurals import counted
from windowlib.delta.data_files import rows_of
from windowlib.delta.tables import Tables
from windowlib.engines.parquet_files import UnreadableRows, parquet_file, rows_read
from windowlib.inspection.lineage.cuts import Cut
from windowlib.inspection.lineage.text_events import text_rows
from windowlib.ledger import erasures
from windowlib.ledger.rows import SourceFile
from windowlib.model.rerun import TimeRange
from windowlib.model.times import floored_ms
from windowlib.plans.names import MISFIT
from windowlib.publication.key import CannotLook, Key
from windowlib.reruns.source import KnownFile, known_files
from windowlib.source.columns.column_types import arrow_type, as_in_parquet
from windowlib.source.columns.partition_values import kinds_of, values_in
from windowlib.source.listed import SourceError
from windowlib.source.listing import change_of
from windowlib.source.rows import WHOLE_NUMBER
from windowlib.storage.object_file import opened


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """A source row of a key: file, row number, event time, batch that read the row, and columns in use."""

    file: str
    row: int
    time_ms: int
    batch_id: int
    values: Mapping[str, Any]


@dataclass(slots=True)
class ReadEvents:
    """Events that `read_events` found. `problems` has sentences about unreadable files and erased events."""

    events: list[SourceEvent] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_events(cut: Cut, key: Key, span: TimeRange, *, by_event_time: bool = True) -> ReadEvents:
    """Rows with this key and a time in the span, admitted or not, in files that batches up to the cut have read.

    Without `by_event_time`, the time of an event is the plan time of the batch that read it.
    """
    read = ReadEvents()
    rows = _files(cut, span, by_event_time)
    batches = {row["path"]: row["batch_id"] for row in rows}
    files = dict[str, KnownFile]()
    for file in _known(cut, rows, read.problems):
        named = f"{file.path} (batch {batches[file.path]})"
        if problem := _problem(file):
            read.problems.append(f"{named} {problem}")
        else:
            files[named] = file
    erased = erasures.erased(cut.definition.store)
    erased_until_ms = erased.until_of(key.python_values()) if erased else None
    if erased_until_ms is not None:
        read.problems.append(f"events of this key up to {instant(erased_until_ms)} were erased")
    for name, row, time_ms, values in _rows(cut.definition, files, key, read.problems):
        batch_id = batches[name]
        if erased_until_ms is not None and time_ms <= erased_until_ms:
            continue
        shown_ms = time_ms if by_event_time else cut.batches[batch_id].plan_time_ms
        if span.from_ms <= shown_ms < span.to_ms:
            read.events.append(SourceEvent(name, row, time_ms, batch_id, values))
    return read


def _rows(
    definition: Definition, files: Mapping[str, KnownFile], key: Key, problems: list[str]
) -> Iterator[tuple[str, int, int, Mapping[str, Any]]]:
    """Yields file, row, event time and values of rows with this key and an event time.

    `files` maps the names used in messages to the files.
    """
    if definition.source.is_text:
        names = {file.place: file.path for file in files.values()}
        present = [file.now for file in files.values() if file.now]
        for place, row, time_ms, values in text_rows(definition, present, key, shown_columns(definition)):
            yield names[place], row, time_ms, values
        return
    for named, file in files.items():
        try:
            if (folders := _folders(definition, file.then)) is None:
                continue
            for row, time_ms, values in _parquet(definition, file, key, folders):
                yield file.path, row, time_ms, values
        except (OSError, pa.ArrowInvalid, UnreadableRows) as error:
            why = error.why if isinstance(error, UnreadableRows) else error
            problems.append(f"{named} cannot be read: {why}")


def _files(cut: Cut, span: TimeRange, by_event_time: bool) -> list[dict[str, Any]]:
    """Rows of `source_files` for files with an admitted event in the span, in arrival order."""
    low, high = "min_timestamp_ms", "max_timestamp_ms"
    files = cut.files("source_files")
    if by_event_time:
        files = [f for f in files if f.low.get(low, span.from_ms) < span.to_ms]
        files = [f for f in files if f.high.get(high, span.from_ms) >= span.from_ms]
    rows = list(cut.rows("source_files", files))
    if by_event_time:
        rows = [row for row in rows if row[low] is not None and row[low] < span.to_ms and row[high] >= span.from_ms]
    else:
        rows = [row for row in rows if span.from_ms <= cut.batches[row["batch_id"]].plan_time_ms < span.to_ms]
    return sorted(rows, key=lambda row: row["sequence"])


def _known(cut: Cut, rows: Sequence[Mapping[str, Any]], problems: list[str]) -> list[KnownFile]:
    """Current files that the given rows of `source_files` name. Lists the source only if a file has changed."""
    source = cut.definition.source
    then = [
        SourceFile(row["path"], row["size_bytes"], row["modified_ns"], row["sequence"], row["partition_values"])
        for row in rows
    ]
    unchanged = {file.path: file if change_of(source, [file]) is None else None for file in then}
    if None in unchanged.values():
        try:
            tables, uses = Tables(cut.definition.store), cut.definition.uses
            listed = {file.path: file for file in known_files(source, uses, tables, cut.batch.versions)}
            return [listed[row["path"]] for row in rows]
        except SourceError as error:
            problems.append(str(error))
    return [
        KnownFile(file, unchanged[file.path], row["rows"], None, None) for file, row in zip(then, rows, strict=True)
    ]


def _problem(file: KnownFile) -> str | None:
    """States that a file is gone or has changed; None if the file is unchanged."""
    rows = counted(file.rows, "row")
    if file.now is None:
        return f"is gone. It had {rows}; its rows in this window cannot be shown"
    if file.rewritten:
        return f"has changed since it was read. It had {rows}; its former rows in this window cannot be shown"
    return None


# -- Parquet ----------------------------------------------------------------------------------------------------------


def _parquet(
    definition: Definition, file: KnownFile, key: Key, folders: Mapping[str, pa.Scalar]
) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Rows of a file with this key. `folders` has the file's partition values, by column name in the definition."""
    section, now = definition.source, file.now or file.then
    place = opened(section.store, now.path, now.size_bytes)
    parquet = parquet_file(place)
    own = {section.named(field.name).casefold(): field for field in parquet.schema_arrow}
    in_file = [name for name in definition.uses.columns if name not in folders and name.casefold() in own]
    types = {name: _plain_type(own[name.casefold()].type) for name in in_file}
    types |= {name: folders[name].type for name in definition.uses.columns if name in folders}
    schema = pa.schema([*types.items()])
    if not {section.timestamp, *key.columns} <= types.keys() or (wanted := _wanted(key, schema)) is None:
        return
    shown = [column for column in shown_columns(definition) if column in types]
    read = dict.fromkeys(own[name.casefold()].name for name in in_file)
    first = 0
    for raw in rows_read(place.address, parquet, columns=[*read]):
        columns = {name: raw.column(own[name.casefold()].name).cast(types[name]) for name in in_file}
        columns |= {name: pa.repeat(folders[name], raw.num_rows) for name in types if name in folders}
        batch = pa.RecordBatch.from_pydict(columns, schema=schema)
        places = _places(batch, wanted)
        chosen = batch.take(places)
        times = times_ms(chosen.column(section.timestamp), section.timestamp_unit, section.dialect.time_zone)
        values = rows_of(pa.Table.from_batches([chosen.select(shown)]))
        events = zip(places.to_pylist(), times, values or [{}] * len(times), strict=True)
        for place, time_ms, row in events:
            if time_ms is not None:
                yield first + place, time_ms, {column: row.get(column) for column in shown_columns(definition)}
        first += raw.num_rows


def _folders(definition: Definition, file: SourceFile) -> dict[str, pa.Scalar] | None:
    """Partition values of a file, by column name in the definition; None if a value does not fit its type."""
    section, commit = definition.source, ledger_of(definition).state().commit
    kinds = kinds_of(section, [file], commit.stored.get("source_types") or {} if commit else {})
    values = values_in(file, kinds)
    if MISFIT in values:
        return None
    return {section.named(name): pa.scalar(value, arrow_type(kinds[name])) for name, value in values.items()}


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionary encoding and views, because Arrow cannot take rows of such columns."""
    return as_in_parquet(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _wanted(key: Key, schema: pa.Schema) -> Mapping[str, pa.Scalar] | None:
    """Values of a key in a file's types; None if a narrower type of the file cannot hold them.

    Raises `CannotLook` if a string in the key is not a value of the recorded type.
    """
    try:
        return key.values(schema)
    except CannotLook:
        key.python_values()
        return None


def _places(batch: pa.RecordBatch, wanted: Mapping[str, pa.Scalar]) -> pa.Array:
    """Numbers of the rows in a record batch that have the wanted values."""
    mask = pa.repeat(pa.scalar(True), batch.num_rows)
    for name, value in wanted.items():
        mask = pc.and_(mask, pc.fill_null(pc.equal(batch.column(name), value), False))
    return pc.indices_nonzero(mask)


def times_ms(column: pa.Array, unit: str | None, zone: str | None = None) -> list[int | None]:
    """Event times as admission computes them, floored to milliseconds; None for a row without an event time.

    zone: time zone of times without a zone, or None for UTC

    >>> times_ms(pa.array([-1, 1_999, None]), "us"), times_ms(pa.array([2], pa.timestamp("s")), None)
    ([-1, 1, None], [2000])
    >>> times_ms(pa.array([" 2 ", "two", None]), "s")
    [2000, None, None]
    """
    if unit is None:
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        if zone and column.type.tz is None:
            return [None if local_ms is None else of_local(local_ms, zone) for local_ms in times_ms(column, None)]
        unit = column.type.unit
        column = column.cast(pa.int64())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(pc.match_substring_regex(column, WHOLE_NUMBER), pc.utf8_trim_whitespace(column), None)
        return [None if text is None else floored_ms(int(text), unit) for text in column.to_pylist()]
    return [None if time is None else floored_ms(time, unit) for time in column.to_pylist()]


def shown_columns(definition: Definition) -> Sequence[str]:
    """The columns in use, without key and event time."""
    hidden = {*definition.source.key, definition.source.timestamp}
    return [name for name in definition.uses.columns if name not in hidden]
