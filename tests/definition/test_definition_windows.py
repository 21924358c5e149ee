"""`[window]` and its sections: their meaning in the window model, and for state."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.window_toml import CUMULATING, FUNCTION, GLOBAL, SESSION, SLIDING, TUMBLING, definition
from windowlib import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    DeltaTrigger,
    DynamicSession,
    EndOfStreamTrigger,
    EventTimeTrigger,
    Global,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Session,
    Sliding,
    TimeEvictor,
    Tumbling,
    WindowSpec,
    sliding_count,
    tumbling_count,
)
from windowlib.definition.registry import TRIGGERS
from windowlib.model.assigners import Cumulating, Staggered
from windowlib.model.timed_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    ProcessingTimeoutTrigger,
)
from windowlib.plans.general.folds import Folds

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
COUNT_OF_3 = '{type = "count", n = 3}'


# -- what each section stands for -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "assigner"),
    [
        (TUMBLING, Tumbling(HOUR_MS)),
        (TUMBLING + 'offset = "-15m"', Tumbling(HOUR_MS, -15 * MINUTE_MS)),
        (TUMBLING + "stagger = true", Staggered(Tumbling(HOUR_MS))),
        (SLIDING, Sliding(HOUR_MS, 10 * MINUTE_MS)),
        (SLIDING + 'offset = "5m"', Sliding(HOUR_MS, 10 * MINUTE_MS, 5 * MINUTE_MS)),
        (SLIDING + 'stagger = true\noffset = "5m"', Staggered(Sliding(HOUR_MS, 10 * MINUTE_MS, 5 * MINUTE_MS))),
        (CUMULATING, Cumulating(HOUR_MS, 15 * MINUTE_MS)),
        (CUMULATING + 'offset = "-5m"', Cumulating(HOUR_MS, 15 * MINUTE_MS, -5 * MINUTE_MS)),
        (SESSION, Session(30 * MINUTE_MS)),
        ('type = "session"\ngap_column = "gap_ms"', DynamicSession("gap_ms")),
        (GLOBAL, Global()),
        (GLOBAL + "end_of_stream = true", Global(end_of_stream=True)),
    ],
)
def test_an_assigner_alone(tmp_path: Path, window: str, assigner: Any) -> None:
    assert definition(tmp_path, window).spec == WindowSpec(assigner, Folds())


@pytest.mark.parametrize(
    ("window", "spec"),
    [
        (TUMBLING + 'allowed_lateness = "2m"', WindowSpec(Tumbling(HOUR_MS), Folds(), allowed_lateness_ms=120_000)),
        (TUMBLING + 'time = "processing"', WindowSpec(Tumbling(HOUR_MS), Folds(), time="processing")),
        (TUMBLING + 'time = "event"', WindowSpec(Tumbling(HOUR_MS), Folds())),
        ('type = "tumbling_count"\nsize = 3', tumbling_count(3, Folds())),
        ('type = "sliding_count"\nsize = 3\nslide = 2', sliding_count(3, 2, Folds())),
        (
            f'{SESSION}allowed_lateness = "1h"\ntrigger = {COUNT_OF_3}\nevictor = {{type = "count", n = 2}}',
            WindowSpec(Session(30 * MINUTE_MS), Folds(), CountTrigger(3), CountEvictor(2), HOUR_MS),
        ),
        (
            f'{GLOBAL}[window.trigger]\ntype = "count"\nn = 3\n[window.evictor]\ntype = "count"\nn = 2',
            WindowSpec(Global(), Folds(), CountTrigger(3), CountEvictor(2)),
        ),
    ],
)
def test_a_whole_window(tmp_path: Path, window: str, spec: WindowSpec) -> None:
    assert definition(tmp_path, window).spec == spec


OF_ENDING = {
    '{type = "event_time"}': EventTimeTrigger(),
    '{type = "processing_time"}': ProcessingTimeTrigger(),
}
OF_ANY = {
    COUNT_OF_3: CountTrigger(3),
    '{type = "continuous_event_time", interval = "5m"}': ContinuousEventTimeTrigger(5 * MINUTE_MS),
    '{type = "continuous_processing_time", interval = "90s"}': ContinuousProcessingTimeTrigger(90_000),
    f'{{type = "purging", of = {COUNT_OF_3}}}': PurgingTrigger(CountTrigger(3)),
}
NOT_MERGING = {
    '{type = "delta", of = "value", threshold = 2}': DeltaTrigger(2.0, "value"),
    '{type = "delta", of = "value", threshold = -0.5, absolute = true}': DeltaTrigger(-0.5, "value", absolute=True),
    f'{{type = "processing_timeout", of = {COUNT_OF_3}, timeout = "1m"}}': ProcessingTimeoutTrigger(
        CountTrigger(3), MINUTE_MS
    ),
    f'{{type = "processing_timeout", of = {COUNT_OF_3}, timeout = "1m", reset_on_element = true,'
    " clear_on_timeout = false}": ProcessingTimeoutTrigger(
        CountTrigger(3), MINUTE_MS, reset_on_element=True, clear_on_timeout=False
    ),
    f'{{type = "purging", of = {{type = "processing_timeout", timeout = "1m", of = {COUNT_OF_3}}}}}': PurgingTrigger(
        ProcessingTimeoutTrigger(CountTrigger(3), MINUTE_MS)
    ),
}
WITHOUT_END = {'{type = "never"}': NeverTrigger(), '{type = "end_of_stream"}': EndOfStreamTrigger()}


@pytest.mark.parametrize(
    ("window", "trigger", "made"),
    [
        *((TUMBLING, *pair) for pair in {**OF_ENDING, **OF_ANY, **NOT_MERGING}.items()),
        *((SESSION, *pair) for pair in {**OF_ENDING, **OF_ANY}.items()),
        *((GLOBAL, *pair) for pair in {**OF_ANY, **NOT_MERGING, **WITHOUT_END}.items()),
    ],
)
def test_a_trigger(tmp_path: Path, window: str, trigger: str, made: Any) -> None:
    spec = definition(tmp_path, f"{window}trigger = {trigger}").spec
    assert (spec.trigger, spec.evictor) == (made, None)


def test_every_trigger_is_among_them() -> None:
    tried = {**OF_ENDING, **OF_ANY, **NOT_MERGING, **WITHOUT_END}
    kinds = {re.findall(r'type = "(\w+)"', text)[0]: type(made) for text, made in tried.items()}
    assert kinds == {name: kind.model for name, kind in TRIGGERS.items() if name != "custom"}


@pytest.mark.parametrize(
    ("evictor", "made"),
    [
        ('{type = "count", n = 0}', CountEvictor(0)),
        ('{type = "count", n = 2, after = true}', CountEvictor(2, after=True)),
        ('{type = "time", keep = "3m"}', TimeEvictor(180_000)),
        ('{type = "time", keep = "3m", after = true}', TimeEvictor(180_000, after=True)),
        ('{type = "delta", of = "price", threshold = 3}', DeltaEvictor(3.0, "price")),
        (
            '{type = "delta", of = "value", threshold = 3, absolute = true, after = true}',
            DeltaEvictor(3.0, "value", absolute=True, after=True),
        ),
    ],
)
def test_an_evictor(tmp_path: Path, evictor: str, made: Any) -> None:
    spec = definition(tmp_path, f"{GLOBAL}evictor = {evictor}").spec
    assert (spec.trigger, spec.evictor) == (None, made)


@pytest.mark.parametrize(
    ("window", "reads", "classes"),
    [
        (TUMBLING, (), ()),
        ('type = "session"\ngap_column = "gap_ms"', ("gap_ms",), ()),
        (GLOBAL + 'trigger = {type = "delta", of = "value", threshold = 1}', ("value",), ()),
        (GLOBAL + 'trigger = {type = "purging", of = {type = "delta", of = "value", threshold = 1}}', ("value",), ()),
        (GLOBAL + 'evictor = {type = "delta", of = "price", threshold = 1}', ("price",), ()),
        (
            'type = "session"\ngap_column = "gap_ms"\nreads = ["page", "gap_ms"]\n'
            'evictor = {type = "delta", of = "value", threshold = 1}\n' + FUNCTION,
            ("page", "gap_ms", "value"),
            ("own:Top",),
        ),
        (
            'type = "custom"\nassigner = "weeks.of:Weeks"\nevictor = {type = "custom", class = "own:Odd"}\n'
            'trigger = {type = "purging", of = {type = "custom", class = "own:Spike"}}\n' + FUNCTION,
            (),
            ("own:Top", "own:Spike", "own:Odd", "weeks.of:Weeks"),
        ),
        (
            SESSION + 'trigger = {type = "custom", class = "own:A"}\nevictor = {type = "custom", class = "own:A"}',
            (),
            ("own:A",),
        ),
    ],
)
def test_columns_in_use_and_user_classes(
    tmp_path: Path, window: str, reads: tuple[str, ...], classes: tuple[str, ...]
) -> None:
    found = definition(tmp_path, window)
    assert (found.reads, found.own_classes) == (reads, classes)


@pytest.mark.parametrize(
    ("window", "plan", "fires_often"),
    [
        (TUMBLING, "aligned", False),
        (SLIDING + 'allowed_lateness = "1h"', "aligned", False),
        (SLIDING + 'trigger = {type = "event_time"}', "aligned", False),
        (CUMULATING, "aligned", False),
        (SESSION, "sessions", False),
        (SESSION + 'trigger = {type = "event_time"}', "sessions", False),
        ('type = "session"\ngap_column = "gap_ms"', "sessions", False),
        ('type = "tumbling_count"\nsize = 3', "counts", True),
        ('type = "sliding_count"\nsize = 3\nslide = 2', "counts", True),
        (TUMBLING + "stagger = true", "general", False),
        (SLIDING + "stagger = true", "general", False),
        (TUMBLING + 'time = "processing"', "general", False),
        (SESSION + 'time = "processing"', "general", False),
        (TUMBLING + f"trigger = {COUNT_OF_3}", "general", True),
        (TUMBLING + 'trigger = {type = "processing_time"}', "general", False),
        (TUMBLING + 'trigger = {type = "continuous_event_time", interval = "1m"}', "general", True),
        (TUMBLING + 'trigger = {type = "purging", of = {type = "event_time"}}', "general", True),
        (SESSION + 'evictor = {type = "count", n = 3}', "general", False),
        (GLOBAL, "general", True),
        (GLOBAL + "end_of_stream = true", "general", True),
    ],
)
def test_the_plan_and_the_results_per_firing(tmp_path: Path, window: str, plan: str, fires_often: bool) -> None:
    found = definition(tmp_path, window)
    assert (found.plan.name, not found.spec.updates_results) == (plan, fires_often)


@pytest.mark.parametrize("window", [TUMBLING, SESSION, 'type = "tumbling_count"\nsize = 3\n'])
def test_a_function_is_run_by_the_operator(tmp_path: Path, window: str) -> None:
    assert definition(tmp_path, window + FUNCTION).plan.name == "general"
    assert definition(tmp_path, window + FUNCTION, "").plan.name == "general"


def test_the_users_code_is_not_needed_to_read_a_definition(tmp_path: Path) -> None:
    found = definition(tmp_path, 'type = "custom"\nassigner = "weeks:Weeks"\n' + FUNCTION)
    assert (found.plan.name, found.reads, len(found.fingerprint)) == ("general", (), 16)


# -- what the state depends on --------------------------------------------------------------------------------------

BEFORE = [
    (SESSION, {"type": "session", "gap_ms": 1_800_000, "allowed_lateness_ms": 0}, "6055dea90c01f5f9"),
    (
        'type = "session"\ngap_column = "gap_ms"\nallowed_lateness = "1h"',
        {"type": "session", "gap_column": "gap_ms", "allowed_lateness_ms": 3_600_000},
        "373613a08d06f0a8",
    ),
    (
        TUMBLING,
        {"type": "tumbling", "size_ms": 3_600_000, "offset_ms": 0, "allowed_lateness_ms": 0},
        "f2e281ffc5eb91e0",
    ),
    (
        TUMBLING + 'offset = "-15m"',
        {"type": "tumbling", "size_ms": 3_600_000, "offset_ms": -900_000, "allowed_lateness_ms": 0},
        "aff6e8e4e12bc216",
    ),
    (
        SLIDING + 'allowed_lateness = "2h"',
        {
            "type": "sliding",
            "size_ms": 3_600_000,
            "slide_ms": 600_000,
            "offset_ms": 0,
            "allowed_lateness_ms": 7_200_000,
        },
        "08a6bb6fdbf46219",
    ),
]


@pytest.mark.parametrize(("window", "semantics", "fingerprint"), BEFORE)
def test_warehouses_older_than_other_triggers_continue(
    tmp_path: Path, window: str, semantics: dict[str, Any], fingerprint: str
) -> None:
    found = definition(tmp_path, window)
    assert found.semantics()["window"] == semantics
    assert found.fingerprint == fingerprint


@pytest.mark.parametrize(("window", "semantics", "fingerprint"), BEFORE)
def test_an_explicit_default_changes_nothing(
    tmp_path: Path, window: str, semantics: dict[str, Any], fingerprint: str
) -> None:
    of_grid = "" if "session" in window else "stagger = false\n"
    assert definition(tmp_path, f'{window}\n{of_grid}time = "event"\nreads = []').fingerprint == fingerprint


def test_the_stored_form_of_a_window_with_every_key(tmp_path: Path) -> None:
    window = f'{GLOBAL}time = "processing"\nreads = ["page"]\ntrigger = {{type = "purging", of = {COUNT_OF_3}}}\n'
    evictor = 'evictor = {type = "delta", of = "value", threshold = 2}\n'
    assert definition(tmp_path, window + evictor + FUNCTION).semantics()["window"] == {
        "type": "global",
        "allowed_lateness_ms": 0,
        "time": "processing",
        "own_trigger": {"type": "purging", "of": {"type": "count", "n": 3}},
        "own_evictor": {"type": "delta", "of": "value", "threshold": 2.0, "absolute": False, "after": False},
        "function": "own:Top",
        "reads": ["page"],
        "output": {"page": "string", "seen": "bigint"},
    }


def test_every_change_to_the_windows_changes_the_fingerprint(tmp_path: Path) -> None:
    trigger = 'trigger = {type = "custom", class = "own:Spike"'
    windows = [
        GLOBAL,
        GLOBAL + "end_of_stream = true",
        GLOBAL + f"trigger = {COUNT_OF_3}",
        GLOBAL + 'trigger = {type = "count", n = 4}',
        GLOBAL + f'trigger = {{type = "purging", of = {COUNT_OF_3}}}',
        GLOBAL + 'evictor = {type = "count", n = 3}',
        GLOBAL + 'evictor = {type = "count", n = 3, after = true}',
        GLOBAL + 'time = "processing"',
        GLOBAL + trigger + "}",
        GLOBAL + trigger + ", parameters = {limit = 3}}",
        GLOBAL + FUNCTION,
        GLOBAL + FUNCTION + "parameters = {n = 3}",
        GLOBAL + FUNCTION + 'reads = ["page"]',
        'type = "tumbling_count"\nsize = 3',
        'type = "sliding_count"\nsize = 3\nslide = 3',
        'type = "custom"\nassigner = "own:Weeks"',
        'type = "custom"\nassigner = "own:Weeks"\nassigner_parameters = {first = "monday"}',
        TUMBLING,
        TUMBLING + "stagger = true",
    ]
    assert len({definition(tmp_path, window).fingerprint for window in windows}) == len(windows)


def test_parameters_may_have_every_toml_type(tmp_path: Path) -> None:
    parameters = "parameters = {since = 2026-01-01, at = 09:30:00, of = [1.5, {a = true}]}"
    found = definition(tmp_path, GLOBAL + FUNCTION + parameters)
    assert json.loads(json.dumps(found.semantics()["window"]["parameters"])) == {
        "since": "2026-01-01",
        "at": "09:30:00",
        "of": [1.5, {"a": True}],
    }
