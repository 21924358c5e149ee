"""The tables of a pipeline as they were after one of its batches, read in part and without Spark.

A *cut* is a commit row of the ledger: it names the version of every table. Files whose statistics rule out what is
looked for are not opened.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant, nearest_utc
from windowlib.delta.data_files import DataFile, rows_of
from windowlib.delta.tables import Table
from windowlib.inspection.lineage.batch_runs import BatchRun, batches_of, history, of_this_definition
from windowlib.ledger.rerun_request import time_ms
from windowlib.ledger.retained_batches import check_kept
from windowlib.model.errors import WindowError
from windowlib.model.rerun import TimeRange
from windowlib.plans.admission import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

KEYED_TABLES = ("results", "open_windows", "late_events")
EVER = TimeRange(MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS + 1)


class CannotLook(WindowError, LookupError):
    """What is asked for is not there, or is not there any more. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Key:
    """One value for each key column: of these names; `texts` as given, `types` as in tables."""

    columns: tuple[str, ...]
    texts: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    def __str__(self) -> str:
        return ", ".join(self.texts) if self.columns else "all events"

    def values(self, schema: pa.Schema) -> dict[str, pa.Scalar]:
        """The values in the types of a file's columns; raises `CannotLook` where a text is not such a value."""
        return {
            name: _typed(name, text, schema.field(name).type)
            for name, text in zip(self.columns, self.texts, strict=True)
        }

    def python_values(self) -> dict[str, Any]:
        """The values in the types of the tables; raises `CannotLook` where a text is not such a value."""
        parts = zip(self.columns, self.texts, self.types, strict=True)
        return {name: _typed(name, text, kind).as_py() for name, text, kind in parts}

    def is_that(self, texts: Sequence[str] | None) -> bool:
        """Whether another key, as it was given, is this one."""
        return bool(texts) and self.is_of(dict(zip(self.columns, texts or (), strict=False)))

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Whether a row that a table keeps as JSON has this key."""
        for name, text, kind in zip(self.columns, self.texts, self.types, strict=True):
            given = row.get(name)
            if given is None:
                return False
            try:
                same = _of_json(name, given, kind).equals(_typed(name, text, kind))
            except CannotLook:
                return False  # a malformed row
            if not same:
                return False
        return True

    def where(self, schema: pa.Schema) -> pc.Expression:
        """The rows of a file that have this key."""
        found = pc.scalar(True)
        for name, value in self.values(schema).items():
            found = found & (pc.field(name) == value)
        return found

    def may_be_in(self, file: DataFile, schema: pa.Schema) -> bool:
        """Whether the file's statistics leave room for this key."""
        for name, scalar in self.values(schema).items():
            value, low, high = scalar.as_py(), file.low.get(name), file.high.get(name)
            if low is None or high is None or not isinstance(value, str | int):
                continue
            if not low <= value <= high:
                return False
        return True


class ReadFilter(TypedDict, total=False):
    """Which part of a table is read: these columns, the rows of this key, those that this expression holds for."""

    columns: Sequence[str] | None
    key: Key | None
    where: pc.Expression


@dataclass(frozen=True)
class Cut:
    """A pipeline's tables after `batch`. `batches`, by id, are those that they come from: see `history`."""

    definition: Definition
    batch: BatchRun
    batches: Mapping[int, BatchRun] = field(repr=False)
    _files: dict[str, list[DataFile]] = field(default_factory=dict, repr=False, compare=False)

    def files(self, table: str) -> list[DataFile]:
        """The files of a table; none where it did not exist. Raises `CannotLook` where that version is gone."""
        if table not in self._files:
            try:
                self._files[table] = Table(self.definition.root / table).files(self.batch.versions.get(table))
            except (DeltaError, FileNotFoundError) as error:
                raise self._gone(table) from error
        return self._files[table]

    def rows(
        self, table: str, files: Iterable[DataFile] | None = None, **only: Unpack[ReadFilter]
    ) -> Iterator[dict[str, Any]]:
        """The rows of a table, or of some of its files, partition columns included; a column a file lacks is null."""
        lacking = dict.fromkeys(only.get("columns") or ())
        for file, found in self.read(table, files, **only):
            for row in rows_of(found):
                yield {**lacking, **row, **file.partition}

    def read(
        self, table: str, files: Iterable[DataFile] | None = None, **only: Unpack[ReadFilter]
    ) -> Iterator[tuple[DataFile, pa.Table]]:
        """The same file by file, without partition columns."""
        from pyarrow import dataset  # which imports pandas

        folder, columns = self.definition.root / table, only.get("columns")
        key, where = only.get("key"), only.get("where")
        for file in self.files(table) if files is None else files:
            try:
                data = dataset.dataset(folder / file.path, format="parquet", partitioning=None)
                if key is not None and not {*key.columns} <= {*data.schema.names}:
                    continue  # a file from before a migration, which had another key
                if key is not None and not key.may_be_in(file, data.schema):
                    continue
                chosen = pc.scalar(True) if where is None else where
                if key is not None:
                    chosen = chosen & key.where(data.schema)
                have = None if columns is None else [name for name in columns if name in data.schema.names]
                yield file, data.to_table(columns=have, filter=chosen)
            except FileNotFoundError as error:
                raise self._gone(table) from error

    def schema(self, table: str) -> pa.Schema | None:
        """The columns of a table's files, None where it has none."""
        for file in self.files(table):
            try:
                return pq.read_schema(self.definition.root / table / file.path)
            except FileNotFoundError as error:
                raise self._gone(table) from error
        return None

    def _gone(self, table: str) -> CannotLook:
        return CannotLook(
            f"{table} as it was after batch {self.batch.batch_id} is no longer on disk: its old files were cleaned up."
            " Ask for a newer batch"
        )


