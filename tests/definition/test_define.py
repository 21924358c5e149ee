"""A pipeline defined in Python equals the definition of the same TOML."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.disks import folder_of
from windowlib import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    DynamicSession,
    Global,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
    Session,
    Sliding,
    Staggered,
    TimeEvictor,
    Tumbling,
)
from windowlib.definition.define import define
from windowlib.definition.definition import InvalidDefinition, load_definition
from windowlib.model.errors import InvalidSpec

SOURCE = {"format": "parquet", "path": "incoming", "key": ["user"], "timestamp": "at"}
HEAD = """
name = "visits"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at"
[watermark]
out_of_orderness = "5m"
[aggregates]
events = "count(*)"
"""
SAME: list[tuple[dict[str, Any], str]] = [
    ({"assigner": Session(gap_ms=1_800_000)}, 'type = "session"\ngap = "30m"'),
    (
        {"assigner": Tumbling(3_600_000, offset_ms=-60_000), "allowed_lateness_ms": 5_000},
        'type = "tumbling"\nsize = "1h"\noffset = "-1m"\nallowed_lateness = "5s"',
    ),
    (
        {"assigner": Staggered(Sliding(3_600_000, 60_000)), "evictor": CountEvictor(3, after=True)},
        'type = "sliding"\nsize = "1h"\nslide = "1m"\nstagger = true\nevictor = {type = "count", n = 3, after = true}',
    ),
    (
        {"assigner": Global(), "trigger": ProcessingTimeoutTrigger(PurgingTrigger(CountTrigger(3)), timeout_ms=9_000)},
        'type = "global"\ntrigger = {type = "processing_timeout", timeout = "9s",'
        ' of = {type = "purging", of = {type = "count", n = 3}}}',
    ),
    (
        {
            "assigner": DynamicSession("gap"),
            "trigger": ContinuousEventTimeTrigger(60_000),
            "evictor": TimeEvictor(5_000),
        },
        'type = "session"\ngap_column = "gap"\ntrigger = {type = "continuous_event_time", interval = "1m"}\n'
        'evictor = {type = "time", keep = "5s"}',
    ),
    (
        {"assigner": Tumbling(60_000), "trigger": DeltaTrigger(2.5, "price", absolute=True), "time": "processing"},
        'type = "tumbling"\nsize = "1m"\ntime = "processing"\n'
        'trigger = {type = "delta", of = "price", threshold = 2.5, absolute = true}',
    ),
]


@dataclass(frozen=True)
class Longest:
    """A user's function, made with a number."""

    n: int = 1

    def process(self, values: Any, context: Any) -> Any:
        return [{"length": self.n}]

    def clear(self, context: Any) -> None:
        """Nothing to forget."""


@pytest.mark.parametrize(
    ("given", "toml"), SAME, ids=lambda value: value.split("\n")[0] if isinstance(value, str) else ""
)
def test_python_and_toml_are_the_same_definition(given: dict[str, Any], toml: str, tmp_path: Path) -> None:
    file = tmp_path / "visits.toml"
    file.write_text(f"{HEAD}[window]\n{toml}\n")
    written = load_definition(file)
    watermark = {"out_of_orderness": "5m"}
    made = define(
        "visits", source=SOURCE, watermark=watermark, aggregates={"events": "count(*)"}, folder=tmp_path, **given
    )
    assert made.spec == written.spec
    assert made.semantics() == written.semantics()
    assert (folder_of(made), made.source, made.plan) == (folder_of(written), written.source, written.plan)


def test_a_user_function_is_created_again_with_its_fields(tmp_path: Path) -> None:
    made = define(
        "visits",
        source=SOURCE,
        watermark={"out_of_orderness": "5m"},
        assigner=Session(gap_ms=1000),
        function=Longest(n=3),
        reads=["page"],
        output={"length": "bigint"},
        folder=tmp_path,
    )
    assert made.spec.process == Longest(n=3)
    assert (made.reads, made.own_classes) == (("page",), ("tests.definition.test_define:Longest",))


def test_mistakes_in_python_are_reported_like_those_in_toml(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match=r"visits \(in Python\): window.trigger: \"delta\" cannot follow"):
        define(
            "visits",
            source=SOURCE,
            watermark={"out_of_orderness": "5m"},
            assigner=Session(gap_ms=1000),
            trigger=DeltaTrigger(1, "price"),
            aggregates={"events": "count(*)"},
            folder=tmp_path,
        )


class Doubled(CountTrigger):
    """Stores another value than its argument."""

    def __init__(self, n: int) -> None:
        object.__setattr__(self, "n", 2 * n)


class Slotted:
    """An evictor without a dictionary."""

    __slots__ = ("n",)

    def __init__(self, n: int = 1) -> None:
        self.n = n

    def evict_before(self, elements: Any, window: Any) -> Any:
        return elements[-self.n :]

    def evict_after(self, elements: Any, window: Any) -> Any:
        return elements


def _with(tmp_path: Path, **given: Any) -> Any:
    aggregates, watermark = {"events": "count(*)"}, {"out_of_orderness": "5m"}
    common = {"source": SOURCE, "watermark": watermark, "aggregates": aggregates, "folder": tmp_path}
    return define("visits", assigner=Session(gap_ms=1000), **common, **given)  # type: ignore[arg-type]


def test_an_object_that_cannot_be_created_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidSpec, match=r"Doubled cannot be recreated from its attributes \{n = 10\}: the copy has \{n = 20\}"
    ):
        _with(tmp_path, trigger=Doubled(5))


def test_an_object_with_slots_is_created_again_with_their_values(tmp_path: Path) -> None:
    evictor = _with(tmp_path, evictor=Slotted(7)).spec.evictor
    assert (type(evictor), evictor.n) == (Slotted, 7)
