"""`windowlib explain-plan`: the plan of the windows, with its reasons, state, jobs and limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.window_toml import (
    AGGREGATES,
    FUNCTION,
    GLOBAL,
    SESSION,
    SLIDING,
    SOURCE,
    TUMBLING,
    definition,
    written,
)
from windowlib.cli.main import app
from windowlib.inspection.plan import BY_NUMBER, ORDER_FREE, Explanation, explain

OWN = """
class Weeks:
    merges = False

    def assign(self, timestamp_ms, value=None, key=None):
        return []


class Top:
    def process(self, contents, context):
        return []

    def clear(self, context):
        pass
"""
PARQUET = f"{SOURCE.partition('[source.schema]')[0]}{SOURCE[SOURCE.index('[watermark]') :]}".replace("csv", "parquet")
COUNT = 'trigger = {type = "count", n = 1000}\n'
KEPT_FIRST = "first and last go by event time, then arrival: they need a sort, which is slower"
EACH_FIRING = "each firing is a result of its own, numbered by firing"
BY_CLOCK = "processing time is the plan time of a run: it does not advance between runs"
PASSED = "a window is dropped without that result if the watermark passes it before the clock has fired it"
HELD = "a task holds the elements of one key's windows in flight in memory, one key at a time"
FOR_EVER = "the window never ends: every key keeps a row in the state forever"


def explained(folder: Path, window: str, aggregates: str = AGGREGATES, source: str = SOURCE) -> Explanation:
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    return explain(definition(folder, window, aggregates, source))


@pytest.mark.parametrize(
    ("window", "plan", "why"),
    [
        (SESSION, "sessions", ORDER_FREE),
        ('type = "session"\ngap_column = "gap_ms"', "sessions", ORDER_FREE),
        (TUMBLING, "aligned", ORDER_FREE),
        (SLIDING, "aligned", ORDER_FREE),
        (SLIDING + 'trigger = {type = "event_time"}', "aligned", ORDER_FREE),
        ('type = "tumbling_count"\nsize = 3', "counts", BY_NUMBER),
        ('type = "sliding_count"\nsize = 3\nslide = 2', "counts", BY_NUMBER),
    ],
)
def test_native_plans(tmp_path: Path, window: str, plan: str, why: str) -> None:
    found = explained(tmp_path, window)
    assert (found.pipeline, found.plan, found.why) == ("clicks", plan, why)


@pytest.mark.parametrize(
    ("window", "reasons"),
    [
        (TUMBLING + FUNCTION, ["own:Top is Python code"]),
        ('type = "tumbling_count"\nsize = 3\n' + FUNCTION, ["own:Top is Python code"]),
        (TUMBLING + COUNT, ["the trigger count is asked at every element or timer"]),
        (
            SESSION + 'trigger = {type = "purging", of = {type = "event_time"}}',
            ["the trigger purging is asked at every element or timer"],
        ),
        (
            SESSION + 'evictor = {type = "time", keep = "1m"}',
            ["the evictor time chooses among the elements of a window"],
        ),
        (TUMBLING + 'time = "processing"', ["windows of processing time depend on when a run reads an event"]),
        (SLIDING + "stagger = true", ["each key's windows are shifted by a share of its own"]),
        (GLOBAL, ["no slices can be made for one window without end"]),
        ('type = "custom"\nassigner = "own:Weeks"', ["no slices can be made for windows of own:Weeks"]),
        (
            f'{TUMBLING}{COUNT}stagger = true\ntime = "processing"\nevictor = {{type = "count", n = 1}}\n{FUNCTION}',
            [
                "own:Top is Python code",
                "the trigger count is asked at every element or timer",
                "the evictor count chooses among the elements of a window",
                "windows of processing time depend on when a run reads an event",
                "each key's windows are shifted by a share of its own",
            ],
        ),
    ],
)
def test_reasons_for_the_general_plan(tmp_path: Path, window: str, reasons: list[str]) -> None:
    found = explained(tmp_path, window)
    so = "so the operator runs for each key, element by element in order of arrival"
    assert (found.plan, found.why) == ("general", f"{'; '.join(reasons)}: {so}")
    assert found.slices == "nothing: every event goes to the task of its key, in order of arrival"


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (SESSION, "sessions, ended by 30m of silence; by user; fires at its end; not kept for late events"),
        (
            'type = "session"\ngap_column = "gap_ms"\nallowed_lateness = "1h"',
            "sessions, ended by a silence of `gap_ms` milliseconds; by user; fires at its end; kept 1h for late events",
        ),
        (
            SLIDING + 'stagger = true\ntime = "processing"',
            "sliding, 1h long, every 10m, shifted for each key, in processing time; by user; fires when a run finds its"
            " end passed",
        ),
        ('type = "tumbling_count"\nsize = 3000', "every 3,000 events; by user"),
        ('type = "sliding_count"\nsize = 30\nslide = 9', "the last 30 events, at every 9 of them; by user"),
        (GLOBAL, "one window without end; by user; fires never"),
        (GLOBAL + "end_of_stream = true", "one window without end; by user; fires when the input is complete"),
        (GLOBAL + COUNT, "one window without end; by user; fires at every 1,000 events"),
        (
            GLOBAL + 'trigger = {type = "delta", of = "value", threshold = 2.5}',
            "one window without end; by user; fires when value has risen by more than 2.5 since it last fired",
        ),
        (
            GLOBAL
            + 'trigger = {type = "purging", of = {type = "delta", of = "value", threshold = 2, absolute = true}}',
            "one window without end; by user; fires when value has moved by more than 2 since it last fired, and then"
            " forgets its contents",
        ),
        (
            GLOBAL + 'trigger = {type = "processing_timeout", of = {type = "never"}, timeout = "1m"}',
            "one window without end; by user; fires never, or 1m after its first event",
        ),
        (
            GLOBAL + 'trigger = {type = "processing_timeout", of = {type = "end_of_stream"}, timeout = "1m",'
            " reset_on_element = true}",
            "one window without end; by user; fires when the input is complete, or 1m after its newest event",
        ),
        (
            TUMBLING + 'trigger = {type = "continuous_processing_time", interval = "5m"}',
            "tumbling, 1h long; by user; fires every 5m of processing time, and at its end; not kept for late events",
        ),
        (
            TUMBLING + 'trigger = {type = "processing_time"}\nevictor = {type = "count", n = 1000}',
            "tumbling, 1h long; by user; fires when the plan time of a run passes its end; not kept for late events; of"
            " its events the last 1,000 stay before each evaluation",
        ),
        (
            GLOBAL + 'evictor = {type = "time", keep = "90m", after = true}',
            "one window without end; by user; fires never; of its events those of the last 1h 30m stay after each"
            " evaluation",
        ),
        (
            GLOBAL + 'evictor = {type = "delta", of = "value", threshold = 2, absolute = true}',
            "one window without end; by user; fires never; of its events those stay that differ from the last one in"
            " value by less than 2 before each evaluation",
        ),
        (
            GLOBAL + 'evictor = {type = "delta", of = "value", threshold = 2, after = true}',
            "one window without end; by user; fires never; of its events those stay that the last one exceeds in value"
            " by less than 2 after each evaluation",
        ),
        (
            'type = "custom"\nassigner = "own:Weeks"\n' + FUNCTION,
            "windows of own:Weeks; by user; fires at its end; not kept for late events; results by own:Top",
        ),
    ],
)
def test_windows_in_words(tmp_path: Path, window: str, words: str) -> None:
    assert explained(tmp_path, window).windows == words


@pytest.mark.parametrize(
    ("window", "slices", "state"),
    [
        (
            SESSION,
            "the events of a key in one bucket of 30m, which belong to one session in any case",
            "one row for each key and session in flight, in partitions of 1h of their end",
        ),
        (
            TUMBLING,
            "the events of a key in one window of 1h",
            "one row for each key and slice that a window in flight covers, in partitions of 1h of their end",
        ),
        (
            'type = "sliding"\nsize = "1h"\nslide = "25m"',
            "the events of a key in 5m, shared by up to 3 windows",
            "one row for each key and slice that a window in flight covers, in partitions of 1h of their end",
        ),
        (
            'type = "sliding"\nsize = "10m"\nslide = "1h"',
            "the events of a key in 10m",
            "one row for each key and slice that a window in flight covers, in partitions of 1h of their end",
        ),
        (
            'type = "sliding_count"\nsize = 3000\nslide = 2000',
            "1,000 events of a key that follow one another",
            "one row for each key and slice in flight, in one partition, as they have no end",
        ),
        (
            TUMBLING + COUNT,
            "nothing: every event goes to the task of its key, in order of arrival",
            "one row for each key and window, with what its trigger remembers, in partitions of 1h of their end",
        ),
        (
            GLOBAL + 'evictor = {type = "count", n = 3}',
            "nothing: every event goes to the task of its key, in order of arrival",
            "one row for each key and window, with what its trigger remembers; the elements themselves are"
            " in state_windows, which is append-only, in one partition, as they have no end",
        ),
    ],
)
def test_slices_and_state(tmp_path: Path, window: str, slices: str, state: str) -> None:
    found = explained(tmp_path, window)
    assert (found.slices, found.state) == (slices, state)


@pytest.mark.parametrize(
    ("window", "steps"),
    [
        (SESSION, "slices"),
        (TUMBLING, "slices"),
        ('type = "tumbling_count"\nsize = 3', "numbers, slices"),
        (TUMBLING + COUNT, "elements in order of arrival"),
    ],
)
def test_jobs(tmp_path: Path, window: str, steps: str) -> None:
    source = PARQUET.replace('timestamp = "at"', 'timestamp = "at"\nevent_id = "id"')
    windows = [
        f"windows: {steps}, windows, what fires, what stays in flight",
        "quarantine, late events, replaced results: one or two jobs each, only if there are such rows",
    ]
    figures = "figures: the new watermark"
    assert explained(tmp_path, window).jobs == ["parsing: the text is read once", figures, *windows]
    horizon = "all earlier events" if "_count" in window else "1d"
    assert explained(tmp_path, window, source=source).jobs == [
        f"duplicates: two jobs, by id, over {horizon}",
        figures,
        *windows,
    ]


@pytest.mark.parametrize(
    ("window", "by_footers"),
    [
        (SESSION, True),
        (SLIDING, True),
        (TUMBLING + COUNT, True),
        ('type = "session"\ngap_column = "gap_ms"', False),
        ('type = "sliding"\nsize = "10m"\nslide = "1h"', False),
        ('type = "tumbling_count"\nsize = 3', True),
        (TUMBLING + "stagger = true", False),
        (TUMBLING + 'time = "processing"', False),
        (GLOBAL, True),
        ('type = "custom"\nassigner = "own:Weeks"', False),
    ],
)
def test_where_footers_spare_a_job(tmp_path: Path, window: str, by_footers: bool) -> None:
    footers = ", only if the footers of the files cannot rule out refused rows"
    assert (
        f"figures: the new watermark{footers if by_footers else ''}" in explained(tmp_path, window, source=PARQUET).jobs
    )


@pytest.mark.parametrize(
    ("window", "notes"),
    [
        (SESSION, [KEPT_FIRST]),
        (
            'type = "session"\ngap_column = "gap_ms"',
            [KEPT_FIRST, "each event has its own gap: events share a slice only if their times are equal"],
        ),
        ('type = "tumbling_count"\nsize = 3', [KEPT_FIRST, EACH_FIRING]),
        (TUMBLING + 'time = "processing"', [BY_CLOCK]),
        (
            TUMBLING + 'trigger = {type = "purging", of = {type = "continuous_processing_time", interval = "1m"}}',
            [EACH_FIRING, BY_CLOCK, PASSED],
        ),
        (SESSION + 'evictor = {type = "count", n = 3}', [HELD]),
        (GLOBAL + COUNT, [EACH_FIRING, FOR_EVER]),
        (GLOBAL + COUNT + 'evictor = {type = "count", n = 3}', [EACH_FIRING, HELD, FOR_EVER]),
    ],
)
def test_notes(tmp_path: Path, window: str, notes: list[str]) -> None:
    aggregates = '[aggregates]\nnewest = "last(value)"\n'
    keyless = SOURCE.replace('key = ["user"]', "key = []")
    assert explained(tmp_path, window, aggregates).notes == notes
    one_task = "without a key, one task gets all events or slices of a batch"
    assert sorted(explained(tmp_path, window, aggregates, keyless).notes) == sorted([*notes, one_task])


def test_text_output(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    file = written(tmp_path, GLOBAL + COUNT + FUNCTION, "")
    shown = CliRunner().invoke(app, ["explain-plan", str(file)])
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert lines[:2] == ["clicks", "  plan     general"]
    assert lines[3].startswith(
        "  why      own:Top is Python code; the trigger count is asked at every element or timer; no"
    )
    found = json.loads(CliRunner().invoke(app, ["explain-plan", str(file), "--json"]).output)
    assert (found["plan"], found["notes"]) == ("general", [EACH_FIRING, HELD, FOR_EVER])


def test_missing_code_is_a_mistake_in_the_definition(tmp_path: Path) -> None:
    file = written(tmp_path, GLOBAL + FUNCTION.replace("own", "not_here"))
    shown = CliRunner().invoke(app, ["explain-plan", str(file)])
    assert shown.exit_code == 2
    assert shown.stderr == f"error: {file}: window.function: no module not_here in {tmp_path}; modules there: none\n"
