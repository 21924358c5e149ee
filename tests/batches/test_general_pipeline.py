"""Pipelines without a native plan, and count windows: files in, tables out, compared with the operator.

The operator gets each batch as a run does: the clock, the events in order of arrival, the watermark.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.batches.general_runs import EVENTS, SECOND, TOML, clock, run
from tests.support.clicks import tables
from tests.support.killed import stopped
from tests.support.own_code import top_and_mean
from windowlib.batches import windows_job
from windowlib.batches.planning import ledger_of, plan
from windowlib.definition.definition import Definition, load_definition
from windowlib.delta.tables import Table
from windowlib.model import operator
from windowlib.model.aggregates import Count, Sum, Together
from windowlib.model.assigners import Session, Sliding, Staggered, Tumbling
from windowlib.model.elements import Element, Firing, Late, Output, ProcessingTime, Watermark
from windowlib.model.errors import WindowError
from windowlib.model.evictors import CountEvictor
from windowlib.model.spec import WindowSpec, sliding_count, tumbling_count
from windowlib.model.state import OperatorState
from windowlib.model.triggers import CountTrigger, ProcessingTimeTrigger
from windowlib.model.watermark import MIN_WATERMARK
from windowlib.publication.readers import read_table

pytestmark = [pytest.mark.spark, pytest.mark.embedded]  # what files and tables do; Python's workers are the same

OUT_OF_ORDERNESS_MS = 20 * SECOND
BATCHES = 4
TIMINGS = ("early", "on_time", "late")
PLAN_TIME_MS = 10_000_000
COUNT_AND_SUM = Together((Count(), Sum("v")))
COUNTS = '[aggregates]\nevents = "count(*)"\ntotal = "sum(v)"\n'


def events(batch: int, keys: int = 4) -> list[dict[str, Any]]:
    """Thirty events, a minute later than those of the batch before; some are late."""
    chance = random.Random(batch)
    rows = []
    for row in range(30):
        late_ms = chance.choice([0, 0, 0, 30, 90, 200]) * SECOND
        at = (batch * 60 + chance.randrange(60)) * SECOND - late_ms
        rows.append({"user": f"u{chance.randrange(keys)}", "at": at, "v": chance.randrange(50), "id": f"{batch}-{row}"})
    return rows


def pipeline(folder: Path, windows: str, *, batches: int = BATCHES) -> Definition:
    """Writes a definition into `folder`, with its files and code, and loads it."""
    (folder / "incoming").mkdir(exist_ok=True)
    for batch in range(batches):
        pq.write_table(pa.Table.from_pylist(events(batch), EVENTS), folder / "incoming" / f"{batch}.parquet")
    (folder / "own_windows.py").write_text(top_and_mean("v"))
    (folder / "general.toml").write_text(TOML + windows)
    return load_definition(folder / "general.toml")


@pytest.fixture(autouse=True)
def set_clock() -> None:
    clock.now = PLAN_TIME_MS  # type: ignore[attr-defined]


def by_operator(
    spec: WindowSpec,
    definition: Definition,
    key_of: Callable[[Mapping[str, Any]], Any] = itemgetter("user"),
    latenesses_ms: Mapping[int, int] | None = None,
    batches: int = BATCHES,
) -> tuple[list[list[Output]], OperatorState]:
    """Output of the operator for the batches, with their real plan times.

    latenesses_ms: another allowed lateness by batch, from 0
    """
    state, watermark_ms, arrival = OperatorState(), MIN_WATERMARK, 0
    plan_times = {row["batch_id"]: row["plan_time"].timestamp() * 1000 for row in _rows(definition, "watermarks")}
    emitted = []
    for batch in range(batches):
        elements = []
        for event in events(batch):
            elements.append(Element(key_of(event), event["at"], event, arrival))
            arrival += 1
        newest_ms = max(event["at"] for event in events(batch))
        watermark_ms = max(watermark_ms, newest_ms - OUT_OF_ORDERNESS_MS - 1)
        if (lateness_ms := (latenesses_ms or {}).get(batch)) is not None:
            before, spec = spec, replace(spec, allowed_lateness_ms=lateness_ms)
            operator.resume(spec, state, before)
        inputs = [ProcessingTime(int(plan_times[batch + 1])), *elements, Watermark(watermark_ms)]
        emitted.append(operator.run(spec, state, inputs))
    return emitted, state


def _rows(definition: Definition, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(definition, table).to_pylist()
    return rows


def _ms(timestamp: Any) -> int | None:
    return None if timestamp is None else round(timestamp.timestamp() * 1000)


def fired(emitted: Sequence[Sequence[Output]]) -> list[tuple[Any, ...]]:
    """(batch, key, bounds, results, timing) of every firing."""
    return sorted(
        (batch, one.key, _shown(one.window.start_ms), _shown(one.window.end_ms), *one.result, str(one.timing))
        for batch, outputs in enumerate(emitted, 1)
        for one in outputs
        if isinstance(one, Firing)
    )


def _shown(bound_ms: int) -> int:
    return bound_ms if abs(bound_ms) < 2**62 else 0


def published(definition: Definition) -> list[tuple[Any, ...]]:
    return sorted(
        (
            row["batch_id"],
            row["user"],
            _ms(row["window_start"]) or 0,
            _ms(row["window_end"]) or 0,
            row["events"],
            row["total"],
            row["timing"],
        )
        for row in _rows(definition, "results")
    )


def test_nan_is_one_key_and_so_is_zero(spark: SparkSession, tmp_path: Path) -> None:
    """Spark groups all NaN, and both zeros, whatever their bits; across batches too."""
    window = '[window]\ntype = "tumbling"\nsize = "1h"\nevictor = { type = "count", n = 9 }\n'
    definition = pipeline(tmp_path, window + COUNTS, batches=0)
    schema = EVENTS.set(0, pa.field("user", pa.float64()))
    for batch in range(2):
        keys = [float("nan"), -float("nan"), 0.0, -0.0, 1.5, float("nan")]
        rows = [{"user": key, "at": batch * SECOND, "v": 1, "id": str(number)} for number, key in enumerate(keys)]
        pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "incoming" / f"{batch}.parquet")
    run(definition, spark, finish=True)
    assert sorted((str(row["user"]), row["events"]) for row in _rows(definition, "results")) == [
        ("0.0", 4),
        ("1.5", 2),
        ("nan", 6),
    ]


def test_a_null_ends_no_run_of_a_trigger_and_an_evictor_by_difference(spark: SparkSession, tmp_path: Path) -> None:
    by = 'of = "v"\nabsolute = true\n'
    window = f'type = "global"\n[window.trigger]\ntype = "delta"\nthreshold = 3\n{by}'
    evictor = f'[window.evictor]\ntype = "delta"\nthreshold = 9\n{by}'
    definition = pipeline(tmp_path, f"[window]\n{window}{evictor}{COUNTS}", batches=0)
    for batch, values in enumerate([(None, 1, None), (4, 5, None, 20)]):
        rows = [{"user": "a", "at": batch, "v": value, "id": str(number)} for number, value in enumerate(values)]
        pq.write_table(pa.Table.from_pylist(rows, EVENTS), tmp_path / "incoming" / f"{batch}.parquet")
    run(definition, spark)
    shown = [(row["firing"], row["events"], row["total"]) for row in _rows(definition, "results")]
    assert sorted(shown) == [(1, 5, 10), (2, 4, 20)]


def late(emitted: Sequence[Sequence[Output]]) -> list[str]:
    return sorted(one.element.value["id"] for outputs in emitted for one in outputs if isinstance(one, Late))


def late_published(definition: Definition) -> list[str]:
    return sorted(row["raw"].split('"id":"')[1].split('"')[0] for row in _rows(definition, "late_events"))


SESSION = '[window]\ntype = "session"\ngap = "15s"\nallowed_lateness = "40s"\n'
EVERY_FIRING = [
    (
        SESSION + '[window.trigger]\ntype = "count"\nn = 2\n' + COUNTS,
        WindowSpec(Session(15_000), COUNT_AND_SUM, CountTrigger(2), allowed_lateness_ms=40_000),
    ),
    (
        '[window]\ntype = "tumbling"\nsize = "30s"\nallowed_lateness = "20s"\n'
        '[window.trigger]\ntype = "count"\nn = 2\n[window.evictor]\ntype = "count"\nn = 3\n' + COUNTS,
        WindowSpec(Tumbling(30_000), COUNT_AND_SUM, CountTrigger(2), CountEvictor(3), allowed_lateness_ms=20_000),
    ),
    ('[window]\ntype = "tumbling_count"\nsize = 7\n' + COUNTS, tumbling_count(7, COUNT_AND_SUM)),
    ('[window]\ntype = "sliding_count"\nsize = 6\nslide = 4\n' + COUNTS, sliding_count(6, 4, COUNT_AND_SUM)),
]


COUNTED = pytest.mark.long("they have a plan of their own, which is the reference in tests/plans, in make test")
LATER = pytest.mark.long("the same windows fire as they must in make test, where their lateness is edited")
HOW = {"count": [COUNTED], "sliding count": [COUNTED], "tumbling": [LATER]}


@pytest.mark.parametrize(
    ("windows", "spec"),
    [
        pytest.param(*case, id=name, marks=HOW.get(name, []))
        for name, case in zip(("session", "tumbling", "count", "sliding count"), EVERY_FIRING, strict=True)
    ],
)
def test_every_firing_is_a_result(windows: str, spec: WindowSpec, spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(tmp_path, windows)
    reports = run(definition, spark)
    emitted, _ = by_operator(spec, definition)
    assert len(fired(emitted)) > 10
    assert published(definition) == fired(emitted)
    counted = {how: sum(report.figures[f"windows_fired_{how}"] or 0 for report in reports) for how in TIMINGS}
    assert counted == {how: sum(one[-1] == how for one in fired(emitted)) for how in TIMINGS}
    assert counted["early"]
    assert late_published(definition) == late(emitted)
    numbers = [(r["user"], r["window_start"], r["window_end"], r["firing"]) for r in _rows(definition, "results")]
    assert len(set(numbers)) == len(numbers)
    assert _rows(definition, "results") == _of_results(_rows(definition, "result_changes"))
    failed = [check for report in reports for check in report.checks if not check.success]
    assert {check.severity for check in failed} <= {"warning"}  # of the share of late events


def test_another_lateness_comes_into_force_with_the_next_batch(spark: SparkSession, tmp_path: Path) -> None:
    """The batch reads all state and sets its timers again: for a greater lateness, then for a smaller one."""
    windows, spec = EVERY_FIRING[1]
    latenesses_ms, lateness_ms = {1: 500_000, 3: 5_000}, spec.allowed_lateness_ms
    for batch in range(BATCHES):
        lateness_ms = latenesses_ms.get(batch, lateness_ms)
        definition = pipeline(tmp_path, windows.replace('"20s"', f'"{lateness_ms // SECOND}s"'))
        run(definition, spark, max_batches=1)
    emitted, state = by_operator(spec, definition, latenesses_ms=latenesses_ms)
    assert published(definition) == fired(emitted)
    assert late_published(definition) == late(emitted)
    stays = sorted((row["user"], row["window_start_ms"]) for row in _rows(definition, "open_windows"))
    assert stays == sorted((row["key"], row["window"][0]) for row in state.rows())
    same, _ = by_operator(spec, definition)
    assert fired(same) != fired(emitted)


def _of_results(changes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in ("change", "cause")} for row in changes]


def test_own_code_returns_the_current_rows_of_each_window(spark: SparkSession, tmp_path: Path) -> None:
    own = SESSION + 'function = "own_windows:Top"\nparameters = {n = 2}\nreads = ["v", "id"]\n'
    output = '[window.output]\nv = "bigint"\nid = "string"\nnth = "int"\n'
    definition = pipeline(tmp_path, own + output, batches=2)
    run(definition, spark)
    spec = WindowSpec(Session(15_000), process=_top(definition), allowed_lateness_ms=40_000)
    emitted, _ = by_operator(spec, definition, batches=2)
    assert late_published(definition) == late(emitted)
    current: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for outputs in emitted:
        of_run: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
        for one in outputs:
            if isinstance(one, Firing):
                new = (one.key, one.window.start_ms, one.window.end_ms)
                for rows in (current, of_run):
                    for old in [w for w in rows if w[0] == new[0] and new[1] <= w[1] and w[2] <= new[2] and w != new]:
                        del rows[old]
                if of_run.get(new, [{}])[0].get("nth") != one.result["nth"]:  # another firing, not another row of it
                    of_run[new] = []
                of_run[new].append(one.result)
        current |= of_run
    got: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for row in sorted(_rows(definition, "results"), key=lambda row: row["result_number"]):
        of = (row["user"], _ms(row["window_start"]) or 0, _ms(row["window_end"]) or 0)
        got.setdefault(of, []).append({name: row[name] for name in ("v", "id", "nth")})
    assert got == current


def _top(definition: Definition) -> Any:
    process = definition.spec.process
    assert process is not None
    return process


@pytest.mark.long("a golden folder goes on with such an aggregate in make test, as it was kept")
def test_an_own_aggregate_is_stored_as_json(spark: SparkSession, tmp_path: Path) -> None:
    own = '[window]\ntype = "tumbling"\nsize = "30s"\nfunction = "own_windows:Mean"\nreads = ["v"]\n'
    definition = pipeline(tmp_path, own + '[window.output]\nmean = "double"\n')
    run(definition, spark)
    emitted, _ = by_operator(WindowSpec(Tumbling(30_000), definition.spec.aggregate.own), definition)  # type: ignore[union-attr]
    expected = {
        (one.key, one.window.start_ms): one.result for outputs in emitted for one in outputs if isinstance(one, Firing)
    }
    assert {(r["user"], _ms(r["window_start"])): r["mean"] for r in _rows(definition, "results")} == expected
    assert any('"own":{"sum":' in row["state"] for row in _rows(definition, "open_windows"))


BY_ITSELF = pytest.mark.long("test_returned has what is returned wrongly, and others show how Spark passes it on")


@pytest.mark.classic  # the words of Spark's error
@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("raise KeyError('page')", "KeyError: 'page' ({file}, line 4); nothing of this batch was committed"),
        ("raise SystemExit(0)", "SystemExit: 0 ({file}, line 4); nothing of this batch was committed"),
        pytest.param(
            "return {'v': 1}",
            "the function's process returned {{'v': 1}}; return a list of rows",
            marks=BY_ITSELF,
        ),
        ("return [{'v': len(values) / 7}]", "a value of v does not fit its type int64: "),
        pytest.param(
            "context.key_state[7] = 1", "the dictionary key 7 would come back from JSON as a string", marks=BY_ITSELF
        ),
    ],
)
def test_an_error_in_own_code_is_reported_in_a_sentence(
    does: str, said: str, spark: SparkSession, tmp_path: Path
) -> None:
    own = SESSION + 'function = "own_mistakes:Wrong"\nreads = ["v"]\n[window.output]\nv = "bigint"\n'
    definition, file = pipeline(tmp_path, own, batches=2), tmp_path / "own_mistakes.py"
    file.write_text(
        f"class Wrong:\n    def process(self, values, context):\n        v = len(values)\n        {does}\n"
        "        return []\n\n    def clear(self, context):\n        pass\n"
    )
    with pytest.raises(WindowError) as caught:
        run(definition, spark)
    assert said.format(file=file) in str(caught.value)
    assert ledger_of(definition).state().commit is None


def test_stored_elements_are_appended_and_not_written_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a partition has many files, its live elements are written again as one file."""
    monkeypatch.setattr(windows_job, "COMPACT_AFTER", 3)
    thousand = 'type = "count"\nn = 1000\n'
    windows = f'[window]\ntype = "global"\n[window.trigger]\n{thousand}[window.evictor]\n{thousand}'
    definition = pipeline(tmp_path, windows + COUNTS, batches=5)
    held = []
    for _ in range(5):
        run(definition, spark, max_batches=1)
        commit = ledger_of(definition).state().commit
        assert commit is not None
        stored = Table(definition.store.below("state_windows"))
        held.append({f.path for f in stored.files(commit.versions["state_windows"])})
    assert held[0] < held[1] < held[2]
    assert not held[2] & held[3]  # three files of the partition were enough
    assert held[3] < held[4]
    ids = [element["_arrival"] for row in _rows(definition, "state_windows") for element in row["contents"]]
    assert len(ids) == len(set(ids)) == 150
    assert sum(row["elements"] for row in _rows(definition, "open_windows")) == 150


