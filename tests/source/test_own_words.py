"""Words that windowlib's own plans use, as the names of keys and of outputs: none of them changes a number.

The words are all that stand in the code of the plans, of batches and of reruns as the name of a column might. What a
definition may not be called with them is refused by name, and left out here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import windowlib
from tests.support.clicks import MINUTE_MS, START_MS, arrive, clock
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

FOLDERS = ("plans", "batches", "reruns")
WORD = re.compile(r"[a-z_][a-z0-9_]*")
NAMED = re.compile(r"\bas ([a-z_][a-z0-9_]*)", re.IGNORECASE)
REFUSED = re.compile(r"(?:aggregates\.|source\.key: \")([a-z_][a-z0-9_]*)")
WINDOWS = {
    "sessions": '{ type = "session", gap = "10m", allowed_lateness = "2h" }',
    "tumbling": '{ type = "tumbling", size = "10m", allowed_lateness = "2h" }',
    "sliding": '{ type = "sliding", size = "10m", slide = "5m", allowed_lateness = "2h" }',
    "counts": '{ type = "sliding_count", size = 2, slide = 1 }',
    "general": '{ type = "session", gap = "10m", allowed_lateness = "2h", trigger = { type = "event_time" },'
    ' evictor = { type = "count", n = 9 } }',
}
HEAD = """
name = "words"
window = {window}
[watermark]
out_of_orderness = "0s"
[source]
format = "parquet"
path = "incoming"
max_files_per_run = 1
timestamp = "at of it"
timestamp_unit = "ms"
key = [{keys}]
[aggregates]
{outputs}
"""


def own_words() -> list[str]:
    """Every word in the code that may name a column."""
    files = [file for folder in FOLDERS for file in (Path(windowlib.__file__).parent / folder).rglob("*.py")]
    return sorted({word for file in files for word in _words(ast.parse(file.read_text(encoding="utf-8")))})


def _words(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from filter(str.islower, NAMED.findall(node.value))
            if WORD.fullmatch(node.value):
                yield node.value


def pipeline(folder: Path, window: str, keys: list[str], outputs: list[str]) -> Definition:
    """One with these names, but for those that are refused."""
    named = {"window": WINDOWS[window], "keys": ", ".join(f'"{key}"' for key in keys)}
    file = folder / "words.toml"
    file.write_text(HEAD.format(**named, outputs="\n".join(f'{name} = "sum(`a value`)"' for name in outputs)))
    try:
        return load_definition(file).model_copy(update={"root": folder / "warehouse" / "words"})
    except InvalidDefinition as error:
        refused = {*REFUSED.findall(str(error))}
        if refused.isdisjoint({*keys, *outputs}):
            raise
        left = ([name for name in names if name not in refused] for names in (keys, outputs))
        return pipeline(folder, window, *left)


def play(spark: SparkSession, folder: Path, definition: Definition) -> list[int]:
    """On time, late and twice, in flight; then a rerun that finds one event more. Gives the sums that are published."""
    (folder / "incoming").mkdir()
    keys = definition.source.key
    schema = pa.schema([("at of it", pa.int64()), ("a value", pa.int64()), *((key, pa.int64()) for key in keys)])

    def rows(*events: tuple[int, int]) -> list[dict[str, Any]]:
        return [{**dict.fromkeys(keys, 7), "at of it": START_MS + m * MINUTE_MS, "a value": v} for m, v in events]

    files = [rows((1, 1), (2, 20)), rows((40, 300)), rows((3, 4_000)), rows((60, 50_000))]
    for number, events in enumerate(files, 1):
        arrive(folder, number, events, schema)
    advance(definition, lambda: spark, clock=clock)
    if not isinstance(definition.plan.rerun, str):
        arrive(folder, 1, [*files[0], *rows((4, 600_000))], schema)
        range_ms = START_MS, START_MS + 10 * MINUTE_MS
        advance(definition, lambda: spark, clock=clock, rerun=Rerun(*range_ms, "one more", "a test"))
    published = read_table(definition, "results").to_pylist()
    assert all({row[key] for key in keys} == {7} for row in published)
    assert all(len({row[name] for name in definition.expressions}) == 1 for row in published)
    return sorted(row[definition.outputs[0]] for row in published)


EXPECTED = {
    "sessions": [300, 604_021],
    "tumbling": [300, 604_021],
    "sliding": [300, 300, 604_021, 604_021],
    "counts": [1, 21, 320, 4_300, 54_000],
    "general": [300, 4_021],
}


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
def test_words_that_plans_once_used_as_outputs_and_keys(spark: SparkSession, tmp_path: Path, window: str) -> None:
    definition = pipeline(tmp_path, window, FEW_KEYS, FEW_OUTPUTS)
    assert ([*definition.source.key], definition.outputs) == (FEW_KEYS, FEW_OUTPUTS)
    assert play(spark, tmp_path, definition) == EXPECTED[window]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
@pytest.mark.long("names of columns are tried on Spark, and these words on Sail, in make test")
def test_words_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(tmp_path, "sessions", FEW_KEYS, FEW_OUTPUTS)
    assert play(spark, tmp_path, definition) == EXPECTED["sessions"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("four hundred columns of results take a minute")
@pytest.mark.parametrize("window", WINDOWS)
def test_words_of_the_plans_as_outputs(spark: SparkSession, tmp_path: Path, window: str) -> None:
    definition = pipeline(tmp_path, window, ["k"], own_words())
    assert len(definition.outputs) > 200
    assert play(spark, tmp_path, definition) == EXPECTED[window]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("four hundred keys, sixty at a time, are seven pipelines")
@pytest.mark.parametrize("window", WINDOWS)
def test_words_of_the_plans_as_keys(spark: SparkSession, tmp_path: Path, window: str) -> None:
    words, tried = own_words(), 0
    for first in range(0, len(words), AT_ONCE):
        folder = tmp_path / str(first)
        folder.mkdir()
        definition = pipeline(folder, window, words[first : first + AT_ONCE], ["total"])
        assert play(spark, folder, definition) == EXPECTED[window]
        tried += len(definition.source.key)
    assert tried > 200
