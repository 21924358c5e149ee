"""Answers of Sail, one of which cannot be read: gRPC drops it, and the batch is done again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pyspark.sql.connect.proto as proto
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import clicks, clock, tables
from tests.support.disks import folder_of
from tests.support.strategies import ALL
from windowlib.definition.definition import Definition
from windowlib.engines.connect import EngineLost
from windowlib.publication.publish import STAGING
from windowlib.runs.run import RunRequest
from windowlib.runs.start import run, run_together

pytestmark = [pytest.mark.spark, pytest.mark.embedded, pytest.mark.sail]

FILES = 2
AGAIN = "the engine was lost during a batch: doing that batch again"


class Answers:
    """Number of answers to executed plans, and the numbers of those that arrive as other bytes."""

    def __init__(self) -> None:
        self.come, self.unreadable = 0, set[int]()

    def deserialize(self, answer: bytes, read: Callable[[bytes], Any]) -> Any:
        """Message that gRPC reads from bytes; None if they cannot be read."""
        if read == proto.ExecutePlanResponse.FromString:
            self.come += 1
            if self.come in self.unreadable:
                return None
        return read(answer)


@pytest.fixture
def answers(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Answers:
    made = Answers()
    monkeypatch.setattr(grpc._common, "deserialize", made.deserialize)
    return made


def on_sail(folder: Path) -> Definition:
    return clicks(folder, FILES).model_copy(update={"engine": "sail"})


def batches_of(definition: Definition, said: list[str]) -> list[int]:
    """Batches of a run, with its notes."""
    asked = RunRequest.of(
        definition, clock, say=lambda doing: said.append(doing if isinstance(doing, str) else doing())
    )
    return [report.batch_id for report in run(asked)]


@pytest.mark.fault("any answer of Sail is unreadable", "the run repeats the batch")
def test_a_batch_with_an_unreadable_answer_is_repeated(answers: Answers, tmp_path: Path) -> None:
    plain, said = on_sail(tmp_path / "plain"), list[str]()
    assert batches_of(plain, said) == [1, 2]
    assert AGAIN not in said
    expected, answers_of_all = tables(plain), answers.come
    for unreadable in range(1, answers_of_all + 1, 1 if ALL else 5):
        answers.come, answers.unreadable, said = 0, {unreadable}, []
        definition = on_sail(tmp_path / str(unreadable))
        assert batches_of(definition, said) == [1, 2]
        assert said.count(AGAIN) == 1
        assert tables(definition) == expected
        assert not (folder_of(definition) / STAGING).exists()


def test_the_batch_of_one_of_several_pipelines_is_done_again(answers: Answers, tmp_path: Path) -> None:
    plain, both = on_sail(tmp_path / "plain"), [on_sail(tmp_path / name) for name in ("one", "other")]
    both[1] = both[1].model_copy(update={"name": "other"})
    batches_of(plain, [])
    answers.unreadable = {answers.come + 1, answers.come + 20}
    ends = run_together([RunRequest.of(one, clock) for one in both])
    assert answers.come > max(answers.unreadable)
    assert [(end.error, [report.batch_id for report in end.reports]) for end in ends] == [(None, [1, 2])] * 2
    assert [tables(one, ["results"]) for one in both] == [tables(plain, ["results"])] * 2


def test_a_batch_is_done_again_only_once(answers: Answers, tmp_path: Path) -> None:
    definition = on_sail(tmp_path)
    answers.unreadable = {*range(1, 1000)}
    with pytest.raises(EngineLost, match="gave an answer that cannot be read, in the middle of the work; nothing of"):
        batches_of(definition, [])
    answers.unreadable = set()
    assert batches_of(definition, []) == [1, 2]