def test_contents_that_no_window_needs_leave_the_table(spark: SparkSession, tmp_path: Path) -> None:
    windows = '[window]\ntype = "tumbling"\nsize = "30s"\n[window.evictor]\ntype = "count"\nn = 3\n'
    definition = pipeline(tmp_path, windows + COUNTS, batches=1)
    run(definition, spark)
    assert _rows(definition, "state_windows")
    run(definition, spark, finish=True)
    assert _rows(definition, "state_windows") == _rows(definition, "open_windows") == []


def test_an_event_in_a_hole_is_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    windows = '[window]\ntype = "sliding"\nsize = "10s"\nslide = "25s"\nstagger = true\n'
    definition = pipeline(tmp_path, windows + COUNTS, batches=2)
    reports = run(definition, spark)
    spec = WindowSpec(Staggered(Sliding(10_000, 25_000)), COUNT_AND_SUM)
    emitted, _ = by_operator(spec, definition, batches=2)
    assert published(definition) == fired(emitted)
    everything = [event for batch in range(2) for event in events(batch)]
    in_hole = [e["id"] for e in everything if not spec.assigner.assign(e["at"], e, e["user"])]
    late_ids = late_published(definition)
    assert late_ids == late(emitted)
    quarantined = _rows(definition, "quarantine")
    assert {row["reason"] for row in quarantined} == {"hole"}
    got = sorted(row["raw"].split('"id":"')[1].split('"')[0] for row in quarantined)
    assert got == sorted(set(in_hole) - set(late_ids))
    assert sum(report.figures["quarantined_hole"] or 0 for report in reports) == len(got) > 5


