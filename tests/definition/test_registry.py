"""Every class of the model has an entry in the registry, and every place reads the registry."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import windowlib
from docs.gallery.entries import PLATES, Row
from windowlib.definition.define import define
from windowlib.definition.definition import definition_of
from windowlib.definition.registry import EVICTORS, TRIGGERS, WINDOWS
from windowlib.model import assigners, evictors, timed_triggers, triggers
from windowlib.model.assigners import CalendarCumulating, CalendarWindows, DynamicSession, Staggered
from windowlib.model.errors import InvalidSpec
from windowlib.model.spec import WindowSpec
from windowlib.model.triggers import TriggerContext

ROOT = Path(__file__).parents[2]
SOURCE = {"format": "parquet", "path": "in", "key": ["user"], "timestamp": "at"}
WATERMARK = {"out_of_orderness": "1m"}
AGGREGATES = {"events": "count(*)"}


def classes(*modules: ModuleType) -> set[type]:
    """The dataclasses that modules define, and not the names that they import."""
    return {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__
    }


def test_every_class_of_the_model_has_its_entry() -> None:
    assert {kind.model for kind in TRIGGERS.values()} == classes(triggers, timed_triggers) - {TriggerContext} | {None}
    assert {kind.model for kind in EVICTORS.values()} == classes(evictors) | {None}
    # Sessions with a gap for each event, staggered windows and those of a calendar are forms of other entries; count
    # windows are specs.
    forms = {DynamicSession, Staggered, CalendarWindows, CalendarCumulating}
    assert {kind.model for kind in WINDOWS.values()} == classes(assigners) - forms | {None, WindowSpec}


def test_every_class_is_in_the_public_names() -> None:
    models = {kind.model for known in (TRIGGERS, EVICTORS, WINDOWS) for kind in known.values()} - {None}
    assert {model.__name__ for model in models if model} <= set(windowlib.__all__)


def does_not_fit(row: Row) -> bool:
    """Tests if a trigger is unsuitable for these windows."""
    merge, endless = row.window["type"] == "session", row.window["type"] == "global"
    return (
        (row.name in ("never", "end_of_stream") and not endless)
        or (row.name in ("event_time", "processing_time") and endless)
        or (row.name in ("delta", "processing_timeout") and merge)
    )


@pytest.mark.parametrize(
    "row",
    # In Python, count windows are written as what they are made of: a trigger and an evictor.
    [row for plate in PLATES for row in plate.rows if row.window["type"] not in ("tumbling_count", "sliding_count")],
    ids=lambda row: f"{row.window['type']}-{row.name}",
)
def test_define_writes_the_same_toml(row: Row, tmp_path: Path) -> None:
    given = {"name": "gallery", "source": SOURCE, "watermark": WATERMARK, "aggregates": AGGREGATES}
    given["window"] = dict(row.window)
    if does_not_fit(row):
        with pytest.raises(InvalidSpec, match=f'window.trigger: "{row.name}" (is for|cannot follow) windows'):
            definition_of(given, tmp_path / "gallery.toml")
        return
    written = definition_of(given, tmp_path / "gallery.toml")
    spec = written.spec
    made = define(
        "gallery",
        source=SOURCE,
        watermark=WATERMARK,
        aggregates=AGGREGATES,
        assigner=spec.assigner,
        trigger=spec.trigger,
        evictor=spec.evictor,
        allowed_lateness_ms=spec.allowed_lateness_ms,
        time=spec.time,
        folder=tmp_path,
    )
    assert made.semantics() == written.semantics()
    assert made.spec == spec


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Output of a process that registers a trigger by a class and an entry only."""
    command = [sys.executable, "-m", "tests.definition.toy_trigger", str(tmp_path_factory.mktemp("toy"))]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    places: dict[str, Any] = json.loads(answer.stdout)
    return places


def test_a_trigger_needs_only_a_class_and_an_entry(toy: dict[str, Any]) -> None:
    assert toy["toml"] == "ApartTrigger(apart_ms=300000, times=9)"
    assert toy["python"]
    assert toy["replay"] == [1, 0, 1]
    words = "tumbling, 1h long; over all events (no key); fires 5m apart, 9 times; not kept for late events"
    assert toy["explain-plan"] == words
    assert "| windows | tumbling, 1h long, fired 5m apart, 9 times, of all events together |" in toy["airflow"]
    row = '| `apart` | `type = "apart"`<br>`apart`: how far apart firings are, a duration<br>`times`: a whole number'
    meaning = "Fires at an element that comes `apart` or more after the last firing, at most `times` times. |"
    [line] = [line for line in toy["gallery"].splitlines() if line.startswith("| `apart` | `type")]
    assert line.startswith(row)
    assert line.endswith(meaning)


def test_mistakes_of_a_registered_trigger_are_named(toy: dict[str, Any]) -> None:
    merging, missing, least, other = toy["mistakes"]
    assert merging.startswith('window.trigger: "apart" cannot follow windows that merge, and windows of type "session"')
    assert missing.startswith("window.trigger.apart: missing; allowed: how far apart firings are, a duration such as")
    assert least.startswith(
        "window.trigger.times: must be at least 1, given 0; allowed: a whole number, 1 or more: how"
    )
    assert other == 'window.trigger.apart: unknown key, given "5m"; allowed: type; apart is a key of type "apart"'
