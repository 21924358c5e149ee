"""Several pipelines over one stream of clicks: the same tables, whether each runs alone or all together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.clicks import arrive, events
from windowlib.definition.definition import Definition, load_definition
from windowlib.storage.disk import Disk

HEAD = """
name = "{name}"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
max_files_per_run = 1
[watermark]
out_of_orderness = "5m"
[window]
{window}
[aggregates]
{aggregates}
"""
COUNT, TOTAL = 'clicks = "count(*)"', 'total = "sum(value)"'
WINDOWS = {
    "visits": ('type = "session"\ngap = "10m"\nallowed_lateness = "2h"', f'{COUNT}\n{TOTAL}\nmean = "avg(value)"'),
    "short_visits": ('type = "session"\ngap = "4m"', f'{TOTAL}\nlong = "count(*) filter (where value > 50)"'),
    "hours": ('type = "tumbling"\nsize = "1h"\nallowed_lateness = "1h"', f"{COUNT}\n{TOTAL}"),
    "shifted": ('type = "tumbling"\nsize = "30m"\noffset = "2m"', 'most = "max(value)"\nleast = "min(value)"'),
    "sliding": ('type = "sliding"\nsize = "40m"\nslide = "10m"\nallowed_lateness = "1h"', f"{TOTAL}\n{COUNT}"),
}


def definition_text(name: str, replaced: Mapping[str, str] | None = None) -> str:
    """The definition of one of `WINDOWS`, with pieces of text replaced."""
    window, aggregates = WINDOWS[name]
    text = HEAD.format(name=name, window=window, aggregates=aggregates)
    for old, new in (replaced or {}).items():
        assert old in text, f"{old} is not in {name}"
        text = text.replace(old, new)
    return text


def pipeline(folder: Path, name: str, text: str | None = None) -> Definition:
    """A definition in a folder, with its own warehouse, independent of the environment."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "incoming").mkdir(exist_ok=True)
    file = folder / f"{name}.toml"
    file.write_text(definition_text(name) if text is None else text)
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / name)})


def pipelines(folder: Path) -> list[Definition]:
    """All of `WINDOWS`."""
    return [pipeline(folder, name) for name in WINDOWS]


def arrives(folder: Path, *numbers: int, count: int = 80) -> None:
    """The files with these numbers arrive."""
    for number in numbers:
        arrive(folder, number, events(number, count))