def cut(definition: Definition, as_of: int | None = None) -> Cut:
    """The tables as of a batch, or of the newest. Raises `CannotLook` where there is no such batch, `CutExpired`."""
    every = batches_of(definition)
    batches = {run.batch_id: run for run in of_this_definition(every)}
    if not batches:
        first = to_paste("run", definition.file)
        raise CannotLook(f"nothing is committed in {definition.root} yet; run `{first}` first")
    wanted = max(batches) if as_of is None else as_of
    if wanted not in batches and any(run.batch_id == wanted for run in every):
        raise CannotLook(
            f"batch {wanted} was published under another definition than that of now: a migration lies between. Of this"
            f" one are {_listed(sorted(batches))}"
        )
    if wanted not in batches:
        raise CannotLook(f"no batch {wanted} is committed; the committed ones are {_listed(sorted(batches))}")
    if (whole := batches[wanted].part_of) is not None:
        raise CannotLook(
            f"batch {wanted} has built a part of the tables that batch {whole}, a migration, published: ask for that"
        )
    check_kept(definition.root, wanted, f"the tables cannot be read as batch {wanted} left them")
    return Cut(definition, batches[wanted], history(batches, wanted))


def check_key(definition: Definition, texts: Sequence[str]) -> None:
    """Raises `CannotLook` unless there is one text for each key column."""
    columns = definition.source.key
    if len(texts) != len(columns):
        wanted = (
            f"{', '.join(columns)}: give --key once for each, in this order" if columns else "nothing: give no --key"
        )
        raise CannotLook(f"this pipeline's key is {wanted}; got {len(texts)}")


def key_of(tables: Cut, texts: Sequence[str]) -> Key | None:
    """The key that these texts are, in the types of its columns; None where no table has a row yet.

    Raises `CannotLook` where a text is not a value of its column.
    """
    columns = tuple(tables.definition.source.key)
    schema = next((one for one in map(tables.schema, KEYED_TABLES) if one is not None), None)
    if schema is None:
        return None
    key = Key(columns, tuple(texts), tuple(schema.field(name).type for name in columns))
    key.values(schema)
    return key


def asked_range(from_text: str | None, to_text: str | None) -> TimeRange:
    """The range between two times, open on the side that has none. Raises as `time_ms` does, and `CannotLook`.

    >>> asked_range("2026-03-03T00:00Z", None).from_ms, asked_range(None, None) == EVER
    (1772496000000, True)
    """
    from_ms = EVER.from_ms if from_text is None else time_ms("from", from_text)
    to_ms = EVER.to_ms if to_text is None else time_ms("to", to_text)
    if to_ms <= EVER.from_ms or from_ms >= EVER.to_ms:
        which = f"to {instant(to_ms)}" if to_ms <= EVER.from_ms else f"from {instant(from_ms)}"
        ever = f"{instant(EVER.from_ms)} to {instant(EVER.to_ms)}"
        raise CannotLook(f"{which} leaves no time that an event can have: those are from {ever}")
    if from_ms >= to_ms:
        raise CannotLook(
            f"from {instant(from_ms)} is not before to {instant(to_ms)}; the range is from (inclusive) to (exclusive)"
        )
    return TimeRange(from_ms, to_ms)


def within(column: str, span: TimeRange) -> pc.Expression:
    """The rows with a TIMESTAMP in the span."""
    return (pc.field(column) >= pa.scalar(nearest_utc(span.from_ms))) & (
        pc.field(column) < pa.scalar(nearest_utc(span.to_ms))
    )


def _typed(name: str, text: str, kind: pa.DataType) -> pa.Scalar:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowInvalid as error:
        raise CannotLook(f"key {text!r}: column {name} is {kind}, which this value is not") from error


def _of_json(name: str, given: Any, kind: pa.DataType) -> pa.Scalar:
    """A value that a table keeps as JSON, in the type of its column: bytes in base 64."""
    text = key_text(given)
    try:
        if pa.types.is_binary(kind):
            return pa.scalar(b64decode(text, validate=True), kind)
    except ValueError as error:
        raise CannotLook(f"{text!r} is not in base 64") from error
    return _typed(name, text, kind)


def key_text(value: Any) -> str:
    """A value of a key column as it is to be given for it.

    >>> key_text(1_234_567), key_text(True), key_text(datetime(2026, 3, 5, 10))
    ('1234567', 'true', '2026-03-05T10:00:00')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
    return str(value)


def _listed(numbers: Sequence[int]) -> str:
    """Numbers in words: those that follow one another as a range.

    >>> _listed([1, 2, 3, 5]), _listed([7])
    ('1 to 3, 5', '7')
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
