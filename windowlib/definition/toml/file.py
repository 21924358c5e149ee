"""Tables of a definition's TOML file: `[watermark]`, `[airflow]`, `[checks]`, …

The fields document each key: name, meaning, default.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from windowlib.definition.sql.aggregates import check_expression
from windowlib.definition.toml import masters
from windowlib.definition.toml.calendars import PinnedZone
from windowlib.definition.toml.checks import ChecksSection
from windowlib.definition.toml.fields import (
    Address,
    Columns,
    Folder,
    ImportPath,
    KeptCuts,
    KeyColumns,
    NotNegative,
    OutputName,
    Positive,
    Schedule,
    Section,
    Tags,
    Variable,
    duration,
)
from windowlib.definition.toml.retention import ALLOWED as ALLOWED_KEPT
from windowlib.definition.toml.retention import RetentionPeriod
from windowlib.definition.toml.source import Source
from windowlib.definition.toml.windows import AnyWindow
from windowlib.plans.aggregates.aggregate_set import MOST_VALUES

NAME = r"^[a-z][a-z0-9_]{0,62}$"


class WatermarkSection(Section):
    """`[watermark]`: distance between the watermark and the events."""

    out_of_orderness_ms: NotNegative = duration("out_of_orderness", "usual delay of events behind the newest event")
    idle_timeout_ms: Positive | None = duration(
        "idle_timeout", "time without events after which the watermark follows the clock", None
    )
    max_future_skew_ms: NotNegative = duration(
        "max_future_skew", "greatest distance of events ahead of the clock; events further ahead go to quarantine", "1d"
    )

    @property
    def guards_by_choice(self) -> bool:
        """True if the author has set `max_future_skew`."""
        return "max_future_skew_ms" in self.model_fields_set


class Airflow(Section):
    """`[airflow]`: the schedule of runs. The schedule never selects the input."""

    schedule: Schedule | None = Field(
        default=None, description='a cron line, in UTC, such as "*/10 * * * *"; without: by hand only'
    )
    retries: int = Field(default=2, ge=0, description="number of retries of a failed task")
    connection: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_.-]{1,200}$",
        description="id of the Airflow connection with the credentials for the pipeline's object stores; without it,"
        " and outside Airflow: the usual chain of the cloud",
    )
    together: str | None = Field(
        default=None, pattern=NAME, description="a name: definitions with the same name here run together, in one DAG"
    )
    retry_delay_ms: NotNegative = duration("retry_delay", "time before each retry", "1m")
    approval: Literal["asked", "required", "another user"] = Field(
        default="asked",
        description='approval of reruns: "asked": if the form asks for it; "required": always; "another user":'
        " always, by another user than the one who triggered the run. This also holds for refused"
        " batches",
    )


class Pages(Section):
    """`[pages]`: contents of the pages about the pipeline and about previews."""

    hide: KeyColumns = Field(
        default=(),
        description='columns such as ["user_id"]; no page shows their values, aggregates that read them, or rows of the'
        " source",
    )
    headline: Columns | None = Field(
        default=None,
        description='outputs that the table of days adds up, such as ["revenue"]; default: the first three numbers',
    )
    time_zone: PinnedZone = Field(
        default="UTC",
        description='zone of the days and hours on the pages, such as "Europe/Berlin", unless the window has a zone;'
        " windows do not depend on it",
    )


Situation = Literal["failure", "decision", "warning", "silence", "freshness", "clock"]


class Notify(Section):
    """`[notify]`: notices about failed runs and doubtful results, and their receivers."""

    webhook: Address | None = Field(
        default=None, description="an address that receives each notice as JSON by POST, such as a chat's"
    )
    webhook_variable: Variable | None = Field(
        default=None, description="the environment variable that holds this address, if it is secret"
    )
    token_variable: Variable | None = Field(
        default=None, description="the environment variable that holds a token, sent as `Authorization: Bearer …`"
    )
    timeout_ms: Positive = duration("timeout", "time after which a delivery is given up", "10s")
    airflow: ImportPath | None = Field(
        default=None, description="a notifier of Airflow, as package.module.Class, for runs in Airflow"
    )
    arguments: dict[str, Any] = Field(
        default={},
        description="arguments of the notifier; texts are templates in which {{ windowlib }} is the notice",
    )
    about: tuple[Situation, ...] = Field(
        default=("failure", "decision", "warning", "silence", "freshness", "clock"),
        description="situations that are reported",
    )
    freshness_ms: Positive | None = duration(
        "freshness", "time that the watermark may be behind the clock; more is reported", None
    )
    silence_ms: Positive | None = duration(
        "silence", "time without a new file after which this is reported; default: longer than usual", None
    )

    @field_validator("about", mode="before")
    @classmethod
    def _about(cls, names: Any) -> Any:
        return tuple(names) if isinstance(names, list) else names

    @property
    def has_webhook(self) -> bool:
        """True if notices are sent to an address."""
        return bool(self.webhook or self.webhook_variable)


class Storage(Section):
    """`[storage]`: layout of the tables."""

    state_partition_ms: Positive = duration(
        "state_partition", "windows whose ends are this close are stored together", "1h"
    )
    max_kept_values: int = Field(
        default=MOST_VALUES,
        ge=1,
        description="greatest number of values that count(distinct …), collect_list, collect_set, median and"
        " percentile each keep for a window. A run with more stops and names the window",
    )


class Retention(Section):
    """`[retention]`: time for which the past stays readable. `windowlib maintain` deletes older data."""

    cuts: KeptCuts = Field(
        default=RetentionPeriod.parse("30d"),
        description=f"period in which tables can be read as of a batch, and rolled back: {ALLOWED_KEPT}",
    )


class Spark(Section):
    """`[spark]`: the engine's master and settings."""

    master: str = Field(default="local[*]", description=masters.ALLOWED)
    conf: dict[str, str] = Field(default={}, description='"spark.setting" = "value"')


