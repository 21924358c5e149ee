"""Types of a column that differ between files, and values that do not fit the column's type.

A column keeps the type that was recorded first. Its type in a file may be:

* wider (int32 -> int64, float -> double, decimals of more digits): read as the recorded type if that type holds each
  value exactly, which is checked before anything is computed
* null (all values are null): read as the recorded type
* a timestamp in nanoseconds instead of microseconds: read in microseconds
* narrower: refused, since the writer of the file may have cut off digits
* incompatible, such as string instead of int32: refused
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.engines.parquet_files import rows_read
from windowlib.engines.proved_aggregates import spark_type
from windowlib.ledger.rows import SourceFile
from windowlib.plans.sql.kinds import NULL, STRING, decimal_of
from windowlib.source.listed import ListedFile
from windowlib.storage.at_once import at_once
from windowlib.storage.object_file import opened
from windowlib.storage.store import Store

NANOS_PER_MICRO = 1_000
MOST_DIGITS = 38  # largest precision of a decimal that Spark reads
_UNREAD = re.compile(r"\btime(?:32|64)\[|\bhalffloat\b|\barrow\.uuid\b")
_CHAINS = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
_ALSO_CALLED = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint", "real": "float"}
_TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def schemas_of(store: Store, files: Sequence[SourceFile]) -> list[pa.Schema]:
    """Schemas of several files, read at once as far as they are not known."""
    return at_once(partial(schema_of, store), files)


def schema_of(store: Store, file: SourceFile | ListedFile) -> pa.Schema:
    """Schema of a Parquet file, with the types that Spark reads. Reads a file with a known size and time only once.

    INT96 timestamps become UTC timestamps, also in nested types. View types, which delta-rs writes, become plain types.
    An Arrow duration becomes int64: Parquet stores it as int64, and Spark ignores its unit.
    """
    return _schema(store, file.path, file.modified_ns, file.size_bytes)


@lru_cache(maxsize=4096)  # planning and reading a batch both need the schema
def _schema(store: Store, path: str, _modified_ns: int, size_bytes: int) -> pa.Schema:
    with pq.ParquetFile(opened(store, path, size_bytes)) as file:
        schema = file.schema_arrow
        physical = (file.schema.column(i).physical_type for i in range(len(file.schema)))
        for index, field in enumerate(schema):
            schema = schema.set(index, field.with_type(as_in_parquet(_with_instants(field.type, physical))))
    return _shared(schema, frozenset((schema.metadata or {}).items()))


def _with_instants(kind: pa.DataType, physical: Iterator[str]) -> pa.DataType:
    """Replaces INT96 timestamps in a type with UTC timestamps, also in nested types.

    physical: the stored type of each primitive value in the file's schema, in order
    """

    def plain(kind: pa.DataType) -> pa.DataType:
        stored = [next(physical) for _ in range(_single_values(kind))]
        return pa.timestamp("us", "UTC") if stored == ["INT96"] else kind

    return with_inner(kind, plain)


def _single_values(kind: pa.DataType) -> int:
    """Number of Parquet leaf columns that store a type."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return sum(_single_values(kind.field(i).type) for i in range(kind.num_fields)) or 1


@lru_cache(maxsize=64)  # most files of a source share one schema, which takes 1.5 KB
def _shared(schema: pa.Schema, _metadata: frozenset[tuple[bytes, bytes]]) -> pa.Schema:
    """Returns the same object for equal schemas."""
    return schema


def as_in_parquet(kind: pa.DataType) -> pa.DataType:
    """Replaces Arrow's own types (views, durations) by the types that Parquet stores, also in nested types.

    >>> as_in_parquet(pa.list_(pa.struct([("a", pa.string_view())])))
    ListType(list<item: struct<a: string>>)
    >>> as_in_parquet(pa.duration("ms"))
    DataType(int64)
    """
    views: dict[pa.DataType, pa.DataType] = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return with_inner(kind, lambda inner: pa.int64() if pa.types.is_duration(inner) else views.get(inner, inner))


