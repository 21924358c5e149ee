"""Types of a column that differ from file to file: what an engine reads alike, what is wider, and whether values fit.

A column keeps the type that was recorded of it first. A file whose type is wider (int32 -> int64, float -> double,
decimals of more digits) is read as that type if it holds each value exactly, which is looked up before anything is
computed; a column of nulls alone has any type. Units of time are read alike: nanoseconds as microseconds. A narrower
type is refused, since what its writer has cut off cannot be seen, and one of another meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowlib.engines.proved_aggregates import spark_type
from windowlib.engines.sail_files import rows_read
from windowlib.plans.sql.kinds import NULL, STRING, decimal_of

NANOS_PER_MICRO = 1_000
MOST_DIGITS = 38  # of a decimal
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


def schema_of(path: Path) -> pa.Schema:
    """The columns of a Parquet file. Timestamps of 96 bits are instants, as Spark reads them, also inside of a column.

    What delta-rs writes again it calls views, of types that Spark does not know. What Arrow calls a duration is a whole
    number in Parquet, whose unit Spark would not see.
    """
    stat = path.stat()
    return _schema(str(path), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4096)  # asked for when a batch is planned, and when it is read
def _schema(path: str, _modified_ns: int, _size_bytes: int) -> pa.Schema:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        physical = (file.schema.column(i).physical_type for i in range(len(file.schema)))
        for index, field in enumerate(schema):
            schema = schema.set(index, field.with_type(as_in_parquet(_with_instants(field.type, physical))))
    return _shared(schema, frozenset((schema.metadata or {}).items()))


def _with_instants(kind: pa.DataType, physical: Iterator[str]) -> pa.DataType:
    """A type with instants where the file has 96 bits; `physical` gives the types of its single values, in order."""

    def plain(kind: pa.DataType) -> pa.DataType:
        stored = [next(physical) for _ in range(_single_values(kind))]
        return pa.timestamp("us", "UTC") if stored == ["INT96"] else kind

    return with_inner(kind, plain)


def _single_values(kind: pa.DataType) -> int:
    """The number of columns that Parquet stores a type in."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return sum(_single_values(kind.field(i).type) for i in range(kind.num_fields)) or 1


@lru_cache(maxsize=64)  # most files of a source have one, which takes 1.5 KB
def _shared(schema: pa.Schema, _metadata: frozenset[tuple[bytes, bytes]]) -> pa.Schema:
    """A schema, the same object for equal ones."""
    return schema


def as_in_parquet(kind: pa.DataType) -> pa.DataType:
    """A type without what Arrow alone distinguishes, by itself or inside of another.

    >>> as_in_parquet(pa.list_(pa.struct([("a", pa.string_view())])))
    ListType(list<item: struct<a: string>>)
    >>> as_in_parquet(pa.duration("ms"))
    DataType(int64)
    """
    views: dict[pa.DataType, pa.DataType] = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return with_inner(kind, lambda one: pa.int64() if pa.types.is_duration(one) else views.get(one, one))


