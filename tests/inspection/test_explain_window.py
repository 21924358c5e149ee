"""`windowlib explain`: every event, version and merge in its report is confirmed by other means."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, FILES, MINUTE_MS, START_MS, arrive, clicks, clock, events
from tests.support.damage import damage_rows
from tests.support.disks import folder_of
from tests.support.strategies import ALL
from windowlib.cli.main import app
from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.inspection.lineage.explain_window import Explained, ExplainedWindow, explain_window
from windowlib.inspection.lineage.key_windows import UNBOUNDED
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.key import CannotLook
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded]
SESSION = 'type = "session"\ngap = "10m"'
WINDOWS = {
    "session": (SESSION, "2h"),
    "tumbling": ('type = "tumbling"\nsize = "30m"', "1h"),
    "sliding": ('type = "sliding"\nsize = "1h"\nslide = "20m"', "40m"),
}
Place = tuple[str, int]
Published = tuple[str, tuple[int, int], dict[str, Any]]  # key, bounds, values


@dataclass(frozen=True)
class Ran:
    """A pipeline, with `results` and the windows in flight after each batch."""

    kind: str
    definition: Definition
    results: dict[int, list[dict[str, Any]]]
    flying: dict[int, list[dict[str, Any]]]


def text_of(kind: str) -> str:
    window, lateness = WINDOWS[kind]
    return CLICKS.replace(SESSION, window).replace('allowed_lateness = "2h"', f'allowed_lateness = "{lateness}"')


def play(folder: Path, spark: Any, kind: str) -> Ran:
    ran = Ran(kind, clicks(folder, definition=text_of(kind)), {}, {})
    for batch_id in range(1, FILES + 1):
        advance(ran.definition, lambda: spark, clock=clock, max_batches=1)
        ran.results[batch_id] = read_table(ran.definition, "results").to_pylist()
        ran.flying[batch_id] = read_table(ran.definition, "open_windows").to_pylist()
    return ran


SLIDING_DO = pytest.mark.long("a tumbling window is a sliding one")


@pytest.fixture(scope="module")
def played(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """Each kind, played once."""
    return cache(lambda kind: play(tmp_path_factory.mktemp(kind), spark, kind))


@pytest.fixture(scope="module", params=[pytest.param("tumbling", marks=SLIDING_DO), "sliding", "session"])
def ran(request: pytest.FixtureRequest, played: Callable[[str], Ran]) -> Ran:
    return played(request.param)


AS_SESSIONS = pytest.mark.long("sessions have these, and sliding windows their events, in make test")


@pytest.fixture(
    scope="module", params=[*(pytest.param(one, marks=AS_SESSIONS) for one in ("tumbling", "sliding")), "session"]
)
def ran_alike(request: pytest.FixtureRequest, played: Callable[[str], Ran]) -> Ran:
    """Pipeline for tests that do not depend on the kind of window."""
    return played(request.param)


def copied(ran: Ran, folder: Path) -> Ran:
    """Copy of the pipeline, with tables that a test may change."""
    shutil.copytree(ran.definition.file.parent, folder, dirs_exist_ok=True)
    return replace(ran, definition=clicks(folder, 0, text_of(ran.kind)))


@pytest.fixture(scope="module")
def sessions(spark: Any, played: Callable[[str], Ran], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Pipeline of sessions; its batch 5 has readmitted all late events."""
    ran = copied(played("session"), tmp_path_factory.mktemp("readmitted"))
    rerun = Rerun(START_MS - 10**9, START_MS + 10**9, "all of them", "ann", late_only=True)
    advance(ran.definition, lambda: spark, clock=clock, rerun=rerun)
    return ran


def call(*arguments: object) -> Any:
    environment = {"COLUMNS": "200", "WINDOWLIB_WAREHOUSE": ""}
    return CliRunner().invoke(app, ["explain", *map(str, arguments)], env=environment)


def bounds(row: dict[str, Any]) -> tuple[int, int]:
    return time_of(row["window_start"]), time_of(row["window_end"])


def window_of(found: Explained, wanted: tuple[int, int]) -> ExplainedWindow:
    [window] = [one for one in found.windows if one.bounds_ms == wanted]
    return window


def places(window: ExplainedWindow) -> list[Place]:
    return [(event.file, event.row or 0) for event in window.events]


def source() -> dict[Place, dict[str, Any]]:
    return {(f"{n}.parquet", row): event for n in range(1, FILES + 1) for row, event in enumerate(events(n))}


