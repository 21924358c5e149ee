"""Rows of an erased key that consumers of `result_changes` get, at any position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.erasure.erased_user import USER, asked
from tests.support.clicks import clicks
from tests.support.follower import apply_changes
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.erasure.forget import forget
from windowlib.ledger.history import commits_of
from windowlib.publication.readers import read_table, snapshot

pytestmark = [pytest.mark.spark, pytest.mark.embedded]


def test_a_lagging_consumer_gets_removal_rows_for_results_removed_earlier(spark: SparkSession, folder: Path) -> None:
    """Batches 2 and 3 replaced published sessions of the key by merged ones; the erasure removes these rows."""
    definition = clicks(folder, 0)
    changes = read_table(definition, "result_changes").to_pylist()
    gone = {row["batch_id"] for row in changes if row["user"] == USER and row["change"] == "removed"}
    assert gone, "a session of the key was replaced by a larger one"
    forget(definition, lambda: spark, asked())
    results = {bounds(row) for row in read_table(definition, "results").to_pylist()}
    for batch_id, before in cuts(definition).items():
        assert followed(definition, before, batch_id) == results


def cuts(definition: Definition) -> dict[int, list[dict[str, Any]]]:
    """The rows of `results` after each batch."""
    tables = ledger_of(definition).tables
    return {
        commit.batch_id: snapshot(tables["results"], commit.versions["results"]).to_pylist()
        for commit in commits_of(tables)
        if "results" in commit.versions
    }


def followed(definition: Definition, before: Iterable[dict[str, Any]], after: int) -> set[tuple[Any, ...]]:
    """Windows of a consumer that had `before` after a batch and has applied the changes since."""
    held = {bounds(row): row for row in before}
    changes = read_table(definition, "result_changes").to_pylist()
    apply_changes(held, (row for row in changes if row["batch_id"] > after), bounds)
    return set(held)


def bounds(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["user"], row["window_start"], row["window_end"]
