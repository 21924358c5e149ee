"""Inputs and outcome of one attempt at a batch.

`Inputs` holds everything that a step may need of the attempt. No step changes it. A step takes the inputs and the
results of earlier steps, and returns its own result. `windowlib.batches.batch` and the reruns combine the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalake import Schema

from windowlib.batches.pinned import Pinned
from windowlib.batches.staging import Staging
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import as_stored
from windowlib.definition.toml.source import Source
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.engines.choice import check_types
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit, Plan
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.plans.erased import ErasedKeys
from windowlib.plans.kinds.kind import PlanKind
from windowlib.publication.publish import StagedChanges
from windowlib.source.intake import BatchIntake
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windowlib.plans.shared import Slicing


@dataclass(frozen=True, slots=True)
class SharedInputs:
    """Inputs that the batches of several pipelines share: one read of the source, its figures, and one set of slices.

    rows:    rows of the source; if some are refused or may be late, only these rows
    columns: the source's own columns
    uris:    path of a file, relative to the source, by its URI
    folder:  storage of the JSON and CSV rows, parsed once for all pipelines
    """

    rows: DataFrame
    columns: Sequence[str]
    uris: Mapping[str, str]
    intake: BatchIntake
    slicing: Slicing
    slices: DataFrame
    slice_rows: int
    folder: Store


@dataclass(frozen=True, slots=True)
class Inputs:
    """One attempt at one frozen plan.

    before:  commit that the batch builds on; None for the first batch
    opened:  the pipeline's tables
    attempt: prefix of the names of the attempt's files
    staging: storage that the attempt first writes its files to
    erased:  erased keys, whose events the batch does not read; None if there are none
    wider:   schemas of the tables that the batch adds columns to
    given:   by table, the files that the engine was given to read
    """

    definition: Definition
    plan: Plan
    before: Commit | None
    spark: SparkSession
    opened: Tables
    attempt: str
    staging: Store
    erased: ErasedKeys | None
    shared: SharedInputs | None = None
    wider: Mapping[str, Schema] = field(default_factory=dict)
    given: dict[str, list[DataFile]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises `NotOnThisEngine` before anything is read, because the plan may have been made for another engine."""
        numbered = as_stored(self.definition, self.plan.stored)
        object.__setattr__(self, "definition", numbered)  # with the aggregates that the state has
        check_types(numbered.engine, numbered.source, numbered.uses, self.source_types)

    @property
    def source_types(self) -> Mapping[str, str]:
        """Fixed types of the source columns in use, by column; empty before the first file."""
        types: Mapping[str, str] | None = self.plan.stored["source_types"]
        return types or {}

    @property
    def source(self) -> Source:
        """Source of the pipeline."""
        return self.definition.source

    @property
    def kind(self) -> PlanKind:
        """Plan kind that computes the batch."""
        return self.definition.plan

    @property
    def tables(self) -> Pinned:
        """Tables that the batch builds on."""
        return Pinned(self.opened, self.before.versions if self.before else {}, self.spark, self.wider, self.given)

    @property
    def staged(self) -> Staging:
        """Files that the attempt writes."""
        return Staging(self.staging, self.definition.store, self.attempt, self.spark)

    @property
    def rerun(self) -> Rerun:
        """Request of the rerun. Asserts that the plan is the plan of a rerun."""
        assert self.plan.rerun is not None, "a rerun has been planned"
        return self.plan.rerun

    @property
    def watermark_in_ms(self) -> int:
        return MIN_WATERMARK if self.plan.watermark_in_ms is None else self.plan.watermark_in_ms


@dataclass(frozen=True, slots=True)
class ComputedBatch:
    """Outcome of a batch: the changes to each table, the watermark after it, and its figures."""

    changes: Mapping[str, StagedChanges]
    watermark_out_ms: int
    figures: Mapping[str, int | None]
