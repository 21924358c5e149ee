"""A live pipeline with edits of its definition: the notes of its runs and their commits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks, clock
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit
from windowlib.runs.advance import advance

WINDOWS = {
    "tumbling": 'type = "tumbling"\nsize = "10m"\nallowed_lateness = "2h"',
    "sliding": 'type = "sliding"\nsize = "20m"\nslide = "10m"\nallowed_lateness = "2h"',
    "session": 'type = "session"\ngap = "10m"\nallowed_lateness = "2h"',
    "count": 'type = "sliding_count"\nsize = 3\nslide = 2',
    "early": 'type = "tumbling"\nsize = "10m"\nallowed_lateness = "2h"\n[window.trigger]\ntype = "count"\nn = 2',
    "kept": 'type = "tumbling"\nsize = "10m"\n[window.evictor]\ntype = "count"\nn = 2',
}


def run(definition: Definition, spark: SparkSession, rerun: Rerun | None = None) -> list[str]:
    """Notes of a run."""
    said: list[str] = []
    advance(definition, lambda: spark, clock=clock, rerun=rerun, on_note=said.append)
    return said


def newest(definition: Definition) -> Commit:
    found = ledger_of(definition).state().commit
    assert found is not None
    return found


def as_earlier_releases_judge(definition: Definition, commit: Commit) -> bool:
    """Tests if a release that knows no change continues: its `continues`."""
    stored, now = commit.stored, definition.semantics()
    then = {name: stored.get(name) for name in now}
    return commit.fingerprint == definition.fingerprint or then == now


def defined(folder: Path, aggregates: Mapping[str, str], window: str = "session", idle: str = "") -> Definition:
    source, _, _ = CLICKS.replace('event_id = "id"\n', "").partition("[window]")
    lines = "".join(f"{name} = '''{sql}'''\n" for name, sql in aggregates.items())
    return clicks(folder, 0, f"{source}{idle}[window]\n{WINDOWS[window]}\n[aggregates]\n{lines}")
