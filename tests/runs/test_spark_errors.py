"""Errors of Spark that are mistakes of the user."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from windowlib.definition.commands import to_paste
from windowlib.engines.connect import EngineLost
from windowlib.model.errors import InvalidSpec
from windowlib.plans.aggregates.bounds import TOO_MANY
from windowlib.runs.spark_errors import LOST, explained

FILE = Path("visits.toml")


def refused(message: str) -> str:
    """Message for an error of Spark."""
    with (
        pytest.raises(InvalidSpec) as said,
        explained(FILE, {"pages": "collect_list(tags)"}, "Sail"),
    ):
        raise AnalysisException(message)
    return str(said.value)


def test_a_plan_that_is_shown_with_an_error_is_not_the_error() -> None:
    """It contains the texts of our own messages."""
    shown = f"concat({TOO_MANY}: a window,  of key , coalesce(cast(key#1 as string), null))"
    of_types = '[DATATYPE_MISMATCH.INVALID_ORDERING_TYPE] Cannot resolve "(a < b)": no ordering. SQLSTATE: 42K09;'
    said = refused(f"{of_types}\n'Project [CASE WHEN size(kept) > 10 THEN raise_error({shown})]\n+- Relation")
    assert 'Cannot resolve "(a < b)": no ordering.' in said
    assert "max_kept_values" not in said


def test_a_window_that_keeps_too_many_values_is_named() -> None:
    said = refused(f"[USER_RAISED_EXCEPTION] {TOO_MANY}: a window of key a keeps more than 10 values SQLSTATE: P0001")
    assert "a window of key a keeps more than 10 values. Increase storage.max_kept_values" in said


@pytest.mark.parametrize(
    ("of_a_batch", "then"),
    [
        (True, f"nothing of the batch was committed: run `{to_paste('run', FILE)}` again"),
        (False, "nothing was changed: repeat the command"),
    ],
)
def test_a_lost_engine_is_named_with_advice(of_a_batch: bool, then: str) -> None:
    gone = SparkConnectGrpcException("no answer", grpc_status_code=grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(EngineLost) as said, explained(FILE, {}, "Sail", of_a_batch=of_a_batch):
        raise gone
    assert str(said.value) == f"Sail {LOST}, in the middle of the work; {then}"
