"""Several pipelines in one run give the same tables as separate runs, with one read of the source."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import COMPARED, MINUTE_MS, START_MS, arrive, clock, events, tables
from tests.support.killed import stopped
from tests.support.spark_jobs import jobs_so_far, visits
from tests.support.strategies import ALL
from tests.support.streams import COUNT, TOTAL, arrives, definition_text, pipeline, pipelines
from windowlib.batches import reading, sharing
from windowlib.batches.planning import ledger_of, plan, rerun_plan
from windowlib.decisions.verdicts import approve
from windowlib.definition.definition import Definition
from windowlib.definition.several import sharing_refusal
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.errors import InvalidSpec
from windowlib.plans.admission import MIN_TIMESTAMP_MS
from windowlib.publication.readers import read_table
from windowlib.runs import attempt
from windowlib.runs import claimed_pipeline as at_work
from windowlib.runs.advance import advance
from windowlib.runs.run import RunRequest
from windowlib.runs.together import RunOutcome, advance_together
from windowlib.source.rows import SourceRows, rows

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

OWN = tuple(name for name in COMPARED if name != "seen_ids")


def together(definitions: Sequence[Definition], spark: SparkSession, **options: Any) -> list[RunOutcome]:
    """Runs them in one run, in which sharing does not fail."""
    notes: list[str] = []
    runs = [RunRequest.of(one, clock, note=notes.append) for one in definitions]
    ends = advance_together(runs, lambda: spark, **options)
    assert notes == []
    return ends


def batches(ends: Sequence[RunOutcome]) -> list[list[int]]:
    """Ids of the batches of each pipeline."""
    assert [end.error for end in ends] == [None] * len(ends)
    return [[report.batch_id for report in end.reports] for end in ends]


@contextmanager
def reads_counted() -> Iterator[list[int]]:
    """Number of files of each read of a source."""
    reads: list[int] = []

    def counted(spark: Any, definition: Any, files: Sequence[Any], *others: Any) -> SourceRows:
        reads.append(len(files))
        return rows(spark, definition, files, *others)

    with pytest.MonkeyPatch.context() as patch:
        for module in (reading, sharing):
            patch.setattr(module, "read_rows", counted)
        yield reads


def some(folder: Path) -> list[Definition]:
    """Sessions and tumbling windows; all pipelines in `make test-all`."""
    return pipelines(folder) if ALL else [pipeline(folder, name) for name in ("visits", "hours")]


@pytest.fixture(scope="module")
def alone(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Definition]:
    """Every pipeline after separate runs over three files."""
    folder = tmp_path_factory.mktemp("alone")
    definitions = some(folder)
    arrives(folder, 1, 2, 3)
    for definition in definitions:
        advance(definition, lambda: spark, clock=clock)
    late = {definition.name: read_table(definition, "late_events").num_rows for definition in definitions}
    assert min(late.values()) > 0, late
    changes = {row["cause"] for one in definitions for row in read_table(one, "result_changes").to_pylist()}
    assert changes == {"firing", "late", "merge"}
    assert {row["reason"] for row in read_table(definitions[0], "quarantine").to_pylist()} == {"null_key"}
    return definitions


def same(found: Sequence[Definition], expected: Sequence[Definition]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert tables(one, OWN) == tables(other, OWN), one.name


@pytest.mark.long("random files read alone and together are in make test; so are the jobs that are shared")
@pytest.mark.classic  # on Sail nothing is shared
def test_together_as_alone(alone: list[Definition], spark: SparkSession, tmp_path: Path) -> None:
    definitions = pipelines(tmp_path)
    arrives(tmp_path, 1, 2, 3)
    with reads_counted() as reads:
        ends = together(definitions, spark)
    assert batches(ends) == [[1, 2, 3]] * len(definitions)
    assert reads == [1, 1, 1]  # each file once, for all of them
    same(definitions, alone)
    left = [*tmp_path.glob("warehouse/*/_staging"), *tmp_path.glob("warehouse/*/_*/*")]
    assert left == []  # of what was shared, or prepared


@pytest.mark.long("one kill, finished alone and together, is in make test")
def test_killed_together_and_finished_alone_or_together(
    alone: list[Definition], spark: SparkSession, tmp_path: Path
) -> None:
    definitions = some(tmp_path)
    arrives(tmp_path, 1, 2, 3)
    for moment in ("write:windows", "commit:result_changes", "ledger:commit"):
        with stopped(moment):
            together(definitions, spark, max_batches=1)
    advance(definitions[1], lambda: spark, clock=clock)
    for end in together(definitions, spark):
        assert end.error is None
    same(definitions, alone)


@pytest.mark.fault("a run of several pipelines is killed", "each is finished, alone or together")
def test_a_group_that_is_killed_is_finished_on_either_engine(spark: SparkSession, tmp_path: Path) -> None:
    """On Sail in `make test`. Prepared batches are published without an engine, and the rest is computed as usual."""
    by_themselves, definitions = pipelines(tmp_path / "alone")[:2], pipelines(tmp_path / "together")[:2]
    for name, group in (("alone", by_themselves), ("together", definitions)):
        arrives(tmp_path / name, 1)
        for definition in group if name == "alone" else ():
            advance(definition, lambda: spark, clock=clock)
    with stopped("commit:result_changes"):
        together(definitions, spark)
    assert [report.batch_id for report in advance(definitions[1], lambda: spark, clock=clock)] == [1]
    assert batches(together(definitions, spark)) == [[1], []]
    same(definitions, by_themselves)


@pytest.mark.slow
@pytest.mark.long("killed together and finished alone or together, in make test, takes turns too")
@pytest.mark.parametrize("seed", range(3))
def test_random_files_read_alone_or_together_in_turns(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lists = [pipelines(tmp_path / way) for way in ("alone", "together")]
    for number in range(1, 6 if ALL else 4):
        rows = events(seed * 10 + number, chance.choice((5, 80, 200)))
        moved = [{**row, "at_ms": row["at_ms"] - seed * 10 * 120 * 60_000} for row in rows]
        for way in ("alone", "together"):
            arrive(tmp_path / way, number, moved)
        if chance.random() < 0.6:
            for definition in lists[0]:
                advance(definition, lambda: spark, clock=clock)
            chosen = [one for one in lists[1] if chance.random() < 0.8]
            if chosen:
                together(chosen, spark)
            for definition in lists[1]:
                advance(definition, lambda: spark, clock=clock)
    for definition in lists[0]:
        advance(definition, lambda: spark, clock=clock)
    together(lists[1], spark)
    same(lists[1], lists[0])


@pytest.mark.classic  # counts Spark's jobs
def test_one_job_for_all_and_one_for_each(spark: SparkSession, tmp_path: Path) -> None:
    ways = {way: some(tmp_path / way) for way in ("alone", "together")}
    for way in ways:
        arrive(tmp_path / way, 1, visits(100))
    before = jobs_so_far(spark)
    for definition in ways["alone"]:
        advance(definition, lambda: spark, clock=clock)
    between = jobs_so_far(spark)
    together(ways["together"], spark)
    shared = 1
    assert jobs_so_far(spark) - between == shared + (between - before)
    same(ways["together"], ways["alone"])


@pytest.mark.classic  # on Sail nothing is shared
@pytest.mark.long("those killed together, in make test, are batches behind each other, too")
def test_a_pipeline_one_batch_behind_goes_first(spark: SparkSession, tmp_path: Path) -> None:
    definitions = pipelines(tmp_path)[:3]
    arrives(tmp_path, 1)
    for definition in definitions[1:]:
        advance(definition, lambda: spark, clock=clock)
    arrives(tmp_path, 2)
    with reads_counted() as reads:
        assert batches(together(definitions, spark)) == [[1, 2], [2], [2]]
    assert len(reads) == 2


def others() -> dict[str, str]:
    """Definitions whose batches share nothing, each for another reason."""

    def named(name: str, like: str, replaced: dict[str, str]) -> str:
        return definition_text(like, {f'name = "{like}"': f'name = "{name}"', **replaced})

    hour = 'type = "tumbling"\nsize = "1h"\nallowed_lateness = "1h"'
    return {
        "once": named("once", "hours", {'_unit = "ms"': '_unit = "ms"\nevent_id = "id"'}),
        "firsts": named("firsts", "sliding", {TOTAL: 'earliest = "first(value)"'}),
        "holes": named("holes", "sliding", {'size = "40m"': 'size = "5m"'}),
        "counts": named("counts", "hours", {hour: 'type = "tumbling_count"\nsize = 3'}),
    }


@pytest.mark.long("what cannot run together is refused in make test; this one runs it")
@pytest.mark.classic  # on Sail nothing is shared
def test_others_go_alone(spark: SparkSession, tmp_path: Path) -> None:
    lists = []
    for folder in (tmp_path / "alone", tmp_path / "together"):
        lists.append([*pipelines(folder)[:2], *(pipeline(folder, name, text) for name, text in others().items())])
        arrives(folder, 1, 2)
    assert [sharing_refusal(definition) is None for definition in lists[0]] == [True, True, False, False, False, False]
    for definition in lists[0]:
        advance(definition, lambda: spark, clock=clock)
    with reads_counted() as reads:
        assert batches(together(lists[1], spark)) == [[1, 2]] * 6
    assert len(reads) == 2 * (1 + 4)
    same(lists[1], lists[0])


@pytest.mark.fault("the checks refuse one of several pipelines", "the others are published")
def test_a_refused_pipeline_stops_no_other(spark: SparkSession, tmp_path: Path) -> None:
    definitions = pipelines(tmp_path)[:2]
    suite = tmp_path / "none.json"
    usable = {"column": "rows_quarantined", "max_value": 0}
    check = {"type": "expect_column_max_to_be_between", "kwargs": usable, "severity": "critical"}
    suite.write_text(json.dumps({"expectations": [check]}))
    text = definition_text("visits") + '[checks]\nfigures_suite = "none.json"\n'
    definitions[0] = pipeline(tmp_path, "visits", text)
    arrives(tmp_path, 1, 2)
    ends = together(definitions, spark)
    assert [type(end.error).__name__ for end in ends] == ["Rejected", "NoneType"]
    assert [len(end.reports) for end in ends] == [0, 2]
    approve(definitions[0], "ann", "one lost click does not matter", clock)
    again = together(definitions, spark)
    assert [len(end.reports) for end in again] == [1, 0]  # the second batch is refused in its turn
    assert type(again[0].error).__name__ == "Rejected"


@pytest.mark.classic  # on Sail nothing is shared
@pytest.mark.fault("one of several pipelines has a mistake", "only this pipeline reports it")
def test_only_the_mistaken_pipeline_reports_its_mistake(spark: SparkSession, tmp_path: Path) -> None:
    definitions = pipelines(tmp_path)[:1]
    text = definition_text("hours", {COUNT: 'clicks = "sum(1 / (value - value))"'})
    definitions.append(pipeline(tmp_path, "hours", text))
    arrives(tmp_path, 1)
    notes: list[str] = []
    ends = advance_together([RunRequest.of(one, clock, note=notes.append) for one in definitions], lambda: spark)
    assert [len(end.reports) for end in ends] == [1, 0]
    assert isinstance(ends[1].error, InvalidSpec)
    assert "hours.toml does not fit its source" in str(ends[1].error)
    assert len(notes) == 1
    assert "hours, visits could not share" in notes[0]


@pytest.mark.classic  # on Sail nothing is shared
def test_plans_made_at_different_times_share_unless_an_event_is_of_the_future(
    spark: SparkSession, tmp_path: Path
) -> None:
    skewed = {'out_of_orderness = "5m"': 'out_of_orderness = "5m"\nmax_future_skew = "1h"'}
    definitions = [pipeline(tmp_path, name, definition_text(name, skewed)) for name in ("visits", "hours")]
    arrives(tmp_path, 1)
    now = clock()
    for number, definition in enumerate(definitions):
        plan(definition, lambda now=now + number: now)
    with reads_counted() as reads:
        assert batches(together(definitions, spark)) == [[1], [1]]
        assert len(reads) == 1
        arrive(tmp_path, 2, [*events(2), {"id": "x", "user": "ann", "at_ms": now + 3_600_001, "value": 1}])
        for number, definition in enumerate(definitions):
            plan(definition, lambda now=now + number: now)
        assert batches(together(definitions, spark)) == [[2], [2]]
        assert len(reads) == 1 + 3  # looked at together, then read by each
    refused = [[row["reason"] for row in read_table(one, "quarantine").to_pylist()] for one in definitions]
    assert [found.count("future") for found in refused] == [1, 0]


@pytest.mark.classic  # on Sail nothing is shared
def test_windows_of_years_refuse_events_that_those_of_hours_admit(spark: SparkSession, tmp_path: Path) -> None:
    """In the first days that a window of an hour can hold, windows of 366 days would begin too early."""
    years = definition_text("hours", {'"hours"': '"years"', 'size = "1h"': 'size = "366d"'})
    definitions = {"hours": pipeline(tmp_path, "hours"), "years": pipeline(tmp_path, "years", years)}
    arrive(tmp_path, 1, [{"id": "x", "user": "ann", "at_ms": MIN_TIMESTAMP_MS, "value": 1}])
    assert batches(together([*definitions.values()], spark)) == [[1], [1]]
    refused = {name: read_table(one, "quarantine").num_rows for name, one in definitions.items()}
    assert refused == {"hours": 0, "years": 1}


@pytest.mark.parametrize(
    ("admitted", "slices", "worth"), [(500, 500, True), (501, 250, True), (501, 251, False), (5_000, 2_500, True)]
)
def test_slices_are_worth_sharing_where_there_are_fewer_of_them_or_few_events(
    monkeypatch: pytest.MonkeyPatch, admitted: int, slices: int, worth: bool
) -> None:
    monkeypatch.setattr(sharing, "ROWS_PER_TASK", 500)
    shared: Any = SimpleNamespace(intake=SimpleNamespace(admitted=admitted), slice_rows=slices)
    assert sharing.not_worth_sharing(shared) is not worth


@pytest.mark.slow
@pytest.mark.classic  # on Sail nothing is shared
@pytest.mark.long("what is not worth sharing is decided in make test, where each goes alone after a mistake, too")
def test_slices_not_worth_sharing_are_not_made_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "ROWS_PER_TASK", 500)
    odd = definition_text("hours", {'size = "1h"': 'size = "61s"', '"hours"': '"odd"'})
    definitions = [pipeline(tmp_path, "hours"), pipeline(tmp_path, "odd", odd)]
    for number in (1, 2):
        at_ms = START_MS + number * 60 * MINUTE_MS
        rows = [{"id": str(n), "user": f"u{n % 5000}", "at_ms": at_ms + 59 * n, "value": 1} for n in range(600)]
        arrive(tmp_path, number, rows)
    notes: list[str] = []
    with reads_counted() as reads:
        ends = advance_together([RunRequest.of(one, note=notes.append) for one in definitions], lambda: spark)
    assert batches(ends) == [[1, 2], [1, 2]]
    assert len(reads) == 1 + 2
    assert len(notes) == 1
    assert "hours, odd share slices of 1s, 600 of 600 events" in notes[0]


@pytest.mark.classic  # Sail parses no text
@pytest.mark.long("jobs that are shared are counted in make test, whatever the format")
def test_text_is_parsed_once(spark: SparkSession, tmp_path: Path) -> None:
    text = {
        '"parquet"': '"csv"',
        'path = "incoming"': 'path = "incoming"\nschema = {user = "string", at_ms = "bigint", value = "bigint"}',
    }
    lists = []
    for way in ("alone", "together"):
        names = ("visits", "hours")
        lists.append([pipeline(tmp_path / way, name, definition_text(name, text)) for name in names])
        lines = ["user,at_ms,value", *(f"{row['user']},{row['at_ms']},{row['value']}" for row in events(1)), "ann,x,1"]
        (tmp_path / way / "incoming" / "1.csv").write_text("\n".join(lines))
        (tmp_path / way / "incoming" / "1.csv").touch()
    for definition in lists[0]:
        advance(definition, lambda: spark, clock=clock)
    with reads_counted() as reads:
        together(lists[1], spark)
    assert len(reads) == 1
    for one, other in zip(lists[1], lists[0], strict=True):
        names = ("results", "open_windows", "late_events", "quarantine")
        assert tables(one, names) == tables(other, names)


def test_what_cannot_run_together_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    definitions = pipelines(tmp_path)[:2]
    with pytest.raises(InvalidSpec, match="are the same pipeline, visits; name it once"):
        together([*definitions, definitions[0]], spark)
    other = pipeline(tmp_path, "hours", definition_text("hours") + '[spark]\nmaster = "local[1]"\n')
    with pytest.raises(InvalidSpec, match=r"differ in engine or \[spark\]"):
        together([*definitions, other], spark)
    assert ledger_of(definitions[0]).state().plan is None


@pytest.mark.long("a run of one pipeline gives such a rerun up in make test, by the same rule")
@pytest.mark.fault(
    "one of several pipelines finds a rerun of a dead run that is no longer possible",
    "the rerun is abandoned with a note; all pipelines read the new files",
)
def test_an_abandoned_rerun_stops_no_pipeline(alone: list[Definition], spark: SparkSession, tmp_path: Path) -> None:
    definitions = some(tmp_path)
    arrives(tmp_path, 1, 2)
    together(definitions, spark)
    asked = Rerun(START_MS, START_MS + MINUTE_MS, "a test", "ann", preview_id="of no run")
    for number, one in enumerate(definitions):
        ledger = ledger_of(one, clock)
        if number != 1:
            ledger.freeze(lambda state, one=one, of=ledger: rerun_plan(one, of.tables, state, asked, clock))  # type: ignore[misc]
    arrives(tmp_path, 3)
    notes: list[str] = []
    runs = [RunRequest.of(one, clock, note=notes.append) for one in definitions]
    ends = advance_together(runs, lambda: spark, max_batches=1)
    assert batches(ends) == [[3] if number == 1 else [4] for number, _ in enumerate(definitions)]
    given_up = [note for note in notes if "batch 3, a rerun that an earlier run left, is abandoned" in note]
    assert len(given_up) == len(definitions) - 1
    for one, other in zip(definitions, alone, strict=True):
        assert windows(one) == windows(other), one.name
        assert ledger_of(one).state().plan is None


@pytest.mark.fault(
    "a source file changes while a run of several pipelines waits for its engine or a claim",
    "each pipeline plans again, as it does alone",
)
@pytest.mark.parametrize(
    ("when", "what"),
    [
        pytest.param(
            "the engine starts",
            "rewritten",
            marks=pytest.mark.long("then it is deleted, and as a batch begins rewritten, in make test"),
        ),
        ("the engine starts", "deleted"),
        ("claims are waited for", "deleted, and nothing is left"),
        ("a batch begins", "rewritten"),
        ("a batch begins", "deleted, and nothing is left"),
    ],
)
def test_a_file_that_changes_before_its_batch_is_planned_again(
    spark: SparkSession, tmp_path: Path, when: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions, file, rows = some(tmp_path), tmp_path / "incoming" / "1.parquet", events(1)[:30]
    arrives(tmp_path, *((1,) if "nothing" in what else (1, 2)))
    changes = [lambda: arrive(tmp_path, 1, rows) if what == "rewritten" else file.unlink()]

    def changed(call: Any) -> Any:
        def then(*of: Any) -> Any:
            made = call(*of)
            if changes:
                changes.pop()()
            return made

        return then

    if when == "claims are waited for":
        monkeypatch.setattr(at_work, "claimed_in_time", changed(at_work.claimed_in_time))
    elif when == "a batch begins":
        monkeypatch.setattr(attempt, "standing", changed(attempt.standing))
    notes: list[str] = []
    runs = [RunRequest.of(one, clock, note=notes.append) for one in definitions]
    opened = changed(lambda: spark) if when == "the engine starts" else lambda: spark
    ends = advance_together(runs, opened)
    assert changes == []
    left = {"rewritten": [1, 2], "deleted": [1]}.get(what, [])
    assert batches(ends) == [left] * len(definitions)
    read = [sum(report.figures["rows_read"] or 0 for report in end.reports) for end in ends]
    there = {"rewritten": len(rows) + len(events(2)), "deleted": len(events(2))}.get(what, 0)
    assert read == [there] * len(definitions)
    assert [ledger_of(one).state().plan for one in definitions] == [None] * len(definitions)


def windows(definition: Definition) -> list[str]:
    """Rows of results and of windows in flight, without the batch that wrote them."""
    rows = [row for name in ("results", "open_windows") for row in read_table(definition, name).to_pylist()]
    return sorted(str({name: value for name, value in row.items() if name != "batch_id"}) for row in rows)
