"""What one attempt at a batch is given, and what it returns.

`Inputs` is all that a step may need of the attempt; no step changes it. A step takes it together with what earlier
steps returned, and returns what it made; `windowlib.batches.batch` puts them together, and so does a rerun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import Schema

from windowlib.batches.pinned import Pinned
from windowlib.batches.staging import Staging
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import as_stored
from windowlib.definition.toml.source import Source
from windowlib.delta.tables import Tables
from windowlib.engines.choice import check_types
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit, Plan
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.plans.kinds.kind import PlanKind
from windowlib.publication.publish import StagedChanges
from windowlib.source.intake import BatchIntake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windowlib.plans.shared import Slicing


@dataclass(frozen=True, slots=True)
class SharedInputs:
    """What the batches of several pipelines have in common: one read of the source, one look at it, one set of slices.

    `rows` are the source's, or those of them that a pipeline may turn away, with the source's own `columns`; `folder`
    holds text that was parsed for all.
    """

    rows: DataFrame
    columns: Sequence[str]
    uris: Mapping[str, str]
    seen: BatchIntake
    slicing: Slicing
    slices: DataFrame
    slice_rows: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Inputs:
    """One attempt at one frozen plan.

    `before` is the commit it builds on (None: the first batch), `opened` are the pipeline's tables; `attempt` names its
    files, and `staging` is the folder that it writes them to first. `wider` are the schemas of tables that it adds
    columns to.
    """

    definition: Definition
    plan: Plan
    before: Commit | None
    spark: SparkSession
    opened: Tables
    attempt: str
    staging: Path
    shared: SharedInputs | None = None
    wider: Mapping[str, Schema] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises `NotOnThisEngine` before anything is read: the plan may have been made for another engine."""
        numbered = as_stored(self.definition, self.plan.stored)
        object.__setattr__(self, "definition", numbered)  # its aggregates are those that the state has
        check_types(numbered.engine, numbered.source, numbered.uses, self.source_types)

    @property
    def source_types(self) -> Mapping[str, str]:
        """Types that the source's columns in use keep, by column; empty before the first file."""
        types: Mapping[str, str] | None = self.plan.stored["source_types"]
        return types or {}

    @property
    def source(self) -> Source:
        """Where its files come from."""
        return self.definition.source

    @property
    def kind(self) -> PlanKind:
        """The kind of plan that computes it."""
        return self.definition.plan

    @property
    def tables(self) -> Pinned:
        """The tables that the batch builds on."""
        return Pinned(self.opened, self.before.versions if self.before else {}, self.spark, self.wider)

    @property
    def staged(self) -> Staging:
        """What the attempt writes."""
        return Staging(self.staging, self.attempt, self.definition.root, self.spark)

    @property
    def rerun(self) -> Rerun:
        """What a rerun was asked to do."""
        assert self.plan.rerun is not None, "a rerun has been planned"
        return self.plan.rerun

    @property
    def watermark_in_ms(self) -> int:
        return MIN_WATERMARK if self.plan.watermark_in_ms is None else self.plan.watermark_in_ms


@dataclass(frozen=True, slots=True)
class ComputedBatch:
    """What a batch makes: the changes to each table, the watermark it leaves, its figures."""

    changes: Mapping[str, StagedChanges]
    watermark_out_ms: int
    figures: Mapping[str, int | None]
