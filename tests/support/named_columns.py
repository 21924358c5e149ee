"""A pipeline with given names of keys and outputs, and the sums that it must publish."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.support.clicks import MINUTE_MS, START_MS, arrive, clock
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

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
EXPECTED = {
    "sessions": [300, 604_021],
    "tumbling": [300, 604_021],
    "sliding": [300, 300, 604_021, 604_021],
    "counts": [1, 21, 320, 4_300, 54_000],
    "general": [300, 4_021],
}


def pipeline(folder: Path, window: str, keys: list[str], outputs: list[str]) -> Definition:
    """One with these names, but for those that are refused."""
    named = {"window": WINDOWS[window], "keys": ", ".join(f'"{key}"' for key in keys)}
    file = folder / "words.toml"
    file.write_text(HEAD.format(**named, outputs="\n".join(f'{name} = "sum(`a value`)"' for name in outputs)))
    try:
        return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "words")})
    except InvalidDefinition as error:
        refused = {*REFUSED.findall(str(error))}
        if refused.isdisjoint({*keys, *outputs}):
            raise
        left = ([name for name in names if name not in refused] for names in (keys, outputs))
        return pipeline(folder, window, *left)


def play(spark: SparkSession, folder: Path, definition: Definition) -> list[int]:
    """Plays events on time, late, repeated and in flight, then a rerun with one more event; returns the sums."""
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
