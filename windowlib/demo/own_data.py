"""Definition for a folder of the reader's own files, with guessed time and key columns.

* Time: the first column of timestamps. Otherwise the first column of integers with a name about time, if most values
  are seconds, milliseconds or microseconds of this century. (A clock that was reset starts at 1970.)
* Key: the first column of strings or integers with the name of a person, client or device (`user_id`, `client`, …).

Both are guessed from the first rows of the first file. Options override the guesses.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from windowlib.model.errors import InvalidSpec

FORMATS = ("parquet", "json", "csv")
SAMPLE_ROWS = 1000
BATCHES = 20
_IDENTIFIER = re.compile(r"(?i)(user|client|customer|visitor|account|device|session|sensor|host|ip|key)(_?id)?$")
_ABOUT_TIME = re.compile(r"(?i)(time|date|^ts$|_ts$|_at$|epoch)")
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6}
_YEAR_2000_S, _YEAR_2100_S = 946_684_800, 4_102_444_800
_SPARK_TYPES = (
    (pa.types.is_integer, "bigint"),
    (pa.types.is_floating, "double"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_null, "string"),
)


@dataclass(frozen=True, slots=True)
class OwnData:
    """A folder of files of one format, and the columns to use; ``timestamp_unit`` is None for timestamps."""

    folder: Path
    format: str
    files: int
    key: str
    timestamp: str
    timestamp_unit: str | None
    columns: dict[str, str]


def inspect_files(folder: Path, key: str | None = None, timestamp: str | None = None) -> OwnData:
    """Finds format, key and time of the files in ``folder``. Raises InvalidSpec if a part cannot be found."""
    format, files = _files(folder)
    try:
        sample = _with_times(ds.dataset(files[0], format=format).head(SAMPLE_ROWS))
    except (pa.ArrowException, OSError) as error:
        raise InvalidSpec(f"{files[0]}: cannot be read as {format}: {error}") from error
    for column, option in ((key, "--key"), (timestamp, "--timestamp")):
        if column and column not in sample.column_names:
            raise InvalidSpec(f"{option} {column}: {files[0]} has no such column, only {_listed(sample)}")
    time_column, unit = _time(sample, timestamp)
    key_column = key or _key(sample, time_column)
    columns = {name: kind for name in sample.column_names if (kind := _spark_type(sample[name].type))}
    return OwnData(folder, format, len(files), key_column, time_column, unit, columns)


def definition_text(data: OwnData, name: str, window: str, engine: str = "spark") -> str:
    """Definition in TOML that counts the rows of each key. ``window`` is the text under ``[window]``."""
    unit = f'timestamp_unit = "{data.timestamp_unit}"\n' if data.timestamp_unit else ""
    schema = ""
    if data.format != "parquet":
        columns = (f"{json.dumps(column)} = {json.dumps(kind)}\n" for column, kind in data.columns.items())
        schema = "\n[source.schema]\n" + "".join(columns)
    return f"""\
name = "{name}"
warehouse = "warehouse"
engine = "{engine}"

[source]
format = "{data.format}"
path = {json.dumps(str(data.folder.absolute()))}
key = [{json.dumps(data.key)}]
timestamp = {json.dumps(data.timestamp)}
{unit}max_files_per_run = {-(-data.files // BATCHES)}                   # files a batch, oldest first
{schema}
[watermark]
out_of_orderness = "5m"                 # raise it when too many events are late

[window]
{window}
allowed_lateness = "1h"

[aggregates]
events = "count(*)"
"""


def _files(folder: Path) -> tuple[str, list[Path]]:
    if not folder.is_dir():
        raise InvalidSpec(f"{folder}: no such folder")
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(("_", "."))]
    formats = {path.suffix.removeprefix(".") for path in files}
    if len(formats) != 1 or not formats <= set(FORMATS):
        actual = ", ".join(sorted(formats)) or "no files"
        raise InvalidSpec(f"{folder}: found {actual}; need files of one format, {', '.join(FORMATS)}")
    return formats.pop(), sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))


def _with_times(sample: pa.Table) -> pa.Table:
    """Converts string columns to timestamps if Spark would read every string of the column as a timestamp."""
    for number, column in enumerate(sample.columns):
        is_text = pa.types.is_string(column.type) and column.null_count < len(column)
        if is_text and (times := _as_times(column)) is not None:
            sample = sample.set_column(number, sample.column_names[number], times)
    return sample


def _as_times(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    for kind in (pa.timestamp("us", tz="UTC"), pa.timestamp("us")):  # with and without a time zone
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def _time(sample: pa.Table, option: str | None) -> tuple[str, str | None]:
    candidates = [option] if option else sample.column_names
    for name in candidates:
        if pa.types.is_timestamp(sample[name].type):
            return name, None
    for name in candidates:
        is_about_time = pa.types.is_integer(sample[name].type) and (option or _ABOUT_TIME.search(name))
        if is_about_time and (unit := _unit(sample[name].drop_null().to_pylist())):
            return name, unit
    if option:
        raise InvalidSpec(
            f"--timestamp {option}: the column is {sample[option].type}; need timestamps, ISO 8601 strings, or Unix"
            " times in s, ms or us, mostly between 2000 and 2100. For other forms, write a definition with"
            " source.timestamp_unit or source.dialect.timestamp_format"
        )
    raise InvalidSpec(f"no column with times among {_listed(sample)}; name one with --timestamp")


def _unit(numbers: Sequence[int]) -> str | None:
    for unit, factor in _UNITS.items():
        if 2 * sum(_YEAR_2000_S * factor <= number < _YEAR_2100_S * factor for number in numbers) > len(numbers):
            return unit
    return None


def _key(sample: pa.Table, timestamp: str) -> str:
    name: str
    for name in sample.column_names:
        kind = sample[name].type
        if name != timestamp and _IDENTIFIER.search(name) and (pa.types.is_string(kind) or pa.types.is_integer(kind)):
            return name
    raise InvalidSpec(f"no column with keys among {_listed(sample)}; name one with --key")


def _spark_type(kind: pa.DataType) -> str | None:
    return next((spark for matches, spark in _SPARK_TYPES if matches(kind)), None)


def _listed(sample: pa.Table) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in sample.schema)
