"""Erased keys: source rows that no longer count, recognised by a keyed hash.

An erased key itself is not stored. The pipeline keeps its HMAC-SHA256 under a secret of the pipeline, and the time up
to which its events are erased. These rows of the key are skipped as if the source did not have them:

- events at or before that time; later events count
- rows without a valid time, which would only be quarantined
- events with a later time that the source already held when the key was erased

Python and every engine hash the same string. Each key column contributes the length of its value in characters, a colon
and the value. A null contributes a minus.

>>> message([7, "ann", None])
'1:73:ann-'
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from windowlib.model.errors import StateMismatch
from windowlib.plans import names
from windowlib.plans.functions import F, looked_up, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BLOCK_BYTES = 64  # block size of SHA-256
NOT_KEPT = "(not kept: keys were erased, and this line may name one)"
MALFORMED = "malformed"  # reason of rows with an invalid time, and of other unreadable rows


@dataclass(frozen=True, slots=True)
class ErasedDigests:
    """Erased keys with the same key columns.

    - `up_to_ms`: digest of each key, and the time up to which the key's events are erased.
    - `later`: digest of a key, and the time of a later event that the source already held when the key was erased.
    """

    columns: tuple[str, ...]
    up_to_ms: tuple[tuple[str, int], ...]
    later: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ErasedKeys:
    """All erased keys of a pipeline. `secret` is hexadecimal.

    With `hides_lines`, unparsable lines are quarantined without their text, because no hash shows which key they name.
    """

    secret: str
    keys: tuple[ErasedDigests, ...]
    hides_lines: bool = True

    def may_be_in(self, from_ms: int, to_ms: int) -> bool:
        """Tests if an event between `from_ms` and `to_ms`, both inclusive, may be erased."""
        return any(
            from_ms <= max(up_to_ms for _, up_to_ms in digests.up_to_ms)
            or any(from_ms <= time_ms <= to_ms for _, time_ms in digests.later)
            for digests in self.keys
        )

    def until_of(self, values: Mapping[str, Any]) -> int | None:
        """Time up to which a key's events are erased, or None if the key is not erased. `values` has a value per key
        column.
        """
        for digests in self.keys:
            if {*digests.columns} == {*values}:
                return dict(digests.up_to_ms).get(digest(self.secret, [values[name] for name in digests.columns]))
        return None


def digest(secret: str, values: Sequence[Any]) -> str:
    """Keyed hash (HMAC-SHA256) of a key, in hexadecimal digits.

    >>> digest("00", ["ann"])[:8], digest("01", ["ann"])[:8]
    ('7044044b', 'f170486f')
    """
    return hmac.new(bytes.fromhex(secret), message(values).encode(), hashlib.sha256).hexdigest()


def message(values: Sequence[Any]) -> str:
    """String form of a key: the input of the hash."""
    return "".join("-" if value is None else f"{len(text := _text(value))}:{text}" for value in values)


def _text(value: Any) -> str:
    """String form of a key value. `_text_of` computes the same string in SQL.

    >>> [_text(value) for value in (True, Decimal("1.50"), Decimal("10"), date(2026, 3, 2), b"k")]
    ['true', '1.5', '10', '2026-03-02', '6B']
    >>> _text(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), _text(datetime(1969, 12, 31, 23, 59, 59, 999_999))
    ('1000000', '-1')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            plain = format(value, "f")
            return plain.rstrip("0").rstrip(".") if "." in plain else plain
        case datetime():
            since = value.replace(tzinfo=value.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            return str((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
        case date():
            return value.isoformat()
        case bytes():
            return value.hex().upper()
    return str(value)


def is_hashable(spark_type: str) -> bool:
    """Tests if keys of this Spark type can be erased: each value needs a single exact string form.

    >>> [is_hashable(kind) for kind in ("string", "decimal(10,2)", "double", "struct<a:int>")]
    [True, True, False, False]
    """
    return not spark_type.startswith(("float", "double", "struct", "array", "map", "variant", "interval"))


def digest_of(rows: DataFrame, columns: Sequence[str], secret: str) -> Column:
    """Expression for the `digest` of the key in `columns` of `rows`."""
    types = {field.name: field.dataType.simpleString() for field in rows.schema}
    block = bytes.fromhex(secret).ljust(BLOCK_BYTES, b"\0")
    inner, outer = (F.lit(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    parts = [_part([(F.col(quoted(c)), types[c]) for c in types if names.plain(c) == name]) for name in columns]
    hashed = F.unhex(F.sha2(F.concat(inner, F.encode(F.concat(*parts), "utf-8")), 256))
    return F.sha2(F.concat(outer, hashed), 256)


def _part(values: Sequence[tuple[Column, str]]) -> Column:
    """Contribution of a key column to the hashed string.

    values: the source column and its extra columns for other types, each with its type; the first non-null value counts
    """
    texts = [_text_of(column, kind) for column, kind in values]
    return F.coalesce(*(F.concat(F.length(text).cast("string"), F.lit(":"), text) for text in texts), F.lit("-"))


def _text_of(column: Column, kind: str) -> Column:
    if kind.startswith("decimal") and not kind.endswith(",0)"):
        return F.rtrim(F.rtrim(column.cast("string"), F.lit("0")), F.lit("."))
    if kind.startswith("timestamp"):
        return F.unix_micros(column.cast("timestamp")).cast("string")
    return F.hex(column) if kind == "binary" else column.cast("string")


def without(rows: DataFrame, erased: ErasedKeys) -> DataFrame:
    """Removes the rows of erased keys. Raises `StateMismatch` if the source lacks a key column.

    rows: the source's columns, TIMESTAMP_MS, REASON, CORRUPT
    """
    remaining = rows
    for digests in erased.keys:
        if lacking := [name for name in digests.columns if name not in rows.columns]:
            raise StateMismatch(
                f"the source no longer has the column {lacking[0]!r}, but erased keys are identified by"
                f" {', '.join(digests.columns)}. Make a column readable under this name with source.schema or"
                " source.rename"
            )
        remaining = remaining.where(~_is_erased(remaining, digests, erased.secret))
    if erased.hides_lines:
        hidden = F.when(F.col(names.CORRUPT).isNotNull(), F.lit(NOT_KEPT))
        remaining = remaining.withColumn(names.CORRUPT, hidden)
    return remaining


def without_keys(rows: DataFrame, columns: Sequence[str], digests: Sequence[str], secret: str) -> DataFrame:
    """Removes the rows of keys with these digests from a table with the key columns."""
    return rows.where(~digest_of(rows, columns, secret).isin(*digests))


def _is_erased(rows: DataFrame, digests: ErasedDigests, secret: str) -> Column:
    """Tests if a row is erased. The test is never null. Compares times first: a row after all erased times needs no
    hash.
    """
    time, times = F.col(names.TIMESTAMP_MS), dict(digests.up_to_ms)
    row_digest = digest_of(rows, digests.columns, secret)
    timeless = time.isNull() | F.coalesce(F.col(names.REASON) == F.lit(MALFORMED), F.lit(False))
    may_be = timeless | (time <= max(times.values()))
    erased = may_be & row_digest.isin(*times) & (timeless | (time <= looked_up(row_digest, times)))
    if digests.later:
        pair = F.concat(row_digest, F.lit("@"), time.cast("string"))
        later = time.isin(*{time_ms for _, time_ms in digests.later})
        erased = erased | (later & pair.isin(*(f"{key}@{time_ms}" for key, time_ms in digests.later)))
    return F.coalesce(erased, F.lit(False))
