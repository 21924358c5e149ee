"""Rows of JSON and CSV files: the header of a file, and its records as Spark parses them.

CSV follows RFC 4180 unless `[source.dialect]` says otherwise: a quoted value may hold delimiters, line breaks and
doubled quotes. A record that cannot be parsed or decoded is malformed. CORRUPT holds the whole record.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from posixpath import splitext
from typing import TYPE_CHECKING, Any

from windowlib.definition.mistakes import nearest
from windowlib.definition.plurals import counted, first_five
from windowlib.definition.toml.source import FileDialect, Source
from windowlib.ledger.rows import SourceFile
from windowlib.model.errors import StateMismatch
from windowlib.plans import names
from windowlib.plans.balanced import balanced
from windowlib.plans.functions import F, quoted
from windowlib.source.listed import SourceError
from windowlib.source.text import decompression as packed
from windowlib.source.text import json_lines as lines
from windowlib.source.text import quotes, surrogates
from windowlib.source.text.spelling import Spelling, as_text, spelled
from windowlib.source.uris import path_in
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

UNREADABLE = (".zip", ".zst", ".xz", ".lz4", ".7z", ".snappy", ".br", ".lzma", ".tar", ".tgz", ".rar", ".z")
FORM = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": names.CORRUPT}
NOT_DECODED = "\ufffd"  # decoders replace bytes that they cannot decode by this character


def check_file(source: Source, file: SourceFile) -> None:
    """Raises `SourceError` for an unsupported compression, `StateMismatch` for a header that does not fit."""
    path = f"{source.store}/{file.path}"
    if splitext(path)[1].casefold() in UNREADABLE:
        raise SourceError(f"{path} has an unsupported compression: decompress it, or compress it as .gz or .bz2")
    if source.format == "csv":
        columns_of(source, file)
    elif source.dialect.multi_line:
        _check_whole(path, packed.content(source.store, file), source.dialect)


def _check_whole(path: str, content: bytes, dialect: FileDialect) -> None:
    surrogates.check_whole(path, content, dialect.encoding)
    lines.check_one_record(path, content.decode(dialect.encoding, "replace"))


def columns_of(source: Source, file: SourceFile) -> list[str]:
    """Columns of a CSV file, in file order. Declared columns are spelled as in the schema.

    Raises `StateMismatch` if the first line does not name the declared columns as `source.dialect.header` demands.
    """
    declared, path = list(source.columns), f"{source.store}/{file.path}"
    if source.dialect.header == "none":
        return declared
    header = _first_record(source, file)
    if header is None:
        if source.dialect.skip_lines and file.size_bytes:
            raise StateMismatch(
                f"{path} has nothing after the {counted(source.dialect.skip_lines, 'line')} that"
                f" source.dialect.skip_lines in {source.file} skips; need the columns of [source.schema]. Correct"
                " skip_lines, or write the file with its header"
            )
        return declared
    _check_not_for_spreadsheets(source, path, header)
    spelled_as = {name.casefold(): name for name in declared}
    columns = [spelled_as.get(name.casefold(), name) for name in header]
    if source.dialect.header == "order":
        if columns != declared:
            raise StateMismatch(
                f"{path} begins with the columns {', '.join(header)}; need the columns of"
                f" [source.schema] in {source.file}: {', '.join(declared)}, in that order{_otherwise(header)}"
            )
    elif absent := [name for name in declared if name not in columns]:
        raise StateMismatch(
            f"{path} has no column {absent[0]!r}, but [source.schema] in {source.file} declares it. The file begins"
            f" with {first_five(header)}{nearest(absent[0], header)}"
        )
    if reserved := [name for name in columns if names.is_reserved(name)]:
        raise SourceError(
            f"{path}: the column {reserved[0]!r} begins with {names.RESERVED!r}, a prefix that windowlib reserves."
            " Rename the column in the file"
        )
    if alike := names.same_but_for_case(columns):
        raise SourceError(f"{path}: the columns {', '.join(map(repr, alike))} differ only in case, or not at all")
    return columns


def _check_not_for_spreadsheets(source: Source, path: str, header: Sequence[str]) -> None:
    """Raises `StateMismatch` if a file begins with `sep=…`, which tells a spreadsheet the delimiter."""
    line, dialect = source.dialect.delimiter.join(header), source.dialect
    if not (separator := re.fullmatch("sep=(.)", line, re.IGNORECASE)):
        return
    skip = f"source.dialect.skip_lines = {dialect.skip_lines + 1}"
    is_other = separator[1] != dialect.delimiter
    delimiter = f" and source.dialect.delimiter = {json.dumps(separator[1])}" if is_other else ""
    raise StateMismatch(
        f"{path} begins with the line {line!r} for spreadsheets; need the columns of [source.schema] in {source.file}."
        f" Skip that line: {skip}{delimiter}"
    )


def _otherwise(header: Sequence[str]) -> str:
    """Advice for a first line that does not have the columns in the order of the schema."""
    other = next((character for character in ";\t|" if len(header) == 1 and character in header[0]), None)
    if other:
        setting = f"source.dialect = {{ delimiter = {json.dumps(other)} }}"
        return f". Its columns are separated by {other!r}: set {setting}"
    return ', or source.dialect.header = "names"'


def no_pattern(path: str) -> str:
    """Escapes a path for Spark, which reads paths as patterns.

    >>> print(no_pattern("/in/x[1].parquet"))
    /in/x\\[1\\].parquet
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _first_record(source: Source, file: SourceFile) -> list[str] | None:
    dialect = source.dialect
    escape = dialect.escape if dialect.escape != dialect.quote else ""
    with packed.decoded(source.store, file, dialect.encoding, dialect.skip_lines) as lines:
        form: dict[str, Any] = {"delimiter": dialect.delimiter, "quotechar": dialect.quote}
        records = csv.reader(lines, **form, doublequote=not escape, escapechar=escape or None)
        return next((record for record in records if record), None)


