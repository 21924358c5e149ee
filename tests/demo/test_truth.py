"""The truth of the demo data is what the plain oracle finds in the files, and the files hold every hard case."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.window_oracle import Event, Outcome, run, session, sliding
from windowlib.demo.arrivals import LATENESS_MS, OUT_OF_ORDERNESS_MS
from windowlib.demo.clicks import BASE_MS, GAP_MS, HOUR_MS, ClickSettings, make_clicks
from windowlib.demo.truth import SIZE_MS, SLIDE_MS, Truth, WindowTruth, make_demo_data

SMALL = ClickSettings(events=6_000, users=300, files=8, seed=7)
FUTURE_MS = BASE_MS + 365 * 24 * HOUR_MS


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("clicks")
    return folder, make_demo_data(SMALL, folder)


def batches(folder: Path, refused: dict[str, int]) -> Iterator[list[Event]]:
    """The usable rows of each file; the others are counted in ``refused``."""
    seen: set[str] = set()
    for path in sorted(folder.iterdir()):
        batch = []
        table = pq.read_table(path)
        milliseconds = pc.floor(pc.divide(pc.cast(pc.cast(table["ts"], pa.int64()), pa.float64()), 1000.0))
        for event_id, user, ms, value in zip(
            *(column.to_pylist() for column in (table["event_id"], table["user_id"], milliseconds, table["value"])),
            strict=True,
        ):
            reason = _reason(event_id in seen, user, ms)
            seen.add(event_id)
            if reason:
                refused[reason] = refused.get(reason, 0) + 1
            else:
                batch.append(Event(event_id, user, int(ms), value))
        yield batch


def _reason(seen: bool, user: str | None, ms: float | None) -> str | None:
    if user is None:
        return "null_key"
    if ms is None:
        return "null_timestamp"
    if ms > FUTURE_MS:
        return "future"
    return "duplicate" if seen else None


def as_dict(results: pa.Table) -> dict[tuple[str, int, int], tuple[int, int | None]]:
    rows = results.set_column(1, "window_start", results["window_start"].cast(pa.int64()))
    rows = rows.set_column(2, "window_end", rows["window_end"].cast(pa.int64()))
    return {
        (user, start // 1000, end // 1000): (events, total)
        for user, start, end, events, total in zip(*(column.to_pylist() for column in rows.columns), strict=True)
    }


def assert_same(truth: WindowTruth, outcome: Outcome) -> None:
    assert as_dict(truth.results) == outcome.results
    assert set(truth.late.to_pylist()) == outcome.late
    assert outcome.results
    assert outcome.late


@pytest.mark.parametrize("seed", range(6))
def test_the_oracle_finds_the_truth(tmp_path: Path, seed: int) -> None:
    settings = ClickSettings(events=4_000, users=200, files=8 + seed % 3, seed=seed)
    truth = make_demo_data(settings, tmp_path)
    refused: dict[str, int] = {}
    files = list(batches(tmp_path, refused))

    sessions = run(files, session(GAP_MS), True, OUT_OF_ORDERNESS_MS, LATENESS_MS)
    assert_same(truth.sessions, sessions)
    assert_same(truth.sliding, run(files, sliding(SIZE_MS, SLIDE_MS), False, OUT_OF_ORDERNESS_MS, LATENESS_MS))
    assert refused == truth.unusable
    assert sessions.watermark_ms == truth.watermark_ms
    assert truth.rows == sum(map(len, files)) + sum(refused.values())


def test_same_settings_give_the_same_files(small: tuple[Path, Truth], tmp_path: Path) -> None:
    folder, truth = small
    again = make_demo_data(SMALL, tmp_path)
    assert again == truth
    first, second = ([path.read_bytes() for path in sorted(of.iterdir())] for of in (folder, tmp_path))
    assert first == second


def test_another_seed_gives_other_clicks(small: tuple[Path, Truth], tmp_path: Path) -> None:
    assert make_demo_data(ClickSettings(6_000, 300, 8, seed=8), tmp_path).sessions.results != small[1].sessions.results


def test_boundary_gaps_are_planted() -> None:
    settings = ClickSettings(events=20_000, users=1_000, files=8)
    clicks = make_clicks(settings, np.random.default_rng(7))
    same_user = np.diff(clicks.visits.user[clicks.visit]) == 0
    gaps = np.diff(clicks.timestamp_ms)[same_user]
    assert len(clicks.timestamp_ms) == settings.events
    for planted in (GAP_MS - 1, GAP_MS, GAP_MS + 1):
        assert np.count_nonzero(gaps == planted) >= 5
    assert gaps.min() >= 0


def test_every_hard_case_occurs(small: tuple[Path, Truth]) -> None:
    folder, truth = small
    late_in_sessions, late_in_sliding = (set(t.late.to_pylist()) for t in (truth.sessions, truth.sliding))
    assert late_in_sliding - late_in_sessions, "kept by the company of their session, too late for sliding windows"
    assert late_in_sessions - late_in_sliding, "late alone, but in time for the newest of their sliding windows"
    assert set(truth.unusable) == {"duplicate", "null_key", "null_timestamp", "future"}
    assert min(truth.unusable.values()) >= 5

    for side in (truth.sessions, truth.sliding):
        ends = pc.divide(side.results["window_end"].cast(pa.int64()), 1000)
        assert pc.max(ends).as_py() - 1 == truth.watermark_ms, "the watermark just reaches the last window"

    files = list(batches(folder, {}))
    times = [[event.timestamp_ms for event in batch] for batch in files]
    assert all(batch != sorted(batch) for batch in times)
    within_allowance = [
        event
        for number in range(1, len(files))
        for event in files[number]
        if event.timestamp_ms < max(times[number - 1]) - OUT_OF_ORDERNESS_MS and event.event_id not in late_in_sessions
    ]
    assert len(within_allowance) > 20
    first_file_of = {event.event_id: number for number, batch in enumerate(files) for event in batch}
    copies = [
        (first_file_of[event_id], number)
        for number, path in enumerate(sorted(folder.iterdir()))
        for event_id in pq.read_table(path, columns=["event_id"])["event_id"].to_pylist()
        if event_id in first_file_of and first_file_of[event_id] < number
    ]
    assert copies, "some second copies come in a later file"


def test_null_values_do_not_count(small: tuple[Path, Truth]) -> None:
    results = small[1].sessions.results
    assert results["total"].null_count > 0
    assert results["events"].null_count == 0


def test_too_small_settings_are_refused() -> None:
    with pytest.raises(ValueError, match=r"ClickSettings\(events=100, users=50.* is not valid: need files >= 8, "):
        ClickSettings(events=100, users=50)
