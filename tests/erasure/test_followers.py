"""What those who follow `result_changes` get of an erased key, wherever they are."""

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


def test_one_who_has_not_seen_that_a_result_was_removed_gets_it_as_removed(spark: SparkSession, folder: Path) -> None:
    """Of the key, batches 2 and 3 put merged sessions in the place of published ones, and their rows are erased."""
    definition = clicks(folder, 0)
    changes = read_table(definition, "result_changes").to_pylist()
    gone = {row["batch_id"] for row in changes if row["user"] == USER and row["change"] == "removed"}
    assert gone, "a session of the key was replaced by a larger one"
    forget(definition, lambda: spark, asked())
    results = {bounds(row) for row in read_table(definition, "results").to_pylist()}
    for batch_id, before in cuts(definition).items():
        assert followed(definition, before, batch_id) == results


def cuts(definition: Definition) -> dict[int, list[dict[str, Any]]]:
    """The rows of `results` as each batch has left them."""
    tables = ledger_of(definition).tables
    return {
        commit.batch_id: snapshot(tables["results"], commit.versions["results"]).to_pylist()
        for commit in commits_of(tables)
        if "results" in commit.versions
    }


def followed(definition: Definition, before: Iterable[dict[str, Any]], after: int) -> set[tuple[Any, ...]]:
    """The windows that one has who had those of `before` after a batch, and has read the changes since."""
    held = {bounds(row): row for row in before}
    changes = read_table(definition, "result_changes").to_pylist()
    apply_changes(held, (row for row in changes if row["batch_id"] > after), bounds)
    return set(held)


def bounds(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["user"], row["window_start"], row["window_end"]
