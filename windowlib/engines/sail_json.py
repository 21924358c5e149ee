"""Rows as JSON on Sail, which writes a decimal as the double next to it, and -0.5 as 0.5.

So decimals become texts before: those of a column of their own numbers again, those within structs, arrays and maps
stay texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowlib.plans import names
from windowlib.plans.functions import F, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

MARK = "windowlib:decimal:"  # before the text of a decimal, until it is a number again


def as_json(rows: DataFrame, columns: Sequence[str]) -> Column:
    """Some columns of `rows` as one JSON object."""
    types = {field.name: field.dataType for field in rows.schema}
    text = F.to_json(F.struct(*(_exact(quoted(name), types[name]).alias(names.plain(name)) for name in columns)))
    return F.regexp_replace(text, f'"{MARK}([^"]*)"', "$1")


def _exact(name: str, of: DataType) -> Column:
    column, texts = F.col(name), _with_texts(of)
    if of.typeName() == "decimal":
        return F.concat(F.lit(MARK), column.cast("string"))
    return column if texts == of else column.cast(texts)


def _with_texts(of: DataType) -> DataType:
    """A type with texts in the place of decimals."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StringType, StructField, StructType

    match of:
        case DecimalType():
            return StringType()
        case StructType():
            return StructType([StructField(one.name, _with_texts(one.dataType), one.nullable) for one in of.fields])
        case ArrayType():
            return ArrayType(_with_texts(of.elementType), of.containsNull)
        case MapType():
            return MapType(of.keyType, _with_texts(of.valueType), of.valueContainsNull)
    return of
