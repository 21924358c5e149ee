"""Exact parsing of numbers and times from strings.

Engines parse strings leniently: Spark removes commas from decimals, rounds numbers with too many digits, and adds
today's date to a time without a date. So such values are read as strings (`as_text`). A value is malformed if its
string does not have the form of the declared type, or if the cast would lose digits (`spelled`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.definition.toml.locales import decimal_mark
from windowlib.definition.toml.source import FileDialect
from windowlib.plans.functions import F

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column
    from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructType

GROUPS = ".,'\u2019\u00a0\u202f\u2009 "  # separators of thousands, except for the decimal mark
EXPONENT = r"(?:[eE][+-]?\d{1,4})?"
NOT_FINITE = r"\A *(?:NaN|[+-]?I(?:nf(?:inity)?|NF)) *\z"
DAY = r"\d{4,6}-\d{1,2}-\d{1,2}"
CLOCK = r"[T ]\d{1,2}:\d{1,2}(?::\d{1,2}"
MICROS, ANY_FRACTION = r"(?:\.\d{1,6}0*)?)?", r"(?:\.\d+)?)?"
ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?|[A-Z][A-Za-z_]+/[A-Za-z_/+-]+))?"
WITHOUT_SECONDS = (
    rf"\A( *{DAY}[T ]\d{{1,2}}:\d{{1,2}})( ?[A-Z+-].*)\z"  # with a zone, which Spark parses only after seconds
)
ONE_VALUE = {"sep": "\x01", "quote": ""}  # options that make any text one value of CSV
NOT_ONE_VALUE = r"[\x01\r\n]"


@dataclass(frozen=True, slots=True)
class Spelling:
    """Rules by which the values in some files are parsed.

    in_json: an empty string is not null, and numbers are spelled as in JSON, whatever the locale
    floored: fractions of a microsecond may be lost
    """

    dialect: FileDialect
    in_json: bool
    floored: bool = False


@dataclass(frozen=True, slots=True)
class SpelledColumn:
    """Values parsed from a string column.

    broken_by: tests, given the column of parsed values, if a string is not a value of the type
    """

    value: Column
    broken_by: Callable[[Column], Column]

    @property
    def is_broken(self) -> Column:
        """True if the string is not a value of the type. It is never null."""
        return self.broken_by(self.value)


def as_text(kind: DataType) -> DataType:
    """Type that values of type `kind` are read as, so that `spelled` can check their strings."""
    from pyspark.sql import types

    match kind:
        case types.FractionalType() | types.DateType() | types.TimestampType() | types.TimestampNTZType():
            return types.StringType()
        case types.ByteType():  # 200 of JSON would be read as -56
            return types.ShortType()
        case types.ArrayType():
            return types.ArrayType(as_text(kind.elementType))
        case types.MapType():
            return types.MapType(kind.keyType, as_text(kind.valueType))
        case types.StructType():
            return types.StructType([types.StructField(field.name, as_text(field.dataType)) for field in kind])
    return kind


def spelled(column: Column, kind: DataType, spelling: Spelling) -> SpelledColumn:
    """Parses a column that was read as `as_text(kind)`."""
    from pyspark.sql import types

    if as_text(kind) == kind:
        return SpelledColumn(column, lambda _: F.lit(False))
    match kind:
        case types.ArrayType():
            return _elements(column, kind, spelling)
        case types.MapType():
            return _values(column, kind, spelling)
        case types.StructType():
            return _fields(column, kind, spelling)
        case types.ByteType():
            return SpelledColumn(column.try_cast(kind), lambda value: column.isNotNull() & value.isNull())
    text = column if spelling.in_json else F.nullif(column, F.lit(""))
    value = _leaf(text, kind, spelling)
    return SpelledColumn(value, lambda read: text.isNotNull() & read.isNull())


def _elements(column: Column, kind: ArrayType, spelling: Spelling) -> SpelledColumn:
    spell = _each_spelled(kind.elementType, spelling)
    broken = F.exists(column, lambda element: spell(element).is_broken)
    value = F.transform(column, lambda element: spell(element).value)
    return SpelledColumn(value, lambda _: F.coalesce(broken, F.lit(False)))


def _values(column: Column, kind: MapType, spelling: Spelling) -> SpelledColumn:
    spell = _each_spelled(kind.valueType, spelling)
    broken = F.exists(F.map_values(column), lambda element: spell(element).is_broken)
    value = F.transform_values(column, lambda _, element: spell(element).value)
    return SpelledColumn(value, lambda _: F.coalesce(broken, F.lit(False)))


def _fields(column: Column, kind: StructType, spelling: Spelling) -> SpelledColumn:
    parts = {field.name: spelled(column.getField(field.name), field.dataType, spelling) for field in kind}
    whole, broken = F.struct(*(part.value.alias(name) for name, part in parts.items())), F.lit(False)
    for part in parts.values():
        broken = broken | part.is_broken
    return SpelledColumn(F.when(column.isNotNull(), whole), lambda _: broken)


def _each_spelled(kind: DataType, spelling: Spelling) -> Callable[[Column], SpelledColumn]:
    return lambda element: spelled(element, kind, spelling)


def _leaf(text: Column, kind: DataType, spelling: Spelling) -> Column:
    """Parses a string column as a primitive type; null if a string is not a value of the type."""
    from pyspark.sql import types

    match kind:
        case types.DecimalType():
            return _decimal(text, kind, spelling)
        case types.FractionalType():
            return _double(text, kind, spelling)
        case types.DateType():
            return F.when(_is(text, DAY), F.trim(text).try_cast(kind))
    return _time(text, kind, spelling)


def _decimal(text: Column, kind: DecimalType, spelling: Spelling) -> Column:
    plain = _plain(text, spelling)
    digits = F.length(F.regexp_extract(plain, r"\.(\d*?)0*(?:[eE]|\z)", 1))
    exponent = F.coalesce(F.regexp_extract(plain, r"[eE]([+-]?\d+)\z", 1).try_cast("int"), F.lit(0))
    return F.when(digits - exponent <= kind.scale, plain.try_cast(kind))  # else it would be rounded


def _double(text: Column, kind: DataType, spelling: Spelling) -> Column:
    value, not_finite = _plain(text, spelling).try_cast(kind), text.rlike(NOT_FINITE)
    finite = F.when(F.abs(value) < float("inf"), value)  # 1e400 is not infinite
    return F.when(not_finite, F.trim(text).try_cast(kind)).otherwise(finite)


def _plain(text: Column, spelling: Spelling) -> Column:
    """Removes separators of thousands from a number, and sets a decimal point. Other strings become null."""
    locale = None if spelling.in_json else spelling.dialect.locale
    mark = decimal_mark(locale)
    assert mark, "the definition has been checked"
    groups = "".join(character for character in GROUPS if character != mark) if locale else ""
    whole = rf"(?:\d{{1,3}}(?:([{groups}])\d{{3}}(?:\1\d{{3}})*)|\d+)" if groups else r"\d+"
    number = rf"[+-]?(?:{whole}(?:[{mark}]\d*)?|[{mark}]\d+){EXPONENT}"
    without = F.translate(text, groups + " ", "")
    return F.when(_is(text, number), F.translate(without, mark, "."))


def _time(text: Column, kind: DataType, spelling: Spelling) -> Column:
    dialect, has_zone = spelling.dialect, kind.simpleString() == "timestamp"
    of_day = CLOCK + (ANY_FRACTION if spelling.floored else MICROS) + (ZONE if has_zone else "")
    if dialect.timestamp_format:
        return F.when(~text.rlike(NOT_ONE_VALUE), _read(text, kind, dialect))
    with_seconds = F.regexp_replace(text, WITHOUT_SECONDS, "$1:00$2")  # costly, so it is only tried second
    read = F.coalesce(_read(text, kind, dialect), _read(with_seconds, kind, dialect))
    return F.when(_is(text, f"{DAY}(?:{of_day})?"), read)


def _read(text: Column, kind: DataType, dialect: FileDialect) -> Column:
    """Parses a time by the dialect's pattern and zone, or by Spark's rules without them. Other strings become null."""
    if not dialect.timestamp_format and not dialect.time_zone:
        return F.trim(text).try_cast(kind)
    written = {"timestampFormat": dialect.timestamp_format, "timestampNTZFormat": dialect.timestamp_format}
    written |= {"timeZone": dialect.time_zone, "locale": dialect.locale}
    form = ONE_VALUE | {option: value for option, value in written.items() if value}
    return F.from_csv(F.trim(text), f"value {kind.simpleString()}", form).getField("value")


def _is(text: Column, pattern: str) -> Column:
    """Tests if a whole string has the form `pattern`, apart from spaces at both ends."""
    return text.rlike(rf"\A *(?:{pattern}) *\z")