def test_windows_of_processing_time_fire_by_the_plan_time_of_a_run(spark: SparkSession, tmp_path: Path) -> None:
    windows = '[window]\ntype = "tumbling"\nsize = "90s"\ntime = "processing"\n'
    definition = pipeline(tmp_path, windows + COUNTS, batches=2)
    run(definition, spark)
    spec = WindowSpec(Tumbling(90_000), COUNT_AND_SUM, ProcessingTimeTrigger(), time="processing")
    emitted, state = by_operator(spec, definition, batches=2)
    assert published(definition) == fired(emitted)
    assert state.in_flight
    assert plan(definition, lambda: clock.now) is None  # type: ignore[attr-defined]
    clock.now += 90 * SECOND  # type: ignore[attr-defined]
    [report] = run(definition, spark)  # no file is new: the clock has moved
    assert report.figures["rows_read"] == 0
    assert sum(row["events"] for row in _rows(definition, "results")) == 30 * 2
    assert run(definition, spark) == []


BY_CLOCK = pytest.mark.long("sessions fire by the clock in make test, and the trigger does not ask for the kind")


@pytest.mark.parametrize(
    ("text", "assigner"),
    [
        pytest.param('type = "tumbling"\nsize = "30s"\n', Tumbling(30_000), id="tumbling", marks=BY_CLOCK),
        pytest.param(
            'type = "sliding"\nsize = "30s"\nslide = "15s"\n', Sliding(30_000, 15_000), id="sliding", marks=BY_CLOCK
        ),
        pytest.param('type = "session"\ngap = "15s"\n', Session(15_000), id="session"),
    ],
)
def test_windows_of_event_time_may_fire_by_the_clock(
    text: str, assigner: Tumbling | Sliding | Session, spark: SparkSession, tmp_path: Path
) -> None:
    """The clock may pass the end of a window before the watermark does. No check requires the end in event time."""
    lasting = 'allowed_lateness = "1h"\n[window.trigger]\ntype = "processing_time"\n'
    definition = pipeline(tmp_path, f"[window]\n{text}{lasting}{COUNTS}")
    reports = run(definition, spark)
    assert {check.severity for report in reports for check in report.checks if not check.success} <= {"warning"}
    spec = WindowSpec(assigner, COUNT_AND_SUM, ProcessingTimeTrigger(), allowed_lateness_ms=3_600_000)
    emitted, state = by_operator(spec, definition)
    emitted.append(operator.run(spec, state, [ProcessingTime(clock.now)]))  # type: ignore[attr-defined]
    assert {*published(definition)} <= {*fired(emitted)}
    assert {one[-1] for one in published(definition)} == {"early", "late"}


