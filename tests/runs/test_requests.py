"""Requests of a run to the storage, and the rounds in which they are sent. Engines' own requests are not counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clicks import FILES, clicks, clicks_on_sail, clock
from tests.support.recording_store import Record, RecordingStore, recorded
from windowlib.definition.definition import Definition
from windowlib.definition.toml.source import Source
from windowlib.delta import data_files
from windowlib.engines import sail
from windowlib.ledger import reading
from windowlib.runs.advance import batches
from windowlib.runs.claimed_pipeline import first_batch
from windowlib.runs.run import RunRequest
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.embedded]


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Definition, Record]]:
    """The clicks, a file a batch, and the requests to their tables and to their source."""
    clicks(tmp_path)
    definition = clicks_on_sail(tmp_path)
    source = definition.source.model_copy(update={"max_files_per_run": 1, "sorted_by_time": True})
    with recorded(Disk(tmp_path / "warehouse" / "clicks")) as store:
        files = RecordingStore(Disk(source.path), store.record, "source")
        monkeypatch.setattr(Source, "store", property(lambda _: files))
        yield definition.model_copy(update={"store": store, "source": source}), store.record


def test_later_batches_of_a_run_send_no_more_requests(pipeline: tuple[Definition, Record]) -> None:
    definition, record = pipeline
    run, figures = RunRequest.of(definition, clock), list[tuple[int, int]]()
    first = first_batch(run)
    assert first is not None
    record.clear()
    for _ in batches(run, first, sail.session):
        figures.append((len(record.requests), record.rounds))
        record.clear()
    assert len(figures) == FILES
    assert max(requests for requests, _ in figures) <= 195, figures
    assert max(rounds for _, rounds in figures[1:]) <= 40, figures
    assert figures[0][1] <= 50, "with the claim, and the first look at the tables"


def test_a_run_without_news_sends_few_requests(
    pipeline: tuple[Definition, Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    definition, record = pipeline
    run = RunRequest.of(definition, clock)
    first = first_batch(run)
    assert first is not None
    assert len(list(batches(run, first, sail.session))) == FILES
    record.clear()
    assert first_batch(run) is None
    assert (len(record.requests), record.rounds) <= (6, 3), [str(request) for request in record.requests]
    record.clear()
    monkeypatch.setattr(data_files, "_CONTENTS", {})  # as in a new process
    reading._end_of_file.cache_clear()
    assert first_batch(RunRequest.of(definition, clock)) is None
    assert (len(record.requests), record.rounds) <= (33, 12), [str(request) for request in record.requests]
