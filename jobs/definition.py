"""A pipeline's definition: one TOML file that says what is read, how time moves, which windows, which aggregates.

`load_definition` reads and checks it as a whole and reports every mistake at once. Paths are relative to the file;
durations are texts such as "1h 30m" and become integers of milliseconds. The fields below are the documentation:
name, meaning, default. Rules that concern several keys are in `jobs.definition_rules` and `jobs.definition_spec`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from jobs import definition_windows as windows
from jobs.aggregate_sql import check_expression, read_aggregates
from jobs.definition_fields import (
    Column,
    Folder,
    KeyColumns,
    NotNegative,
    OutputName,
    PathBeside,
    Positive,
    Schedule,
    Section,
    Share,
    duration,
    resolved,
)
from jobs.definition_rules import across_keys
from jobs.definition_spec import parts_of, plan_of, refusals, spec_of
from jobs.mistakes import InvalidDefinition, Mistake, invalid, mistakes_of
from jobs.own_code import Role, StandIn, load
from windowlib.aggregate_set import AggregateSet
from windowlib.errors import InvalidSpec
from windowlib.keyed import updates_results
from windowlib.plans.kind import PlanKind
from windowlib.spec import WindowSpec

__all__ = ["Definition", "InvalidDefinition", "load_definition"]

NAME = r"^[a-z][a-z0-9_]{0,62}$"
WAREHOUSE_VARIABLE = "WINDOWLIB_WAREHOUSE"


class Source(Section):
    """`[source]`: the folder (or Delta table) of events, and which of their columns mean what."""

    format: Literal["parquet", "json", "csv", "delta"] = Field(description='"parquet", "json", "csv" or "delta"')
    path: PathBeside = Field(description="the folder of the events, relative to this file")
    key: KeyColumns = Field(description='a list of columns such as ["user_id"]; [] for windows over all events')
    timestamp: Column = Field(description="the column that holds the event time")
    timestamp_unit: Literal["s", "ms", "us"] | None = Field(
        default=None, description='"s", "ms" or "us" for epoch numbers'
    )
    event_id: Column | None = Field(default=None, description="the column by which duplicates are known")
    dedup_horizon_ms: Positive = duration("dedup_horizon", "how far back duplicates are looked for", "1d")
    max_files_per_run: int = Field(
        default=0, ge=0, description="0 for everything new, or at most so many files a batch"
    )
    columns: dict[str, str] = Field(default={}, alias="schema", description='column = "spark type"')


class Watermark(Section):
    """`[watermark]`: how event time moves on."""

    out_of_orderness_ms: NotNegative = duration("out_of_orderness", "how late events usually come")
    idle_timeout_ms: Positive | None = duration("idle_timeout", "after how long a silence time moves on", None)
    max_future_skew_ms: NotNegative | None = duration("max_future_skew", "how far ahead events may be", None)


class Airflow(Section):
    """`[airflow]`: when to look for new input. The schedule never selects the input."""

    schedule: Schedule | None = Field(
        default=None, description='a cron line such as "*/10 * * * *"; without: by hand only'
    )
    retries: int = Field(default=2, ge=0, description="how often a failed task is tried again")
    together: str | None = Field(
        default=None, pattern=NAME, description="a name: definitions that have the same one run together, in one DAG"
    )
    retry_delay_ms: NotNegative = duration("retry_delay", "how long to wait before that", "1m")


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
        file = resolved((info.context or {})["folder"], path)
        if not file.is_file():
            raise ValueError("no such file")
        return file


class Storage(Section):
    """`[storage]`: how the tables are laid out."""

    state_partition_ms: Positive = duration("state_partition", "windows that end this near lie together", "1h")


class Spark(Section):
    """`[spark]`: where a plan runs."""

    master: str = Field(
        default="local[*]", description='"local[*]", "warm", or a cluster: "sc://host:15002", "spark://host:7077"'
    )
    conf: dict[str, str] = Field(default={}, description='"spark.setting" = "value"')


class DefinitionFile(Section):
    """What stands in the TOML file."""

    name: str = Field(pattern=NAME, description="a-z, 0-9 and _, a letter first, at most 63 long")
    warehouse: Folder = Field(default="warehouse", description="the folder for all tables, relative to this file")
    engine: Literal["spark", "sail"] = Field(
        default="spark", description='"spark", or "sail": the same windows in one process, without Java'
    )
    lease_timeout_ms: Positive = duration("lease_timeout", "after how long a silent run counts as dead", "2m")
    source: Source = Field(description="[source] with format, path, key, timestamp")
    watermark: Watermark = Field(description="[watermark] with out_of_orderness")
    window: windows.AnyWindow = Field(discriminator="type", description="[window] with type and its durations")
    expressions: dict[OutputName, Annotated[str, AfterValidator(check_expression)]] = Field(
        default={}, alias="aggregates", description='[aggregates] with output_column = "expression"'
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

    @cached_property
    def plan(self) -> PlanKind:
        """What runs it: native where the answer is exactly the operator's, else the operator."""
        return plan_of(self.window)

    @cached_property
    def spec(self) -> WindowSpec:
        """The windows as the core knows them; raises InvalidDefinition where the user's code cannot be used."""
        parts = parts_of(self.window, self._made)
        if mistakes := list(refusals(self.window, self.expressions, parts)):
            raise invalid(self.file, mistakes)
        return spec_of(self.window, self.expressions, parts)

    @property
    def fires_often(self) -> bool:
        """Whether each firing of a window is a result of its own, and not a new version of one."""
        return not updates_results(self.spec)

    @property
    def own_classes(self) -> tuple[str, ...]:
        """The user's own classes, as "module:Class", once each."""
        return tuple(dict.fromkeys(reference for _, reference in windows.own_classes(self.window)))

    @property
    def reads(self) -> tuple[str, ...]:
        """The source columns that triggers, evictors, gaps and the user's code look into, once each."""
        window = self.window
        names: list[str] = [*window.reads]
        if isinstance(window, windows.SessionWindow) and window.gap_column:
            names.append(window.gap_column)
        for section in (getattr(window, "own_trigger", None), getattr(window, "own_evictor", None)):
            names += section.columns if section else ()
        return tuple(dict.fromkeys(names))

    def semantics(self) -> dict[str, Any]:
        """What the stored state depends on, ready for JSON: a warehouse with another one cannot be continued."""
        source, window = self.source, self._window_semantics()
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

    def _window_semantics(self) -> dict[str, Any]:
        """The window without what it leaves at its default, but for what was always told."""
        dumped = self.window.model_dump(mode="json", exclude_none=True)
        told = self.window.model_dump(exclude_defaults=True)
        always = ("type", "size_ms", "slide_ms", "offset_ms", "gap_ms", "gap_column", "allowed_lateness_ms")
        return {name: value for name, value in dumped.items() if name in always or name in told}

    def _made(self, role: Role, reference: str, parameters: Mapping[str, Any]) -> Any:
        """An object of the user's own."""
        try:
            return load(role, reference, parameters, self.file.parent)
        except InvalidSpec as error:
            key = next(key for key, named in windows.own_classes(self.window) if named == reference)
            raise invalid(self.file, [Mistake(key, str(error))]) from error

    def _canonical_sql(self) -> list[str]:
        aggregates = [str(aggregate) for aggregate in self.aggregates.aggregates]
        return [column.sql_over(aggregates) for column in self.aggregates.columns]


def load_definition(path: Path | str) -> Definition:
    """The definition in a TOML file; raises `InvalidDefinition` with every mistake in it, one line each."""
    return definition_of(_read(Path(path)), Path(path))


def definition_of(raw: dict[str, Any], file: Path) -> Definition:
    """The definition in the contents of a TOML file; raises as `load_definition` does."""
    folder = file.absolute().parent
    mistakes: list[Mistake] = []
    try:
        contents = DefinitionFile.model_validate(raw, context={"folder": folder})
        mistakes += refusals(contents.window, contents.expressions, parts_of(contents.window, StandIn))
    except ValidationError as error:
        mistakes = mistakes_of(error, DefinitionFile)
    mistakes += across_keys(raw)
    if mistakes:
        raise invalid(file, mistakes)
    warehouse = os.environ.get(WAREHOUSE_VARIABLE)
    base = Path(warehouse).absolute() if warehouse else resolved(folder, contents.warehouse)
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
