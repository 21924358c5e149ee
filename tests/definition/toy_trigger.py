"""A trigger with one class and one entry, registered in this process only: the output of every place, as JSON.

python -m tests.definition.toy_trigger FOLDER
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from windowlib.definition import registry
from windowlib.definition.kinds import duration, kind, whole_number
from windowlib.model.triggers import CONTINUE, FIRE, TriggerContext, TriggerResult, TriggerState, WindowKind


@dataclass(frozen=True, slots=True)
class ApartTrigger:
    """Fires at an element that comes ``apart_ms`` or more after the last firing, at most ``times`` times."""

    apart_ms: int
    times: int = 9
    merges: ClassVar[bool] = False
    window_kind: ClassVar[WindowKind] = "any"

    def on_element(self, value: Any, timestamp_ms: int, context: TriggerContext) -> TriggerResult:
        fired = context.state.get("fired", [])
        if len(fired) == self.times or (fired and timestamp_ms - fired[-1] < self.apart_ms):
            return CONTINUE
        context.state["fired"] = [*fired, timestamp_ms]
        return FIRE

    def on_event_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_processing_time(self, time_ms: int, context: TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_merge(self, merged: Sequence[TriggerState], context: TriggerContext) -> None:
        raise AssertionError("such windows do not merge")

    def clear(self, context: TriggerContext) -> None:
        context.state.pop("fired", None)


ENTRY = kind(
    "apart",
    ApartTrigger,
    "{apart} apart, {times} times",
    apart_ms=duration("how far apart firings are"),
    times=whole_number(1, "how often a window fires"),
)


def places(folder: Path) -> dict[str, Any]:
    """Output of each place for the entry; imported after the registration."""
    from docs.gallery.page import page as gallery
    from windowlib.airflow.dag_docs import page
    from windowlib.definition.define import define
    from windowlib.definition.definition import InvalidDefinition, load_definition
    from windowlib.inspection.plan import explain
    from windowlib.model.assigners import Tumbling
    from windowlib.replay.scenarios import replay

    head = """
name = "toy"
source = {format = "parquet", path = "in", key = [], timestamp = "at"}
watermark = {out_of_orderness = "1m"}
aggregates = {n = "count(*)"}
"""
    file = folder / "toy.toml"
    file.write_text(f'{head}[window]\ntype = "tumbling"\nsize = "1h"\ntrigger = {{type = "apart", apart = "5m"}}\n')
    found = load_definition(file)
    made = define(
        "toy",
        source={"format": "parquet", "path": "in", "key": [], "timestamp": "at"},
        watermark={"out_of_orderness": "1m"},
        aggregates={"n": "count(*)"},
        assigner=Tumbling(3_600_000),
        trigger=ApartTrigger(300_000),
        folder=folder,
    )
    mistakes = []
    for window in (
        'type = "session"\ngap = "1h"\ntrigger = {type = "apart", apart = "5m"}',
        'type = "global"\ntrigger = {type = "apart", times = 0}',
        'type = "global"\ntrigger = {type = "never", apart = "5m"}',
    ):
        (folder / "wrong.toml").write_text(f"{head}[window]\n{window}\n")
        try:
            load_definition(folder / "wrong.toml")
        except InvalidDefinition as error:
            mistakes += [line.partition("wrong.toml: ")[2] for line in str(error).splitlines()]
    scenario = {
        "assigner": {"type": "global"},
        "trigger": {"type": "purging", "of": {"type": "apart", "apart_ms": 5}},
        "function": "count",
        "steps": [{"element": {"key": "a", "ts": time_ms, "value": 1, "id": "e"}} for time_ms in (1, 3, 6)],
    }
    return {
        "toml": repr(found.spec.trigger),
        "python": made.semantics() == found.semantics() and made.spec == found.spec,
        "mistakes": mistakes,
        "replay": [len(step["emitted"]) for step in replay(scenario)["steps"]],
        "explain-plan": explain(found).windows,
        "airflow": page(found),
        "gallery": gallery(),
    }


if __name__ == "__main__":
    registry.TRIGGERS[ENTRY.name] = ENTRY
    print(json.dumps(places(Path(sys.argv[1]))))
