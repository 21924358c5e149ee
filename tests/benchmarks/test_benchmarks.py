"""The benchmark without Spark: what its generators promise, what is compared and reported, which mistakes it names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from benchmarks.agreement import Disagreement, agree
from benchmarks.cli import app
from benchmarks.clickstream import BASE_MS, Clicks, Ints
from benchmarks.nexmark import AUCTIONS, BIDS, FIRST_ID, HOT_EVERY, LEAD, PERSONS, Bids, Openings
from benchmarks.query import HOUR_MS, MINUTE_MS, definition
from benchmarks.report import report
from benchmarks.run import Choice, bench, write
from benchmarks.sides import flink, recompute
from benchmarks.sides.registry import SIDES
from benchmarks.sides.side import STEP, Piece, Side, Task, Work
from benchmarks.turns import measure
from benchmarks.worker import SideFailed, in_this_process, worker
from benchmarks.workload import Case, Generator, Size
from benchmarks.workloads import Stream, workloads
from tests.support.strategies import ALL
from windowlib.definition.definition import load_definition

EVENTS = 90_000
KNOWN = workloads(Stream(Clicks()), Bids())


def made(source: Generator, folder: Path, number: int = 0, events: int = EVENTS) -> dict[str, Ints]:
    """The columns of a file, times in ms after the start of its hour."""
    file = folder / f"{number}.parquet"
    source.write(file, number, events, BASE_MS + number * HOUR_MS, HOUR_MS)
    table = pq.read_table(file)
    found = {name: table[name] for name in table.column_names}
    for name, column in found.items():
        if pa.types.is_timestamp(column.type):
            found[name] = pa.chunked_array([(column.cast(pa.int64()).to_numpy() // 1000) - BASE_MS - number * HOUR_MS])
    return {name: column.to_numpy() for name, column in found.items()}


class TestClicks:
    def test_as_many_as_asked_for_within_the_hour_and_its_last_burst(self, tmp_path: Path) -> None:
        found = made(Clicks(), tmp_path, number=3)
        assert len(found["ts"]) == EVENTS
        assert 0 <= found["ts"].min() < MINUTE_MS
        assert HOUR_MS - MINUTE_MS < found["ts"].max() < HOUR_MS + 10 * MINUTE_MS
        assert (found["value"].min(), found["value"].max()) == (1, 1000)

    def test_hot_users_have_their_share_evenly(self, tmp_path: Path) -> None:
        user = made(Clicks(hot_share=0.2), tmp_path)["user_id"]
        assert np.mean(user < 200) == pytest.approx(0.2, abs=0.001)
        assert np.bincount(user[user < 200]).min() > 50  # of 90 on average

    def test_the_others_come_in_bursts_within_ten_minutes(self, tmp_path: Path) -> None:
        found = made(Clicks(users=10_000_000), tmp_path)  # so many that hardly any user comes twice
        clicks = Counter(found["user_id"][found["user_id"] >= 200].tolist())
        assert Counter(clicks.values())[9] > 0.99 * len(clicks)
        [one, *_] = (user for user, number in clicks.items() if number == 9)
        times = found["ts"][found["user_id"] == one]
        assert times.max() - times.min() < 10 * MINUTE_MS

    def test_users_by_zipf_s_law(self, tmp_path: Path) -> None:
        user = made(Clicks(users=10_200, hot_share=0, zipf=1.0), tmp_path)["user_id"]
        share = np.sort(np.bincount(user))[::-1] / EVENTS
        expected = 1 / np.sum(1 / np.arange(1, 10_001))
        assert share[0] == pytest.approx(expected, rel=0.2)
        assert share[0] / share[9] == pytest.approx(10, rel=0.5)

    @pytest.mark.parametrize("disorder_ms", [0, MINUTE_MS])
    def test_disorder_is_bounded(self, tmp_path: Path, disorder_ms: int) -> None:
        times = made(Clicks(disorder_ms=disorder_ms), tmp_path)["ts"]
        behind = np.maximum.accumulate(times) - times
        assert 0.9 * disorder_ms <= behind.max() <= disorder_ms

    def test_without_disorder_given_rows_lie_in_any_order(self, tmp_path: Path) -> None:
        times = made(Clicks(), tmp_path)["ts"]
        assert (np.maximum.accumulate(times) - times).max() > 0.9 * HOUR_MS

    def test_the_share_of_late_events(self, tmp_path: Path) -> None:
        times = made(Clicks(late_share=0.05, late_by_ms=(2 * HOUR_MS, 5 * HOUR_MS)), tmp_path)["ts"]
        assert np.mean(times < 0) == pytest.approx(0.05, abs=0.004)
        assert times.min() >= -5 * HOUR_MS

    def test_a_rate_decides_how_much_time_a_file_spans(self) -> None:
        arrivals = Stream(Clicks(), events_per_second=50).arrivals(Size(3, 1000))
        assert [(arrival.start_ms - BASE_MS, arrival.span_ms) for arrival in arrivals] == [
            (0, 20_000),
            (20_000, 20_000),
            (40_000, 20_000),
        ]


class TestBids:
    def test_hot_auctions_and_bidders_have_their_share(self, tmp_path: Path) -> None:
        found = made(Bids(), tmp_path, number=2)
        epoch = (2 * EVENTS + np.arange(EVENTS)) // BIDS
        newest_auction, newest_person = epoch * AUCTIONS + AUCTIONS - 1, epoch * PERSONS + PERSONS - 1
        hot_auction = FIRST_ID + newest_auction // HOT_EVERY * HOT_EVERY
        hot_bidder = FIRST_ID + newest_person // HOT_EVERY * HOT_EVERY + 1
        assert np.mean(found["auction"] == hot_auction) == pytest.approx(1 / 2, abs=0.01)
        assert np.mean(found["bidder"] == hot_bidder) == pytest.approx(3 / 4, abs=0.01)
        others = found["auction"][found["auction"] != hot_auction] - FIRST_ID
        newest = newest_auction[found["auction"] != hot_auction]
        assert (newest - others).max() == 100
        assert (others - newest).max() == LEAD

    def test_the_delay_between_events_counts_persons_and_auctions(self, tmp_path: Path) -> None:
        bids = Bids(events_per_second=10_000)
        times = made(bids, tmp_path, events=46_000)["date_time"]
        assert (np.diff(times) >= 0).all()
        assert times[-1] == pytest.approx(5_000, abs=1)  # 46,000 of 50,000 events
        assert bids.span_ms(46_000) == 5_000

    def test_prices(self, tmp_path: Path) -> None:
        price = made(Bids(), tmp_path)["price"]
        assert price.min() >= 100
        assert price.max() <= 10**8
        assert np.median(price) == pytest.approx(10**5, rel=0.1)

    def test_files_follow_one_another(self, tmp_path: Path) -> None:
        bids = Bids()
        for number in (0, 1):
            bids.write(tmp_path / f"{number}.parquet", number, 460, 0, 0)
        first, second = (pq.read_table(tmp_path / f"{n}.parquet")["date_time"].cast(pa.int64()) for n in (0, 1))
        assert second[0].as_py() - first[0].as_py() == 500 * 100  # events, each 100 µs after the one before


class TestOpenings:
    def test_one_event_of_four_is_a_person_who_may_sell_from_then_on(self, tmp_path: Path) -> None:
        found = made(Openings(Bids()), tmp_path, number=2)
        person, auction = found["person"], found["auction"].astype(bool)
        assert np.mean(auction) == pytest.approx(3 / 4)
        newest = (2 * EVENTS + np.arange(EVENTS)) // (PERSONS + AUCTIONS)
        assert (person[~auction] == FIRST_ID + newest[~auction]).all()
        hot = FIRST_ID + newest // HOT_EVERY * HOT_EVERY
        assert np.mean(person[auction] == hot[auction]) == pytest.approx(3 / 4, abs=0.01)
        assert (person[auction] - FIRST_ID - newest[auction]).max() == LEAD

    def test_they_stand_where_no_bids_are(self, tmp_path: Path) -> None:
        openings = Openings(Bids(events_per_second=10_000))
        times = made(openings, tmp_path, events=4_000)["date_time"]
        assert (np.diff(times) >= 0).all()
        assert times[-1] == pytest.approx(5_000, abs=6)  # 4,000 of 50,000 events
        assert openings.span_ms(4_000) == 5_000


@pytest.mark.parametrize("name", KNOWN)
def test_files_are_the_same_every_time_and_differ_from_one_another(name: str, tmp_path: Path) -> None:
    for case in KNOWN[name].cases(Size(2, 500)):
        source = case.arrivals[-1].source
        rows = [made(source, tmp_path, number, 500) for number in (1, 1, 2)]
        for column, values in rows[0].items():
            assert np.array_equal(values, rows[1][column])
        assert any(not np.array_equal(rows[0][column], rows[2][column]) for column in rows[0])


@pytest.mark.parametrize("name", KNOWN)
def test_queries_are_definitions(name: str, tmp_path: Path) -> None:
    for case in KNOWN[name].cases(Size(2, 1_000_000)):
        for query in case.queries:
            (tmp_path / "query.toml").write_text(definition(query))
            assert load_definition(tmp_path / "query.toml").name == query.name


def side_with(rows: pa.Table) -> Side:
    """A side that has published these rows."""
    return replace(SIDES["duckdb"], name="other", published=lambda task, query: rows)


class TestTurns:
    """With the one side that is quick and always there."""

    sessions = KNOWN["sessions"]

    def case(self) -> Case:
        return self.sessions.cases(Size(3, 300))[0]

    def test_every_file_but_the_first_counts(self, tmp_path: Path) -> None:
        said: list[str] = []
        found = measure(self.sessions, self.case(), ["duckdb"], tmp_path, said.append, in_this_process)
        assert [len(times) for times in found.seconds[""].values()] == [2]
        assert [line.partition(":")[0] for line in said] == [
            "sessions, file 1 of 3, not timed",
            "sessions, file 2 of 3",
            "sessions, file 3 of 3",
        ]

    def test_a_difference_is_an_error(self, tmp_path: Path) -> None:
        case = self.case()
        measure(self.sessions, case, ["duckdb"], tmp_path, lambda text: None, in_this_process)
        task = Task(tmp_path / "duckdb", case.queries)
        rows = recompute.published(task, case.queries[0])
        assert agree(case, {SIDES["duckdb"]: task, side_with(rows): task}, tmp_path)[0].rows == len(rows)
        changed = rows.set_column(rows.column_names.index("total"), "total", pc.add(rows["total"], 1))
        for wrong, message in ((rows.slice(1), "1 only in duckdb"), (changed, f"{len(rows):,} with other values")):
            with pytest.raises(Disagreement, match=f"duckdb and other do not publish the same .*{message}"):
                agree(case, {SIDES["duckdb"]: task, side_with(wrong): task}, tmp_path)

    @pytest.mark.long("the sides of the report run in processes of their own in make test")
    def test_in_a_process_of_its_own(self, tmp_path: Path) -> None:
        found = measure(self.sessions, self.case(), ["duckdb"], tmp_path, lambda text: None)
        assert len(found.seconds[""]["duckdb"]) == 2

    def test_the_others_go_on_without_a_side_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails_at_the_second(task: Task) -> Work:
            for number in (1, 2):
                yield
                (task.folder / str(number)).touch()
            raise MemoryError("no room\nfor the second file")

        monkeypatch.setitem(SIDES, "floor", replace(SIDES["floor"], work=fails_at_the_second))

        @contextmanager
        def failing(side: str, task: Task, new_process: bool) -> Iterator[Callable[[Piece], float]]:
            with in_this_process(side, task, new_process) as once:

                def answered(piece: Piece) -> float:
                    try:
                        return once(piece)
                    except MemoryError as error:
                        raise SideFailed(side, str(error)) from error

                yield answered

        said: list[str] = []
        found = measure(self.sessions, self.case(), ["duckdb", "floor"], tmp_path, said.append, failing)
        assert {side: len(times) for side, times in found.seconds[""].items()} == {"duckdb": 2}
        assert found.failed == {"floor": "for the second file (sessions, file 2 of 3)"}
        assert [line.split(":")[1].split()[0] for line in said] == ["floor", "duckdb", "duckdb", "floor", "duckdb"]
        assert "**floor failed**: for the second file (sessions, file 2 of 3)" in report([found], "here")

    def test_what_fails_in_a_process_is_reported(self, tmp_path: Path) -> None:
        task = Task(tmp_path / "nowhere", self.case().queries)
        with pytest.raises(SideFailed, match=r"ours failed:(.|\n)*no such file"), worker("ours", task, False) as once:
            once(STEP)


def test_the_report(tmp_path: Path) -> None:
    choice = Choice(["sessions", "count"] if ALL else ["sessions"], ["duckdb"], Size(3, 300))
    measured = [*bench(choice, KNOWN, lambda text: None)]
    text = write(measured, choice, tmp_path / "out")
    assert (tmp_path / "out" / "report.md").read_text() == text
    assert "| 300 events | duckdb | " in text
    written = json.loads((tmp_path / "out" / "seconds.json").read_text())
    assert [(one["workload"], len(one["seconds"][""]["duckdb"])) for one in written] == [
        (name, 2) for name in choice.workloads
    ]
    for name in choice.workloads:
        root = ElementTree.parse(tmp_path / "out" / f"{name}.svg").getroot()
        assert len(root.findall(".//{*}path[@class='other']")) == 1


MISTAKES = {
    "sesions": "no workload 'sesions'; did you mean sessions? There are sessions, tumbling",
    "": "need at least one workload; there are sessions, tumbling",
    "sessions --sides our": "no side 'our'; did you mean ours? There are ours, ours-cold",
    "sessions --files 1": "need --files 2 or more, the first warms up; got 1",
    "sessions --events 5": "need --events 100 or more, got 5",
    "sessions --zipf -1": "need --zipf above 0, got -1",
    "late --late-share 5": "need --late-share between 0 and 1, got 5",
    "sessions --disorder soon": "--disorder is not a duration: 'soon'; need a duration such as",
    "sessions --disorder -5s": "need --disorder of 0s or more, got -5s",
    "sessions --sides ours --scratch nowhere": "need a folder for --scratch, nowhere is none; make it first",
    "count --sides streaming": "none of the chosen sides can do the workload count: streaming: Structured",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_gets_a_sentence(arguments: str) -> None:
    ended = CliRunner().invoke(app, ["--out", "nowhere", *arguments.split()])
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"error: {MISTAKES[arguments]}")
    assert ended.stderr.count("\n") == 1


def test_a_side_that_is_not_installed_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flink, "JARS", tmp_path)
    ended = CliRunner().invoke(app, ["sessions", "--sides", "flink"])
    assert (ended.exit_code, ended.stderr.partition(";")[2].strip()) == (
        2,
        "fetch them once: make bench WORKLOADS=--get-flink",
    )


def test_all_names_are_listed() -> None:
    ended = CliRunner().invoke(app, ["--list"])
    page = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text()
    for name in (*KNOWN, *SIDES):
        assert f"  {name} " in ended.stdout
        assert f"`{name}`" in page