def read(spark: SparkSession, source: Source, files: Sequence[SourceFile], staging: Store) -> DataFrame:
    """Records of JSON or CSV files: the declared columns, CORRUPT, SOURCE_FILE. Copies are kept in `staging`."""
    if source.format == "json":
        read = _decoded(_json(spark, source, files, staging), source, list(source.columns))
        nested = {name: F.col(_path(path)) for name, path in source.nested.items()}
        return read.withColumns(nested) if nested else read  # Spark Connect refuses an empty mapping
    skips, store, plain = source.dialect.skip_lines, source.store, staging.below("plain")
    read_from = packed.copies(store, files, source.dialect.encoding, plain, skips) if skips else files
    folder = plain.url if skips else store.url
    alike: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    forms = at_once(lambda file: (quotes.may_have_longer_records(source, file), tuple(columns_of(source, file))), files)
    for form, copy in zip(forms, read_from, strict=True):
        alike.setdefault(form, []).append(f"{folder}/{copy.path}")
    of_copies = _in_utf8(source) if skips else source
    parts = [_csv(spark, of_copies, columns, paths, longer) for (longer, columns), paths in alike.items()]
    read = balanced(lambda a, b: a.unionByName(b), parts)
    return packed.of_originals(read, store, files) if skips else read


def _in_utf8(source: Source) -> Source:
    return source.model_copy(update={"dialect": source.dialect.model_copy(update={"encoding": "UTF-8"})})


def _json(spark: SparkSession, source: Source, files: Sequence[SourceFile], staging: Store) -> DataFrame:
    """Records of JSON files. Files that Spark would misread are copied to plain UTF-8 first.

    Spark rounds numbers to doubles in other encodings, and in compressed files whose records have several lines.
    """
    dialect, store, ends = source.dialect, source.store, (*packed.PACKED,)
    rewritten = [f for f in files if dialect.encoding != "UTF-8" or (dialect.multi_line and f.path.endswith(ends))]
    others = [file for file in files if file not in rewritten]
    parts = [_plain_json(spark, source, (store, others), staging)] if others else []
    if rewritten:
        plain = staging.below("plain")
        copied = plain, packed.copies(store, rewritten, dialect.encoding, plain)
        read = _plain_json(spark, source, copied, staging.below("copies"))
        parts.append(packed.of_originals(read, store, rewritten))
    return balanced(lambda a, b: a.unionByName(b), parts)


def _plain_json(
    spark: SparkSession, source: Source, stored: tuple[Store, Sequence[SourceFile]], staging: Store
) -> DataFrame:
    """Records of JSON files in UTF-8. Files with odd lines (see `json_lines`) are read line by line.

    stored: the files, and the store that has them
    """
    (store, files), columns, whole = stored, list(source.columns), bool(source.dialect.multi_line)
    are_suspect = [] if whole else at_once(lambda file: lines.may_be_odd(store, file), files)
    suspects = [file for file, is_suspect in zip(files, are_suspect, strict=not whole) if is_suspect]
    paths = [no_pattern(f"{store.url}/{file.path}") for file in suspects]
    suspect_lines = lines.read(spark, paths) if paths else None
    odd = lines.odd_files(suspect_lines) if suspect_lines is not None else []
    by_line = {path_in(store, uri) for uri in odd}
    others = [f"{store.url}/{file.path}" for file in files if file.path not in by_line]
    parts = [_loaded(spark, source, columns, others, {"multiLine": whole})] if others else []
    if suspect_lines is not None and odd:
        parts += _by_line(spark, source, suspect_lines, odd, f"{staging.url}/lines")
    return balanced(lambda a, b: a.unionByName(b), parts)


