"""Count windows in Spark equal those of the reference in every batch. Each batch restarts from Parquet."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from io import StringIO
from math import gcd
from operator import and_, or_, xor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from tests.support.event_frames import with_internal
from tests.support.every_aggregate import EVERYTHING
from tests.support.strategies import examples
from windowlib.definition.sql.aggregates import read_aggregates
from windowlib.engines.choice import dialect_of
from windowlib.model.aggregates import Count, Max, Min, Sum, Together
from windowlib.model.elements import Element, Firing
from windowlib.model.errors import InvalidSpec
from windowlib.model.operator import run
from windowlib.model.spec import WindowSpec, sliding_count, tumbling_count
from windowlib.model.state import OperatorState
from windowlib.plans.aggregates.columns import typed, typed_as_stored
from windowlib.plans.aggregates.functions import CALLABLE
from windowlib.plans.counts import advance, state_columns
from windowlib.plans.kinds.count_windows import CountWindows
from windowlib.plans.partitions import DAY_MS
from windowlib.plans.step import ON_TIME, OPEN, Step

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

COLUMNS = ("the key", "v", "m", "s", "timestamp_ms", "arrival")
SCHEMA = "`the key` string, v int, m decimal(10,2), s string, timestamp_ms long not null, arrival long not null"
KEY = COLUMNS[:1]
FIGURES = {"n": "count(*)", "total": "sum(v)", "least": "min(v)", "latest": "max(timestamp_ms)"}
REFERENCE = Together((Count(), Sum("v"), Min("v"), Max("timestamp_ms")))


@dataclass
class Plan:
    """The plan as jobs run it: one query per batch writes everything, and the next batch reads the open rows."""

    spark: SparkSession
    folder: Path
    windows: CountWindows
    keys: Sequence[str] = KEY
    expressions: dict[str, str] = field(default_factory=lambda: FIGURES)
    batch_id: int = 0
    state: DataFrame | None = None
    open: Sequence[Row] = ()  # the rows of `state`
    counted: Mapping[str, int] = field(default_factory=dict)

    def step(self, events: DataFrame | None) -> Step:
        aggregates, dialect = read_aggregates(self.expressions), dialect_of(self.spark)
        if events is not None:
            aggregates = typed(aggregates, events, dialect)
        elif self.state is not None:
            aggregates = typed_as_stored(aggregates, self.state, dialect)
        return Step(self.windows, self.keys, aggregates, -5, 5, -5, 5, self.batch_id, 3_600_000, dialect=dialect)

    def advance(self, batch: Sequence[Row] | None) -> list[Row]:
        """Returns the results of a batch by key and firing, and updates `state`, `open` and `counted`."""
        self.batch_id += 1
        events = None if batch is None else with_internal(self.spark.createDataFrame(batch, SCHEMA))
        step = self.step(events)
        counters = step.dialect.counters()
        made = advance(events, self.state, step, counters)
        path = str(self.folder / str(self.batch_id))
        made.write.parquet(path)
        self.counted = counters.values()
        stored = self.spark.read.schema(made.schema).parquet(path)
        self.state = stored.where(f"part = '{OPEN}'").select(*(f"`{name}`" for name in state_columns(step)))
        rows = stored.collect()
        self.open = [row for row in rows if row["part"] == OPEN]
        fired = [row for row in rows if row["part"] == ON_TIME]
        assert len(self.open) + len(fired) == len(rows)
        for mine, others in ((self.open, step.result_names), (fired, state_columns(step))):
            assert {row[name] for row in mine for name in others if name not in self.keys} <= {None}
        assert {(row["replaced"], row["end_partition"]) for row in self.open} <= {(None, 0)}
        return sorted(fired, key=lambda row: (*(row[key] for key in self.keys), row["firing"]))

    def explained(self, events: DataFrame) -> str:
        """Physical plan of a batch that continues the state."""
        with redirect_stdout(StringIO()) as printed:
            step = self.step(events)
            advance(events, self.state, step, step.dialect.counters()).explain()
        return printed.getvalue()

    def slices(self) -> dict[str, dict[int, int]]:
        """State as key → slice → number of elements."""
        found: dict[str, dict[int, int]] = defaultdict(dict)
        for row in self.open:
            found[row["the key"] if self.keys else ""][row["slice_index"]] = row["elements"]
        return found


NewPlan = Callable[..., Plan]


@pytest.fixture(scope="session")
def new_plan(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> NewPlan:
    """Creates plans with separate folders."""
    return lambda *given, **more: Plan(spark, tmp_path_factory.mktemp("counts"), *given, **more)


@dataclass
class Reference:
    """The operator, with firings numbered per key."""

    spec: WindowSpec
    state: OperatorState = field(default_factory=OperatorState)
    firings: Counter[str] = field(default_factory=Counter)

    def advance(self, batch: Sequence[Row]) -> list[tuple[Any, ...]]:
        """Key, number and figures of each firing, sorted by them."""
        in_order = sorted(batch, key=lambda row: row["arrival"])
        return sorted(self._fired([Element(e["the key"], e["timestamp_ms"], e, e["arrival"]) for e in in_order]))

    def elements(self) -> Counter[str]:
        """Number of elements in the state by key."""
        held: Counter[str] = Counter()
        for key, state in self.state.keys.items():
            for contents in state.contents.values():
                held[key] += len(contents) if self.spec.keeps_elements else contents[0]
        return held

    def _fired(self, elements: Sequence[Element]) -> Iterator[tuple[Any, ...]]:
        for firing in run(self.spec, self.state, elements):
            assert isinstance(firing, Firing)
            assert firing.timing == "early"
            self.firings[firing.key] += 1
            yield (firing.key, self.firings[firing.key], *firing.result)


def spec(windows: CountWindows) -> WindowSpec:
    if windows.size == windows.slide:
        return tumbling_count(windows.size, REFERENCE)
    return sliding_count(windows.size, windows.slide, REFERENCE)


def events(keys: str, first_arrival: int = 0) -> list[Row]:
    """One event per letter. Values and event times go up and down."""
    event = Row(*COLUMNS)
    return [
        event(
            key,
            n * 5 % 11 - 4,
            None if n % 7 == 6 else Decimal(n * 37 % 50).scaleb(-1),
            None if n % 7 == 2 else "abc"[n * n % 3],
            n * 7919 % 13 * DAY_MS // 5 - DAY_MS,
            n,
        )
        for n, key in enumerate(keys, first_arrival)
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[list[Row]]:
    """Batches of events in any order, with enough keys for one query to try many histories."""
    batches: list[list[Row]] = []
    for _ in range(draw(st.integers(2, 4))):
        keys = draw(st.text("aaaabbbccdefgh", max_size=60))
        batches.append(draw(st.permutations(events(keys, sum(map(len, batches))))))
    return batches


@pytest.mark.both
@examples(2, 60)
@given(windows=st.builds(CountWindows, st.integers(1, 7), st.integers(1, 7)), batches=histories())
def test_the_plan_equals_the_reference(new_plan: NewPlan, windows: CountWindows, batches: Sequence[list[Row]]) -> None:
    plan, reference = new_plan(windows), Reference(spec(windows))
    so_far: Counter[str] = Counter()
    for batch in batches:
        before = so_far.copy()
        so_far.update(row["the key"] for row in batch)
        ours, theirs = plan.advance(batch), reference.advance(batch)
        assert [(r["the key"], r["firing"], *(r[name] for name in FIGURES)) for r in ours] == theirs
        for row in ours:
            assert (row["window_start"], row["window_end"], row["timing"]) == (None, None, "early")
            assert row["last_event_time"].replace(tzinfo=UTC) == datetime.fromtimestamp(row["latest"] / 1000, UTC)
            assert (row["replaced"], row["end_partition"], row["batch_id"]) == (
                None,
                row["latest"] // DAY_MS,
                plan.batch_id,
            )
        slices = plan.slices()
        assert slices == {key: in_state(windows, count) for key, count in so_far.items()}
        for key, held in reference.elements().items():
            elements = sum(slices[key].values())
            assert elements <= held or (windows.size == windows.slide == elements and held == 0)
        assert plan.counted == expected_figures(windows, before, so_far)


def in_state(windows: CountWindows, count: int) -> dict[int, int]:
    """Slice → number of elements for a key with `count` elements: those of future firings, and the newest slice."""
    width = gcd(windows.size, windows.slide)
    needed_after = (count // windows.slide + 1) * windows.slide - windows.size
    numbers = [n for n in range(1, count + 1) if n > needed_after or (n - 1) // width == (count - 1) // width]
    return Counter((n - 1) // width for n in numbers)


def expected_figures(windows: CountWindows, before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Expected counters of a batch in which keys grow from `before` to `after` elements."""
    width = gcd(windows.size, windows.slide)
    found: Counter[str] = Counter()
    for key, count in after.items():
        was, stays = in_state(windows, before[key]), in_state(windows, count)
        there = set(was) | {(n - 1) // width for n in range(before[key] + 1, count + 1)}
        found["elements_before"] += sum(was.values())
        found["elements_kept"] += sum(stays.values())
        found["elements_retired"] += sum(was.values()) + count - before[key] - sum(stays.values())
        found["rows_retired"] += len(there - set(stays))
    names = ("elements_before", "elements_dropped", "elements_kept", "elements_retired", "rows_retired")
    return {name: found[name] for name in names}


def test_every_aggregate_function(new_plan: NewPlan) -> None:
    windows = CountWindows(size=6, slide=4)
    assert {a.function for a in read_aggregates(EVERYTHING).aggregates} == set(CALLABLE)
    plan = new_plan(windows, expressions=EVERYTHING)
    batches = [events(keys, first) for keys, first in (("aaaaabaa", 0), ("abaa", 8), ("ba" * 8, 12))]
    found = [row for batch in batches[:2] for row in plan.advance(batch)]
    kept = sorted(plan.open)
    assert plan.advance(None) == []  # types then come from the state
    assert sorted(plan.open) == kept
    found += plan.advance(batches[2])
    of_key: dict[str, list[Row]] = defaultdict(list)
    for row in (row for batch in batches for row in batch):
        of_key[row["the key"]].append(row)
    expected = {
        (key, k): everything(rows[max(0, 4 * k - 6) : 4 * k])
        for key, rows in of_key.items()
        for k in range(1, len(rows) // 4 + 1)
    }
    assert all(r["sketched"] for r in found)
    published = [name for name in EVERYTHING if name != "sketched"]
    assert {(r["the key"], r["firing"]): {name: r[name] for name in published} for r in found} == expected


def everything(rows: Sequence[Row]) -> dict[str, Any]:
    """`EVERYTHING` over events, computed independently of the plan."""
    in_time = sorted(rows, key=lambda row: (row["timestamp_ms"], row["arrival"]))
    numbers = [row["v"] for row in rows]
    texts = [row["s"] for row in rows if row["s"] is not None]
    money = [row["m"] for row in rows if row["m"] is not None]
    times = [row["timestamp_ms"] for row in rows]
    by_money = sorted((row for row in in_time if row["m"] is not None), key=lambda row: row["m"])
    pairs = len(rows) > 1 and statistics.pstdev(numbers) * statistics.pstdev(times) > 0
    together = sum(
        (v - statistics.fmean(numbers)) * (t - statistics.fmean(times)) for v, t in zip(numbers, times, strict=True)
    )
    return {
        "n": len(rows),
        "large": sum(v > 0 for v in numbers),
        "total": sum(numbers),
        "money": sum(money),
        "mean": pytest.approx(sum(numbers) / len(numbers)),
        "fair": (sum(money) / len(money)).quantize(Decimal("0.000001")),
        "least": min(texts),
        "most": max(money),
        "opens": in_time[0]["s"],
        "closes": in_time[-1]["m"],
        "kinds": len(set(texts)),
        "none": None,
        "all_positive": all(v > 0 for v in numbers),
        "some_large": any(v > 20 for v in numbers),
        "bits": reduce(and_, numbers),
        "any_bits": reduce(or_, numbers),
        "odd_bits": reduce(xor, numbers),
        "cheapest": by_money[0]["s"],
        "dearest": by_money[-1]["s"],
        "spread": pytest.approx(statistics.pstdev(numbers)),
        "of_sample": pytest.approx(statistics.stdev(numbers)),
        "squared": pytest.approx(statistics.pvariance(numbers)),
        "squared_of_sample": pytest.approx(statistics.variance(numbers)),
        "with_time": pytest.approx(together / len(rows)),
        "with_time_of_sample": pytest.approx(together / (len(rows) - 1)),
        "line": pytest.approx(statistics.correlation(numbers, times)) if pairs else None,
        "different": len(set(texts)),
        "texts": sorted(set(texts)),
        "surely": sum(numbers),
        "multiplied": pytest.approx(math.prod(numbers)),
        "often": min(texts, key=lambda text: (-texts.count(text), text)),
        "in_order": [row["s"] for row in in_time if row["s"] is not None],
        "middle": pytest.approx(statistics.median(numbers)),
        "most_are_below": pytest.approx(statistics.quantiles(numbers, n=10, method="inclusive")[-1]),
    }


@pytest.mark.parametrize(
    "windows",
    [
        CountWindows(5, 2),
        *(
            pytest.param(windows, marks=pytest.mark.long("windows that overlap, in make test, have no key either"))
            for windows in (CountWindows(3, 3), CountWindows(1, 3))
        ),
    ],
    ids=str,
)
def test_without_a_key_all_events_are_counted_together(new_plan: NewPlan, windows: CountWindows) -> None:
    plan = new_plan(windows, keys=())
    assert plan.advance([]) == []
    found = [(row["firing"], row["n"]) for keys in ("abca", "bc", "aaabb") for row in plan.advance(events(keys))]
    assert found == [(k, min(windows.size, k * windows.slide)) for k in range(1, 11 // windows.slide + 1)]
    assert plan.slices() == {"": in_state(windows, 11)}


@pytest.mark.long("batches of no events, in make test, leave the state of every aggregate as it is")
def test_a_batch_without_events_changes_nothing(new_plan: NewPlan) -> None:
    plan = new_plan(CountWindows(size=2, slide=3))
    assert [row["firing"] for row in plan.advance(events("aaabb"))] == [1]
    held, kept = plan.slices(), sorted(plan.open)
    nothing = {
        "elements_before": 2,
        "elements_dropped": 0,
        "elements_kept": 2,
        "elements_retired": 0,
        "rows_retired": 0,
    }
    nothing_new: list[Row] = []
    for batch in (nothing_new, None):
        assert plan.advance(batch) == []
        assert (sorted(plan.open), plan.slices()) == (kept, held)
        assert plan.counted == nothing
    assert [(row["the key"], row["firing"]) for row in plan.advance(events("aaab"))] == [("a", 2), ("b", 1)]


@pytest.mark.classic  # the names of Spark's operators
@pytest.mark.parametrize(
    "windows",
    [
        CountWindows(6, 4),
        *(
            pytest.param(
                windows, marks=pytest.mark.long("windows that overlap, in make test, go through the same plan")
            )
            for windows in (CountWindows(4, 4), CountWindows(2, 7))
        ),
    ],
    ids=str,
)
def test_events_are_read_and_shuffled_once(new_plan: NewPlan, windows: CountWindows) -> None:
    plan = new_plan(windows)
    plan.spark.conf.set("spark.sql.shuffle.partitions", "2")  # as a run of more than one task has it
    many = with_internal(
        plan.spark.range(99).selectExpr("string(id % 9) AS `the key`", "1 AS v", "id AS timestamp_ms", "id AS arrival")
    )
    first = plan.explained(many)
    assert (first.count("Range ("), first.count("Exchange hashpartitioning")) == (1, 1)
    plan.advance(events("aaab"))
    # State and events are combined twice: counts before events are numbered, slices after events are sliced.
    later = plan.explained(many)
    assert (later.count("Range ("), later.count("FileScan")) == (1, 2)
    assert (later.count("Exchange hashpartitioning"), later.count("REPARTITION_BY_COL")) == (2, 1)
    assert not {"Python", "SortAggregate", "Exchange SinglePartition"} & set(re.findall(r"Exchange \w+|\w+", later))


def test_bad_sizes_are_refused() -> None:
    for size, slide in ((0, 1), (1, 0), (-1, 2)):
        with pytest.raises(
            InvalidSpec, match=rf"CountWindows\(size={size}.* is not valid: need size > 0 and slide > 0"
        ):
            CountWindows(size, slide)
