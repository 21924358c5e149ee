"""Erased keys: the rows of a source that no longer count, recognised by a keyed hash.

A key that was erased is not written down. What is kept is HMAC-SHA256 of it under a secret of the pipeline, and the
time up to which its events are erased: an event at that time or before is read as though the source did not have it,
later ones count. So is a row of it that has no valid time, which would only be quarantined, and what the source held
of it then with a time that had not come yet.

The text that is hashed is the same on every engine, and in Python: of each column its length in characters, a colon and
its value; a minus alone for null.

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

BLOCK_BYTES = 64  # of SHA-256
NOT_KEPT = "(not kept: keys were erased, and this line may name one)"
MALFORMED = "malformed"  # the reason of rows whose time, if any, is not valid


@dataclass(frozen=True, slots=True)
class ErasedDigests:
    """The erased keys of some columns: of each its digest, and the time up to which its events are erased.

    `later` are pairs of a digest and a time after that: of events which the source held when the key was erased.
    """

    columns: tuple[str, ...]
    up_to_ms: tuple[tuple[str, int], ...]
    later: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ErasedKeys:
    """All erased keys of a pipeline. `secret` is hexadecimal.

    With `hides_lines` the text of lines that cannot be parsed is not kept: no hash shows which key they name.
    """

    secret: str
    keys: tuple[ErasedDigests, ...]
    hides_lines: bool = True

    def may_be_in(self, from_ms: int, to_ms: int) -> bool:
        """Whether an erased event may lie in a span of time, both ends included."""
        return any(
            from_ms <= max(up_to_ms for _, up_to_ms in of.up_to_ms)
            or any(from_ms <= time_ms <= to_ms for _, time_ms in of.later)
            for of in self.keys
        )

    def until_of(self, values: Mapping[str, Any]) -> int | None:
        """The time up to which the events of a key are erased, given by its columns; None where it is not erased."""
        for of in self.keys:
            if {*of.columns} == {*values}:
                return dict(of.up_to_ms).get(digest(self.secret, [values[name] for name in of.columns]))
        return None


def digest(secret: str, values: Sequence[Any]) -> str:
    """The keyed hash of a key, in hexadecimal digits: HMAC-SHA256.

    >>> digest("00", ["ann"])[:8], digest("01", ["ann"])[:8]
    ('7044044b', 'f170486f')
    """
    return hmac.new(bytes.fromhex(secret), message(values).encode(), hashlib.sha256).hexdigest()


def message(values: Sequence[Any]) -> str:
    """What is hashed of a key."""
    return "".join("-" if value is None else f"{len(text := _text(value))}:{text}" for value in values)


def _text(value: Any) -> str:
    """
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
    """Whether keys of a type, as Spark calls it, can be erased: those whose values have one exact text.

    >>> [is_hashable(kind) for kind in ("string", "decimal(10,2)", "double", "struct<a:int>")]
    [True, True, False, False]
    """
    return not spark_type.startswith(("float", "double", "struct", "array", "map", "variant", "interval"))


def digest_of(rows: DataFrame, columns: Sequence[str], secret: str) -> Column:
    """The same as `digest`, of columns of `rows`."""
    types = {field.name: field.dataType.simpleString() for field in rows.schema}
    block = bytes.fromhex(secret).ljust(BLOCK_BYTES, b"\0")
    inner, outer = (F.lit(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    parts = [_part([(F.col(quoted(one)), types[one]) for one in types if names.plain(one) == name]) for name in columns]
    hashed = F.unhex(F.sha2(F.concat(inner, F.encode(F.concat(*parts), "utf-8")), 256))
    return F.sha2(F.concat(outer, hashed), 256)


def _part(values: Sequence[tuple[Column, str]]) -> Column:
    """What is hashed of a column, of each type that it has: the first that is not null."""
    texts = [_text_of(column, kind) for column, kind in values]
    return F.coalesce(*(F.concat(F.length(text).cast("string"), F.lit(":"), text) for text in texts), F.lit("-"))


def _text_of(column: Column, kind: str) -> Column:
    if kind.startswith("decimal") and not kind.endswith(",0)"):
        return F.rtrim(F.rtrim(column.cast("string"), F.lit("0")), F.lit("."))
    if kind.startswith("timestamp"):
        return F.unix_micros(column.cast("timestamp")).cast("string")
    return F.hex(column) if kind == "binary" else column.cast("string")


def without(rows: DataFrame, erased: ErasedKeys) -> DataFrame:
    """`rows` without those of erased keys. Raises `StateMismatch` where the source lacks a column of such keys.

    rows: the source's columns, TIMESTAMP_MS, REASON, CORRUPT
    """
    found = rows
    for of in erased.keys:
        if lacking := [name for name in of.columns if name not in rows.columns]:
            raise StateMismatch(
                f"keys of {', '.join(of.columns)} were erased, and the source has no column {lacking[0]!r} any more, by"
                " which their events are recognised. Make it readable under this name: in source.schema, or by"
                " source.rename"
            )
        found = found.where(~_is_erased(found, of, erased.secret))
    if erased.hides_lines:
        hidden = F.when(F.col(names.CORRUPT).isNotNull(), F.lit(NOT_KEPT))
        found = found.withColumn(names.CORRUPT, hidden)
    return found


def without_keys(rows: DataFrame, columns: Sequence[str], digests: Sequence[str], secret: str) -> DataFrame:
    """`rows` of any table with key columns, without those of some keys, given by their digests."""
    return rows.where(~digest_of(rows, columns, secret).isin(*digests))


def _is_erased(rows: DataFrame, of: ErasedDigests, secret: str) -> Column:
    """True or false, never null. Times are compared first: the hash of a row that is newer than all is not made."""
    time, times = F.col(names.TIMESTAMP_MS), dict(of.up_to_ms)
    found = digest_of(rows, of.columns, secret)
    timeless = time.isNull() | F.coalesce(F.col(names.REASON) == F.lit(MALFORMED), F.lit(False))
    may_be = timeless | (time <= max(times.values()))
    erased = may_be & found.isin(*times) & (timeless | (time <= looked_up(found, times)))
    if of.later:
        pair = F.concat(found, F.lit("@"), time.cast("string"))
        later = time.isin(*{time_ms for _, time_ms in of.later})
        erased = erased | (later & pair.isin(*(f"{one}@{time_ms}" for one, time_ms in of.later)))
    return F.coalesce(erased, F.lit(False))