def with_inner(kind: pa.DataType, plain: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Applies `plain` to each primitive type, at the top level or nested in structs, maps and lists."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(with_inner(field.type, plain)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(with_inner(kind.key_type, plain), with_inner(kind.item_type, plain))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = kind.value_field.with_type(with_inner(kind.value_type, plain))
        return pa.list_(item) if pa.types.is_list(kind) else pa.large_list(item)
    return plain(kind)


def kind_of(arrow: object) -> str:
    """Engine's type of a column, from an Arrow type or its name.

    >>> [kind_of(name) for name in ("large_string", "timestamp[ns]", "null")]
    ['string', 'timestamp_ntz', 'null']
    """
    return re.sub(r"\b(?:item|array): ", "element: ", spark_type(str(arrow)))


def arrow_type(kind: str) -> pa.DataType:
    """Arrow type for an engine's type. It is string for a type that is neither a decimal nor in `_TYPES`."""
    decimal = decimal_of(kind)
    return pa.decimal128(*decimal) if decimal else _TYPES.get(kind, pa.string())


def declared_type(text: str | None) -> pa.DataType | None:
    """Arrow type for a type declared in `[source.schema]`; None for None and for nested types.

    >>> declared_type(" LONG"), declared_type("dec(10, 2)"), declared_type("array<int>"), declared_type(None)
    (DataType(int64), Decimal128Type(decimal128(10, 2)), None, None)
    >>> declared_type("decimal(20)"), declared_type("numeric")
    (Decimal128Type(decimal128(20, 0)), Decimal128Type(decimal128(10, 0)))
    """
    kind = re.sub(r"^(dec|numeric)(?=\(|$)", "decimal", re.sub(r"\s", "", (text or "").casefold()))
    kind = re.sub(r"^decimal(?:\((\d+)\))?$", lambda match: f"decimal({match[1] or 10},0)", kind)
    kind = _ALSO_CALLED.get(kind, kind)
    type_ = arrow_type(kind)
    return None if type_ == pa.string() and kind != STRING else type_


def in_nanos(arrow: object) -> bool:
    """Tests if a type is a timestamp in nanoseconds."""
    return str(arrow).startswith("timestamp[ns")


def is_unread(arrow: object) -> bool:
    """Tests if no engine reads a type, such as a type that is or contains a time of day, a half float or a UUID.

    >>> [is_unread(kind) for kind in (pa.time64("us"), "struct<a: halffloat>", pa.uuid(), pa.timestamp("us"))]
    [True, True, True, False]
    """
    return bool(_UNREAD.search(str(arrow))) or has_inner_nanos(arrow) or is_too_long(arrow)


def has_inner_nanos(arrow: object) -> bool:
    """Tests if timestamps in nanoseconds are nested in a type. Spark does not read such a type."""
    return "[ns" in str(arrow) and not in_nanos(arrow)


def is_too_long(arrow: object) -> bool:
    """Tests if a type is or contains a decimal with more digits than Spark reads.

    >>> [is_too_long(kind) for kind in (pa.decimal256(39, 0), "list<item: decimal256(40, 2)>", pa.decimal256(38, 0))]
    [True, True, False]
    """
    return any(int(digits) > MOST_DIGITS for digits in re.findall(r"\bdecimal\d+\((\d+),", str(arrow)))


def is_wider(a: str, b: str) -> bool:
    """Tests if type `a` holds all values of type `b`, and more.

    >>> is_wider("bigint", "int"), is_wider("double", "int"), is_wider("decimal(8,4)", "decimal(6,2)")
    (True, False, True)
    """
    for chain in _CHAINS:
        if a in chain and b in chain:
            return chain.index(a) > chain.index(b)
    if (digits_a := decimal_of(a)) and (digits_b := decimal_of(b)):
        return (
            digits_a != digits_b
            and digits_a[1] >= digits_b[1]
            and digits_a[0] - digits_a[1] >= digits_b[0] - digits_b[1]
        )
    return False


def misfit(
    values: Iterator[pa.Array], recorded: str, file_type: str, *, floored: bool = False, declared: bool = False
) -> str | None:
    """Reason why a column of a file cannot be read as the recorded type; None if no value would change.

    values:   the values of the column (`values_of`), which are read only if the types do not decide
    floored:  true if fractions of a microsecond may be lost
    declared: true if the definition declares the type, so that any numeric type is read if each value fits
    """
    then, now = kind_of(recorded), kind_of(file_type)
    is_said = f"is {file_type}, but {'source.schema declares' if declared else 'was recorded as'} {recorded}"
    if then == now:
        lost = None if floored or not in_nanos(file_type) else _not_whole_micros(values)
        return lost and f"is {file_type} and has {lost} ns, but is read in microseconds"
    if now == NULL and not is_nested(recorded):
        return None
    if declared and (then, now) == ("timestamp_ntz", "date"):
        return None  # a date is read as its midnight
    if is_wider(now, then) or (declared and _is_number(then) and _is_number(now)):
        lost = _not_held(values, then)
        return lost and f"{is_said}, which cannot hold {lost}"
    if is_wider(then, now):
        return f"{is_said}: its writer may have cut off digits"
    return f"{is_said}: the types are incompatible"


def _is_number(kind: str) -> bool:
    return kind in (*_CHAINS[0], *_CHAINS[1]) or decimal_of(kind) is not None


def is_nested(recorded: str) -> bool:
    """Tests by its name if an Arrow type is a list, struct or map."""
    return bool(re.match(r"(large_)?(list|struct|map)\b", recorded))


def _not_whole_micros(values: Iterator[pa.Array]) -> str | None:
    """First timestamp in ns that is not an integral number of microseconds. None if there is no such timestamp."""
    for part in values:
        nanos = part.cast(pa.int64())
        micros = pc.multiply(pc.divide(nanos, NANOS_PER_MICRO), NANOS_PER_MICRO)
        if (lost := _first(nanos, pc.not_equal(nanos, micros))) is not None:
            return lost
    return None


def _not_held(values: Iterator[pa.Array], kind: str) -> str | None:
    """First value that a numeric type does not hold exactly; None if the type holds all values."""
    type_ = arrow_type(kind)
    for part in values:
        held = _held(part, type_)
        if (lost := _first(part, pc.invert(held))) is not None:
            return lost
    return None


def _held(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Tests for each value if a cast to another type and back leaves it unchanged. Returns null for null."""
    if pa.types.is_integer(values.type) and pa.types.is_floating(type_):
        return _held_as_float(values, type_)
    try:
        held = pc.equal(values.cast(type_).cast(values.type), values)
    except pa.ArrowInvalid:  # at least one value does not fit
        if len(values) == 1:
            return pa.array([False])
        middle = len(values) // 2
        return pa.concat_arrays([_held(part, type_) for part in (values[:middle], values[middle:])])
    return pc.or_(held, pc.is_nan(values)) if pa.types.is_floating(values.type) else held


def _held_as_float(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Tests for each integer if a float type holds it exactly.

    Arrow's own check refuses all integers beyond 2^53, although some of them are exact.
    """
    end = 2.0 ** (values.type.bit_width - (not pa.types.is_unsigned_integer(values.type)))
    near = values.cast(type_, safe=False)
    fits = pc.less(near, end)
    back = pc.if_else(fits, near, pa.scalar(0, type_)).cast(values.type, safe=False)
    return pc.and_(fits, pc.equal(back, values))


def _first(values: pa.Array, chosen: pa.Array) -> str | None:
    matches = values.filter(chosen)
    return str(matches[0].as_py()) if len(matches) else None


def values_of(store: Store, file: SourceFile, column: str) -> Iterator[pa.Array]:
    """Yields the values of a file's column, whose name may differ in case. Opens the file at the first value."""
    with pq.ParquetFile(opened(store, file.path, file.size_bytes)) as parquet:
        spelled = [name for name in parquet.schema_arrow.names if name.casefold() == column.casefold()]
        for batch in rows_read(f"{store}/{file.path}", parquet, columns=spelled):
            yield batch.column(0)
