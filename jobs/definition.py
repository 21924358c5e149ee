"""A pipeline's definition: one TOML file that says what is read, how time moves, which windows, which aggregates.

`load_definition` reads and checks it as a whole and reports every mistake at once. Paths are relative to the file;
durations are texts such as "1h 30m" and become integers of milliseconds. The fields below are the documentation:
name, meaning, default. Rules that concern several keys are in `jobs.definition_rules`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from jobs.aggregate_sql import check_expression, read_aggregates
from jobs.definition_rules import across_keys
from jobs.durations import ALLOWED, format_duration, parse_duration
from jobs.mistakes import InvalidDefinition, Mistake, invalid, mistakes_of
from windowlib.aggregate_set import AggregateSet
from windowlib.assigners import DynamicSession, Session, Sliding, Tumbling

__all__ = ["Definition", "InvalidDefinition", "load_definition"]

WAREHOUSE_VARIABLE = "WINDOWLIB_WAREHOUSE"


def _positive(duration_ms: int) -> int:
    if duration_ms <= 0:
        raise ValueError("not longer than 0")
    return duration_ms


def _not_negative(duration_ms: int) -> int:
    if duration_ms < 0:
        raise ValueError("negative")
    return duration_ms


def _local(path: str) -> str:
    if "://" in path or not path:
        raise ValueError("not a path on this machine")
    return path


def _not_empty(column: str) -> str:
    if not column:
        raise ValueError("empty")
    return column


def _key_column(column: str) -> str:
    if not column or set(column) & set(" ,;{}()\n\t=`."):
        raise ValueError("no name for a column of a Delta table (no blanks, no . , ; { } ( ) = `)")
    return column


def _output_name(name: str) -> str:
    if not name.isidentifier():
        raise ValueError("no name for an output column (letters, digits and _, not a digit first)")
    return name


def _cron(schedule: str) -> str:
    if len(schedule.split()) != 5 and schedule not in ("@hourly", "@daily", "@weekly", "@monthly"):
        raise ValueError("not five fields")
    return schedule


def _beside(path: Any, info: ValidationInfo) -> Path:
    if not isinstance(path, str):
        raise ValueError("not a text")
    return _resolved((info.context or {})["folder"], _local(path))


Duration = Annotated[int, BeforeValidator(parse_duration)]
Positive = Annotated[Duration, AfterValidator(_positive)]
NotNegative = Annotated[Duration, AfterValidator(_not_negative)]
PathBeside = Annotated[Path, BeforeValidator(_beside)]  # relative to the definition
Folder = Annotated[str, AfterValidator(_local)]
Column = Annotated[str, AfterValidator(_not_empty)]
KeyColumn = Annotated[str, AfterValidator(_key_column)]
OutputName = Annotated[str, AfterValidator(_output_name)]
Schedule = Annotated[str, AfterValidator(_cron)]
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, ignored_types=(cached_property,))


def _duration(key: str, text: str, default: Any = ...) -> Any:
    """A field whose name ends in the unit and whose TOML key does not."""
    value = parse_duration(default) if isinstance(default, str) else default
    return Field(default=value, alias=key, description=f"{text}, {ALLOWED}")


class Source(Section):
    """`[source]`: the folder (or Delta table) of events, and which of their columns mean what."""

    format: Literal["parquet", "json", "csv", "delta"] = Field(description='"parquet", "json", "csv" or "delta"')
    path: PathBeside = Field(description="the folder of the events, relative to this file")
    key: tuple[KeyColumn, ...] = Field(
        description='a list of columns such as ["user_id"]; [] for windows over all events'
    )
    timestamp: Column = Field(description="the column that holds the event time")
    timestamp_unit: Literal["s", "ms", "us"] | None = Field(
        default=None, description='"s", "ms" or "us" for epoch numbers'
    )
    event_id: Column | None = Field(default=None, description="the column by which duplicates are known")
    dedup_horizon_ms: Positive = _duration("dedup_horizon", "how far back duplicates are looked for", "1d")
    max_files_per_run: int = Field(
        default=0, ge=0, description="0 for everything new, or at most so many files a batch"
    )
    columns: dict[str, str] = Field(default={}, alias="schema", description='column = "spark type"')

    @field_validator("key", mode="before")
    @classmethod
    def _list_of_columns(cls, key: Any) -> Any:
        return tuple(key) if isinstance(key, list) else key


class Watermark(Section):
    """`[watermark]`: how event time moves on."""

    out_of_orderness_ms: NotNegative = _duration("out_of_orderness", "how late events usually come")
    idle_timeout_ms: Positive | None = _duration("idle_timeout", "after how long a silence time moves on", None)
    max_future_skew_ms: NotNegative | None = _duration("max_future_skew", "how far ahead events may be", None)


class TumblingWindow(Section):
    """`[window] type = "tumbling"`."""

    type: Literal["tumbling"]
    size_ms: Positive = _duration("size", "the length of a window")
    offset_ms: Duration = _duration("offset", "where windows start, between -size and size", "0s")
    allowed_lateness_ms: NotNegative = _duration("allowed_lateness", "how long past its end a window is kept", "0s")

    @field_validator("offset_ms")
    @classmethod
    def _inside(cls, offset_ms: int, info: ValidationInfo) -> int:
        return _offset_inside(offset_ms, info, "size")

    @cached_property
    def assigner(self) -> Tumbling:
        return Tumbling(self.size_ms, self.offset_ms)


class SlidingWindow(Section):
    """`[window] type = "sliding"`."""

    type: Literal["sliding"]
    size_ms: Positive = _duration("size", "the length of a window")
    slide_ms: Positive = _duration("slide", "how often a window starts")
    offset_ms: Duration = _duration("offset", "where windows start, between -slide and slide", "0s")
    allowed_lateness_ms: NotNegative = _duration("allowed_lateness", "how long past its end a window is kept", "0s")

    @field_validator("offset_ms")
    @classmethod
    def _inside(cls, offset_ms: int, info: ValidationInfo) -> int:
        return _offset_inside(offset_ms, info, "slide")

    @cached_property
    def assigner(self) -> Sliding:
        return Sliding(self.size_ms, self.slide_ms, self.offset_ms)


class SessionWindow(Section):
    """`[window] type = "session"`: with `gap`, or with `gap_column` where each event brings its own."""

    type: Literal["session"]
    gap_ms: Positive | None = _duration("gap", "the silence that ends a session", None)
    gap_column: Column | None = Field(
        default=None, description="the column that holds each event's gap in ms, instead of gap"
    )
    allowed_lateness_ms: NotNegative = _duration("allowed_lateness", "how long past its end a window is kept", "0s")

    @cached_property
    def assigner(self) -> Session | DynamicSession:
        return Session(self.gap_ms) if self.gap_ms else DynamicSession(str(self.gap_column))


class Airflow(Section):
    """`[airflow]`: when to look for new input. The schedule never selects the input."""

    schedule: Schedule | None = Field(
        default=None, description='a cron line such as "*/10 * * * *"; without: by hand only'
    )
    retries: int = Field(default=2, ge=0, description="how often a failed task is tried again")
    retry_delay_ms: NotNegative = _duration("retry_delay", "how long to wait before that", "1m")


class Checks(Section):
    """`[checks]`: bounds of the quality checks, and checks of one's own."""

    max_late_share: Share = Field(
        default=0.1, description="0 to 1: the share of late events above which a run is reported"
    )
    max_unusable_share: Share = Field(
        default=0.1, description="0 to 1: the share of unusable rows above which a run is reported"
    )
    figures_suite: Path | None = Field(
        default=None, description="a JSON file of expectations about the figures of a batch, relative to this file"
    )
    results_suite: Path | None = Field(
        default=None, description="a JSON file of expectations about the result rows of a batch, relative to this file"
    )

    @field_validator("figures_suite", "results_suite", mode="before")
    @classmethod
    def _file(cls, path: Any, info: ValidationInfo) -> Path:
        if not isinstance(path, str):
            raise ValueError("not a text")
        file = _resolved((info.context or {})["folder"], path)
        if not file.is_file():
            raise ValueError("no such file")
        return file


