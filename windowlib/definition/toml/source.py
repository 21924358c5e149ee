"""`[source]` and `[source.dialect]` of a definition's TOML file: the input and its format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, field_validator

from windowlib.definition.toml.fields import (
    Column,
    KeyColumns,
    Locale,
    NotNegative,
    PathNearby,
    Patterns,
    Positive,
    Section,
    TimeFormat,
    TimeZone,
    duration,
)
from windowlib.definition.toml.spark_types import field_type


class Dialect(Section):
    """`[source.dialect]`: form of JSON and CSV files. The defaults are those of RFC 4180 and JSON Lines."""

    delimiter: str = Field(default=",", min_length=1, max_length=1, description="CSV: what stands between values")
    quote: str = Field(default='"', min_length=1, max_length=1, description="CSV: what stands around a value")
    escape: str = Field(
        default="",
        max_length=1,
        description="CSV: what stands before a quote inside of a value; empty: the quote itself, so it is doubled",
    )
    header: Literal["order", "names", "none"] = Field(
        default="order",
        description='CSV: "order": the first line has the columns of the schema in their order; "names": in any order,'
        ' next to others; "none": there is no such line',
    )
    skip_lines: int = Field(
        default=0,
        ge=0,
        description="CSV: how many lines of each file stand before the header, or the first record, and are skipped;"
        " such a file is read from a copy",
    )
    encoding: Literal["UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16"] = Field(
        default="UTF-8", description='"UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16"; what cannot be read is malformed'
    )
    timestamp_format: TimeFormat | None = Field(
        default=None,
        description='how times are written, such as "dd.MM.yyyy HH:mm:ss", in Spark\'s letters; without it as ISO 8601,'
        " with the day; another text is malformed",
    )
    time_zone: TimeZone | None = Field(
        default=None,
        description='the zone of times that are written without one, such as "Europe/Berlin"; else UTC. In Parquet and'
        " Delta of the event time alone: what aggregates read stays as it is written",
    )
    locale: Locale | None = Field(
        default=None,
        description='whose names of months and, in CSV, numbers with decimals, such as "de-DE" for 1.234,5; without it'
        " a point stands before decimals, and nothing between thousands; another text, and one with more digits than"
        " its type has, is malformed",
    )
    multi_line: bool | None = Field(
        default=None,
        description="whether a record may have several lines, so that one task reads a file, which JSON has one record"
        " or list of them in; without it, CSV: where a file has quotes; JSON: no",
    )


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """File and pipeline in which a source is defined; they do not count in comparisons."""

    file: Path = field(default=Path(), compare=False)
    pipeline: str = field(default="", compare=False)


class Source(Section):
    """`[source]`: the folder (or Delta table) of events, and the meaning of their columns."""

    format: Literal["parquet", "json", "csv", "delta"] = Field(description='"parquet", "json", "csv" or "delta"')
    path: PathNearby = Field(description="the folder of the events, with its subfolders, relative to this file")
    key: KeyColumns = Field(description='a list of columns such as ["user_id"]; [] for windows over all events')
    timestamp: Column = Field(
        description="the column that holds the event time; one without a zone is in that of source.dialect.time_zone"
    )
    timestamp_unit: Literal["s", "ms", "us"] | None = Field(
        default=None, description='"s", "ms" or "us" for epoch numbers, and for texts of them'
    )
    event_id: Column | None = Field(
        default=None,
        description="the column by which duplicates are recognized; a null or empty text is no id, blanks are one",
    )
    dedup_horizon_ms: Positive | None = duration(
        "dedup_horizon",
        "how far behind the watermark event ids are remembered; without it as long as an event that comes again could"
        " be counted twice: window or gap, allowed lateness and out of orderness together, at least a day; behind"
        " the start of the first session in flight, too. Where no event is late (count and global windows, processing"
        " time, `gap_column`) for ever",
        None,
    )
    include: Patterns = Field(
        default=(),
        description='patterns of the files to read, such as ["*.parquet"]; `*` is any text; without a `/` of the'
        " file's own name, else of its name in the folder; []: all",
    )
    exclude: Patterns = Field(
        default=(), description='patterns of files to leave out, such as ["README*"]; before include'
    )
    moved_from: PathNearby | None = Field(
        default=None, description="where the same files lay before, when path names another folder than in earlier runs"
    )
    max_files_per_run: int = Field(
        default=0, ge=0, description="0 for everything new, or at most so many files a batch"
    )
    min_file_age_ms: NotNegative = duration(
        "min_file_age", "a file that was changed less than this ago may still be written, and is left for later", "2s"
    )
    sorted_by_time: Literal["names", "folders"] | None = Field(
        default=None,
        description='"names" or "folders": which of a later file sort after those of earlier ones, so that a run lists'
        " the newest alone; without it a run lists all files",
    )
    full_listing_every_ms: Positive = duration(
        "full_listing_every", "with sorted_by_time: how often a run lists all files anyway", "1d"
    )
    removals: Literal["stop", "rerun", "skip"] = Field(
        default="stop",
        description='of a Delta source: "stop" at a version that removes rows which are in windows, "rerun" those'
        ' windows, or "skip" the version',
    )
    columns: dict[str, str] = Field(
        default={},
        alias="schema",
        description='column = "spark type"; needed for JSON and CSV; of Parquet and Delta, columns to read as this type'
        " of numbers whichever a file has, if it holds each value exactly; and the types of values in the names of"
        " folders, which are texts without it",
    )
    nested: dict[str, str] = Field(
        default={}, description='JSON: column = "path" into an object, such as login = "actor.login"'
    )
    dialect: Dialect = Field(default=Dialect(), description="[source.dialect]: how files are written")
    missing_columns: Literal["null", "stop"] = Field(
        default="stop",
        description='of Parquet and Delta: "null" reads a column that a file lacks as null where another file has it,'
        ' "stop" stops the run; without key, timestamp or event_id a run stops in any case',
    )
    rename: dict[str, Column] = Field(
        default={}, description='"column" = "name": what columns of the files are called here, and in the tables'
    )

    _written: SourceOrigin = PrivateAttr(default=SourceOrigin())

    @field_validator("timestamp_unit", mode="before")
    @classmethod
    def _no_nanoseconds(cls, unit: Any) -> Any:
        """Refuses nanoseconds, with advice."""
        if isinstance(unit, str) and unit.casefold() in ("ns", "nanoseconds"):
            raise ValueError(
                'numbers of nanoseconds are not read: write microseconds, with timestamp_unit = "us", or cast the'
                " column to a timestamp and leave timestamp_unit out"
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
    def is_text(self) -> bool:
        """True if its files are text, without types and footers."""
        return self.format in ("json", "csv")

    @property
    def kinds(self) -> dict[str, str]:
        """The declared types of the files' columns and of `nested` columns."""
        return self.columns | {name: field_type(self.columns, path) or "" for name, path in self.nested.items()}

    def named(self, column: str) -> str:
        """The definition's name of a column of the files, independent of case."""
        return next((name for own, name in self.rename.items() if own.casefold() == column.casefold()), column)

    def in_files(self, column: str) -> str:
        """The files' name of a column of the definition."""
        return next((own for own, name in self.rename.items() if name.casefold() == column.casefold()), column)

    def declared(self, column: str) -> str | None:
        """The type that the definition declares for a column of the files."""
        return next((kind for own, kind in self.columns.items() if own.casefold() == column.casefold()), None)

    @property
    def needed(self) -> set[str]:
        """The columns that every row needs, in lower case."""
        return {name.casefold() for name in (*self.key, self.timestamp, self.event_id) if name}
