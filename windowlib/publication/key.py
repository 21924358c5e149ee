"""A key as an operator, a reader or a page names it: one string per key column."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowlib.definition.plurals import counted
from windowlib.delta.data_files import DataFile
from windowlib.model.errors import WindowError


class CannotLook(WindowError, LookupError):
    """The requested batch, key or window does not exist or has been cleaned up. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key: one value per key column. `texts` are the values as strings, `types` the column types in the tables."""

    columns: tuple[str, ...]
    texts: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    def __str__(self) -> str:
        return ", ".join(self.texts) if self.columns else "all events"

    def values(self, schema: pa.Schema) -> dict[str, pa.Scalar]:
        """Values in the types of `schema`. Raises `CannotLook` if a string is not a value of its column."""
        return {
            name: _typed(name, text, schema.field(name).type)
            for name, text in zip(self.columns, self.texts, strict=True)
        }

    def python_values(self) -> dict[str, Any]:
        """Values in the types of the tables. Raises `CannotLook` if a string is not a value of its column."""
        parts = zip(self.columns, self.texts, self.types, strict=True)
        return {name: _typed(name, text, kind).as_py() for name, text, kind in parts}

    def is_that(self, texts: Sequence[str] | None) -> bool:
        """Tests if `texts`, one string per key column, name this key."""
        return bool(texts) and self.is_of(dict(zip(self.columns, texts or (), strict=False)))

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Tests if a row that a table keeps as JSON has this key."""
        for name, text, kind in zip(self.columns, self.texts, self.types, strict=True):
            value = row.get(name)
            if value is None:
                return False
            try:
                same = _of_json(name, value, kind).equals(_typed(name, text, kind))
            except CannotLook:
                return False  # a malformed row
            if not same:
                return False
        return True

    def where(self, schema: pa.Schema) -> pc.Expression:
        """Condition for the rows of a file that have this key."""
        condition = pc.scalar(True)
        for name, value in self.values(schema).items():
            condition = condition & (pc.field(name) == value)
        return condition

    def may_be_in(self, file: DataFile, schema: pa.Schema) -> bool:
        """Tests if the statistics of a file allow this key."""
        for name, scalar in self.values(schema).items():
            value, low, high = scalar.as_py(), file.low.get(name), file.high.get(name)
            if low is None or high is None or not isinstance(value, str | int):
                continue
            if not low <= value <= high:
                return False
        return True


def check_key(columns: Sequence[str], texts: Sequence[str]) -> None:
    """Raises `CannotLook` unless there is one string per key column."""
    if len(texts) != len(columns):
        once = f"give --key once for each of {', '.join(columns)}, in this order"
        need = once if columns else "give no --key"
        has = counted(len(columns), "key column") if columns else "no key"
        raise CannotLook(f"got {counted(len(texts), 'value')} for the key, but this pipeline has {has}; {need}")


def key_of(columns: Sequence[str], texts: Sequence[str], schema: pa.Schema) -> Key:
    """Key with the values `texts`, in the types that `schema` has for the key columns.

    Raises `CannotLook` if a string is not a value of its column.
    """
    key = Key(tuple(columns), tuple(texts), tuple(schema.field(name).type for name in columns))
    key.values(schema)
    return key


def _typed(name: str, text: str, kind: pa.DataType) -> pa.Scalar:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowInvalid as error:
        raise CannotLook(f"key {text!r} is not a value of column {name} of type {kind}") from error


def _of_json(name: str, value: Any, kind: pa.DataType) -> pa.Scalar:
    """Converts a value that a table stores as JSON to the type of its column. JSON has bytes in base 64."""
    text = key_text(value)
    try:
        if pa.types.is_binary(kind):
            return pa.scalar(b64decode(text, validate=True), kind)
    except ValueError as error:
        raise CannotLook(f"{text!r} is not valid base 64") from error
    return _typed(name, text, kind)


def key_text(value: Any) -> str:
    """Formats a key column's value as `--key` takes it.

    >>> key_text(1_234_567), key_text(True), key_text(datetime(2026, 3, 5, 10))
    ('1234567', 'true', '2026-03-05T10:00:00')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
    return str(value)
