"""Changes of results since a moment: windows by kind, day and cause, with sums before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Schema

from docs.reference.on_disk import PARTS
from tests.support.clicks import CLICKS
from tests.support.disks import folder_of
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import utc
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.ledger.decision import Decision
from windowlib.ledger.rerun_request import Rerun
from windowlib.pages.changes import by_batch
from windowlib.pages.changes.by_batch import BatchReader
from windowlib.pages.changes.since_moment import ChangedDay, KnownChanges, Moment, known_changes, moment_of
from windowlib.pages.days import days
from windowlib.pages.newest_rows import RecentRun, Tail
from windowlib.pages.words import percent
from windowlib.publication.key import CannotLook
from windowlib.storage.disk import Disk

MINUTE_MS, DAY_MS = 60_000, 86_400_000
STAMP = pa.timestamp("us", tz="UTC")
COLUMNS = [("user", pa.string()), ("window_start", STAMP), ("window_end", STAMP), ("revenue", pa.int64())]
RESULTS = pa.schema([*COLUMNS, ("firing", pa.int32()), ("batch_id", pa.int64())])
FEED = pa.schema([*RESULTS, ("change", pa.string()), ("cause", pa.string())])
ALL = Moment("the beginning", -1)
Row = tuple[str, int, int, int]  # user, start and end in minutes, revenue


class History:
    """Batches of a pipeline, written as tables. The first day is 1970-01-01."""

    def __init__(self, folder: Path, pages: str = "") -> None:
        text = CLICKS.partition("[aggregates]")[0] + f'[aggregates]\nrevenue = "sum(price)"\n[pages]\n{pages}\n'
        (folder / "incoming").mkdir(parents=True)
        (folder / "clicks.toml").write_text(text)
        made = load_definition(folder / "clicks.toml")
        self.definition: Definition = made.model_copy(update={"store": Disk(folder / "warehouse")})
        self.tables, self.runs = Tables(self.definition.store), list[RecentRun]()
        self.files: list[data_files.DataFile] = []
        for name, schema, parts in (("results", RESULTS, []), ("result_changes", FEED, ["change", "cause"])):
            delta_commits.create(self.tables[name], Schema.from_arrow(schema), parts)

    def batch(
        self, results: Sequence[Row], feed: Mapping[tuple[str, str], Sequence[Row]], at_ms: int = 0, **more: Any
    ) -> None:
        """Commits a batch: all results after it, and its rows of the feed by change and cause."""
        number = len(self.runs) + 1
        now = [self._file("results", results, number)] if results else []
        self._commit("results", now, self.files)
        self.files = now
        added = []
        for (change, cause), rows in feed.items():
            file = self._file("result_changes", rows, number)
            added.append(replace(file, partition={"change": change, "cause": cause}))
        self._commit("result_changes", added)
        versions = {name: self.tables[name].version() or 0 for name in ("results", "result_changes")}
        figures = {"newest_event_ms": 2 * DAY_MS}
        self.runs.insert(0, RecentRun(number, at_ms, 0, 1.0, 1, 0, figures, versions, **more))

    def known(self, *, keep: bool = False, is_whole: bool = True) -> KnownChanges:
        tail = Tail(self.runs, is_whole=is_whole)
        found = days(self.definition, self.tables, tail, None, -1)
        return known_changes(self.definition, self.tables, tail, found, keep=keep)

    def since(self, moment: Moment = ALL) -> list[ChangedDay]:
        return [*self.known().since(moment).days]

    def _file(self, name: str, rows: Sequence[Row], number: int) -> data_files.DataFile:
        columns = RESULTS.names
        values = [
            (user, utc(start * MINUTE_MS), utc(end * MINUTE_MS), revenue, 1, number)
            for user, start, end, revenue in rows
        ]
        made = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in values], schema=RESULTS)
        return data_files.write(self.tables[name].store, made)

    def _commit(self, name: str, add: Sequence[Any], remove: Sequence[Any] = ()) -> None:
        table = self.tables[name]
        if add or remove:
            delta_commits.commit(table, table.version() or 0, add=[*add], remove=[*remove])


@pytest.fixture
def history(tmp_path: Path) -> History:
    """One session in batch 1, which grows in batch 2 (on the next day); a late event changes another in batch 3."""
    made, day = History(tmp_path), 1440
    first, second, grown = ("ann", 1400, 1430, 5), ("bob", 10, 20, 7), ("ann", 1400, day + 5, 9)
    made.batch([first, second], {("added", "firing"): [first, second]}, at_ms=1)
    feed = {("added", "merge"): [grown], ("removed", "merge"): [first]}
    made.batch([grown, second], feed, at_ms=2)
    late = ("bob", 10, 20, 8)
    made.batch([grown, late], {("changed", "late"): [late]}, at_ms=3)
    return made


def test_a_session_that_grew_is_extended(history: History) -> None:
    new, old = history.since(Moment("batch 1", 1))
    assert (new.day, dict(new.windows), new.before, new.after) == (date(1970, 1, 2), {"extended": 1}, [0], [9])
    assert (old.day, dict(old.windows), old.sums) == (date(1970, 1, 1), {"changed": 1}, [-5 + 1])
    assert (old.before, old.after) == ([12], [8])
    assert {cause.cause: (dict(cause.windows), cause.sums) for cause in old.causes} == {
        "late": ({"changed": 1}, [1]), "merge": ({}, [-5]),
    }  # fmt: skip


def test_a_day_may_lose_all_its_results(tmp_path: Path) -> None:
    made, first, grown = History(tmp_path), ("ann", 1400, 1430, 5), ("ann", 1400, 1445, 9)
    made.batch([first], {("added", "firing"): [first]}, at_ms=1)
    made.batch([grown], {("added", "merge"): [grown], ("removed", "merge"): [first]}, at_ms=2)
    _, old = made.since(Moment("batch 1", 1))
    assert (old.before, old.after, old.sums) == ([5], [None], [-5])
    assert percent(old.after[0], old.before[0]) == ""


def test_changes_are_those_after_the_moment(history: History) -> None:
    [day] = history.since(Moment("batch 2", 2))
    assert (dict(day.windows), day.sums, day.before) == ({"changed": 1}, [1], [7])
    assert history.since(Moment("now", 3)) == []
    assert [day.before for day in history.since()] == [[0], [0]]


def test_a_rerun_names_its_operator(history: History) -> None:
    rerun = Rerun(0, DAY_MS, "the queue was stuck", "ann")
    history.batch([("bob", 10, 20, 9)], {("changed", "rerun"): [("bob", 10, 20, 9)]}, 4, rerun=rerun)
    [day] = [day for day in history.since(Moment("batch 3", 3)) if day.day == date(1970, 1, 1)]
    [cause] = day.causes
    assert (cause.sums, [(found.batch_id, found.who, found.reason) for found in cause.because]) == (
        [1], [(4, "ann", "the queue was stuck")],
    )  # fmt: skip


def test_a_rollback_is_compared_with_the_results_before_it(history: History) -> None:
    first, second = ("ann", 1400, 1430, 5), ("bob", 10, 20, 7)
    undone = Decision("rollback", "ann", "a wrong file", to_batch_id=1)
    history.batch([first, second], {}, at_ms=4, decision=undone)
    new, old = history.since(Moment("batch 3", 3))
    assert (dict(new.windows), new.sums, dict(old.windows), old.sums) == (
        {"removed": 1},
        [-9],
        {"added": 1, "changed": 1},
        [4],
    )
    assert [cause.because[0].reason for cause in (*new.causes, *old.causes)] == ["a wrong file"] * 2
    assert [day.sums for day in history.since(Moment("batch 1", 1))] == [[0], [0]]


def test_an_erasure_has_no_sums(history: History) -> None:
    history.batch([("bob", 10, 20, 8)], {("removed", "forget"): [("ann", 1400, 1445, 9)]}, at_ms=4)
    [day] = history.since(Moment("batch 3", 3))
    assert (dict(day.windows), day.sums, day.before) == ({"removed": 1}, [None], [None])


def test_the_last_of_several_early_firings_counts(history: History) -> None:
    early, last = ("eve", 30, 40, 1), ("eve", 30, 40, 6)
    feed = {("added", "firing"): [early], ("changed", "firing"): [last]}
    history.batch([("bob", 10, 20, 8), last], feed, at_ms=4)
    history.runs[0] = replace(history.runs[0], figures={**history.runs[0].figures, "windows_fired_early": 1})
    day = history.since(Moment("batch 3", 3))[-1]
    assert (day.day, day.sums) == (date(1970, 1, 1), [6])


def test_days_begin_at_midnight_of_their_zone(tmp_path: Path) -> None:
    made = History(tmp_path, 'time_zone = "Asia/Tokyo"')
    made.batch(
        [("ann", 899, 900, 1), ("ann", 900, 901, 2)],
        {("added", "firing"): [("ann", 899, 900, 1), ("ann", 900, 901, 2)]},
    )
    assert [(day.day, day.after) for day in made.since()] == [(date(1970, 1, 2), [2]), (date(1970, 1, 1), [1])]


def test_batches_are_compared_once(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    first = history.known(keep=True).by_batch
    kept = folder_of(history.definition) / by_batch.FILE
    keys = {part.where: {*part.keys} for part in PARTS}
    assert json.loads(kept.read_text()).keys() == keys["pages/changes.json"]
    monkeypatch.setattr(BatchReader, "compared", lambda *_: pytest.fail("it is compared again"))
    assert history.known().by_batch == first


def test_too_many_rows_are_not_compared(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_batch, "MOST_ROWS", 0)
    found = history.known().since(ALL)
    assert (found.batches, found.is_known, found.days) == (0, False, [])


def test_changes_of_a_cleaned_up_log_are_not_known(history: History) -> None:
    for file in (folder_of(history.tables["result_changes"]) / "_delta_log").glob("*.json"):
        file.unlink()
    found = history.known().since(ALL)
    assert (found.is_known, found.days) == (False, [])


def test_batches_before_those_that_are_read_are_not_known(history: History) -> None:
    known = history.known(is_whole=False)
    assert (known.since(ALL).is_known, known.since(Moment("batch 1", 1)).is_known) == (False, True)


def test_a_moment_is_a_time_or_a_batch(history: History) -> None:
    tail = Tail(history.runs)
    assert moment_of(tail, "2").since_ms == 2
    assert moment_of(tail, "1970-01-01 00:01 UTC").since_ms == MINUTE_MS
    with pytest.raises(CannotLook, match="batch 9 is not among the newest batches"):
        moment_of(tail, "9")