class Storage(Section):
    """`[storage]`: how the tables are laid out."""

    state_partition_ms: Positive = _duration("state_partition", "windows that end this near lie together", "1h")


class Spark(Section):
    """`[spark]`: where a plan runs."""

    master: str = Field(default="local[*]", description='"local[*]", or a cluster such as "spark://host:7077"')
    conf: dict[str, str] = Field(default={}, description='"spark.setting" = "value"')


class DefinitionFile(Section):
    """What stands in the TOML file."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,62}$", description="a-z, 0-9 and _, a letter first, at most 63 long")
    warehouse: Folder = Field(default="warehouse", description="the folder for all tables, relative to this file")
    lease_timeout_ms: Positive = _duration("lease_timeout", "after how long a silent run counts as dead", "2m")
    source: Source = Field(description="[source] with format, path, key, timestamp")
    watermark: Watermark = Field(description="[watermark] with out_of_orderness")
    window: TumblingWindow | SlidingWindow | SessionWindow = Field(
        discriminator="type", description="[window] with type and its durations"
    )
    expressions: dict[OutputName, Annotated[str, AfterValidator(check_expression)]] = Field(
        alias="aggregates", min_length=1, description='[aggregates] with output_column = "expression"'
    )
    airflow: Airflow = Airflow()
    checks: Checks = Checks()
    storage: Storage = Storage()
    spark: Spark = Spark()


class Definition(DefinitionFile):
    """A definition that was read and checked, with the places it speaks of."""

    model_config = ConfigDict(populate_by_name=True)

    file: Path
    root: Path  # <warehouse>/<name>: the folder of all its tables

    @cached_property
    def aggregates(self) -> AggregateSet:
        return read_aggregates(self.expressions)

    def semantics(self) -> dict[str, Any]:
        """What the stored state depends on, ready for JSON: a warehouse with another one cannot be continued."""
        source, window = self.source, self.window.model_dump(exclude_none=True)
        return {
            "key": list(source.key),
            "timestamp": source.timestamp,
            "timestamp_unit": source.timestamp_unit,
            "event_id": source.event_id,
            "window": window,
            "aggregates": dict(zip((c.name for c in self.aggregates.columns), self._canonical_sql(), strict=True)),
            "state_partition_ms": self.storage.state_partition_ms,
        }

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change with `semantics`."""
        text = json.dumps(self.semantics(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _canonical_sql(self) -> list[str]:
        aggregates = [str(aggregate) for aggregate in self.aggregates.aggregates]
        return [column.sql_over(aggregates) for column in self.aggregates.columns]


def load_definition(path: Path | str) -> Definition:
    """The definition in a TOML file; raises `InvalidDefinition` with every mistake in it, one line each."""
    file = Path(path)
    raw = _read(file)
    folder = file.absolute().parent
    mistakes: list[Mistake] = []
    try:
        contents = DefinitionFile.model_validate(raw, context={"folder": folder})
    except ValidationError as error:
        mistakes = mistakes_of(error, DefinitionFile)
    mistakes += across_keys(raw)
    if mistakes:
        raise invalid(file, mistakes)
    warehouse = os.environ.get(WAREHOUSE_VARIABLE)
    base = Path(warehouse).absolute() if warehouse else _resolved(folder, contents.warehouse)
    return Definition.model_construct(**dict(contents), file=file.absolute(), root=base / contents.name)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidDefinition(f"{file}: no such file; give the path of a pipeline's TOML file") from error
    except IsADirectoryError as error:
        raise InvalidDefinition(f"{file}: is a folder; give the path of a pipeline's TOML file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidDefinition(f"{file}: cannot be read as UTF-8 text ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidDefinition(f"{file}: is not TOML: {error}") from error


def _resolved(folder: Path, path: str) -> Path:
    return Path(os.path.normpath(folder / Path(path).expanduser()))


def _offset_inside(offset_ms: int, info: ValidationInfo, key: str) -> int:
    bound_ms = info.data.get(f"{key}_ms")
    if bound_ms is not None and abs(offset_ms) >= bound_ms:
        raise ValueError(f"{format_duration(offset_ms)} is not inside {key} ({format_duration(bound_ms)})")
    return offset_ms
