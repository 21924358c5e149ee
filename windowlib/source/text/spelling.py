"""What a text says as a number or a time: exactly that, or nothing.

Engines are kind to texts: Spark leaves commas out of decimals, rounds what has too many digits, and takes a time
without a day for one of today. So such values are read as texts (`as_text`), must look like what they are declared as,
lose nothing when they are cast (`spelled`), and are malformed otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowlib.definition.toml.locales import decimal_mark
from windowlib.definition.toml.source import Dialect
from windowlib.plans.functions import F

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column
    from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructType

GROUPS = ".,'\u2019\u00a0\u202f\u2009 "  # what sets thousands apart, unless it is the decimal mark
EXPONENT = r"(?:[eE][+-]?\d{1,4})?"
NOT_FINITE = r"\A *(?:NaN|[+-]?I(?:nf(?:inity)?|NF)) *\z"
DAY = r"\d{4,6}-\d{1,2}-\d{1,2}"
CLOCK = r"[T ]\d{1,2}:\d{1,2}(?::\d{1,2}"
MICROS, ANY_FRACTION = r"(?:\.\d{1,6}0*)?)?", r"(?:\.\d+)?)?"
ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?|[A-Z][A-Za-z_]+/[A-Za-z_/+-]+))?"
WITHOUT_SECONDS = (
    rf"\A( *{DAY}[T ]\d{{1,2}}:\d{{1,2}})( ?[A-Z+-].*)\z"  # though with a zone, which Spark takes for no time
)
ONE_VALUE = {"sep": "\x01", "quote": ""}  # of a text that is one value of CSV, whatever stands in it
NOT_ONE_VALUE = r"[\x01\r\n]"


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the values of some files are written.

    in_json: an empty text is not a null, and numbers are written as JSON has them, whatever the locale
    floored: what is less than a microsecond does not matter
    """

    dialect: Dialect
    in_json: bool
    floored: bool = False


@dataclass(frozen=True, slots=True)
class SpelledColumn:
    """A column of values that were read of texts; `broken_by` says, from it, where a text says nothing of the type."""

    value: Column
    broken_by: Callable[[Column], Column]

    @property
    def is_broken(self) -> Column:
        """The same without the values at hand; never null."""
        return self.broken_by(self.value)


def as_text(kind: DataType) -> DataType:
    """What a type is read as, so that `spelled` can look at the values."""
    from pyspark.sql import types as of

    match kind:
        case of.FractionalType() | of.DateType() | of.TimestampType() | of.TimestampNTZType():
            return of.StringType()
        case of.ByteType():  # 200 of JSON would be read as -56
            return of.ShortType()
        case of.ArrayType():
            return of.ArrayType(as_text(kind.elementType))
        case of.MapType():
            return of.MapType(kind.keyType, as_text(kind.valueType))
        case of.StructType():
            return of.StructType([of.StructField(one.name, as_text(one.dataType)) for one in kind])
    return kind


def spelled(given: Column, kind: DataType, spelling: Spelling) -> SpelledColumn:
    """The values of a column that was read as `as_text` has its type."""
    from pyspark.sql import types as of

    if as_text(kind) == kind:
        return SpelledColumn(given, lambda _: F.lit(False))
    match kind:
        case of.ArrayType():
            return _elements(given, kind, spelling)
        case of.MapType():
            return _values(given, kind, spelling)
        case of.StructType():
            return _fields(given, kind, spelling)
        case of.ByteType():
            return SpelledColumn(given.try_cast(kind), lambda found: given.isNotNull() & found.isNull())
    text = given if spelling.in_json else F.nullif(given, F.lit(""))
    value = _leaf(text, kind, spelling)
    return SpelledColumn(value, lambda found: text.isNotNull() & found.isNull())


def _elements(given: Column, kind: ArrayType, spelling: Spelling) -> SpelledColumn:
    of_one = _of_each(kind.elementType, spelling)
    broken = F.exists(given, lambda one: of_one(one).is_broken)
    return SpelledColumn(F.transform(given, lambda one: of_one(one).value), lambda _: F.coalesce(broken, F.lit(False)))


def _values(given: Column, kind: MapType, spelling: Spelling) -> SpelledColumn:
    of_one = _of_each(kind.valueType, spelling)
    broken = F.exists(F.map_values(given), lambda one: of_one(one).is_broken)
    value = F.transform_values(given, lambda _, one: of_one(one).value)
    return SpelledColumn(value, lambda _: F.coalesce(broken, F.lit(False)))


def _fields(given: Column, kind: StructType, spelling: Spelling) -> SpelledColumn:
    fields = {one.name: spelled(given.getField(one.name), one.dataType, spelling) for one in kind}
    whole, broken = F.struct(*(one.value.alias(name) for name, one in fields.items())), F.lit(False)
    for one in fields.values():
        broken = broken | one.is_broken
    return SpelledColumn(F.when(given.isNotNull(), whole), lambda _: broken)


def _of_each(kind: DataType, spelling: Spelling) -> Callable[[Column], SpelledColumn]:
    return lambda one: spelled(one, kind, spelling)


def _leaf(text: Column, kind: DataType, spelling: Spelling) -> Column:
    """The value of a text; null where it is none of the type."""
    from pyspark.sql import types as of

    match kind:
        case of.DecimalType():
            return _decimal(text, kind, spelling)
        case of.FractionalType():
            return _double(text, kind, spelling)
        case of.DateType():
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
    """A number's text as engines take it: without marks between thousands, with a decimal point; else null."""
    locale = None if spelling.in_json else spelling.dialect.locale
    mark = decimal_mark(locale)
    assert mark, "the definition has been checked"
    groups = "".join(one for one in GROUPS if one != mark) if locale else ""
    whole = rf"(?:\d{{1,3}}(?:([{groups}])\d{{3}}(?:\1\d{{3}})*)|\d+)" if groups else r"\d+"
    number = rf"[+-]?(?:{whole}(?:[{mark}]\d*)?|[{mark}]\d+){EXPONENT}"
    without = F.translate(text, groups + " ", "")
    return F.when(_is(text, number), F.translate(without, mark, "."))


def _time(text: Column, kind: DataType, spelling: Spelling) -> Column:
    dialect, has_zone = spelling.dialect, kind.simpleString() == "timestamp"
    of_day = CLOCK + (ANY_FRACTION if spelling.floored else MICROS) + (ZONE if has_zone else "")
    if dialect.timestamp_format:
        return F.when(~text.rlike(NOT_ONE_VALUE), _read(text, kind, dialect))
    with_seconds = F.regexp_replace(text, WITHOUT_SECONDS, "$1:00$2")  # costs as much as all else, so only if it must
    read = F.coalesce(_read(text, kind, dialect), _read(with_seconds, kind, dialect))
    return F.when(_is(text, f"{DAY}(?:{of_day})?"), read)


def _read(text: Column, kind: DataType, dialect: Dialect) -> Column:
    """A time by the dialect's pattern and zone, by Spark's own rules where it has neither; null where it is none."""
    if not dialect.timestamp_format and not dialect.time_zone:
        return F.trim(text).try_cast(kind)
    written = {"timestampFormat": dialect.timestamp_format, "timestampNTZFormat": dialect.timestamp_format}
    written |= {"timeZone": dialect.time_zone, "locale": dialect.locale}
    form = ONE_VALUE | {option: value for option, value in written.items() if value}
    return F.from_csv(F.trim(text), f"value {kind.simpleString()}", form).getField("value")


def _is(text: Column, pattern: str) -> Column:
    """Whether a text is of this form from its beginning to its end, but for blanks."""
    return text.rlike(rf"\A *(?:{pattern}) *\z")