def test_a_clock_that_is_put_back_gives_each_window_of_processing_time_one_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Time stands still until the clock reaches the old time; meanwhile, events join the window of that time."""
    windows = '[window]\ntype = "tumbling"\nsize = "90s"\ntime = "processing"\n'
    definition = pipeline(tmp_path, windows + COUNTS, batches=1)
    run(definition, spark)
    clock.now += 91 * SECOND  # type: ignore[attr-defined]
    run(definition, spark)
    fired_before = len(_rows(definition, "results"))
    clock.now -= 3_600 * SECOND  # type: ignore[attr-defined]
    pipeline(tmp_path, windows + COUNTS, batches=2)
    run(definition, spark)
    clock.now += 7_200 * SECOND  # type: ignore[attr-defined]
    run(definition, spark)
    rows = _rows(definition, "results")
    assert len({(row["user"], row["window_start"]) for row in rows}) == len(rows) > fired_before > 0
    assert sum(row["events"] for row in rows) == 2 * 30
    times = [row["plan_time"] for row in sorted(_rows(definition, "watermarks"), key=lambda row: row["batch_id"])]
    assert times == sorted(times)


@pytest.mark.long("sessions are killed in make test, and what is prepared is rolled forward whatever the plan")
def test_a_run_that_dies_is_finished_with_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    windows = (
        SESSION + '[window.trigger]\ntype = "count"\nn = 3\n[window.evictor]\ntype = "time"\nkeep = "20s"\n' + COUNTS
    )
    folders = [tmp_path / name for name in ("undisturbed", "killed")]
    found = []
    for folder in folders:
        folder.mkdir()
        clock.now = PLAN_TIME_MS  # type: ignore[attr-defined]
        definition = pipeline(folder, windows, batches=2)
        if folder.name == "killed":
            run(definition, spark, max_batches=1)
            for moment in ("write:windows", "commit:state_windows"):
                with stopped(moment):
                    run(definition, spark, max_batches=1)
        run(definition, spark)
        found.append(tables(definition))
    assert {n: rows for n, rows in found[0].items() if n in TIMELESS} == {
        n: rows for n, rows in found[1].items() if n in TIMELESS
    }


TIMELESS = ("open_windows", "state_windows", "results", "result_changes", "late_events")


@pytest.mark.classic  # the words of Spark's error
@pytest.mark.long("an error in make test is named the same way, and nothing of it committed")
def test_code_that_fails_is_named_and_nothing_is_committed(spark: SparkSession, tmp_path: Path) -> None:
    from windowlib.model.errors import WindowError

    own = SESSION + 'function = "own_windows:Top"\nparameters = {n = 2}\nreads = ["v"]\n'
    definition = pipeline(tmp_path, own + '[window.output]\nv = "bigint"\n')
    with pytest.raises(WindowError, match=r"code for the windows of key 'u\d' failed: KeyError: 'id'"):
        run(definition, spark)
    assert ledger_of(definition).state().commit is None


TYPED = """
[aggregates]
events = "count(*)"
some = "count(price) filter (where v > 20)"
total = "sum(v)"
paid = "sum(price)"
mean = "avg(price)"
mean_v = "round(avg(v) + 1, 3)"
least = "min(name)"
latest_day = "max(day)"
first_at = "min(seen)"
first_name = "first(name)"
last_price = "last(price) filter (where v < 40)"
of_least = "min_by(name, price)"
of_latest = "max_by(v, seen)"
odd_bits = "bit_xor(v)"
all_paid = "every(price is not null)"
any_name = "any_value(name) ignore nulls"
spread = "round(stddev(v), 6)"
together = "round(covar_pop(v, price), 6)"
"""


@pytest.mark.classic  # Sail takes some of these types only from a definition that it has judged
@pytest.mark.long("the matrix has every type in native plans, and test_folds what the general plan makes of them")
def test_sql_aggregates_are_those_of_the_native_plan_whatever_their_types(spark: SparkSession, tmp_path: Path) -> None:
    """An evictor that evicts nothing sends the same windows through the operator."""
    found = []
    evictor = '[window.evictor]\ntype = "count"\nn = 1000000\n'
    trigger = '[window.trigger]\ntype = "processing_timeout"\ntimeout = "99d"\nof = {type = "event_time"}\n'
    for number, more in enumerate(("", evictor, trigger)):
        folder = tmp_path / str(number)
        folder.mkdir()
        definition = pipeline(folder, '[window]\ntype = "tumbling"\nsize = "30s"\n' + more + TYPED)
        for batch in range(BATCHES):
            pq.write_table(_typed(events(batch)), folder / "incoming" / f"{batch}.parquet")
        run(definition, spark)
        run(definition, spark, finish=True)
        assert definition.plan.name == ("general" if more else "aligned")
        rows = read_table(definition, "results").drop_columns(["batch_id", "firing", "timing"])
        found.append(sorted(rows.to_pylist(), key=lambda row: (row["user"], row["window_start"])))
        assert len(found[-1]) > 20
    for general in found[1:]:
        for ours, native in zip(general, found[0], strict=True):
            assert {name: (ours[name], value) for name, value in native.items() if ours[name] != value} == {}


def _typed(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    def of(row: Mapping[str, Any]) -> dict[str, Any]:
        price = None if row["v"] % 7 == 0 else Decimal(row["v"]) / 4
        seen = datetime(2026, 3, 2, tzinfo=UTC) + timedelta(milliseconds=row["at"])
        return {**row, "price": price, "name": f"n{row['v'] % 5}", "day": seen.date(), "seen": seen}

    types = [("price", pa.decimal128(10, 2)), ("name", pa.string()), ("day", pa.date32())]
    schema = pa.schema([*EVENTS, *types, ("seen", pa.timestamp("us", tz="UTC"))])
    return pa.Table.from_pylist([of(row) for row in rows], schema)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("[]", id="no key"),
        pytest.param(
            '["user", "v"]',
            id="two columns",
            marks=pytest.mark.long("none, in make test, is another number of columns too"),
        ),
    ],
)
def test_any_key_and_none(key: str, spark: SparkSession, tmp_path: Path) -> None:
    windows = SESSION.replace("15s", "4s") + '[window.trigger]\ntype = "count"\nn = 2\n[window.evictor]\n'
    definition = pipeline(tmp_path, windows + 'type = "count"\nn = 5\n' + COUNTS, batches=2)
    file = tmp_path / "general.toml"
    file.write_text(file.read_text().replace('key = ["user"]', f"key = {key}"))
    definition = load_definition(file)
    run(definition, spark)
    spec = WindowSpec(Session(4_000), COUNT_AND_SUM, CountTrigger(2), CountEvictor(5), allowed_lateness_ms=40_000)
    columns = definition.source.key
    emitted, _ = by_operator(spec, definition, lambda event: tuple(event[c] for c in columns), batches=2)
    shown = sorted(
        (row["batch_id"], tuple(row[c] for c in columns), _ms(row["window_start"]), row["events"], row["total"])
        for row in _rows(definition, "results")
    )
    assert shown == sorted((batch, key, start_ms, *rest[:2]) for batch, key, start_ms, _, *rest in fired(emitted))
    assert late_published(definition) == late(emitted)
