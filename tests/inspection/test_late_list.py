"""`windowlib late list` and `late what-if`, compared with the rules applied to the files and with real runs."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, FILES, MINUTE_MS, START_MS, clicks, clock, events
from tests.support.strategies import ALL
from windowlib.cli.main import app
from windowlib.definition.definition import Definition
from windowlib.definition.toml.durations import parse_duration
from windowlib.inspection.late.what_if import what_if
from windowlib.inspection.lineage.cuts import cut
from windowlib.ledger.rerun_request import Rerun
from windowlib.model.assigners import Cumulating, Sliding, Tumbling
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]
SESSION = 'type = "session"\ngap = "10m"'
TUMBLING = 'type = "tumbling"\nsize = "30m"'
SLIDING = 'type = "sliding"\nsize = "1h"\nslide = "20m"'
HOLES = 'type = "sliding"\nsize = "10m"\nslide = "30m"'
CUMULATING = 'type = "cumulating"\nmax_size = "30m"\nstep = "10m"'
WINDOWS = {"session": SESSION, "tumbling": TUMBLING, "sliding": SLIDING, "holes": HOLES, "cumulating": CUMULATING}
OUT_OF_ORDER_MS = 5 * MINUTE_MS
SLIDING_DO = pytest.mark.long("tumbling windows, and those with holes, are sliding ones; cumulating ones overlap alike")
OF_SESSIONS = pytest.mark.long("make test follows docs/guides/late-data.md, which lists late events of sessions")


@dataclass(frozen=True)
class Late:
    """A late event by the rules. `ends_ms`: ends of its windows, last one first."""

    file: str
    row: int
    user: str
    time_ms: int
    late_by_ms: int
    ends_ms: tuple[int, ...]


def text_of(window: str, lateness: str) -> str:
    return CLICKS.replace(SESSION, window).replace('allowed_lateness = "2h"', f'allowed_lateness = "{lateness}"')


def pipeline(folder: Path, spark: Any, window: str, lateness: str) -> Definition:
    definition = clicks(folder, definition=text_of(window, lateness))
    advance(definition, lambda: spark, clock=clock)
    return definition


@pytest.fixture(scope="module")
def played(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Definition]:
    """Each kind after all its files, played once."""
    return cache(lambda kind: pipeline(tmp_path_factory.mktemp(kind), spark, WINDOWS[kind], "15m"))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("session", marks=OF_SESSIONS),
        "sliding",
        *(pytest.param(one, marks=SLIDING_DO) for one in ("tumbling", "holes", "cumulating")),
    ],
)
def ran(request: pytest.FixtureRequest, played: Callable[[str], Definition]) -> tuple[str, Definition]:
    return request.param, played(request.param)


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["late", *map(str, arguments)], env={"COLUMNS": "200", "WINDOWLIB_WAREHOUSE": ""})


def listed(definition: Definition, *arguments: str) -> list[dict[str, Any]]:
    shown = call("list", definition.file, "--json", *arguments)
    assert shown.exit_code == 0, shown.output
    return [json.loads(line) for line in shown.stdout.splitlines()]


def late_by_hand(assigner: Tumbling | Sliding | Cumulating, lateness_ms: int) -> Iterator[Late]:
    """Every late event of the clicks, computed from the rules alone."""
    newest_ms, ids = None, set()
    for number in range(1, FILES + 1):
        late_up_to_ms = None if newest_ms is None else newest_ms - OUT_OF_ORDER_MS - 1 - lateness_ms
        times = []
        for row, event in enumerate(events(number)):
            if event["user"] is None or event["id"] in ids:
                continue
            ids.add(event["id"])
            ends = [window.end_ms for window in assigner.assign(event["at_ms"])][::-1]
            last_ms = ends[0] - 1 if ends else event["at_ms"]
            if late_up_to_ms is not None and last_ms <= late_up_to_ms:
                by_ms = late_up_to_ms - last_ms
                yield Late(f"{number}.parquet", row, event["user"], event["at_ms"], by_ms, tuple(ends))
            times.append(event["at_ms"])  # in a hole, too: quarantined where it is not late, but time has come so far
        newest_ms = max([*times, *([] if newest_ms is None else [newest_ms])])


def of(definition: Definition) -> list[Late]:
    assigner = definition.spec.assigner
    assert isinstance(assigner, Tumbling | Sliding | Cumulating)
    return list(late_by_hand(assigner, definition.spec.allowed_lateness_ms))


def test_each_late_event_is_listed(ran: tuple[str, Definition]) -> None:
    kind, definition = ran
    rows = listed(definition)
    found = {(row["source_file"], row["source_row"], row["late_by_ms"]) for row in rows}
    stored = read_table(definition, "late_events").to_pylist()
    assert found == {(row["source_file"], row["source_row"], row["late_by_ms"]) for row in stored}
    assert len(found) == len(rows) > 5
    assert [row["batch_id"] for row in rows] == sorted((row["batch_id"] for row in rows), reverse=True)
    if kind != "session":
        expected = of(definition)
        assert found == {(late.file, late.row, late.late_by_ms) for late in expected}


def test_groups_add_up(ran: tuple[str, Definition]) -> None:
    kind, definition = ran
    expected = listed(definition)
    for by, value in (
        ("key", lambda late: late["user"]),
        ("hour", lambda late: late["event_time"][:13]),
        ("reason", lambda late: "past cleanup" if late["window_end"] else "no window"),
    ):
        groups = listed(definition, "--by", by)
        counts = Counter(map(value, expected))
        assert sorted(group["events"] for group in groups) == sorted(counts.values())
        if by == "key":
            assert {group["user"]: group["events"] for group in groups} == counts
            for group in groups:
                mine = sorted(late["late_by_ms"] for late in expected if late["user"] == group["user"])
                assert (group["least_late_ms"], group["most_late_ms"]) == (mine[0], mine[-1])
                assert group["median_late_ms"] == mine[(len(mine) - 1) // 2]
        if by == "reason":
            assert {group["reason"]: group["events"] for group in groups} == counts
            assert (len(counts) == 2) == (kind == "holes")


def test_a_range_of_event_time(ran: tuple[str, Definition]) -> None:
    _, definition = ran
    rows = listed(definition)
    times = sorted(row["event_time"] for row in rows)
    middle = times[len(times) // 2]
    assert [row["event_time"] < middle for row in listed(definition, "--to", middle)] == [True] * times.index(middle)
    assert len(listed(definition, "--from", middle)) == len(times) - times.index(middle)
    assert listed(definition, "--from", "2031-01-01T00:00Z") == []
    assert "no event is without a window in this range" in call("list", definition.file, "--from", "2031-01-01Z").stdout


def test_readmitted_events_are_marked(spark: Any, played: Callable[[str], Definition], tmp_path: Path) -> None:
    shutil.copytree(played("sliding").file.parent, tmp_path, dirs_exist_ok=True)
    definition = clicks(tmp_path, 0, text_of(SLIDING, "15m"))
    rows = listed(definition)
    key = Counter(row["user"] for row in rows).most_common(1)[0][0]
    rerun = Rerun(START_MS - 10**9, START_MS + 10**9, "test", "me", late_only=True, key=(key,))
    [report] = advance(definition, lambda: spark, clock=clock, rerun=rerun)
    assert [row["user"] for row in listed(definition)] == [row["user"] for row in rows if row["user"] != key]
    everything = listed(definition, "--all")
    assert {row["readmitted_by"] for row in everything if row["user"] == key} == {report.batch_id}
    assert len(everything) == len(rows)
    again = sum(row["user"] == key for row in rows)
    assert f"{again:,} of them were readmitted" in call("what-if", definition.file).stdout
    assert f"{again:,} of them readmitted" in call("list", definition.file, "--all").stdout


@pytest.mark.parametrize(
    "window",
    [
        pytest.param("session", marks=pytest.mark.long("sliding windows, in make test, are more exact about it")),
        "sliding",
        *(pytest.param(one, marks=SLIDING_DO) for one in ("tumbling", "holes", "cumulating")),
    ],
)
def test_what_if_equals_a_real_run_with_that_lateness(
    window: str, played: Callable[[str], Definition], spark: Any, tmp_path: Path
) -> None:
    longer, present = ("40m", "2h") if ALL else ("40m",), played(window)
    said = what_if(cut(present), [parse_duration(one) for one in longer])
    assert [kept.events for kept in said.rows] == sorted({kept.events for kept in said.rows}), "each keeps more"
    assert said.rows[0].events > 0
    bounded = any("lower bound" in note for note in said.notes)
    assert bounded == (window in ("session", "sliding", "cumulating"))
    for one, kept in zip(longer, said.rows, strict=True):
        other = pipeline(tmp_path / one, spark, WINDOWS[window], one)
        still_late = read_table(other, "late_events").num_rows
        differing = len({row[:3] for row in results(other) ^ results(present)})
        ends = [row[2] for row in results(present)]
        watermark_ms = cut(present).batch.watermark_out_ms
        assert kept.share == kept.events / said.late
        assert kept.windows_kept == sum(
            round(end.timestamp() * 1000) - 1 + kept.allowed_lateness_ms > watermark_ms for end in ends
        )
        if window == "session":
            assert said.late - still_late >= kept.events
            continue
        between = sum(not late.ends_ms for late in of(present))
        refused = {r["source_row"] for r in read_table(other, "quarantine").to_pylist() if r["reason"] == "hole"}
        was_refused = {r["source_row"] for r in read_table(present, "quarantine").to_pylist() if r["reason"] == "hole"}
        assert (window == "holes") == bool(between)
        if window == "holes":  # an event between two windows is refused where it is not late
            assert len(refused) >= len(was_refused)
            assert kept.events <= said.late - still_late
        else:
            assert said.late - still_late == kept.events
        if window in ("sliding", "cumulating"):
            assert 0 < kept.windows <= differing
        else:
            assert kept.windows == differing


def test_what_if_at_the_boundary(ran: tuple[str, Definition]) -> None:
    _, definition = ran
    present_ms = definition.spec.allowed_lateness_ms
    late = sorted(row["late_by_ms"] for row in listed(definition) if row["window_start"])
    for late_by_ms in late[:: 1 if ALL else 4]:
        just, less = what_if(cut(definition), [present_ms + late_by_ms + 1, present_ms + max(late_by_ms, 1)]).rows[::-1]
        assert just.events == sum(one <= late_by_ms for one in late)
        assert less.events == sum(one < max(late_by_ms, 1) for one in late)


def results(definition: Definition) -> set[tuple[Any, ...]]:
    rows = read_table(definition, "results").to_pylist()
    return {(row["user"], row["window_start"], row["window_end"], row["clicks"], row["total"]) for row in rows}


def test_the_picture_shows_the_shares(ran: tuple[str, Definition], tmp_path: Path) -> None:
    _, definition = ran
    file = tmp_path / "late.svg"
    shown = call("what-if", definition.file, "--allow", "20m", "--allow", "10d", "--picture", file)
    assert shown.exit_code == 0
    assert f"drawn: {file}" in shown.stdout
    said = what_if(cut(definition), [20 * MINUTE_MS, 10 * 24 * 60 * MINUTE_MS])
    paths = [path for path in ET.parse(file).getroot() if path.get("class") in ("kept", "all")]
    ends = [float(re.search(r"H([\d.]+) v", path.get("d") or "")[1]) for path in paths]  # type: ignore[index]
    left = 110
    drawn = [(kept - left) / (whole - left) for whole, kept in zip(ends[::2], ends[1::2], strict=True)]
    assert drawn == pytest.approx([kept.share for kept in said.rows], abs=0.002)


def test_mistakes_are_reported(ran: tuple[str, Definition], tmp_path: Path) -> None:
    _, definition = ran
    (tmp_path / "file").touch()
    for arguments, sentence in (
        (["list", "--from", "2026-03-02 10:00"], "has no time zone"),
        (["list", "--from", "2026-03-02Z", "--to", "2026-03-01Z"], "is not before"),
        (["what-if", "--allow", "10m"], "would not have kept more events: allowed_lateness is already 15m"),
        (["what-if", "--allow", "long"], "need a duration such as"),
        (["what-if", "--picture", "x.png"], "ends in .svg"),
        (["what-if", "--picture", str(tmp_path / "file" / "x.svg")], "cannot be written"),
    ):
        shown = call(arguments[0], definition.file, *arguments[1:])
        assert shown.exit_code == 2, shown.output
        assert sentence in shown.stderr
        assert len(shown.stderr.splitlines()) == 1


def test_nothing_committed_yet(tmp_path: Path) -> None:
    definition = clicks(tmp_path, files=1)
    for command in ("list", "what-if"):
        shown = call(command, definition.file)
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert "no batch is committed" in shown.stderr
