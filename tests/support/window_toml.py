"""Definitions that differ in their windows and aggregates only, and the mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowlib.definition.definition import Definition, InvalidDefinition, load_definition

SOURCE = """
name = "clicks"
[source]
format = "csv"
path = "incoming"
key = ["user"]
timestamp = "at"
[source.schema]
user = "string"
at = "timestamp"
page = "string"
value = "bigint"
price = "decimal(10,2)"
gap_ms = "bigint"
[watermark]
out_of_orderness = "1m"
"""
AGGREGATES = '[aggregates]\nevents = "count(*)"\ntotal = "sum(value)"\n'

TUMBLING = 'type = "tumbling"\nsize = "1h"\n'
SLIDING = 'type = "sliding"\nsize = "1h"\nslide = "10m"\n'
CUMULATING = 'type = "cumulating"\nmax_size = "1h"\nstep = "15m"\n'
SESSION = 'type = "session"\ngap = "30m"\n'
GLOBAL = 'type = "global"\n'
FUNCTION = 'function = "own:Top"\noutput = {page = "string", seen = "bigint"}\n'


def written(folder: Path, window: str, aggregates: str = AGGREGATES, source: str = SOURCE) -> Path:
    """File of a definition whose table [window] is ``window``."""
    file = folder / "clicks.toml"
    file.write_text(f"{source}[window]\n{window}\n{aggregates}", encoding="utf-8")
    return file


def definition(folder: Path, window: str, aggregates: str = AGGREGATES, source: str = SOURCE) -> Definition:
    """Such a definition, read."""
    return load_definition(written(folder, window, aggregates, source))


def mistakes(folder: Path, window: str, aggregates: str = AGGREGATES) -> list[str]:
    """Mistakes of such a definition, one line each, without the file name."""
    file = written(folder, window, aggregates)
    with pytest.raises(InvalidDefinition) as caught:
        load_definition(file)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{file}: ") for line in lines)
    return [line.removeprefix(f"{file}: ") for line in lines]