def _by_line(
    spark: SparkSession, source: Source, suspect_lines: DataFrame, odd: Sequence[str], folder: str
) -> list[DataFrame]:
    """Records of files with odd lines. CORRUPT holds each odd line. The other lines are copied to `folder`."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    schema = _as_read(source, list(source.columns))
    lines.copy_other_lines(suspect_lines, odd, folder)
    numbered = StructType([*schema, StructField(lines.NUMBER, IntegerType())])
    read = spark.read.schema(numbered).options(**FORM).json(no_pattern(folder))
    of_file = F.element_at(F.array(*map(F.lit, odd)), F.col(lines.NUMBER) + 1).alias(names.SOURCE_FILE)
    no_values = (F.lit(None).cast(field.dataType).alias(field.name) for field in schema if field.name != names.CORRUPT)
    refused = suspect_lines.where(lines.is_odd(F.col("value")))
    return [
        read.select(*(F.col(quoted(field.name)) for field in schema), of_file),
        refused.select(*no_values, F.col("value").alias(names.CORRUPT), names.SOURCE_FILE),
    ]


def _csv(spark: SparkSession, source: Source, columns: Sequence[str], paths: Sequence[str], longer: bool) -> DataFrame:
    """Records of CSV files with these columns, in this order. With `longer`, a record may have several lines."""
    dialect = source.dialect
    options = {
        "header": dialect.header != "none",
        "enforceSchema": False,
        "sep": dialect.delimiter,
        "quote": dialect.quote,
        "escape": dialect.escape or dialect.quote,
        "maxCharsPerColumn": -1,
        "multiLine": longer,
    }
    return _decoded(_loaded(spark, source, columns, paths, options), source, columns)


def _loaded(
    spark: SparkSession, source: Source, columns: Sequence[str], paths: Sequence[str], options: dict[str, Any]
) -> DataFrame:
    form: dict[str, Any] = {**FORM}
    if source.format == "csv" and source.dialect.encoding != "UTF-8":
        form["encoding"] = source.dialect.encoding
    reader = spark.read.schema(_as_read(source, columns)).options(**form, **options)
    loaded = reader.format(source.format).load([*map(no_pattern, paths)])
    return loaded.select("*", loaded.metadataColumn("_metadata")["file_path"].alias(names.SOURCE_FILE))


def _declared(source: Source, columns: Sequence[str]) -> StructType:
    """Declared types of a file's columns. Columns that the schema does not name are strings."""
    from pyspark.sql.types import DataType, StructType

    kinds = source.columns
    schema = DataType.fromDDL(", ".join(f"{quoted(name)} {kinds.get(name, 'string')}" for name in columns))
    assert isinstance(schema, StructType)
    return schema


def _as_read(source: Source, columns: Sequence[str]) -> StructType:
    """Schema that Spark reads: fractional numbers and times as strings, and CORRUPT."""
    from pyspark.sql.types import StructType

    schema = as_text(_declared(source, columns))
    assert isinstance(schema, StructType)
    return schema.add(names.CORRUPT, "string")


def _path(path: str) -> str:
    return ".".join(map(quoted, path.split(".")))


def _decoded(loaded: DataFrame, source: Source, columns: Sequence[str]) -> DataFrame:
    """Parses the declared columns.

    If a value of a record cannot be decoded or parsed, CORRUPT holds the record as JSON.
    """
    in_json = source.format == "json"
    broken, values = F.lit(False), dict[str, "Column"]()
    for number, field in enumerate(_declared(source, columns)):
        own, is_time = F.col(quoted(field.name)), field.name == source.in_files(source.timestamp)
        parsed = spelled(own, field.dataType, Spelling(source.dialect, in_json, floored=is_time))
        values[name := names.internal(f"value{number}")] = parsed.value
        broken = broken | _not_decoded(own, as_text(field.dataType)) | parsed.broken_by(F.col(name))
    if not in_json:
        last = columns[-1]  # if a file mixes line breaks, the last value may end with "\r"
        if source.columns.get(last, "string") == "string":
            broken = broken | F.coalesce(F.col(quoted(last)).endswith("\r"), F.lit(False))
    whole = F.to_json(F.struct(*map(quoted, columns)))
    corrupt = F.make_valid_utf8(F.coalesce(F.col(names.CORRUPT), F.when(broken, whole))).alias(names.CORRUPT)
    read = dict(zip(columns, map(F.col, values), strict=True))
    valued = loaded.withColumns(values)
    return valued.select(*(read[name].alias(name) for name in source.columns), corrupt, names.SOURCE_FILE)


def _not_decoded(value: Column, kind: DataType) -> Column:
    """Tests if a value that was read as type `kind` has a string that could not be decoded."""
    from pyspark.sql.types import AtomicType, StringType

    if isinstance(kind, AtomicType) and not isinstance(kind, StringType):
        return F.lit(False)
    text = value if isinstance(kind, StringType) else F.to_json(value)
    return F.coalesce(text.contains(NOT_DECODED), F.lit(False))
