"""Field types of a definition, each with its check: durations, paths, names."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from windowlib.definition.instants import zone_of
from windowlib.definition.mistakes import name_for, nesting, renaming
from windowlib.definition.toml.durations import ALLOWED, parse_duration
from windowlib.definition.toml.retention import RetentionPeriod
from windowlib.definition.toml.spark_types import is_field
from windowlib.storage.address import is_remote, store_at

LONGEST_NAME = 255  # bytes: the limit of common file systems


def _positive(duration_ms: int) -> int:
    if duration_ms <= 0:
        raise ValueError("must be greater than 0")
    return duration_ms


def _not_negative(duration_ms: int) -> int:
    if duration_ms < 0:
        raise ValueError("must not be negative")
    return duration_ms


def _local(path: str) -> str:
    if "://" in path or not path:
        raise ValueError("must be a path on this machine")
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(path).parts):
        raise ValueError(f"must be a path; no file's name has more than {LONGEST_NAME} bytes")
    return path


def _place(address: str) -> str:
    return store_at(address).url if is_remote(address) else _local(address)


def _not_empty(column: str) -> str:
    if not column:
        raise ValueError("must not be empty")
    return column


def _pattern(pattern: str) -> str:
    if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
        raise ValueError('must be a pattern of names below source.path, such as "*.parquet" or "2026/*"')
    return pattern


def _key_column(column: str, info: ValidationInfo) -> str:
    if not column or set(column) & set(" ,;{}()\n\t=`."):
        called = name_for(column)
        source = (info.context or {}).get("source")
        is_in_object = isinstance(source, dict) and source.get("format") == "json" and is_field(source, column)
        how = nesting(column) if is_in_object else renaming(column, called)
        what = f'{how} and write "{called}" here'
        raise ValueError(f"cannot name a column of a Delta table (no blanks, no . , ; {{ }} ( ) = `): {what}")
    return column


def _output_name(name: str) -> str:
    if not name.isidentifier():
        raise ValueError("cannot name an output column (letters, digits and _, without a digit at the start)")
    return name


def _cron(schedule: str) -> str:
    if len(schedule.split()) != 5 and schedule not in ("@hourly", "@daily", "@weekly", "@monthly"):
        raise ValueError("must have five fields")
    return schedule


def _time_format(pattern: str) -> str:
    letters = re.sub(r"'[^']*'", "", pattern)
    unknown = sorted(set(re.findall(r"[A-Za-z]", letters)) - set("GyMLdDEFaHhKkmsSVzOXxZQq"))
    if unknown or not all(re.search(f"[{choice}]", letters) for choice in ("y", "MLD", "dD")):
        problem = f"has letters without a meaning: {', '.join(unknown)}" if unknown else "lacks year, month or day"
        raise ValueError(f'{problem}; need a pattern such as "dd.MM.yyyy HH:mm:ss", literal letters in single quotes')
    return pattern


def _time_zone(name: str) -> str:
    return zone_of(name).key


def _locale(name: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Z]{2})?", name):
        raise ValueError('must be a language and a country, such as "de-DE" or "en-GB"')
    return name


def _kept(text: object) -> RetentionPeriod:
    return text if isinstance(text, RetentionPeriod) else RetentionPeriod.parse(text)


def _class(reference: str) -> str:
    module, _, name = reference.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise ValueError('must have the form "module:Class"')
    return reference


def _near(address: Any, info: ValidationInfo) -> Path | str:
    if not isinstance(address, str):
        raise ValueError("must be a string")
    place = _place(address)
    return place if is_remote(place) else resolved((info.context or {})["folder"], place)


def _tuple(columns: Any) -> Any:
    return tuple(columns) if isinstance(columns, list) else columns


Duration = Annotated[int, BeforeValidator(parse_duration)]
Positive = Annotated[Duration, AfterValidator(_positive)]
NotNegative = Annotated[Duration, AfterValidator(_not_negative)]
PlaceNearby = Annotated[Path | str, BeforeValidator(_near)]  # a path relative to the definition, or an address
Folder = Annotated[str, AfterValidator(_place)]
Column = Annotated[str, AfterValidator(_not_empty)]
Columns = Annotated[tuple[Column, ...], BeforeValidator(_tuple)]
Patterns = Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], BeforeValidator(_tuple)]
KeyColumn = Annotated[str, AfterValidator(_key_column)]
KeyColumns = Annotated[tuple[KeyColumn, ...], BeforeValidator(_tuple)]
OutputName = Annotated[str, AfterValidator(_output_name)]
KeptCuts = Annotated[RetentionPeriod, BeforeValidator(_kept)]
Schedule = Annotated[str, AfterValidator(_cron)]
TimeFormat = Annotated[str, AfterValidator(_time_format)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
Locale = Annotated[str, AfterValidator(_locale)]


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an address that begins with https:// or http://")
    return url


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(
            "must be the name of an environment variable (letters, digits and _, without a digit at the start)"
        )
    return name


def _import_path(path: str) -> str:
    if "." not in path or not all(part.isidentifier() for part in path.split(".")):
        raise ValueError('must have the form "package.module.Class"')
    return path


Address = Annotated[str, AfterValidator(_address)]
Variable = Annotated[str, AfterValidator(_variable)]
ImportPath = Annotated[str, AfterValidator(_import_path)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]
Tags = Annotated[tuple[Tag, ...], BeforeValidator(_tuple)]
PythonClass = Annotated[str, AfterValidator(_class)]
Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(allow_inf_nan=False)]


class Section(BaseModel):
    """A table of the TOML file: unknown keys are mistakes, and nothing is converted silently."""

    # Deferred, so that pydantic builds all sections once with the file's model. That saves a quarter of the start-up.
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, ignored_types=(cached_property,), defer_build=True
    )


def duration(key: str, text: str, default: Any = ...) -> Any:
    """Field for a duration. The name of the field ends in the unit, but its TOML key does not."""
    value = parse_duration(default) if isinstance(default, str) else default
    return Field(default=value, alias=key, description=f"{text}, {ALLOWED}")


def resolved(folder: Path, path: str) -> Path:
    """Resolves a path in a definition to an absolute path; `folder` is the definition's folder."""
    return Path(os.path.normpath(folder / os.path.expanduser(path)))  # `~` of an unknown user stays as written