class DefinitionFile(Section):
    """The TOML file."""

    name: str = Field(pattern=NAME, description="a-z, 0-9 and _, a letter first, at most 63 long")
    warehouse: Folder = Field(
        default="warehouse",
        description="the folder for all tables, relative to this file, or an address such as `s3://bucket/folder`",
    )
    engine: Literal["spark", "sail"] = Field(
        default="spark", description='"spark", or "sail": windows of Parquet and Delta in one process, without Java'
    )
    lease_timeout_ms: Positive = duration(
        "lease_timeout",
        "time without a heartbeat after which a run on another machine or in another container counts as dead",
        "2m",
    )
    batch_timeout_ms: Positive = duration(
        "batch_timeout",
        "a batch that takes longer is stopped, and the next run repeats it; verify and previews are stopped too",
        "12h",
    )
    description: str = Field(
        default="", max_length=1000, description="purpose of the pipeline, in a sentence; shown with its name"
    )
    owner: str | None = Field(default=None, min_length=1, max_length=100, description="the responsible person or team")
    tags: Tags = Field(default=(), description='words to find it by, such as ["sales", "daily"]: tags of its DAG')
    source: Source = Field(description="[source] with format, path, key, timestamp")
    watermark: WatermarkSection = Field(description="[watermark] with out_of_orderness")
    window: AnyWindow = Field(description="[window] with type and its durations")
    expressions: dict[OutputName, Annotated[str, AfterValidator(check_expression)]] = Field(
        default={}, alias="aggregates", description='[aggregates] with output_column = "expression"'
    )
    airflow: Airflow = Airflow()
    checks: ChecksSection = ChecksSection()
    notify: Notify = Notify()
    pages: Pages = Pages()
    storage: Storage = Storage()
    retention: Retention = Retention()
    spark: Spark = Spark()

    @property
    def engine_place(self) -> masters.EnginePlace:
        """Place where the engine computes."""
        return masters.engine_place(self.engine, self.spark.master)

    @property
    def computed_by(self) -> str:
        """Engine and its place, in words."""
        if self.engine_place is masters.EnginePlace.PROCESS:
            return "Sail"
        return f"the Spark engine ({self.spark.master})"