def with_inner(kind: pa.DataType, plain: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type with others for those of single values, by themselves or inside of structs, maps and lists."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(with_inner(field.type, plain)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(with_inner(kind.key_type, plain), with_inner(kind.item_type, plain))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = kind.value_field.with_type(with_inner(kind.value_type, plain))
        return pa.list_(item) if pa.types.is_list(kind) else pa.large_list(item)
    return plain(kind)


def kind_of(arrow: object) -> str:
    """What an engine reads a column as, by the name of its type.

    >>> [kind_of(name) for name in ("large_string", "timestamp[ns]", "null")]
    ['string', 'timestamp_ntz', 'null']
    """
    return re.sub(r"\b(?:item|array): ", "element: ", spark_type(str(arrow)))


def arrow_type(kind: str) -> pa.DataType:
    """Arrow's type for that; for one that is known from files only, text."""
    decimal = decimal_of(kind)
    return pa.decimal128(*decimal) if decimal else _TYPES.get(kind, pa.string())


def declared_type(text: str | None) -> pa.DataType | None:
    """Arrow's type for what `[source.schema]` says of a column; None for no word, and for types with parts.

    >>> declared_type(" LONG"), declared_type("dec(10, 2)"), declared_type("array<int>"), declared_type(None)
    (DataType(int64), Decimal128Type(decimal128(10, 2)), None, None)
    >>> declared_type("decimal(20)"), declared_type("numeric")
    (Decimal128Type(decimal128(20, 0)), Decimal128Type(decimal128(10, 0)))
    """
    kind = re.sub(r"^(dec|numeric)(?=\(|$)", "decimal", re.sub(r"\s", "", (text or "").casefold()))
    kind = re.sub(r"^decimal(?:\((\d+)\))?$", lambda found: f"decimal({found[1] or 10},0)", kind)
    kind = _ALSO_CALLED.get(kind, kind)
    found = arrow_type(kind)
    return None if found == pa.string() and kind != STRING else found


def in_nanos(arrow: object) -> bool:
    """Whether it is a timestamp in nanoseconds."""
    return str(arrow).startswith("timestamp[ns")


def is_unread(arrow: object) -> bool:
    """Whether a type is, or holds, one that no engine reads: a time of day, half a float, a UUID.

    >>> [is_unread(kind) for kind in (pa.time64("us"), "struct<a: halffloat>", pa.uuid(), pa.timestamp("us"))]
    [True, True, True, False]
    """
    return bool(_UNREAD.search(str(arrow))) or has_inner_nanos(arrow) or is_too_long(arrow)


def has_inner_nanos(arrow: object) -> bool:
    """Whether a type holds, inside of it, timestamps in nanoseconds, which Spark does not read."""
    return "[ns" in str(arrow) and not in_nanos(arrow)


def is_too_long(arrow: object) -> bool:
    """Whether a type is, or holds, a decimal of more digits than Spark has.

    >>> [is_too_long(kind) for kind in (pa.decimal256(39, 0), "list<item: decimal256(40, 2)>", pa.decimal256(38, 0))]
    [True, True, False]
    """
    return any(int(digits) > MOST_DIGITS for digits in re.findall(r"\bdecimal\d+\((\d+),", str(arrow)))


def is_wider(a: str, b: str) -> bool:
    """Whether a type has all values of another, and more.

    >>> is_wider("bigint", "int"), is_wider("double", "int"), is_wider("decimal(8,4)", "decimal(6,2)")
    (True, False, True)
    """
    for chain in _CHAINS:
        if a in chain and b in chain:
            return chain.index(a) > chain.index(b)
    if (of_a := decimal_of(a)) and (of_b := decimal_of(b)):
        return of_a != of_b and of_a[1] >= of_b[1] and of_a[0] - of_a[1] >= of_b[0] - of_b[1]
    return False


def misfit(
    path: Path, column: str, recorded: str, found: str, *, floored: bool = False, declared: bool = False
) -> str | None:
    """Why a column of a file cannot be read as the type that is recorded; None where it can, and nothing is lost.

    `floored`: less than a microsecond does not matter. `declared`: the author has named the type, and takes other
    numbers for what they are.
    """
    then, now = kind_of(recorded), kind_of(found)
    is_said = f"is {found}, but {'source.schema says' if declared else 'was recorded as'} {recorded}"
    if then == now:
        lost = None if floored or not in_nanos(found) else _not_whole_micros(path, column)
        return lost and f"is {found}, which is read in microseconds, and has {lost} ns"
    if now == NULL and not is_nested(recorded):
        return None
    if declared and (then, now) == ("timestamp_ntz", "date"):
        return None  # its midnight
    if is_wider(now, then) or (declared and _is_number(then) and _is_number(now)):
        lost = _not_held(path, column, then)
        return lost and f"{is_said}, which cannot hold {lost}"
    if is_wider(then, now):
        return f"{is_said}: what its writer has cut off cannot be seen"
    return f"{is_said}: another meaning"


def _is_number(kind: str) -> bool:
    return kind in (*_CHAINS[0], *_CHAINS[1]) or decimal_of(kind) is not None


def is_nested(recorded: str) -> bool:
    """Tests if a type, as Arrow names it, has others inside of it."""
    return bool(re.match(r"(large_)?(list|struct|map)\b", recorded))


def _not_whole_micros(path: Path, column: str) -> str | None:
    """The first time that is not a whole number of microseconds."""
    for values in _values(path, column):
        nanos = values.cast(pa.int64())
        micros = pc.multiply(pc.divide(nanos, NANOS_PER_MICRO), NANOS_PER_MICRO)
        if (lost := _first(nanos, pc.not_equal(nanos, micros))) is not None:
            return lost
    return None


def _not_held(path: Path, column: str, kind: str) -> str | None:
    """The first value that a type of numbers does not hold exactly."""
    type_ = arrow_type(kind)
    for values in _values(path, column):
        held = _held(values, type_)
        if (lost := _first(values, pc.invert(held))) is not None:
            return lost
    return None


def _held(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Which values come back as they are from another type; null for null."""
    if pa.types.is_integer(values.type) and pa.types.is_floating(type_):
        return _held_as_float(values, type_)
    try:
        held = pc.equal(values.cast(type_).cast(values.type), values)
    except pa.ArrowInvalid:  # at least one
        if len(values) == 1:
            return pa.array([False])
        middle = len(values) // 2
        return pa.concat_arrays([_held(part, type_) for part in (values[:middle], values[middle:])])
    return pc.or_(held, pc.is_nan(values)) if pa.types.is_floating(values.type) else held


def _held_as_float(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Arrow's own check refuses every whole number beyond 2^53, of which some are held."""
    end = 2.0 ** (values.type.bit_width - (not pa.types.is_unsigned_integer(values.type)))
    near = values.cast(type_, safe=False)
    fits = pc.less(near, end)
    back = pc.if_else(fits, near, pa.scalar(0, type_)).cast(values.type, safe=False)
    return pc.and_(fits, pc.equal(back, values))


def _first(values: pa.Array, chosen: pa.Array) -> str | None:
    found = values.filter(chosen)
    return str(found[0].as_py()) if len(found) else None


def _values(path: Path, column: str) -> Iterator[pa.Array]:
    with pq.ParquetFile(path) as file:
        spelled = [name for name in file.schema_arrow.names if name.casefold() == column.casefold()]
        for batch in rows_read(path, file, columns=spelled):
            yield batch.column(0)
