"""`[source]` and `[source.dialect]` of a definition's TOML file: the input and its format."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, field_validator

from windowlib.definition.toml.fields import (
    Column,
    KeyColumns,
    Locale,
    NotNegative,
    Patterns,
    PlaceNearby,
    Positive,
    Section,
    TimeFormat,
    TimeZone,
    duration,
)
from windowlib.definition.toml.spark_types import field_type
from windowlib.storage.address import store_at
from windowlib.storage.objects import AccessOf
from windowlib.storage.store import Store


class FileDialect(Section):
    """`[source.dialect]`: form of JSON and CSV files. The defaults follow RFC 4180 and JSON Lines."""

    delimiter: str = Field(default=",", min_length=1, max_length=1, description="CSV: separator of values")
    quote: str = Field(default='"', min_length=1, max_length=1, description="CSV: quote around a value")
    escape: str = Field(
        default="",
        max_length=1,
        description="CSV: character before a quote inside a value; empty: the quote is doubled",
    )
    header: Literal["order", "names", "none"] = Field(
        default="order",
        description='CSV: "order": the first line names the columns of the schema in order. "names": any order,'
        ' and other columns are allowed. "none": no header',
    )
    skip_lines: int = Field(
        default=0,
        ge=0,
        description="CSV: number of lines to skip at the start of each file, before the header. Such files are"
        " read from a copy",
    )
    encoding: Literal["UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16"] = Field(
        default="UTF-8",
        description='"UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16"; text in another encoding is malformed',
    )
    timestamp_format: TimeFormat | None = Field(
        default=None,
        description='form of times, such as "dd.MM.yyyy HH:mm:ss", in Spark\'s letters; default: ISO 8601 with the day;'
        " another text is malformed",
    )
    time_zone: TimeZone | None = Field(
        default=None,
        description='zone of times without a zone, such as "Europe/Berlin"; default: UTC. In Parquet and Delta it'
        " applies only to the event time, not to columns of aggregates",
    )
    locale: Locale | None = Field(
        default=None,
        description='locale of month names and, in CSV, of decimal numbers, such as "de-DE" for 1.234,5; default:'
        " a decimal point without thousands separators. Another text, or a number with more digits"
        " than its type, is malformed",
    )
    multi_line: bool | None = Field(
        default=None,
        description="true: a record may have several lines. Then a single task reads a file, and a JSON file"
        " holds a record or a list of records. Default: true for CSV files with quotes, else false",
    )


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """File and pipeline that define a source, and the way to its object store. Comparisons ignore them."""

    file: Path = field(default=Path(), compare=False)
    pipeline: str = field(default="", compare=False)
    access: AccessOf | None = field(default=None, compare=False)


class Source(Section):
    """`[source]`: the folder (or Delta table) of events, and the meaning of their columns."""

    format: Literal["parquet", "json", "csv", "delta"] = Field(description='"parquet", "json", "csv" or "delta"')
    path: PlaceNearby = Field(
        description="the folder of the events, with its subfolders, relative to this file, or an address such as"
        " `s3://bucket/folder`"
    )
    key: KeyColumns = Field(description='a list of columns such as ["user_id"]; [] for windows over all events')
    timestamp: Column = Field(
        description="the column that holds the event time; a time without a zone is in source.dialect.time_zone"
    )
    timestamp_unit: Literal["s", "ms", "us"] | None = Field(
        default=None, description='"s", "ms" or "us" for epoch numbers, also in texts'
    )
    event_id: Column | None = Field(
        default=None,
        description="the column that identifies duplicates; null and the empty text are no id",
    )
    dedup_horizon_ms: Positive | None = duration(
        "dedup_horizon",
        "time behind the watermark for which event ids are remembered. Default: window or gap, allowed lateness"
        " and out of orderness together, at least a day, and at least to the start of the first session in"
        " flight. Default without late events (count and global windows, processing time, `gap_column`): for ever",
        None,
    )
    include: Patterns = Field(
        default=(),
        description='patterns of the files to read, such as ["*.parquet"]; `*` is any text. A pattern with `/`'
        " applies to the path in the folder, others to the file name. []: all",
    )
    exclude: Patterns = Field(
        default=(), description='patterns of files to leave out, such as ["README*"]; applied before include'
    )
    moved_from: PlaceNearby | None = Field(
        default=None, description="the earlier folder of the same files, if path has changed since earlier runs"
    )
    max_files_per_run: int = Field(default=0, ge=0, description="greatest number of files of a batch; 0: no limit")
    min_file_age_ms: NotNegative = duration(
        "min_file_age", "a file that changed less than this ago may be incomplete, and waits for a later run", "2s"
    )
    sorted_by_time: Literal["names", "folders"] | None = Field(
        default=None,
        description='"names" or "folders", if they sort by time: then a run lists only the newest files. Default:'
        " a run lists all files",
    )
    full_listing_every_ms: Positive = duration(
        "full_listing_every", "with sorted_by_time: time after which a run lists all files again", "1d"
    )
    removals: Literal["stop", "rerun", "skip"] = Field(
        default="stop",
        description='for a Delta source with a version that removes rows of windows: "stop", "rerun" those windows, or'
        ' "skip" the version',
    )
    columns: dict[str, str] = Field(
        default={},
        alias="schema",
        description='column = "spark type"; needed for JSON and CSV. In Parquet and Delta a column of numbers is read'
        " as this type, if it holds each value exactly. Values in the names of folders get this type too; default:"
        " text",
    )
    nested: dict[str, str] = Field(
        default={}, description='JSON: column = "path" into an object, such as login = "actor.login"'
    )
    dialect: FileDialect = Field(default=FileDialect(), description="[source.dialect]: how files are written")
    missing_columns: Literal["null", "stop"] = Field(
        default="stop",
        description='for Parquet and Delta: "null" reads a column that a file lacks as null if another file has'
        ' it; "stop" stops the run. A missing key, timestamp or event_id always stops it',
    )
    rename: dict[str, Column] = Field(
        default={}, description='"column" = "name": new names for columns of the files, used here and in the tables'
    )

    _written: SourceOrigin = PrivateAttr(default=SourceOrigin())

    @field_validator("timestamp_unit", mode="before")
    @classmethod
    def _no_nanoseconds(cls, unit: Any) -> Any:
        """Refuses nanoseconds, with advice."""
        if isinstance(unit, str) and unit.casefold() in ("ns", "nanoseconds"):
            raise ValueError(
                'nanoseconds are not supported: write microseconds, with timestamp_unit = "us", or cast the column to a'
                " timestamp and leave timestamp_unit out"
            )
        return unit

    def model_post_init(self, context: Any) -> None:
        """Stores the file and the name of the definition."""
        origin = context or {}
        self._written = SourceOrigin(origin.get("file", Path()), origin.get("name", ""))

    @property
    def file(self) -> Path:
        """The definition's file, for messages about the source."""
        return self._written.file

    @property
    def pipeline(self) -> str:
        """The definition's name."""
        return self._written.pipeline

    @property
    def store(self) -> Store:
        """Storage of the source's files."""
        return store_at(self.path, self._written.access)

    def reached_by(self, access: AccessOf) -> Source:
        """The same source, whose object store is reached by `access`."""
        source = self.model_copy()
        source._written = replace(self._written, access=access)
        return source

    @property
    def is_text(self) -> bool:
        """True for JSON and CSV, whose files have no types and footers."""
        return self.format in ("json", "csv")

    @property
    def kinds(self) -> dict[str, str]:
        """Declared types of the files' columns and of `nested` columns; "" for a path that the schema lacks."""
        return self.columns | {name: field_type(self.columns, path) or "" for name, path in self.nested.items()}

    def named(self, column: str) -> str:
        """Name in the definition for a column of the files. Ignores case."""
        return next((name for own, name in self.rename.items() if own.casefold() == column.casefold()), column)

    def in_files(self, column: str) -> str:
        """Name in the files for a column of the definition. Ignores case."""
        return next((own for own, name in self.rename.items() if name.casefold() == column.casefold()), column)

    def declared(self, column: str) -> str | None:
        """Declared type of a column of the files; None if it is not declared. Ignores case."""
        return next((kind for own, kind in self.columns.items() if own.casefold() == column.casefold()), None)

    @property
    def needed(self) -> set[str]:
        """Columns that every row needs (key, timestamp, event id), in lower case."""
        return {name.casefold() for name in (*self.key, self.timestamp, self.event_id) if name}
