"""Names of keys and outputs that windowlib's plans use internally: no number changes.

The words are all that stand in the code of the plans, of batches and of reruns as the name of a column might. What a
definition may not be called with them is refused by name, and left out here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windowlib
from tests.support.named_columns import EXPECTED, WINDOWS, pipeline, play

FOLDERS = ("plans", "batches", "reruns")
WORD = re.compile(r"[a-z_][a-z0-9_]*")
NAMED = re.compile(r"\bas ([a-z_][a-z0-9_]*)", re.IGNORECASE)


def own_words() -> list[str]:
    """Words in the code that may name a column."""
    files = [file for folder in FOLDERS for file in (Path(windowlib.__file__).parent / folder).rglob("*.py")]
    return sorted({word for file in files for word in _words(ast.parse(file.read_text(encoding="utf-8")))})


def _words(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from filter(str.islower, NAMED.findall(node.value))
            if WORD.fullmatch(node.value):
                yield node.value


FEW_OUTPUTS = [
    "before",
    "_file",
    "_new",
    "_old",
    "_by",
    "_firings",
    "_events",
    "_change",
    "_readmitted",
    "state_window",
]
FEW_KEYS = ["rewritten", "chosen", "chain_start_ms", "chain_end_ms", "n_before", "n_taken", "of", "by", "file"]
AT_ONCE = 60  # keys: each makes an expression of the plans one deeper


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize(
    "window",
    [
        "sessions",
        *(
            pytest.param(window, marks=pytest.mark.long("sessions, in make test, use the most words"))
            for window in ("sliding", "general")
        ),
    ],
)
def test_formerly_internal_names_as_outputs_and_keys(spark: SparkSession, tmp_path: Path, window: str) -> None:
    definition = pipeline(tmp_path, window, FEW_KEYS, FEW_OUTPUTS)
    assert ([*definition.source.key], definition.outputs) == (FEW_KEYS, FEW_OUTPUTS)
    assert play(spark, tmp_path, definition) == EXPECTED[window]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
@pytest.mark.long("names of columns are tried on Spark, and these words on Sail, in make test")
def test_internal_names_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(tmp_path, "sessions", FEW_KEYS, FEW_OUTPUTS)
    assert play(spark, tmp_path, definition) == EXPECTED["sessions"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("four hundred columns of results take a minute")
@pytest.mark.parametrize("window", WINDOWS)
def test_internal_names_as_outputs(spark: SparkSession, tmp_path: Path, window: str) -> None:
    definition = pipeline(tmp_path, window, ["k"], own_words())
    assert len(definition.outputs) > 200
    assert play(spark, tmp_path, definition) == EXPECTED[window]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("four hundred keys, sixty at a time, are seven pipelines")
@pytest.mark.parametrize("window", WINDOWS)
def test_internal_names_as_keys(spark: SparkSession, tmp_path: Path, window: str) -> None:
    words, tried = own_words(), 0
    for first in range(0, len(words), AT_ONCE):
        folder = tmp_path / str(first)
        folder.mkdir()
        definition = pipeline(folder, window, words[first : first + AT_ONCE], ["total"])
        assert play(spark, folder, definition) == EXPECTED[window]
        tried += len(definition.source.key)
    assert tried > 200
