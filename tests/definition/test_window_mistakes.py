"""Mistakes in `[window]` and its sections: each names its key, the value, and the allowed values."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import examples
from tests.support.window_toml import AGGREGATES, CUMULATING, GLOBAL, SESSION, SOURCE, TUMBLING, mistakes
from windowlib.definition import definition
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition

COUNT_OF_3 = '{type = "count", n = 3}'

ALL_WINDOWS = '"tumbling", "sliding", "cumulating", "session", "global", "tumbling_count", "sliding_count", "custom"'
ALL_TRIGGERS = (
    '"event_time", "processing_time", "count", "continuous_event_time", "continuous_processing_time", "delta",'
    ' "purging", "processing_timeout", "never", "end_of_stream", "custom"'
)
OF_GRID = "type, size, offset, stagger, allowed_lateness, time, trigger, evictor, function, parameters, reads, output"


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ('type = "tumblin"', f'window.type: unknown type "tumblin"; did you mean tumbling?; allowed: {ALL_WINDOWS}'),
        ("type = 3", f"window.type: unknown type 3; allowed: {ALL_WINDOWS}"),
        ('size = "1h"', f"window.type: missing; allowed: {ALL_WINDOWS}"),
        (
            'type = "tumbling_count"',
            "window.size: missing; allowed: a whole number, 1 or more: number of events in a window",
        ),
        (
            'type = "tumbling_count"\nsize = 0',
            "window.size: must be at least 1, given 0; allowed: a whole number, 1 or more: number of events in a"
            " window",
        ),
        (
            'type = "sliding_count"\nsize = "1h"\nslide = 1',
            'window.size: must be a whole number, given "1h"; allowed: a whole number, 1 or more: number of'
            " events in a window",
        ),
        (
            'type = "tumbling_count"\nsize = 3\nslide = 2',
            "window.slide: unknown key, given 2; allowed: type, size, function, parameters, reads, output;"
            ' slide is a key of type "sliding", "sliding_count"',
        ),
        (
            f'type = "tumbling_count"\nsize = 3\ntrigger = {COUNT_OF_3}',
            f"window.trigger: unknown key, given {COUNT_OF_3}; allowed: type, size, function, parameters, reads,"
            " output;"
            ' trigger is a key of type "tumbling", "sliding", "cumulating", "session", "global", "custom"',
        ),
        (
            CUMULATING.replace("15m", "50m"),
            'window.step: 50m does not divide max_size (1h), given "50m"; allowed: time by which a window is longer'
            " than the one before, which divides max_size, a duration such as"
            ' "500ms", "10s", "5m", "1h 30m", "1d"',
        ),
        (
            CUMULATING + 'offset = "1h"',
            'window.offset: 1h is not inside max_size (1h), given "1h"; allowed: where windows start, between -max_size'
            ' and max_size, a duration such as "500ms", "10s", "5m", "1h 30m", "1d"',
        ),
        (
            CUMULATING.replace("15m", "1ms"),
            "window.step: an event would be in 3,600,000 windows, each of them a result of its key; use a longer step,"
            " or allow it: checks.max_windows_per_event = 3600000 (now 10,000)",
        ),
        (
            SESSION + "stagger = true",
            "window.stagger: unknown key, given true; allowed: type, gap, gap_column, allowed_lateness, time, trigger,"
            ' evictor, function, parameters, reads, output; stagger is a key of type "tumbling", "sliding"',
        ),
        (
            TUMBLING + "staggered = true",
            f"window.staggered: unknown key, given true; did you mean stagger?; allowed: {OF_GRID}",
        ),
        (
            TUMBLING + 'stagger = "yes"',
            'window.stagger: must be true or false, given "yes"; allowed: true: each key\'s windows are shifted'
            " by a share"
            " of its own",
        ),
        (
            TUMBLING + 'time = "procesing"',
            'window.time: given "procesing"; did you mean processing?; allowed: "event", "processing"',
        ),
        (
            TUMBLING + 'time = "processing"\nallowed_lateness = "1h"',
            'window.allowed_lateness: has no meaning with time = "processing", because no event is late; leave it out',
        ),
        (
            GLOBAL + 'allowed_lateness = "1h"',
            'window.allowed_lateness: has no meaning with type = "global", because no event is late; leave it out',
        ),
        (
            SESSION + 'gap_column = "gap_ms"',
            'window.gap: given both; need either gap or gap_column; allowed: gap = "30m", or gap_column = "column"',
        ),
        (
            f"{GLOBAL}end_of_stream = true\ntrigger = {COUNT_OF_3}",
            "window.end_of_stream: has no meaning with window.trigger, because the trigger alone decides; leave it out",
        ),
        ('type = "custom"', 'window.assigner: missing; allowed: "module:Class", a module next to this file'),
        (
            'type = "custom"\nassigner = "own:Weeks"\nparameters = {first = 1}',
            'window.parameters: has no meaning without function = "module:Class"; the assigner\'s are'
            " assigner_parameters",
        ),
        (
            GLOBAL + 'aggregates = {n = "count(*)"}',
            'window.aggregates: unknown key, given {n = "count(*)"}; allowed: type, end_of_stream,'
            " allowed_lateness, time,"
            " trigger, evictor, function, parameters, reads, output; aggregates is a key of the file itself, above"
            " every"
            " [section]",
        ),
    ],
)
def test_mistakes_in_the_window(tmp_path: Path, window: str, message: str) -> None:
    assert message in mistakes(tmp_path, window)


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        (
            '"count"',
            f'window.trigger: must be a table, given "count"; allowed: [window.trigger] with type, as in {COUNT_OF_3}',
        ),
        ("{n = 3}", f"window.trigger.type: missing; allowed: {ALL_TRIGGERS}"),
        (
            '{type = "cont", n = 3}',
            f'window.trigger.type: unknown type "cont"; did you mean count?; allowed: {ALL_TRIGGERS}',
        ),
        (
            '{type = "count"}',
            "window.trigger.n: missing; allowed: a whole number, 1 or more: number of elements between firings",
        ),
        (
            '{type = "count", n = 0}',
            "window.trigger.n: must be at least 1, given 0; allowed: a whole number, 1 or more: number of"
            " elements between firings",
        ),
        (
            '{type = "count", n = 3, interval = "1m"}',
            'window.trigger.interval: unknown key, given "1m"; allowed: type, n; interval is a key of type'
            ' "continuous_event_time", "continuous_processing_time"',
        ),
        (
            '{type = "count", n = 3, allowed_lateness = "1m"}',
            'window.trigger.allowed_lateness: unknown key, given "1m"; allowed: type, n; allowed_lateness is a key of'
            " [window]",
        ),
        (
            '{type = "continuous_event_time", interval = "0s"}',
            'window.trigger.interval: must be greater than 0, given "0s"; allowed: interval between firings, a'
            ' duration such as "500ms", "10s", "5m", "1h 30m", "1d"',
        ),
        ('{type = "purging"}', f"window.trigger.of: missing; allowed: a trigger, as in {COUNT_OF_3}"),
        (
            '{type = "purging", of = "count"}',
            f'window.trigger.of: must be a table, given "count"; allowed: a trigger, as in {COUNT_OF_3}',
        ),
        (
            '{type = "purging", of = {type = "count", n = 0}}',
            "window.trigger.of.n: must be at least 1, given 0; allowed: a whole number, 1 or more: number of"
            " elements between firings",
        ),
        (
            '{type = "purging", of = {type = "purge", n = 0}}',
            f'window.trigger.of.type: unknown type "purge"; did you mean purging?; allowed: {ALL_TRIGGERS}',
        ),
        (
            '{type = "processing_timeout", timeout = "1m", of = {type = "purging", of = {type = "count", n = 3, m ='
            " 3}}}",
            "window.trigger.of.of.m: unknown key, given 3; allowed: type, n",
        ),
        (
            '{type = "delta", of = "value", threshold = "3"}',
            'window.trigger.threshold: must be a number, given "3"; allowed: a number: change that must be exceeded',
        ),
        (
            '{type = "delta", of = "value", threshold = nan}',
            "window.trigger.threshold: must be a finite number, given nan; allowed: a number: change that must be"
            " exceeded",
        ),
        (
            '{type = "delta", of = "vlue", threshold = 3}',
            'window.trigger.of: column "vlue" is not in source.schema; did you mean value?; columns: user, at, page,'
            " value,"
            " price, gap_ms",
        ),
        (
            '{type = "purging", of = {type = "delta", of = "page", threshold = 3}}',
            "window.trigger.of.of: column is string; need a number, such as bigint or double",
        ),
        (
            '{type = "delta", of = "price", threshold = 3}',
            "window.trigger.of: column is decimal(10,2); need a number, such as bigint or double, as the trigger"
            " remembers"
            " it in JSON",
        ),
        ('{type = "custom"}', 'window.trigger.class: missing; allowed: "module:Class", a module next to this file'),
        (
            '{type = "custom", class = "own.Spike"}',
            'window.trigger.class: must have the form "module:Class", given "own.Spike"; allowed:'
            ' "module:Class", a module'
            " next to this file",
        ),
        (
            '{type = "custom", class = "own:Spike", params = {a = 1}}',
            "window.trigger.params: unknown key, given {a = 1}; did you mean parameters?; allowed: type, class,"
            " parameters",
        ),
    ],
)
def test_mistakes_in_a_trigger(tmp_path: Path, trigger: str, message: str) -> None:
    assert mistakes(tmp_path, f"{GLOBAL}trigger = {trigger}") == [message]


@pytest.mark.parametrize(
    ("evictor", "message"),
    [
        (
            '{type = "tme"}',
            'window.evictor.type: unknown type "tme"; did you mean time?; allowed: "count", "time", "delta", "custom"',
        ),
        (
            '{type = "count", n = -1}',
            "window.evictor.n: must be at least 0, given -1; allowed: a whole number, 0 or more: number of"
            " elements that stay",
        ),
        (
            '{type = "time", keep = 5}',
            "window.evictor.keep: not a duration, given 5; allowed: greatest age of an element, counted from the"
            ' newest, a duration such as "500ms", "10s", "5m", "1h 30m", "1d"',
        ),
        (
            '{type = "delta", of = "at", threshold = 5}',
            "window.evictor.of: column is timestamp; need a number, such as bigint or double",
        ),
        (
            '{type = "delta", of = "_windowlib_arrival", threshold = 5}',
            'window.evictor.of: "_windowlib_arrival" is a name that windowlib uses itself; rename it:'
            ' source.rename = { "_windowlib_arrival" = "another name" }',
        ),
    ],
)
def test_mistakes_in_an_evictor(tmp_path: Path, evictor: str, message: str) -> None:
    assert message in mistakes(tmp_path, f"{GLOBAL}evictor = {evictor}")


FOR_GLOBAL = (
    'allowed: "count", "continuous_event_time", "continuous_processing_time", "delta", "never", "end_of_stream",'
    ' "custom", and "purging" and "processing_timeout" of these'
)
FOR_GRID = (
    'allowed: "event_time", "processing_time", "count", "continuous_event_time", "continuous_processing_time", "delta",'
    ' "custom", and "purging" and "processing_timeout" of these'
)
FOR_SESSIONS = (
    'allowed: "event_time", "processing_time", "count", "continuous_event_time", "continuous_processing_time",'
    ' "custom", and "purging" of these'
)
UNMERGED = f'cannot follow windows that merge, and windows of type "session" do; {FOR_SESSIONS}'


@pytest.mark.parametrize(
    ("window", "trigger", "message"),
    [
        (
            GLOBAL,
            '{type = "event_time"}',
            'window.trigger: "event_time" is for windows that end, and windows of type "global" never do;'
            f" {FOR_GLOBAL}",
        ),
        (
            GLOBAL,
            '{type = "purging", of = {type = "processing_time"}}',
            'window.trigger.of: "processing_time" is for windows that end, and windows of type "global" never do;'
            f" {FOR_GLOBAL}",
        ),
        (
            TUMBLING,
            '{type = "never"}',
            f'window.trigger: "never" is for windows without end, and windows of type "tumbling" have one; {FOR_GRID}',
        ),
        (
            'type = "custom"\nassigner = "own:Weeks"\n',
            '{type = "processing_timeout", timeout = "1m", of = {type = "end_of_stream"}}',
            'window.trigger.of: "end_of_stream" is for windows without end, and windows of type "custom"'
            " (own:Weeks) have"
            f" one; {FOR_GRID}",
        ),
        (
            SESSION,
            '{type = "end_of_stream"}',
            'window.trigger: "end_of_stream" is for windows without end, and windows of type "session" have one;'
            f" {FOR_SESSIONS}",
        ),
        (SESSION, '{type = "delta", of = "value", threshold = 1}', f'window.trigger: "delta" {UNMERGED}'),
        (
            SESSION,
            '{type = "purging", of = {type = "delta", of = "value", threshold = 1}}',
            f'window.trigger.of: "delta" {UNMERGED}',
        ),
        (
            SESSION,
            '{type = "processing_timeout", timeout = "1m", of = {type = "custom", class = "own:Spike"}}',
            f'window.trigger: "processing_timeout" {UNMERGED}',
        ),
    ],
)
def test_triggers_that_cannot_watch_these_windows(tmp_path: Path, window: str, trigger: str, message: str) -> None:
    assert mistakes(tmp_path, f"{window}trigger = {trigger}") == [message]


def test_mistakes_in_all_sections_at_once(tmp_path: Path) -> None:
    window = f'{SESSION}reads = ["vlue"]\ntrigger = {{type = "delta", of = "pric", threshold = 1}}\n'
    evictor = 'evictor = {type = "count", n = 3}\n'
    aggregates = AGGREGATES + 'pages = "approx_count_distinct(page)"\nstate = "last(page)"\n'
    keys = [line.partition(": ")[0] for line in mistakes(tmp_path, window + evictor, aggregates)]
    assert keys == [
        "window.reads",
        "aggregates.state",
        "aggregates.pages",
        "window.trigger",
        "window.reads",
        "window.trigger.of",
    ]


@pytest.mark.parametrize("trigger", ['{type = "custom", class = "own:Spike"}', COUNT_OF_3])
def test_no_message_shows_a_python_type_name(tmp_path: Path, trigger: str) -> None:
    wrong = f'{{type = "purging", of = {{type = "processing_timeout", timeout = "1m", of = {trigger}}}}}'
    for line in mistakes(tmp_path, f"{SESSION}trigger = {wrong}\nunknown = {wrong}"):
        assert not re.search(r"\w\(\w+=|Trigger|object at|\{'", line)


BASES = [
    {"type": "tumbling", "size": "1h"},
    {"type": "sliding", "size": "1h", "slide": "10m"},
    {"type": "cumulating", "max_size": "1h", "step": "15m"},
    {"type": "session", "gap": "1h"},
    {"type": "session", "gap_column": "gap_ms"},
    {"type": "global"},
    {"type": "tumbling_count", "size": 3},
    {"type": "sliding_count", "size": 3, "slide": 2},
    {"type": "custom", "assigner": "own:Weeks"},
]
PARTS = [
    {"type": "event_time"},
    {"type": "count", "n": 3},
    {"type": "delta", "of": "value", "threshold": 1},
    {"type": "never"},
    {"type": "custom", "class": "own:Spike"},
]
FUNCTIONS: list[dict[str, Any]] = [{}, {"function": "own:Top", "output": {"n": "bigint"}}]
KEYS = ["size", "slide", "gap", "gap_column", "time", "reads", "output", "parameters", "stagger", "assigner"]
VALUES = st.one_of(
    st.sampled_from(["1h", "own:Top", "value", "page", "processing", "", "count"]),
    st.integers(-1, 3),
    st.booleans(),
    st.lists(st.sampled_from(["page", "value"])),
    st.dictionaries(st.sampled_from(["n", "page", "type"]), st.sampled_from(["bigint", "count", 3])),
)
SECTIONS = st.recursive(
    st.sampled_from(PARTS),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("purging"), "of": inner}),
        st.fixed_dictionaries({"type": st.just("processing_timeout"), "of": inner, "timeout": st.just("1m")}),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["count", "time", "delta"])}, optional={"n": VALUES, "of": inner}
        ),
        VALUES,
    ),
    max_leaves=3,
)


@examples(100, 300)
@given(
    window=st.builds(
        lambda *tables: dict(chain.from_iterable(table.items() for table in tables)),
        st.sampled_from(BASES),
        st.sampled_from(FUNCTIONS),
        st.fixed_dictionaries({}, optional={"trigger": SECTIONS, "evictor": SECTIONS}),
        st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=1),
    ),
    aggregates=st.dictionaries(
        st.sampled_from(["events", "state"]), st.sampled_from(["count(*)", "sum(value) + 1", "max("])
    ),
)
def test_no_window_makes_it_crash(window: dict[str, Any], aggregates: dict[str, str]) -> None:
    """Any [window] gives a definition or a list of mistakes."""
    raw = tomllib.loads(SOURCE) | {"window": window, "aggregates": aggregates}
    with patch.object(definition, "_read", lambda file: raw):
        found: Definition | InvalidDefinition
        try:
            found = load_definition("clicks.toml")
        except InvalidDefinition as refused:
            found = refused
    if isinstance(found, InvalidDefinition):
        assert "clicks.toml: " in str(found)
    else:
        assert len(found.fingerprint) == 16