def in_bounds(user: str, wanted: tuple[int, int], up_to: int = FILES) -> dict[Place, dict[str, Any]]:
    """Source rows inside a window's bounds, admitted or not."""
    return {
        place: event
        for place, event in source().items()
        if event["user"] == user and wanted[0] <= event["at_ms"] < wanted[1] and int(place[0][0]) <= up_to
    }


def adds_up(rows: Iterable[dict[str, Any]], values: dict[str, Any]) -> bool:
    """Tests if the events add up to the result."""
    ordered = sorted(rows, key=lambda row: row["at_ms"])
    computed = {"clicks": len(ordered), "total": sum(row["value"] for row in ordered), "first": ordered[0]["value"]}
    return computed == values


def some_of(found: Sequence[Any], of: int = 20) -> Sequence[Any]:
    """Every n-th item, at most ten; all items in `make test-all`."""
    return found[:: 1 if ALL else max(of, -(-len(found) // 10))]


def published(ran: Ran, batch_id: int = FILES) -> list[Published]:
    rows = sorted(ran.results[batch_id], key=lambda row: (row["user"], bounds(row)))
    return [(row["user"], bounds(row), {name: row[name] for name in ("clicks", "total", "first")}) for row in rows]


def test_the_listed_events_add_up_to_every_result(ran: Ran) -> None:
    rows = source()
    late = {(r["source_file"], r["source_row"]) for r in read_table(ran.definition, "late_events").to_pylist()}
    refused = {(r["source_file"], r["source_row"]) for r in read_table(ran.definition, "quarantine").to_pylist()}
    unused = 0
    for user, wanted, values in some_of(published(ran)):
        window = window_of(explain_window(ran.definition, [user], wanted[0]), wanted)
        assert window.place == "holds"
        assert [dict(one["values"]) for one in window.published] == [values]
        inside = places(window)
        assert len(set(inside)) == len(inside)
        assert adds_up((rows[place] for place in inside), values)
        excluded = {(event.file, event.row): event.why or "" for event in window.excluded}
        assert {*inside, *excluded} == set(in_bounds(user, wanted))
        assert {place for place, why in excluded.items() if why.startswith("late")} == excluded.keys() & late
        assert {place for place, why in excluded.items() if why.startswith("quarantined")} == excluded.keys() & refused
        for event in window.events:
            row = rows[event.file, event.row or 0]
            assert (event.time_ms, event.values) == (row["at_ms"], {"id": row["id"], "value": row["value"]})
            assert event.batch_id == int(event.file[0])
        unused += len(excluded)
    assert unused > (5 if ALL else 0)


def test_windows_in_flight(ran: Ran) -> None:
    first, last = ("window_start_ms", "window_end_ms") if ran.kind == "session" else (None, None)
    checked = 0
    flying = some_of(ran.flying[FILES], 4)
    for row in flying:
        if first and last:
            window = window_of(explain_window(ran.definition, [row["user"]], row[first]), (row[first], row[last]))
            assert window.in_flight is not None
            assert window.in_flight.elements == len(window.events) == row["elements"]
            state = row["state_window_start_ms"], row["state_window_end_ms"]
            assert window.in_flight.state_window_ms == state
            assert any("state window" in note for note in window.notes) == (state != window.bounds_ms)
            checked += 1
            continue
        found = explain_window(ran.definition, [row["user"]], row["state_window_start_ms"])
        for window in found.windows:
            if window.in_flight:
                checked += 1
                assert window.cleaned_up_by is None
                assert window.in_flight.elements >= len(window.events) >= 1
    assert checked >= len(flying) > (5 if ALL else 0)


def test_versions_match_result_changes_and_the_ledger(ran_alike: Ran) -> None:
    plans = {}
    for row in read_table(ran_alike.definition, "ledger").to_pylist():
        if row["kind"] in ("plan", "commit"):
            plans.setdefault(row["batch_id"], {}).update({k: v for k, v in row.items() if v is not None})
    feed = read_table(ran_alike.definition, "result_changes").to_pylist()
    merges = 0
    for user, wanted, _ in some_of(published(ran_alike), 25):
        window = window_of(explain_window(ran_alike.definition, [user], wanted[0]), wanted)
        mine = [row for row in feed if row["user"] == user and bounds(row) == wanted]
        expected = sorted((row["batch_id"], row["change"], row["cause"], row["firing"], row["total"]) for row in mine)
        assert [(v.batch_id, v.change, v.cause, v.firing, v.values["total"]) for v in window.versions] == expected
        for version in window.versions:
            plan = plans[version.batch_id]
            assert version.plan_time_ms == plan["plan_time_ms"]
            assert version.watermark_out_ms == plan["watermark_out_ms"]
            if version.batch_id > 1:
                assert version.watermark_in_ms == plans[version.batch_id - 1]["watermark_out_ms"]
            if version.cause == "firing":
                assert version.watermark_in_ms < wanted[1] - 1 <= version.watermark_out_ms
            taken = {
                (bounds(row), row["total"])
                for row in feed
                if (row["user"], row["batch_id"], row["change"]) == (user, version.batch_id, "removed")
                and wanted[0] <= bounds(row)[0]
                and bounds(row)[1] <= wanted[1]
            }
            assert {(one.bounds_ms, one.values["total"]) for one in version.took_place_of} == taken
            merges += version.cause == "merge"
            assert version.cause != "merge" or taken
    assert (merges > 0) == (ran_alike.kind == "session")


def test_as_of_an_earlier_batch(ran_alike: Ran) -> None:
    rows = source()
    for batch_id in range(1, FILES):
        for user, wanted, values in some_of(published(ran_alike, batch_id), 40):
            found = explain_window(ran_alike.definition, [user], wanted[0], as_of=batch_id)
            assert found.as_of == batch_id
            window = window_of(found, wanted)
            assert [dict(one["values"]) for one in window.published] == [values]
            assert {version.batch_id for version in window.versions} <= set(range(1, batch_id + 1))
            assert {place[0][0] for place in places(window)} <= {str(n) for n in range(1, batch_id + 1)}
            assert adds_up((rows[place] for place in places(window)), values)


def test_the_nearest_windows_where_none_holds_the_time(ran: Ran) -> None:
    for user in ("u0", "u3") if ALL else ("u3",):
        known = sorted(wanted for one, wanted, _ in published(ran) if one == user)
        if ran.kind == "session":
            flying = [row for row in ran.flying[FILES] if row["user"] == user]
            known = sorted({*known, *((row["window_start_ms"], row["window_end_ms"]) for row in flying)})
        checked = 0
        for number, (start, _) in enumerate(known):
            end = max((one[1] for one in known[:number]), default=start)  # sessions may overlap
            if end < start and (ALL or checked < 2):
                found = explain_window(ran.definition, [user], (end + start) // 2)
                assert [one.place for one in found.windows] == ["before", "after"]
                assert [found.windows[0].bounds_ms[1], found.windows[1].bounds_ms[0]] == [end, start]
                assert "no window of this key holds" in found.notes[0]
                checked += 1
        assert checked or ran.kind == "sliding"  # these follow one another without a gap
        early = explain_window(ran.definition, [user], START_MS - 10**9)
        assert [(one.place, one.bounds_ms[0]) for one in early.windows] == [("after", known[0][0])]


def test_readmitted_events_name_their_rerun(sessions: Ran) -> None:
    rows = source()
    late = read_table(sessions.definition, "late_events").to_pylist()
    assert {row["readmitted_by"] for row in late} == {FILES + 1}
    current = read_table(sessions.definition, "results").to_pylist()
    for event in some_of(late, -(-len(late) // 4)):
        at_ms = time_of(event["event_time"])
        found = explain_window(sessions.definition, [event["user"]], at_ms)
        [window] = [one for one in found.windows if (event["source_file"], event["source_row"]) in places(one)]
        [row] = [row for row in current if row["user"] == event["user"] and bounds(row) == window.bounds_ms]
        assert adds_up((rows[place] for place in places(window)), {k: row[k] for k in ("clicks", "total", "first")})
        version = window.versions[-1]
        assert (version.cause, version.who, version.reason) == ("rerun", "ann", "all of them")
        again = {(one.file, one.row) for one in window.events if one.readmitted_by == FILES + 1}
        assert again == {(r["source_file"], r["source_row"]) for r in late} & set(places(window))
        before = explain_window(sessions.definition, [event["user"]], at_ms, as_of=FILES)
        assert (event["source_file"], event["source_row"]) not in {p for one in before.windows for p in places(one)}
    shown = call(sessions.definition.file, "--key", late[0]["user"], "--at", late[0]["event_time"].isoformat())
    assert "by ann: all of them" in shown.stdout
    assert f"batch {FILES + 1}" in shown.stdout


def test_a_late_event_without_a_window_is_named(sessions: Ran) -> None:
    late = read_table(sessions.definition, "late_events").to_pylist()
    missed = 0
    for event in some_of(late, 3):
        found = explain_window(sessions.definition, [event["user"]], time_of(event["event_time"]), as_of=FILES)
        excluded = [one for window in found.windows for one in window.excluded]
        named = (event["source_file"], event["source_row"]) in {(one.file, one.row) for one in excluded}
        too_late = any("was too late for the window" in note for note in found.notes)
        assert named or too_late
        missed += too_late
    assert missed


def test_files_that_are_gone_or_changed(played: Callable[[str], Ran], tmp_path: Path) -> None:
    ran = copied(played("sliding"), tmp_path)
    explained = (
        (user, wanted, values, window_of(explain_window(ran.definition, [user], wanted[0]), wanted))
        for user, wanted, values in sorted(published(ran), key=lambda one: -one[2]["clicks"])
    )
    user, wanted, values, whole = next(one for one in explained if len({event.file for event in one[3].events}) > 1)
    files = sorted({event.file for event in whole.events})
    gone, changed = files[0], files[1]
    damage_rows(tmp_path / "incoming" / changed)
    damaged = window_of(explain_window(ran.definition, [user], wanted[0]), wanted)
    assert {event.file for event in damaged.events} == set(files) - {changed}
    assert any(note.startswith(changed) and "cannot be read" in note for note in damaged.notes)
    (tmp_path / "incoming" / gone).unlink()
    (tmp_path / "incoming" / changed).write_bytes(b"PAR1")
    window = window_of(explain_window(ran.definition, [user], wanted[0]), wanted)
    assert [dict(one["values"]) for one in window.published] == [values]
    assert {event.file for event in window.events} == set(files) - {gone, changed}
    assert any(note.startswith(gone) and "is gone" in note for note in window.notes)
    assert any(note.startswith(changed) and "has changed since it was read" in note for note in window.notes)
    assert call(ran.definition.file, "--key", user, "--at", "2026-03-02T03:00Z").exit_code == 0


def test_files_with_unchanged_content_are_still_read(played: Callable[[str], Ran], tmp_path: Path) -> None:
    ran = copied(played("sliding"), tmp_path)
    user, wanted, _ = max(published(ran), key=lambda one: one[2]["clicks"])
    whole = window_of(explain_window(ran.definition, [user], wanted[0]), wanted)
    touched, moved = sorted({event.file for event in whole.events})[:2]
    os.utime(tmp_path / "incoming" / touched, ns=(10**9, 10**9))
    (tmp_path / "incoming" / moved).rename(tmp_path / "incoming" / "moved.parquet")
    again = window_of(explain_window(ran.definition, [user], wanted[0]), wanted)
    assert (again.events, again.notes) == (whole.events, whole.notes)


def test_text_and_json_output(sessions: Ran) -> None:
    merged = [row for row in read_table(sessions.definition, "result_changes").to_pylist() if row["cause"] == "merge"]
    added = next(row for row in merged if row["change"] == "added")
    at = added["window_start"].isoformat()
    shown = call(sessions.definition.file, "--key", added["user"], "--at", at, "--as-of", added["batch_id"])
    assert shown.exit_code == 0, shown.output
    assert "into this window" in shown.stdout
    assert "replaces" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) < 400
    machine = call(sessions.definition.file, "--key", added["user"], "--at", at, "--json")
    [line] = machine.stdout.splitlines()
    found = json.loads(line)
    assert found["key"] == {"user": added["user"]}
    assert found["windows"][0]["events"][0]["file"].endswith(".parquet")


def test_an_unknown_key_is_reported_without_other_keys(sessions: Ran) -> None:
    shown = call(sessions.definition.file, "--key", "u99", "--at", "2026-03-02T03:00Z")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[1:] == ["key u99 never occurs up to batch 5"]


def test_mistakes_are_reported(sessions: Ran, tmp_path: Path) -> None:
    file, at = sessions.definition.file, ["--at", "2026-03-02T03:00Z"]
    for arguments, sentence in (
        (["--key", "u1", "--at", "2026-03-02 03:00"], "has no time zone"),
        (at, "but this pipeline has 1 key column; give --key once for each of user"),
        (["--key", "u1", "--key", "u2", *at], "got 2"),
        (["--key", "u1", *at, "--as-of", "17"], "no batch 17 is committed; committed batches: 1 to 5"),
    ):
        shown = call(file, *arguments)
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert sentence in shown.stderr
        assert len(shown.stderr.splitlines()) == 1
    fresh = clicks(tmp_path, files=1)
    shown = call(fresh.file, "--key", "u1", *at)
    assert (shown.exit_code, "no batch is committed" in shown.stderr) == (2, True)


def test_a_batch_whose_versions_were_cleaned_up_is_refused(played: Callable[[str], Ran], tmp_path: Path) -> None:
    ran = copied(played("session"), tmp_path)
    for file in (folder_of(ran.definition) / "results").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(CannotLook, match="is no longer on disk"):
        explain_window(ran.definition, ["u1"], START_MS, as_of=1)


def test_sessions_that_overlap_because_the_first_was_cleaned_up(spark: Any, tmp_path: Path) -> None:
    """first    0----5----9.5=========19.5 |          cleaned up when the watermark is at 20.7 min
    second              9.4-10=========20         comes then, and is in time for its own window
    """
    definition = clicks(tmp_path, files=0, definition=CLICKS.replace('"2h"', '"1m"'))
    minutes = [[("u1", 0), ("u1", 5), ("u1", 9.5)], [("u2", 25.7)], [("u1", 10), ("u1", 9.4)], [("u2", 60)]]
    for number, batch in enumerate(minutes, 1):
        rows = [
            {"id": f"{number}-{row}", "user": user, "at_ms": START_MS + round(at * MINUTE_MS) + 1, "value": row}
            for row, (user, at) in enumerate(batch)
        ]
        arrive(tmp_path, number, rows)
    advance(definition, lambda: spark, clock=clock)
    first, second = explain_window(definition, ["u1"], START_MS + 12 * MINUTE_MS).windows
    assert [row["values"]["clicks"] for window in (first, second) for row in window.published] == [3, 2]
    assert places(first) == [("1.parquet", 0), ("1.parquet", 1), ("1.parquet", 2)]
    assert places(second) == [("3.parquet", 1), ("3.parquet", 0)]
    for window, others in ((first, {("3.parquet", 0), ("3.parquet", 1)}), (second, {("1.parquet", 2)})):
        assert {(event.file, event.row) for event in window.excluded} == others
        assert all("it is in the session" in (event.why or "") for event in window.excluded)


KEYS = pa.schema([("shop", pa.int64()), ("country", pa.string()), ("at", pa.timestamp("us")), ("value", pa.int64())])
TWO_KEYS = (
    CLICKS.replace('key = ["user"]', 'key = ["shop", "country"]')
    .replace('"at_ms"\ntimestamp_unit = "ms"', '"at"')
    .replace('event_id = "id"\nmax_files_per_run = 1\n', "")
)


def two_keys(folder: Path, text: str) -> Definition:
    definition = clicks(folder, files=0, definition=text)
    for number in (1, 2):
        at = [datetime(2026, 3, 2, 2 * number, minute, 0, 1_999, tzinfo=UTC).replace(tzinfo=None) for minute in (0, 5)]
        rows = [
            {"shop": shop, "country": country, "at": time, "value": shop}
            for time in at
            for shop, country in ((7, "de"), (7, "fr"), (8, "de"))
        ]
        arrive(folder, number, rows, KEYS)
    return definition


def test_several_key_columns_and_their_types(spark: Any, tmp_path: Path) -> None:
    definition = two_keys(tmp_path, TWO_KEYS)
    advance(definition, lambda: spark, clock=clock)
    at_ms = time_of(datetime(2026, 3, 2, 2, 3, tzinfo=UTC))
    [window] = explain_window(definition, ["7", "fr"], at_ms).windows
    assert [(event.file, event.row) for event in window.events] == [("1.parquet", 1), ("1.parquet", 4)]
    assert window.bounds_ms[0] == at_ms - 3 * MINUTE_MS + 1  # 1.999 ms are 1 ms
    with pytest.raises(CannotLook, match="key 'seven' is not a value of column shop of type int64"):
        explain_window(definition, ["seven", "fr"], at_ms)


def test_windows_over_all_events(spark: Any, tmp_path: Path) -> None:
    definition = two_keys(tmp_path, TWO_KEYS.replace('["shop", "country"]', "[]"))
    advance(definition, lambda: spark, clock=clock)
    at_ms = time_of(datetime(2026, 3, 2, 2, 3, tzinfo=UTC))
    [window] = explain_window(definition, [], at_ms).windows
    assert len(window.events) == window.published[0]["values"]["clicks"] == 6
    with pytest.raises(CannotLook, match="give no --key"):
        explain_window(definition, ["7"], at_ms)


TEXT = """
name = "clicks"
[source]
format = "FORMAT"
path = "incoming"
key = ["user"]
timestamp = "at"
event_id = "id"
schema = { id = "string", user = "string", at = "timestamp", value = "bigint" }
[watermark]
out_of_orderness = "5m"
[window]
type = "tumbling"
size = "1h"
[aggregates]
clicks = "count(*)"
total = "sum(value)"
"""


@pytest.mark.classic
@pytest.mark.long("make test follows docs/start.md, which explains a window over JSON; it names events of Parquet")
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_text_is_read_as_a_run_reads_it(kind: str, spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "clicks.toml"
    file.write_text(TEXT.replace("FORMAT", kind))
    definition = clicks(tmp_path, files=0, definition=TEXT.replace("FORMAT", kind))
    day = "2026-03-02T"
    files = [
        [
            ("a", "ann", f"{day}09:10:00Z", "1"),
            ("b", "ann", f"{day}09:20:00Z", "2"),
            ("b", "ann", f"{day}09:20:00Z", "2"),
        ],
        [
            ("c", "bob", f"{day}12:00:00Z", "3"),
            ("d", "ann", f"{day}09:59:59.999Z", "x"),
            ("e", "", f"{day}09:30:00Z", "4"),
        ],
        [("f", "ann", f"{day}09:20:00Z", "5"), ("g", "ann", f"{day}12:30:00Z", "6")],
    ]
    for number, rows in enumerate(files, 1):  # the third file is read by another batch: one of its events is late
        path = tmp_path / "incoming" / f"{number}.{kind}"
        if kind == "csv":
            lines = ["id,user,at,value", *(",".join(row) for row in rows)]
        else:
            named = [dict(zip(("id", "user", "at", "value"), row, strict=True)) for row in rows]
            lines = [
                json.dumps({**row, "value": int(row["value"]) if row["value"].isdigit() else row["value"]})
                for row in named
            ]
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, ns=(number, number))
        if number > 1:
            advance(definition, lambda: spark, clock=clock)
    (tmp_path / "incoming" / f"1.{kind}").rename(tmp_path / "incoming" / f"renamed.{kind}")
    found = explain_window(definition, ["ann"], time_of(datetime(2026, 3, 2, 9, 15, tzinfo=UTC)))
    [window] = found.windows
    assert [(event.file, event.row, event.values["id"]) for event in window.events] == [
        (f"1.{kind}", 0, "a"),
        (f"1.{kind}", 1, "b"),
    ]
    assert dict(window.published[0]["values"]) == {"clicks": 2, "total": 3}
    reasons = {(event.file, event.values["id"]): (event.why or "").split(":")[0] for event in window.excluded}
    expected = {(f"1.{kind}", "b"): "quarantined", (f"3.{kind}", "f"): "late"}
    assert {name: reasons[name] for name in expected} == expected
    assert reasons.keys() - expected.keys() <= {(f"2.{kind}", "d")}  # malformed; Spark knows its key


def test_count_windows_and_the_general_plan(spark: Any, tmp_path: Path) -> None:
    lateness = '\nallowed_lateness = "2h"'
    at_once = CLICKS.replace("max_files_per_run = 1\n", "")
    counts = at_once.replace(SESSION + lateness, 'type = "tumbling_count"\nsize = 5')
    definition = clicks(tmp_path / "counts", definition=counts)
    advance(definition, lambda: spark, clock=clock)
    found = explain_window(definition, ["u1"], START_MS + 4 * 60 * MINUTE_MS)
    [window] = found.windows
    assert window.bounds_ms == UNBOUNDED
    assert len(window.versions) == len(window.published) == 2
    assert all(row["values"]["clicks"] == 5 for row in window.published)
    assert any("the order of arrival" in note for note in window.notes)
    assert call(definition.file, "--key", "u1", "--at", "2026-03-02T04:00Z").exit_code == 0

    trigger = at_once.replace("[aggregates]", '[window.trigger]\ntype = "count"\nn = 2\n[aggregates]')
    general = clicks(tmp_path / "general", 3, trigger)
    advance(general, lambda: spark, clock=clock)
    rows = read_table(general, "results").to_pylist()
    row = max(rows, key=lambda row: row["firing"])
    window = window_of(explain_window(general, [row["user"]], bounds(row)[0]), bounds(row))
    assert row["total"] in {one["values"]["total"] for one in window.published}
    assert any("a trigger, an evictor or your own code" in note for note in window.notes)
    assert window.versions
