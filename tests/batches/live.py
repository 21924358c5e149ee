"""A live pipeline whose definition is edited: what its runs say, and what they have committed."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.support.clicks import clock
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit
from windowlib.runs.advance import advance


def run(definition: Definition, spark: SparkSession, rerun: Rerun | None = None) -> list[str]:
    """What the run says."""
    said: list[str] = []
    advance(definition, lambda: spark, clock=clock, rerun=rerun, on_note=said.append)
    return said


def newest(definition: Definition) -> Commit:
    found = ledger_of(definition).state().commit
    assert found is not None
    return found
