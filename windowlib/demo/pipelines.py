"""Definitions of the demo: sessions and sliding windows over the same arrival files."""

from collections.abc import Sequence
from pathlib import Path

from windowlib.definition.toml.durations import format_duration
from windowlib.demo.arrivals import LATENESS_MS, OUT_OF_ORDERNESS_MS
from windowlib.demo.clicks import GAP_MS
from windowlib.demo.truth import SIZE_MS, SLIDE_MS

_DEFINITION = """\
# {about}
name = "{name}"
warehouse = "{warehouse}"
engine = "{engine}"

[source]
format = "parquet"
path = "{incoming}"
key = ["user_id"]
timestamp = "ts"
event_id = "event_id"                   # a second copy of an event is dropped
dedup_horizon = "1d"
max_files_per_run = 1                   # one batch for each file, so that you can watch the progress

[watermark]
out_of_orderness = "{out_of_orderness}"
max_future_skew = "10m"                 # events from further ahead go to quarantine

[window]
{window}
allowed_lateness = "{lateness}"

[aggregates]
events = "count(*)"
total = "sum(value)"
"""


def write_definitions(
    folder: Path, engines: Sequence[str] = ("spark", "spark"), address: str = ""
) -> tuple[Path, Path]:
    """Writes ``sessions.toml`` and ``sliding.toml`` into ``folder``, each with its engine.

    ``address`` is the place of ``incoming`` and ``warehouse``; by default ``folder``.
    """
    gap, size, slide = map(format_duration, (GAP_MS, SIZE_MS, SLIDE_MS))
    sessions, sliding = folder / "sessions.toml", folder / "sliding.toml"
    ends, slides = f"{gap} without a click ends one", f"the last {size}, every {slide}"
    window = f'type = "session"\ngap = "{gap}"'
    start = f"{address}/" if address else ""
    sessions.write_text(_definition("demo_sessions", f"Sessions of each user: {ends}.", window, engines[0], start))
    window = f'type = "sliding"\nsize = "{size}"\nslide = "{slide}"'
    sliding.write_text(_definition("demo_sliding", f"Clicks of each user in {slides}.", window, engines[1], start))
    return sessions, sliding


def _definition(name: str, about: str, window: str, engine: str, start: str) -> str:
    return _DEFINITION.format(
        name=name,
        about=about,
        window=window,
        engine=engine,
        warehouse=f"{start}warehouse",
        incoming=f"{start}incoming",
        out_of_orderness=format_duration(OUT_OF_ORDERNESS_MS),
        lateness=format_duration(LATENESS_MS),
    )
